"""Clients that mean harm, or are broken: nothing of theirs reaches anybody else."""

from __future__ import annotations

import struct
from random import Random

import pytest
import trio
import trio.testing

from qserver.engine.turns import current_line
from qserver.limits import NAMED_STATEMENTS_MAX, PORTALS_MAX
from qserver.pgwire import limits
from tests.pgwire.serving import in_thread, serving
from tests.pgwire.wire import (
    HELLO,
    PASSWORD,
    SYNC,
    TERMINATE,
    Wire,
    bind,
    code,
    describe,
    execute,
    frame,
    kinds,
    messages_of,
    parse,
    query,
    rows,
    startup,
    text,
)

TABLE = "create table t (id int primary key, n text)"
CONVERSATION = (
    HELLO
    + PASSWORD
    + query(TABLE + "; insert into t values (1, 'a')")
    + parse("select n from t where id = $1", "s", [23])
    + describe("S", "s")
    + bind([b"1"], "s", "p", results=[1])
    + describe("P", "p")
    + execute("p", 1)
    + execute("p")
    + SYNC
    + query("begin; select 1; savepoint a; selec; rollback")
    + query("rollback to a; commit")
    + TERMINATE
)


async def answers(port: int, pieces: list[bytes]) -> str:
    """What the server says to bytes that are sent so."""
    async with await Wire.open(port) as wire:
        for piece in pieces:
            try:
                await wire.send(piece)
            except trio.BrokenResourceError:
                break
            if len(pieces) > 1:
                await trio.testing.wait_all_tasks_blocked(0.0)
        return kinds(await wire.until_end())


async def test_a_conversation_does_not_depend_on_where_it_is_cut() -> None:
    async with serving() as served:
        whole = await answers(served.port, [CONVERSATION])
        assert whole.count("Z") == 5 and "E" in whole
    async with serving() as served:
        single = [CONVERSATION[at : at + 1] for at in range(len(CONVERSATION))]
        assert await answers(served.port, single) == whole


async def test_a_client_may_leave_after_every_byte() -> None:
    async with serving() as served:
        for at in range(0, len(CONVERSATION), 3):
            async with await Wire.open(served.port) as wire:
                await wire.send(CONVERSATION[:at])
        async with await Wire.enter(served.port) as wire:
            assert rows(await wire.run("select 1")) == [(b"1",)]
            for _ in range(100):
                if served.statistics()["connections_open"] == 1:
                    break
                await wire.run("select 1")
            assert served.statistics()["connections_open"] == 1
        assert served.service.plane.open_transactions.statistics().held == 0


@pytest.mark.parametrize("seed", range(20))
async def test_random_bytes_end_in_an_error_or_the_end(seed: int) -> None:
    random = Random(seed)
    async with serving() as served:
        for _ in range(10):
            async with await Wire.open(served.port) as wire:
                await wire.send(HELLO + PASSWORD)
                await wire.until_ready()
                junk = bytearray(CONVERSATION[len(HELLO + PASSWORD) :])
                for _ in range(random.randrange(1, 12)):
                    junk[random.randrange(len(junk))] = random.randrange(256)
                try:
                    await wire.send(bytes(junk))
                    await wire.stream.send_eof()
                except trio.BrokenResourceError:
                    pass
                await wire.until_end()
        async with await Wire.enter(served.port) as wire:
            assert rows(await wire.run("select 1")) == [(b"1",)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0\0\0\3", "08P01"),
        (b"\x7f\xff\xff\xff\0\3\0\0", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (struct.pack("!ii", 8, 2 << 16), "0A000"),
        (struct.pack("!ii", 9, 196608) + b"\0", "28000"),
        (startup(user="me", database="main", replication="database"), "0A000"),
        (startup(user="me", database="main", client_encoding="latin1"), "0A000"),
        (startup(user="me", database="main", options="-c no_such_thing=1"), "42704"),
        (HELLO + query("select 1"), "08P01"),
        (HELLO + frame("p", text("svc_k_wrongwrongwrong")), "28P01"),
        (HELLO + frame("p", b"no end"), "08P01"),
        (startup(user="me", database="never") + PASSWORD, "3D000"),
        (startup(user="key_0123456789012345678901") + PASSWORD, "08P01"),
    ],
)
async def test_who_does_not_enter_is_told_why(data: bytes, expected: str) -> None:
    async with serving() as served, await Wire.open(served.port) as wire:
        await wire.send(data)
        got = await wire.until_end()
        assert code(got) == expected, got
        assert got[-1].fields()["S"] == "FATAL"


async def test_bytes_before_tls_end_the_connection() -> None:
    async with serving() as served, await Wire.open(served.port) as wire:
        await wire.send(struct.pack("!ii", 8, 80877103) + HELLO)
        got = await wire.until_end()
        assert code(got) == "08P01"


async def test_without_a_certificate_there_is_no_tls() -> None:
    async with serving() as served, await Wire.open(served.port) as wire:
        for request in (80877103, 80877104):
            await wire.send(struct.pack("!ii", 8, request))
            assert await wire.stream.receive_some(1) == b"N"
        await wire.send(HELLO + PASSWORD)
        assert kinds(await wire.until_ready())[-1] == "Z"


async def test_a_newer_minor_version_is_negotiated() -> None:
    hello = startup(2, **{"user": "me", "database": "main", "_pq_.some": "1"})
    async with serving() as served, await Wire.open(served.port) as wire:
        await wire.send(hello + PASSWORD)
        got = await wire.until_ready()
        assert got[0].kind == "v" and got[0].body == struct.pack("!ii", 0, 1) + b"_pq_.some\0"


async def test_many_prepared_statements_are_refused() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        flood = b"".join(parse("select 1", f"s{at}") for at in range(NAMED_STATEMENTS_MAX + 5))
        got = await wire.ask(flood + SYNC)
        assert code(got) == "54000" and kinds(got).count("1") == NAMED_STATEMENTS_MAX
        flood = b"".join(bind(name="s1", portal=f"p{at}") for at in range(PORTALS_MAX + 5))
        got = await wire.ask(flood + SYNC)
        assert code(got) == "54000" and kinds(got).count("2") == PORTALS_MAX


async def test_failures_count_against_the_address() -> None:
    async with serving() as served:
        wrong = HELLO + frame("p", text("svc_k_wrongwrongwrong"))
        for at in range(limits.FAILURES_MAX + 1):
            async with await Wire.open(served.port) as wire:
                await wire.send(wrong)
                expected = "28P01" if at < limits.FAILURES_MAX else "53300"
                assert code(await wire.until_end()) == expected
        assert served.statistics()["authentications_failed"] == limits.FAILURES_MAX


async def test_cancel_with_a_guessed_secret_does_nothing() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        for secret in (0, wire.secret ^ 1):
            async with await Wire.open(served.port) as other:
                await other.send(struct.pack("!iiiI", 16, 80877102, wire.number, secret))
                assert await other.until_end() == []
        assert rows(await wire.run("select 1")) == [(b"1",)]


async def test_a_statement_is_cancelled() -> None:
    slow = "select count(*) from generate_series(1, 100000000)"
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.send(query(slow))
        async with await Wire.open(served.port) as other:
            await other.send(struct.pack("!iiiI", 16, 80877102, wire.number, wire.secret))
            assert await other.until_end() == []
        got = await wire.until_ready()
        assert code(got) == "57014" and "user request" in got[-2].fields()["M"]
        assert rows(await wire.run("select 1")) == [(b"1",)]


@pytest.mark.long
async def test_the_time_of_a_statement_is_that_of_its_organization() -> None:
    """What nobody owned would be charged to all who are to come, and keep them out."""
    slow, line = "select count(*) from generate_series(1, 100000000)", current_line()
    async with serving() as served, await Wire.enter(served.port) as wire:
        turns = (await served.grant()).share.turns
        before, strangers_before = turns.seconds, line.strangers.seconds
        await wire.send(query(slow))
        while turns.seconds + line.strangers.seconds < before + strangers_before + 0.3:
            await trio.lowlevel.checkpoint()
        assert line.strangers.seconds - strangers_before < 0.1
        async with await Wire.enter(served.port) as other:
            assert rows(await other.run("select 1")) == [(b"1",)]


@pytest.mark.half
async def test_a_client_that_does_not_read_stops_its_statement() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.send(query("select repeat('x', 10000) from generate_series(1, 20000)"))
        async with await Wire.enter(served.port) as other:
            for _ in range(20):
                assert rows(await other.run("select 1")) == [(b"1",)]
        sent = served.statistics()["bytes_out"]
        assert sent < 20_000 * 10_000, "the rest was not computed"
        assert len(rows(await wire.until_ready())) == 20_000


async def test_half_open_clients_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.pgwire.listener.STRANGERS_MAX", 3)
    async with serving() as served:
        strangers = [await Wire.open(served.port) for _ in range(3)]
        async with await Wire.open(served.port) as wire:
            assert code(await wire.until_end()) == "53300"
        for each in strangers:
            await each.stream.aclose()
        await in_thread(lambda: None)
        async with await Wire.enter(served.port) as wire:
            assert rows(await wire.run("select 1")) == [(b"1",)]


async def test_messages_that_are_not_asked_for() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        for kind in "dcf":
            assert kinds(await wire.ask(frame(kind, b"x" * (kind != "c")) + SYNC)) == "Z"
        assert code(await wire.ask(frame("F", b"\0" * 10))) == "0A000"
        await wire.send(PASSWORD)
        assert code(await wire.until_end()) == "08P01"


def test_messages_are_whole() -> None:
    assert messages_of(frame("Z", b"I"))[0].body == b"I"

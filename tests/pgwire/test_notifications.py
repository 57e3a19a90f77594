"""LISTEN and NOTIFY over the wire: when a client is told, of what, and how a slow one ends."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import psycopg
import pytest
import trio
import trio.lowlevel

from qserver.engine import channels as engine_channels
from tests.pgwire.serving import PATIENCE_SECONDS, Served, in_thread, serving
from tests.pgwire.wire import SYNC, Wire, bind, code, execute, kinds, parse, rows, startup, tags

Told = list[tuple[str, str]]


def told(messages: list[Any]) -> Told:
    """Channel and payload of each notification."""
    found = []
    for each in messages:
        if each.kind == "A":
            channel, payload, rest = each.body[4:].split(b"\0")
            assert rest == b""
            found.append((channel.decode(), payload.decode()))
    return found


async def heard(wire: Wire, most: int) -> Told:
    """Wait for so many notifications, while the client says nothing."""
    found: Told = []
    while len(found) < most:
        found += told([await wire.message()])
    return found


async def ended(wire: Wire) -> str:
    """Return the code of the error that ends a session."""
    last = (await wire.until_end())[-1]
    assert last.kind == "E"
    return last.fields()["C"]


async def with_second(served: Served) -> bytes:
    """Make another database; return the startup that names it."""
    plane, grant = served.service.plane, await served.grant()
    await plane.records.create(grant, "second")
    return startup(user="me", database="second")


async def test_an_idle_session_is_told_at_once() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            assert tags(await one.run("listen news")) == ["LISTEN"]
            assert tags(await two.run("notify news, 'hello'")) == ["NOTIFY"]
            assert await heard(one, 1) == [("news", "hello")]
            await two.run("select pg_notify('news', n::text) from generate_series(1, 3) n")
            assert await heard(one, 3) == [("news", str(n)) for n in (1, 2, 3)]
            await two.ask(parse("select pg_notify($1, $2)") + SYNC)
            for payload in (b"bound", b"again"):
                await two.ask(bind([b"news", payload]) + execute() + SYNC)
            await two.ask(bind([b"news", None]) + execute() + SYNC)
            assert await heard(one, 3) == [("news", "bound"), ("news", "again"), ("news", "")]


async def test_a_session_hears_its_own_before_it_is_ready() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        got = await wire.run("begin; listen news; notify news, 'own'; commit")
        assert kinds(got) == "CCCCAZ" and told(got) == [("news", "own")]
        pid = (await wire.run("select pg_backend_pid()"))[1]
        got = await wire.run("notify news")
        assert kinds(got) == "CAZ"
        assert got[1].body[:4] == int(pid.body[6:]).to_bytes(4, "big")


async def test_what_was_told_meanwhile_comes_at_the_end_of_the_transaction() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            await one.run("listen news")
            await one.run("begin")
            await two.run("notify news, 'while it is open'")
            assert told(await one.run("select 1")) == []
            got = await one.run("commit")
            assert kinds(got) == "CAZ" and told(got) == [("news", "while it is open")]


async def test_nothing_is_told_of_what_is_rolled_back() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("listen news")
        assert told(await wire.run("begin; notify news, 'no'; rollback")) == []
        assert told(await wire.run("notify news, 'no'; select 1/0")) == []
        got = await wire.run(
            "begin; notify news, 'a'; savepoint s; notify news, 'b'; notify news, 'a';"
            "rollback to s; notify news, 'c'; notify news, 'a'; commit"
        )
        assert told(got) == [("news", "a"), ("news", "c")]


async def test_listen_and_unlisten_hold_from_their_commit_on() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        channels = "select * from pg_listening_channels()"
        await wire.run("begin; listen a")
        assert rows(await wire.run(channels)) == []
        await wire.run("savepoint s; listen b; rollback to s; listen c")
        await wire.run("commit")
        assert rows(await wire.run(channels)) == [(b"a",), (b"c",)]
        await wire.run("begin; unlisten *; listen d; rollback")
        assert rows(await wire.run(channels)) == [(b"a",), (b"c",)]
        assert told(await wire.run("notify b; notify d; notify c")) == [("c", "")]
        await wire.run("unlisten a")
        assert told(await wire.run("notify a; notify c")) == [("c", "")]
        await wire.run("discard all")
        assert told(await wire.run("notify c")) == [] == rows(await wire.run(channels))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select pg_notify('', 'x')", "22023"),
        ("select pg_notify(null, 'x')", "22023"),
        ("select pg_notify(repeat('n', 64), 'x')", "22023"),
        ("select pg_notify('news', repeat('x', 8000))", "22023"),
        ("select pg_notify('news', n::text) from generate_series(1, 5001) n", "54000"),
        ("begin read only; notify news", "25006"),
        ("begin read only; select pg_notify('news', '')", "25006"),
    ],
)
async def test_what_cannot_be_told_is_refused(sql: str, expected: str) -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("listen news")
        got = await wire.run(sql)
        assert code(got) == expected and told(got) == []
        await wire.run("rollback")
        assert told(await wire.run("select pg_notify('news', repeat('x', 7999))")) != []


async def test_a_session_that_does_not_take_its_notifications_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_channels, "NOTIFICATIONS_QUEUED_MAX", 5)
    async with serving() as served:
        async with await Wire.enter(served.port) as slow, await Wire.enter(served.port) as two:
            await slow.run("listen news")
            await slow.run("begin")
            for number in range(6):
                await two.run(f"notify news, '{number}'")
            assert tags(await slow.run("commit")) == ["COMMIT"]
            assert await ended(slow) == "54000"
            assert rows(await two.run("select pg_notification_queue_usage()")) == [(b"0",)]


async def test_a_listener_keeps_its_database_open_and_ends_with_it() -> None:
    async with serving() as served:
        second = await with_second(served)
        async with await Wire.enter(served.port, second) as wire:
            await wire.run("listen news")
            grant = await served.grant()
            opened = served.service.plane.database_nowait(grant, "second")
            assert opened is not None and opened.users == 2, "the listener, and this"
            opened.release()
            opened.begin_close()
            assert await ended(wire) == "57P03"
            with trio.fail_after(PATIENCE_SECONDS):
                while opened.users:
                    await trio.lowlevel.checkpoint()


async def test_channels_of_other_databases_are_others() -> None:
    async with serving() as served:
        second = await with_second(served)
        async with (
            await Wire.enter(served.port) as one,
            await Wire.enter(served.port, second) as two,
        ):
            await one.run("listen news")
            await two.run("listen news")
            assert told(await two.run("notify news, 'of the second'")) != []
            assert told(await one.run("notify news, 'of the first'")) == [("news", "of the first")]


def with_psycopg(served: Served) -> None:
    with (
        psycopg.connect(served.url, autocommit=True) as listening,
        psycopg.connect(served.url, autocommit=True) as other,
    ):
        listening.execute("LISTEN news")
        with other.transaction():
            other.execute("SELECT pg_notify(%s, %s)", ("news", "one"))
            other.execute("NOTIFY news, 'two'")
        found = list(listening.notifies(timeout=60, stop_after=2))
        assert [each.payload for each in found] == ["one", "two"]
        assert {each.pid for each in found} == {other.info.backend_pid}


async def with_asyncpg(served: Served) -> None:
    listening, other = await asyncpg.connect(served.url), await asyncpg.connect(served.url)
    found: asyncio.Queue[Any] = asyncio.Queue()

    def hear(connection: Any, pid: int, channel: str, payload: str) -> None:
        found.put_nowait((pid, channel, payload))

    await listening.add_listener("news", hear)
    await other.execute("SELECT pg_notify($1, $2)", "news", "hey")
    assert await found.get() == (other.get_server_pid(), "news", "hey")
    await listening.remove_listener("news", hear)
    await other.execute("NOTIFY news, 'nobody hears'")
    assert await listening.fetch("SELECT * FROM pg_listening_channels()") == []
    assert found.empty()
    await listening.close()
    await other.close()


async def test_drivers_hear() -> None:
    async with serving() as served:
        await in_thread(with_psycopg, served)
        await in_thread(asyncio.run, with_asyncpg(served))

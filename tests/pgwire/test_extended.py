"""The extended protocol, message by message."""

from __future__ import annotations

import struct
from random import Random

import pytest
import trio.testing

from tests.pgwire.serving import serving
from tests.pgwire.wire import (
    FLUSH,
    SYNC,
    Message,
    Wire,
    bind,
    close,
    code,
    describe,
    execute,
    kinds,
    parse,
    query,
    rows,
    tags,
)

TABLE = "create table t (id int primary key, n text)"


async def test_a_statement_is_described_before_it_runs() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        got = await wire.ask(
            parse("select id, n from t where id = $1", "s") + describe("S", "s") + SYNC
        )
        assert kinds(got) == "1tTZ"
        assert got[1].body == struct.pack("!HI", 1, 23)
        assert got[2].body.startswith(struct.pack("!h", 2) + b"id\0")
        got = await wire.ask(parse("insert into t values ($1, $2)") + describe("S") + SYNC)
        assert kinds(got) == "1tnZ"
        assert got[1].body == struct.pack("!HII", 2, 23, 25)


async def test_declared_types_decide() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        for oids, binary, shown in (
            ((23,), struct.pack("!i", 7), b"7"),
            ((20,), struct.pack("!q", 2**40), b"1099511627776"),
            ((701,), struct.pack("!d", 1.5), b"1.5"),
            ((25,), b"x", b"x"),
            ((0,), b"x", b"x"),
        ):
            got = await wire.ask(
                parse("select $1 as it", oids=oids) + bind([binary], formats=[1]) + execute() + SYNC
            )
            assert rows(got) == [(shown,)], got


async def test_a_bigint_is_compared_with_an_integer_column_as_it_is() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE + "; insert into t values (1, 'a')")
        for value in (1, 2**40):
            got = await wire.ask(
                parse("select n from t where id = $1", oids=[20])
                + bind([str(value).encode()])
                + execute()
                + SYNC
            )
            assert rows(got) == ([(b"a",)] if value == 1 else []), got


async def test_a_pipeline_is_one_transaction() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        insert = parse("insert into t values ($1, 'a')")
        first, second = (bind([number]) + execute() for number in (b"1", b"2"))
        got = await wire.ask(insert + first + second + SYNC)
        assert kinds(got) == "12C2CZ" and tags(got) == ["INSERT 0 1"] * 2
        third, again = (bind([number]) + execute() for number in (b"3", b"1"))
        got = await wire.ask(insert + third + again + first + SYNC)
        assert kinds(got) == "12C2EZ" and code(got) == "23505"
        assert rows(await wire.run("select count(*) from t")) == [(b"2",)]


async def test_after_an_error_everything_up_to_sync_is_passed_over() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        wrong = parse("selec 1") + parse("select 2", "s") + bind(name="s") + execute()
        got = await wire.ask(wrong + query("select 3") + SYNC)
        assert kinds(got) == "EZ"
        got = await wire.ask(bind(name="s") + SYNC)
        assert code(got) == "26000"


async def test_an_error_is_sent_at_flush() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.send(parse("selec 1") + FLUSH)
        got = await wire.message()
        assert got is not None and got.kind == "E"
        assert kinds(await wire.ask(SYNC)) == "Z"


async def test_a_portal_gives_rows_bit_by_bit() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        select = parse("select * from generate_series(1, 5)") + bind(portal="p")
        two = execute("p", 2)
        got = await wire.ask(select + two + two + two + two + SYNC)
        assert kinds(got) == "12DDsDDsDCCZ"
        assert tags(got) == ["SELECT 1", "SELECT 0"]
        got = await wire.ask(two + SYNC)
        assert code(got) == "34000", "it ended with its transaction"


async def test_a_portal_stays_while_others_write_in_its_transaction() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE + "; insert into t select i, 'a' from generate_series(1, 4) i")
        await wire.run("begin")
        select = parse("select id from t order by id", "s") + bind(name="s", portal="p")
        got = await wire.ask(select + execute("p", 1) + SYNC)
        assert rows(got) == [(b"1",)] and kinds(got)[-2:] == "sZ"
        await wire.run("delete from t where id > 2; insert into t values (9, 'z')")
        got = await wire.ask(execute("p", 0) + SYNC)
        assert rows(got) == [(b"2",), (b"3",), (b"4",)]
        assert tags(await wire.run("commit")) == ["COMMIT"]
        assert rows(await wire.run("select id from t order by id")) == [(b"1",), (b"2",), (b"9",)]


async def test_statements_and_portals_are_closed() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.ask(parse("select 1", "s") + SYNC)
        assert code(await wire.ask(parse("select 2", "s") + SYNC)) == "42P05"
        assert kinds(await wire.ask(close("S", "s") + close("S", "never") + SYNC)) == "33Z"
        assert code(await wire.ask(describe("S", "s") + SYNC)) == "26000"
        assert code(await wire.ask(describe("P", "p") + SYNC)) == "34000"


async def test_wrong_numbers_of_values_and_formats() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        statement = parse("select $1::int + $2::int")
        for wrong in (bind([b"1"]), bind([b"1"] * 3), bind([b"1"] * 2, formats=[0, 0, 0])):
            assert code(await wire.ask(statement + wrong + SYNC)) == "08P01"
        wrong = bind([b"1", b"2"], formats=[1])
        assert code(await wire.ask(statement + wrong + SYNC)) == "22P03"
        wrong = bind([b"x", b"2"])
        assert code(await wire.ask(statement + wrong + execute() + SYNC)) == "22P02"
        wrong = bind([b"1", b"2"], results=[1, 1])
        assert code(await wire.ask(statement + wrong + SYNC)) == "08P01"
        right = bind([b"1", None], results=[1])
        assert rows(await wire.ask(statement + right + execute() + SYNC)) == [(None,)]


async def test_an_empty_text() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        assert kinds(await wire.run(" ; -- nothing\n ;")) == "IZ"
        got = await wire.ask(parse("") + bind() + describe() + execute() + SYNC)
        assert kinds(got) == "12nIZ"


async def test_a_text_of_several_statements_cannot_be_prepared() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        assert code(await wire.ask(parse("select 1; select 2") + SYNC)) == "42601"


async def test_a_changed_table_changes_no_described_result() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.ask(parse("select * from t", "s") + SYNC)
        await wire.run("alter table t add column more int")
        got = await wire.ask(bind(name="s") + execute() + SYNC)
        assert code(got) == "0A000" and "cached plan" in got[1].fields()["M"]


STATEMENTS = (
    "select n from t where id = $1", "select $1::int / (id - 1) from t order by id desc",
    "insert into t values ($1 + 10, 'new') on conflict do nothing", "", "begin", "commit",
    "rollback", "rollback", "values (1), (2), (3)", "copy t to stdout",
    "select id from t where id > $1", "fetch 1 from nothing", "show timezone",
)  # fmt: skip


def _conversation(seed: int) -> list[bytes]:
    """Messages as drivers send them, and as none would."""
    random, sent = Random(seed), [parse(each, f"s{at}") for at, each in enumerate(STATEMENTS)]
    sent.append(SYNC)
    for _ in range(150):
        at = random.randrange(len(STATEMENTS))
        name = random.choice(("", f"s{at}"))
        portal = random.choice(("", "", "", "p"))
        values: list[bytes | None] = []
        if "$1" in STATEMENTS[at]:
            values = [b"%d" % random.randrange(4)]
        if random.random() < 0.05:
            values = [b"x", None]
        if not name:
            sent.append(parse(STATEMENTS[at]))
        sent.append(bind(values, name, portal))
        sent += [describe("P", random.choice((portal, "")))] * (random.random() < 0.6)
        sent.append(execute(random.choice((portal, portal, "")), random.choice((0, 0, 0, 1))))
        sent += [random.choice((SYNC, SYNC, SYNC, FLUSH, query("select 1")))]
    return [*sent, SYNC, query("rollback"), query("select count(*) as last from t")]


async def _answers(sent: list[bytes]) -> list[Message]:
    """What a new server says to messages that it gets so, up to the last."""
    got: list[Message] = []
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE + "; insert into t values (1, 'a'), (2, 'b'), (3, null)")
        for each in sent:
            await wire.send(each)
            if len(sent) > 1:
                await trio.testing.wait_all_tasks_blocked(0.0)
        while not (len(got) > 3 and got[-4].body[2:6] == b"last"):
            each_got = await wire.message()
            assert each_got is not None, got[-5:]
            got.append(each_got)
    return got


@pytest.mark.parametrize("seed", range(4))
async def test_messages_that_come_together_mean_what_they_mean_apart(seed: int) -> None:
    sent = _conversation(seed)
    together, apart = await _answers([b"".join(sent)]), await _answers(sent)
    assert together == apart
    assert {"T", "D", "E", "n", "C"} <= set(kinds(together))


async def test_what_a_connection_keeps_counts_as_memory_of_its_organization() -> None:
    """Statements, also the unnamed one, and the values of portals, until they are closed."""
    async with serving() as served, await Wire.enter(served.port) as wire:
        memory = (await served.grant()).share.memory
        long = "x" * 300_000
        await wire.ask(parse(f"select '{long}'") + SYNC)
        unnamed = memory.held
        assert unnamed >= 3 * len(long)
        await wire.ask(parse(f"select '{long}'", "s") + SYNC)
        assert memory.held >= 2 * unnamed
        await wire.ask(close("S", "s") + parse("select 1") + SYNC)
        assert memory.held < len(long)
        await wire.ask(parse(f"select '{long}'", "s") + SYNC)
        await wire.run("deallocate all")
        await wire.ask(parse("select 1", "other") + SYNC)
        assert memory.held < len(long)
        await wire.run("begin")
        for name in ("p", "q"):
            await wire.ask(parse("select $1::text") + bind([long.encode()], portal=name) + SYNC)
        assert memory.held >= 4 * len(long)
        await wire.ask(close("P", "p") + SYNC)
        assert memory.held < 4 * len(long)
        await wire.run("rollback")
        assert memory.held < len(long)

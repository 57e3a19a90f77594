"""PREPARE, DECLARE, FETCH and their kin over the wire: tags, portals, both ways to name them."""

from __future__ import annotations

import psycopg

from tests.pgwire.serving import Served, in_thread, serving
from tests.pgwire.wire import (
    SYNC,
    Wire,
    bind,
    close,
    code,
    describe,
    execute,
    kinds,
    parse,
    rows,
    tags,
)

TABLE = "create table t (id int primary key, n int)"
FILL = "insert into t select n, n * n from generate_series(1, 9) n"


async def test_a_prepared_statement_has_the_tag_of_what_runs() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        assert tags(await wire.run("prepare p (int, int) as insert into t values ($1, $2)")) == [
            "PREPARE"
        ]
        assert tags(await wire.run("execute p(1, 2); execute p(2, 1 + 1)")) == ["INSERT 0 1"] * 2
        await wire.run("prepare q as select id, n from t where id = $1")
        got = await wire.run("execute q(2)")
        assert kinds(got) == "TDCZ" and rows(got) == [(b"2", b"2")] and tags(got) == ["SELECT 1"]
        got = await wire.run("execute q(9)")
        assert kinds(got) == "TCZ" and tags(got) == ["SELECT 0"]
        assert tags(await wire.run("deallocate q")) == ["DEALLOCATE"]
        assert tags(await wire.run("deallocate all")) == ["DEALLOCATE ALL"]
        assert tags(await wire.run("discard plans")) == ["DISCARD PLANS"]
        assert tags(await wire.run("discard temporary")) == ["DISCARD TEMP"]
        assert tags(await wire.run("discard all")) == ["DISCARD ALL"]
        assert code(await wire.run("execute p(3, 3)")) == "26000"


async def test_each_way_finds_the_statements_of_the_other() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("prepare p (int) as select $1 + 1")
        got = await wire.ask(describe("S", "p") + bind([b"41"], "p") + execute() + SYNC)
        assert kinds(got) == "tT2DCZ" and rows(got) == [(b"42",)]
        await wire.ask(parse("select $1::int * 2", "q") + SYNC)
        assert rows(await wire.run("execute q(21)")) == [(b"42",)]
        assert code(await wire.run("prepare q as select 1")) == "42P05"
        assert code(await wire.ask(parse("select 1", "p") + SYNC)) == "42P05"
        got = await wire.run("select name, from_sql from pg_prepared_statements order by name")
        assert rows(got) == [(b"p", b"t"), (b"q", b"f")]
        await wire.run("deallocate p; prepare p as select 'another'")
        got = await wire.ask(bind([], "p") + execute() + SYNC)
        assert rows(got) == [(b"another",)]
        await wire.ask(close("S", "p") + SYNC)
        assert code(await wire.run("execute p")) == "26000"
        await wire.run("discard all")
        assert code(await wire.ask(bind([b"1"], "q") + SYNC)) == "26000"


async def test_execute_by_the_extended_protocol_tells_its_columns() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("prepare p (int) as select $1 as a")
        got = await wire.ask(parse("execute p(5)") + describe("S") + bind() + execute() + SYNC)
        assert kinds(got) == "1tT2DCZ" and rows(got) == [(b"5",)] and tags(got) == ["SELECT 1"]
        assert code(await wire.ask(parse("execute nope") + SYNC)) == "26000"


async def test_cursors_give_rows_with_tags() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run(FILL)
        assert code(await wire.run("declare c cursor for select 1")) == "25P01"
        await wire.run("begin")
        got = await wire.run("declare c cursor for select id from t order by id")
        assert tags(got) == ["DECLARE CURSOR"]
        got = await wire.run("fetch 2 from c")
        assert rows(got) == [(b"1",), (b"2",)] and tags(got) == ["FETCH 2"]
        assert tags(await wire.run("move 3 from c")) == ["MOVE 3"]
        got = await wire.ask(describe("P", "c") + SYNC)
        assert kinds(got) == "TZ"
        got = await wire.ask(
            parse("fetch 2 from c") + describe("S") + bind(results=[1]) + execute() + SYNC
        )
        assert kinds(got) == "1tT2DDCZ" and rows(got) == [(b"\0\0\0\6",), (b"\0\0\0\7",)]
        assert tags(await wire.run("close c")) == ["CLOSE CURSOR"]
        assert tags(await wire.run("close all")) == ["CLOSE CURSOR ALL"]
        await wire.run("commit")


async def test_a_cursor_with_hold_needs_no_transaction() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run(FILL)
        got = await wire.run("declare h cursor with hold for select id from t order by id")
        assert tags(got) == ["DECLARE CURSOR"] and got[-1].body == b"I"
        await wire.run("delete from t")
        assert rows(await wire.run("fetch 2 from h")) == [(b"1",), (b"2",)]
        got = await wire.ask(
            parse("declare g cursor with hold for select $1::int") + bind([b"7"]) + execute() + SYNC
        )
        assert tags(got) == ["DECLARE CURSOR"] and got[-1].body == b"I"
        assert rows(await wire.run("fetch all from g")) == [(b"7",)]
        assert code(await wire.run("declare h cursor with hold for select 1")) == "42P03"
        await wire.run("discard all")
        assert code(await wire.run("fetch h")) == "34000"


async def test_the_row_of_a_cursor_is_changed_and_deleted() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run(FILL)
        await wire.run("begin")
        got = await wire.ask(
            parse("declare c cursor for select n from t where id > $1 order by id")
            + bind([b"4"])
            + execute()
            + parse("fetch c")
            + describe("S")
            + bind()
            + execute()
            + SYNC
        )
        assert rows(got) == [(b"25",)], "the key of the row is not shown"
        change = parse("update t set n = $1 where current of c returning id", "u") + describe(
            "S", "u"
        )
        assert kinds(await wire.ask(change + SYNC)) == "1tTZ"
        for value in (b"7", b"8"):
            got = await wire.ask(bind([value], "u") + execute() + SYNC)
            assert rows(got) == [(b"5",)] and tags(got) == ["UPDATE 1"]
        await wire.run("fetch c")
        assert rows(await wire.ask(bind([b"9"], "u") + execute() + SYNC)) == [(b"6",)]
        got = await wire.run("delete from t where current of c; delete from t where current of c")
        assert tags(got) == ["DELETE 1", "DELETE 0"]
        await wire.run("commit")
        assert code(await wire.ask(bind([b"9"], "u") + execute() + SYNC)) == "34000"
        got = await wire.run("select id, n from t where id in (5, 6)")
        assert rows(got) == [(b"5", b"8")]


async def test_portals_and_cursors_read_what_was_there_when_they_began() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run(FILL)
        await wire.run("begin; declare c cursor for select id from t order by id; fetch 1 from c")
        select = parse("select id from t order by id", "s") + bind([], "s", "p")
        assert kinds(await wire.ask(select + execute("p", 2) + SYNC)) == "12DDsZ"
        got = await wire.run("select name from pg_cursors order by name")
        assert rows(got) == [(b"c",), (b"p",)]
        await wire.run("delete from t")
        assert len(rows(await wire.ask(execute("p", 3) + SYNC))) == 3
        assert rows(await wire.run("fetch 1 from c")) == [(b"2",)]
        assert len(rows(await wire.ask(execute("p") + SYNC))) == 4
        assert len(rows(await wire.run("fetch all from c"))) == 7
        await wire.run("rollback")
        assert rows(await wire.run("select count(*) from pg_cursors")) == [(b"0",)]


def _server_side(served: Served) -> None:
    with psycopg.connect(served.url) as connection:
        connection.execute(TABLE)
        connection.execute(FILL)
        for binary in (False, True):
            with connection.cursor("c", binary=binary, scrollable=True) as cursor:
                cursor.execute("select id, n from t where id > %s order by id", (2,))
                assert cursor.fetchone() == (3, 9)
                assert cursor.fetchmany(2) == [(4, 16), (5, 25)]
                cursor.scroll(-2)
                assert cursor.fetchone() == (4, 16)
                assert [row[0] for row in cursor] == [5, 6, 7, 8, 9]
        connection.commit()
        with connection.cursor("h", withhold=True) as cursor:
            cursor.execute("select id from t order by id")
            connection.commit()
            assert cursor.fetchall() == [(number,) for number in range(1, 10)]


async def test_server_side_cursors_of_psycopg() -> None:
    async with serving() as served:
        await in_thread(_server_side, served)


async def test_a_client_is_told_when_a_reported_setting_changes() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:

        async def told(sql: str) -> list[bytes]:
            return [each.body for each in await wire.run(sql) if each.kind == "S"]

        assert await told("select 1") == []
        assert await told("set timezone = 'Europe/Berlin'") == [b"TimeZone\0Europe/Berlin\0"]
        assert await told("set timezone = 'Europe/Berlin'; set work_mem = '8MB'") == []
        assert await told("begin; set application_name = 'x'") == [b"application_name\0x\0"]
        assert await told("rollback") == [b"application_name\0\0"]
        assert await told("discard all") == [b"TimeZone\0UTC\0"]
        got = await wire.ask(parse("set application_name = 'y'") + bind() + execute() + SYNC)
        assert kinds(got) == "12CSZ"


async def test_discard_all_lets_transactions_write_again() -> None:
    discard = parse("discard all") + bind() + execute() + SYNC
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        for key, ask in enumerate((wire.run("discard all"), wire.ask(discard))):
            await wire.run("set session characteristics as transaction read only")
            await ask
            await wire.run("begin")
            assert tags(await wire.run(f"insert into t values ({key}, 1)")) == ["INSERT 0 1"]
            await wire.run("commit")

"""COPY over the wire, in and out, in all formats."""

from __future__ import annotations

import asyncio

import asyncpg
import psycopg

from tests.pgwire.serving import Served, in_thread, serving
from tests.pgwire.wire import (
    SYNC,
    Wire,
    bind,
    code,
    execute,
    frame,
    kinds,
    parse,
    query,
    rows,
    tags,
)

TABLE = "create table t (id int primary key, n text)"


async def test_rows_come_in_and_go_out() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        sent = frame("d", b"1\ta\n2\t\\N\n3") + frame("d", b"\tc\\td\n\\.\n") + frame("c")
        got = await wire.ask(query("copy t from stdin") + sent)
        assert kinds(got) == "GCZ" and tags(got) == ["COPY 3"]
        got = await wire.run("copy (select * from t order by id) to stdout")
        assert kinds(got) == "HdddcCZ" and tags(got) == ["COPY 3"]
        assert [each.body for each in got[1:4]] == [b"1\ta\n", b"2\t\\N\n", b"3\tc\\td\n"]
        got = await wire.run("copy t (n, id) to stdout (format csv, header)")
        assert got[1].body == b"n,id\n" and got[3].body == b",2\n"
        assert served.statistics()["copied_rows"] == 3


async def test_copy_takes_values_for_identities() -> None:
    """As in PostgreSQL: a dump holds the numbers of columns that are GENERATED ALWAYS."""
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("create table n (id int generated always as identity, t text)")
        got = await wire.ask(query("copy n from stdin") + frame("d", b"7\ta\n") + frame("c"))
        assert tags(got) == ["COPY 1"]
        got = await wire.ask(query("copy n (t) from stdin") + frame("d", b"b\n") + frame("c"))
        assert rows(await wire.run("select id from n order by id")) == [(b"1",), (b"7",)]


async def test_a_bad_row_undoes_all_and_is_named() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        for data, expected, place in (
            (b"1\ta\n2\tb\nx\tc\n4\td\n", "22P02", '3, column id: "x"'),
            (b"1\ta\n1\tb\n", "23505", "2"),
            (b"1\ta\n2\n", "22P04", '2: "2"'),
            (b"1\ta\tmore\n", "22P04", '1: "1\ta\tmore"'),
        ):
            got = await wire.ask(query("copy t from stdin") + frame("d", data) + frame("c"))
            assert kinds(got) == "GEZ" and code(got) == expected, got
            assert got[1].fields()["W"] == f"COPY t, line {place}"
            assert rows(await wire.run("select count(*) from t")) == [(b"0",)]
        got = await wire.ask(query("copy t from stdin") + frame("f", b"enough\0"))
        assert code(got) == "57014"
        got = await wire.ask(query("copy never from stdin") + frame("d", b"x") + frame("c"))
        assert kinds(got) == "EZ" and code(got) == "42P01"
        got = await wire.ask(query("copy t from stdin") + query("select 1"))
        assert code(got) == "08P01"


async def test_copy_in_a_transaction_and_in_a_pipeline() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run("begin")
        got = await wire.ask(query("copy t from stdin") + frame("d", b"1\ta\n") + frame("c"))
        assert got[-1].body == b"T"
        await wire.run("rollback")
        whole = parse("copy t from stdin") + bind() + execute() + SYNC  # as libpq sends it
        got = await wire.ask(whole + frame("d", b"2\tb\n") + frame("c") + SYNC)
        assert kinds(got) == "12GCZ" and got[-1].body == b"I"
        assert rows(await wire.run("select id from t")) == [(b"2",)]


async def test_a_key_that_may_only_read() -> None:
    async with serving() as served:
        grant = await served.grant()
        _, secret = await served.service.plane.keys.create(grant, "reads", ["data:read"])
        async with await Wire.enter(served.port) as wire:
            await wire.run(TABLE)
        password = frame("p", secret.encode() + b"\0")
        async with await Wire.enter(served.port, password=password) as wire:
            for sql in ("insert into t values (1, 'a')", "drop table t", "copy t from stdin"):
                assert code(await wire.run(sql)) == "42501"
            assert tags(await wire.run("copy t to stdout")) == ["COPY 0"]


def _psycopg(served: Served) -> None:
    with psycopg.connect(served.url) as connection:
        connection.execute(TABLE)
        every = [(number, f"text {number}\t\\") for number in range(3000)]
        with connection.cursor() as cursor:
            with cursor.copy("copy t from stdin") as copy:
                for row in every:
                    copy.write_row(row)
            with cursor.copy("copy (select * from t order by id) to stdout") as copy:
                copy.set_types(["int4", "text"])
                assert list(copy.rows()) == every
            cursor.execute("truncate t")
            with cursor.copy("copy t from stdin (format binary)") as copy:
                copy.set_types(["int4", "text"])
                for row in every:
                    copy.write_row(row)
            with cursor.copy("copy (select * from t order by id) to stdout binary") as copy:
                copy.set_types(["int4", "text"])
                assert list(copy.rows()) == every


async def test_copy_of_psycopg() -> None:
    async with serving() as served:
        await in_thread(_psycopg, served)


async def _asyncpg(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(TABLE)
    every = [(number, str(number)) for number in range(100)]
    done = await connection.copy_records_to_table("t", records=every, columns=["id", "n"])
    assert done == "COPY 100"
    found = await connection.fetch("select * from t order by id")
    assert [tuple(each) for each in found] == every
    await connection.close()


async def test_copy_of_asyncpg() -> None:
    async with serving() as served:
        await in_thread(lambda: asyncio.run(_asyncpg(served.url)))

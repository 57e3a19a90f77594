"""Types of a database over the wire: drivers find enums and rows by their oids, and decode them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum

from tests.pgwire.serving import in_thread, serving
from tests.pgwire.wire import SYNC, Wire, bind, code, describe, execute, parse, rows

SCHEMA = """
create schema shop;
create type mood as enum ('sad', 'ok', 'so "la, la"');
create type shop.state as enum ('new', 'paid');
create table people (id integer primary key, name varchar(5), feels mood, felt mood[]);
create table shop.orders (id bigint primary key, state shop.state, price numeric(8,2), data bytea);
create view happy as select id, feels from people where feels = 'ok';
insert into people values (1, 'Ada', 'ok', '{sad,ok}'), (2, null, 'so "la, la"', null);
insert into shop.orders values (7, 'paid', 12.50, '\\x00ff')
"""


class Mood(Enum):
    sad = 1
    ok = 2
    soso = 3


MOODS = {Mood.sad: "sad", Mood.ok: "ok", Mood.soso: 'so "la, la"'}


def _connected(url: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url, autocommit=True)
    if connection.execute("select to_regclass('people')").fetchone() == (None,):
        connection.execute(SCHEMA)
    return connection


def _oids_of_results(url: str) -> None:
    with _connected(url) as connection:
        for sql, name in (
            ("select feels from people", "mood"),
            ("select felt from people", "mood[]"),
            ("select max(feels) from people", "mood"),
            ("select 'ok'::mood", "mood"),
            ("select array_agg(feels) from people", "mood[]"),
            ("select p from people p", "people"),
            ("select array_agg(p) from people p", "people[]"),
            ("select null::people", "people"),
            ("select h from happy h", "happy"),
            ("select o.* from shop.orders o", "bigint"),
            ("select o from shop.orders o", "shop.orders"),
            ("select state from shop.orders", "shop.state"),
            ("select row(1, 2)", "record"),
            ("select p from (select * from people) p", "record"),
        ):
            column = connection.execute(sql.encode()).description
            assert column is not None
            told = connection.execute(
                "select format_type(%s, -1), %s = %s::regtype::oid",
                (column[0].type_code, column[0].type_code, name),
            ).fetchone()
            assert told == (name, True), sql


async def test_results_have_the_oids_that_the_catalog_tells() -> None:
    async with serving() as served:
        await in_thread(_oids_of_results, served.url)


def _enums_with_psycopg(url: str) -> None:
    with _connected(url) as connection:
        info = EnumInfo.fetch(connection, "mood")
        assert info is not None and list(info.labels) == ["sad", "ok", 'so "la, la"']
        register_enum(info, connection, Mood, mapping=MOODS)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                cursor.execute("select feels, felt from people order by id")
                assert cursor.fetchall() == [(Mood.ok, [Mood.sad, Mood.ok]), (Mood.soso, None)]
                form = "%b" if binary else "%t"
                cursor.execute(f"select {form}, {form}".encode(), (Mood.ok, [Mood.soso, None]))
                assert cursor.fetchone() == (Mood.ok, [Mood.soso, None])
                cursor.execute(
                    f"update people set feels = {form}, felt = {form} where id = 2".encode(),
                    (Mood.soso, [Mood.soso]),
                )
                cursor.execute(f"select id from people where feels = {form}".encode(), (Mood.ok,))
                assert cursor.fetchall() == [(1,)]
                connection.execute("update people set felt = null where id = 2")
        connection.execute("alter type mood add value 'glad' before 'ok'")
        found = EnumInfo.fetch(connection, "mood")
        assert found is not None and found.oid == info.oid and found.labels[1] == "glad"


async def test_psycopg_sends_and_reads_enums_by_their_oids() -> None:
    async with serving() as served:
        await in_thread(_enums_with_psycopg, served.url)


def _rows_with_psycopg(url: str) -> None:
    with _connected(url) as connection:
        enum = EnumInfo.fetch(connection, "shop.state")
        assert enum is not None
        register_enum(enum, connection)
        info = CompositeInfo.fetch(connection, "shop.orders")
        assert info is not None and list(info.field_names) == ["id", "state", "price", "data"]
        register_composite(info, connection)
        for binary in (False, True):
            form = "%b" if binary else "%t"
            with connection.cursor(binary=binary) as cursor:
                cursor.execute("select o, array_agg(o) from shop.orders o group by o.*")
                (order, orders) = cursor.fetchone() or (None, None)
                assert order is not None and orders == [order]
                assert (order.id, order.state.name, str(order.price), order.data) == (
                    *(7, "paid", "12.50", b"\x00\xff"),
                )
                asked = f"select ({form}).*, ({form}).id, {form}".encode()
                cursor.execute(asked, (order, order, [order, None]))
                assert cursor.fetchone() == (*order, 7, [order, None])
                changed = order._replace(id=8 + binary, data=None)
                asked = f"insert into shop.orders select ({form}::shop.orders).*".encode()
                cursor.execute(asked, (changed,))
                cursor.execute(f"select o from shop.orders o where id = {8 + binary}".encode())
                assert cursor.fetchone() == (changed,)


async def test_psycopg_sends_and_reads_rows_of_tables_by_their_oids() -> None:
    async with serving() as served:
        await in_thread(_rows_with_psycopg, served.url)


async def _with_asyncpg(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(SCHEMA)
        person = await connection.fetchval("select p from people p where id = 1")
        assert tuple(person) == (1, "Ada", "ok", ["sad", "ok"])
        assert person["feels"] == "ok"
        again = await connection.fetchval("select $1::people", person)
        assert again == person
        people = await connection.fetchval("select array_agg(p order by id) from people p")
        assert [each["id"] for each in people] == [1, 2]
        tuples = [tuple(each) for each in people]
        assert await connection.fetchval("select $1::people[]", tuples) == people
        assert await connection.fetchval("select ($1::people).felt[1]", person) == "sad"
        assert await connection.fetchval("select $1::mood[]", ["ok", None]) == ["ok", None]
        assert await connection.fetchval("select id from people where feels = $1", "ok") == 1
        found = await connection.fetch("select id from people where feels = any($1)", ["ok"])
        assert [each["id"] for each in found] == [1]
        await connection.copy_records_to_table("people", records=[(3, "Eve", "sad", ["ok"])])
        order = await connection.fetchval("select o from shop.orders o")
        assert (order["state"], str(order["price"])) == ("paid", "12.50")
        statement = await connection.prepare("select $1::shop.state, $2::people")
        kinds = [each.name for each in statement.get_parameters()]
        assert kinds == ["state", "people"]
        assert [each.type.kind for each in statement.get_attributes()] == ["scalar", "composite"]
        with pytest.raises(asyncpg.InvalidTextRepresentationError, match="for enum mood"):
            await connection.fetchval("select $1::mood", "bad")
    finally:
        await connection.close()


@pytest.mark.half
async def test_asyncpg_finds_and_codes_enums_and_rows() -> None:
    async with serving() as served:
        await in_thread(_in_asyncio, lambda: _with_asyncpg(served.url))


def _in_asyncio(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    asyncio.run(run())


async def _oid(wire: Wire, name: str) -> int:
    (found,) = rows(await wire.run(f"select '{name}'::regtype::oid"))[0]
    assert found is not None
    return int(found)


async def test_a_declared_type_of_the_database_decides_what_a_parameter_is() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("create type mood as enum ('sad', 'ok'); create table t (a int, m mood)")
        mood, row = await _oid(wire, "mood"), await _oid(wire, "t")
        for _ in range(2):  # the second time the text is known
            sent = parse("select $1, $2, pg_typeof($1), ($2).m", oids=(mood, row))
            got = await wire.ask(sent + bind([b"ok", b"(1,sad)"]) + execute() + SYNC)
            assert rows(got) == [(b"ok", b"(1,sad)", b"mood", b"sad")]
        described = await wire.ask(parse("select $1, $2", oids=(mood, row)) + describe("S") + SYNC)
        assert described[1].body == b"\0\2" + mood.to_bytes(4, "big") + row.to_bytes(4, "big")
        gone = await wire.ask(parse("select $1::text", oids=(99_999,)) + bind([b"x"]) + SYNC)
        assert [each.kind for each in gone[:2]] == ["1", "2"]


async def test_a_row_that_is_cut_off_is_refused() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("create table t (a int, b text)")
        row = await _oid(wire, "t")
        whole = bytes.fromhex("00000002 00000017 00000004 00000001 00000019 00000001 61")
        asked = parse("select $1", oids=(row,))

        async def send(data: bytes) -> list[Any]:
            return await wire.ask(asked + bind([data], formats=(1,)) + execute() + SYNC)

        assert rows(await send(whole)) == [(b"(1,a)",)]
        for data in (whole[:-1], whole[:11], whole + b"x", b"\0\0\0\2"):
            assert code(await send(data)) == "22P03", data
        assert code(await send(b"\0\0\0\1" + whole[4:16])) == "42804"
        assert code(await send(b"")) == "22P03"


async def test_the_same_type_of_another_database_has_the_oid_that_it_has_there() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("create type mood as enum ('ok')")
        first = (await wire.ask(parse("select 'ok'::mood") + describe("S") + SYNC))[2].body
        await wire.run("drop type mood; create table t (a int); create type mood as enum ('ok')")
        second = (await wire.ask(parse("select 'ok'::mood") + describe("S") + SYNC))[2].body
        oid = await _oid(wire, "mood")
        assert first != second and oid.to_bytes(4, "big") in second

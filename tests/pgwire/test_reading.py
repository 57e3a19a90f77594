"""Reads that are answered in one call: settings, changes, sequences and long rows still count."""

from __future__ import annotations

from tests.pgwire import wire
from tests.pgwire.serving import serving
from tests.pgwire.wire import SYNC, Message, Wire, bind, describe, execute, parse

ALL = describe() + execute() + SYNC


async def _prepared(client: Wire, sql: str, name: str = "p") -> None:
    assert wire.kinds(await client.ask(parse(sql, name) + SYNC)) == "1Z"


async def _rows(client: Wire, *values: bytes, name: str = "p") -> list[tuple[bytes | None, ...]]:
    got = await client.ask(bind(values, name) + ALL)
    assert wire.kinds(got).startswith("2T") and wire.kinds(got).endswith("CZ"), got
    assert wire.tags(got) == [f"SELECT {len(wire.rows(got))}"]
    return wire.rows(got)


async def test_a_prepared_read_follows_the_settings_of_its_session() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        await client.run("create schema s; create table t (n int); create table s.t (n int)")
        await client.run("insert into t values (1); insert into s.t values (2)")
        await _prepared(client, "select n, timestamptz '2020-01-01 00:00:00+00' from t")
        assert await _rows(client) == [(b"1", b"2020-01-01 00:00:00+00")]
        assert await _rows(client) == [(b"1", b"2020-01-01 00:00:00+00")]
        await client.run("set search_path = s; set timezone = 'Asia/Tokyo'")
        assert await _rows(client) == [(b"2", b"2020-01-01 09:00:00+09")]
        await client.run("reset all; create temporary table t as select 3 as n")
        assert await _rows(client) == [(b"3", b"2020-01-01 00:00:00+00")]
        await client.run("drop table pg_temp.t")
        assert await _rows(client) == [(b"1", b"2020-01-01 00:00:00+00")]


async def test_a_repeated_parse_means_what_it_means_now() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        await client.run("create table t (id int primary key, n int); insert into t values (1, 2)")
        asked = parse("select n from t where id = $1") + bind([b"1"]) + ALL
        for _ in range(3):
            assert wire.rows(await client.ask(asked)) == [(b"2",)]
        await client.run("alter table t alter n type text; update t set n = 'two'")
        for _ in range(2):
            assert wire.rows(await client.ask(asked)) == [(b"two",)]
        await client.run("drop table t")
        assert wire.code(await client.ask(asked)) == "42P01"
        assert wire.code(await client.ask(bind([b"1"]) + ALL)) == "26000"


async def test_a_long_read_goes_on_where_it_began() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        text = "select i, repeat('x', 50) from generate_series(1, 20000) s(i)"
        simple = await client.run(text)
        await _prepared(client, text)
        assert [row[0] for row in wire.rows(simple)] == [b"%d" % i for i in range(1, 20001)]
        assert await _rows(client) == wire.rows(simple)
        assert wire.tags(simple) == ["SELECT 20000"]


async def test_a_read_waits_for_values_of_a_sequence() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        await client.run("create sequence q")
        await _prepared(client, "select nextval('q')")
        found = [await _rows(client) for _ in range(3)]
        found.append(wire.rows(await client.run("select nextval('q')")))
        assert found == [[(b"%d" % n,)] for n in range(1, 5)]


async def test_values_of_an_integer_are_read_as_their_texts() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        await _prepared(client, "select $1::smallint + 1")
        for text, shown in ((b"7", b"8"), (b"0007", b"8"), (b" 7 ", b"8"), (b"-7", b"-6")):
            assert await _rows(client, text) == [(shown,)]
        for text, code in ((b"99999", "22003"), (b"", "22P02"), (b"\xb2", "22021")):
            got: list[Message] = await client.ask(bind([text], "p") + ALL)
            assert wire.code(got) == code
        assert await _rows(client, b"32766") == [(b"32767",)]


async def test_an_error_of_a_read_ends_its_round_trip_only() -> None:
    async with serving() as served, await Wire.enter(served.port) as client:
        await _prepared(client, "select 1 / $1::int")
        for _ in range(2):
            got = await client.ask(bind([b"0"], "p") + ALL)
            assert (wire.kinds(got), wire.code(got)) == ("2TEZ", "22012")
            assert await _rows(client, b"1") == [(b"1",)]

"""A round trip that is sent as drivers do is answered as its messages are one by one.

Two clients say the same, each to tables of its own. What the one sends in one piece, the server may
recognize and answer in one go; the other sends a Flush behind every Bind, so that nothing of it can
be recognized. Chance draws what is said: reads and writes that come again with other values, and
between them all that changes what they mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import pytest

from tests.pgwire import wire
from tests.pgwire.serving import Served, serving
from tests.pgwire.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, parse

SCHEMAS: Final = ("a", "b")
TABLES: Final = (
    "create table t (id int primary key, n bigint, name text, at timestamptz, b bytea, f float8)",
    "insert into t select i, i * 10, 'name ' || i, '2020-01-01 00:00+00', '\\x00ff', i / 3.0"
    " from generate_series(1, 50) s(i)",
    "create table u (id int primary key, t_id int references t, note varchar(10))",
    "create sequence q",
)
STATEMENTS: Final = {
    "point": ("select n, name from t where id = $1", ("int",)),
    "all": ("select * from t where id = $1", ("int",)),
    "zoned": ("select timestamptz '2020-01-01 00:00' + $1", ("interval",)),
    "moment": ("select at, b, f, $1::interval from t where id = 1", ("interval",)),
    "range": ("select id, name from t where id > $1 and name <> $2 order by id", ("int", "text")),
    "none": ("select count(*) from t", ()),
    "literal": ("select id + 1000 from t where id = 7 and n > $1", ("bigint",)),
    "divided": ("select 10 / $1::smallint", ("smallint",)),
    "drawn": ("select nextval('q') + $1::int", ("int",)),
    "insert": ("insert into u values ($1, $2, $3)", ("int", "int", "text")),
    "update": ("update t set n = n + $1 where id = $2", ("bigint", "int")),
    "returning": ("update t set name = $1 where id = $2 returning id, name", ("text", "int")),
    "delete": ("delete from u where id = $1", ("int",)),
    "guess": ("select $1", ("text",)),
}
WITHIN: Final = "begin; update t set n = n + 1, name = name || '!', at = null"
CHANGES: Final = (
    "begin", "begin; select 1/0",
    "begin; create temporary table t (id int, n bigint, name text)", "begin read only",
    "begin; alter table t add c int", "begin; savepoint s; delete from t; rollback to s",
    "begin; declare c cursor for select id from t; fetch 2 from c",
    "declare c cursor with hold for select id from t",
    "set timezone = 'Asia/Tokyo'", "begin; set local timezone = 'Europe/Berlin'",
    "set search_path = pg_catalog", "set intervalstyle = iso_8601", "set bytea_output = escape",
    "set extra_float_digits = 0", "set statement_timeout = '1h'", "discard all", "deallocate all",
    "alter table t add c int", "alter table t drop if exists c", "create temporary table t as"
    " select 1 as id, 2::bigint as n, 'temporary' as name", "create index on t (n)", "analyze t",
    "insert into t select max(id) + 1 from t", "update t set n = n + 7",
    "delete from t where id = 3",
    "insert into t select i from generate_series(1000, 1500) s(i) on conflict do nothing",
    "update t set n = 1 where id = 3; select n from t where id = 3", "",
)  # fmt: skip
SIZES: Final = {"int": "!i", "bigint": "!q", "smallint": "!h"}
DIGITS: Final = {"int": 0x31313131, "bigint": 0x3131313131313131, "smallint": 0x3131}
"""Numbers whose bytes are digits."""


class Speaker:
    """Draws what is said, as the messages of one or more round trips each."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def scene(self) -> Iterator[list[bytes]]:
        """A statement comes again and again, something changes, and it comes again."""
        draw = self._random
        chosen, other = draw.sample(sorted(STATEMENTS), 2)
        for name in (chosen, other):
            yield [close("S", name), parse(STATEMENTS[name][0], name), describe("S", name), SYNC]
        formats = draw.choice([[], [], [0], [1]]), draw.random() < 0.8
        for _ in range(3):
            yield self._trip(chosen, chosen, *formats)
        if draw.random() < 0.25:
            yield [wire.query(WITHIN)]
        for change in draw.choices(CHANGES, k=draw.choice([0, 1, 1, 2])):
            yield [wire.query(change)]
        yield from draw.sample(self._oddities(chosen, other), draw.choice([0, 0, 2, 3]))
        for _ in range(3):
            yield self._trip(chosen, chosen, *formats)
        for _ in range(4):
            yield [parse(STATEMENTS[chosen][0]), *self._trip(chosen, "", *formats)]
        for _ in range(3):
            each = draw.choice((chosen, other))
            yield self._trip(each, each, *formats)
        yield [wire.query("rollback")]

    def _oddities(self, chosen: str, other: str) -> list[list[bytes]]:
        """Round trips that are not what they seem, or several at once."""
        trip, second = self._trip(chosen, chosen), self._trip(other, other)
        value = bind([b"1"] * len(STATEMENTS[other][1]), other, "o")
        return [
            trip[:-1] + second,
            trip + second + trip,
            [value, *trip, execute("o"), SYNC],
            [value, *trip[:-1], execute("o"), SYNC],
            [close("S", chosen), *trip],
            [parse(STATEMENTS[other][0]), *self._trip(chosen, "")],
            [*self._trip(chosen, chosen, portal="o", most=2)[:-1], execute("o"), SYNC],
            [*trip[:-1], FLUSH, SYNC],
            [*trip[:-1], SYNC, SYNC],
        ]

    def _trip(
        self,
        chosen: str,
        name: str,
        results: Sequence[int] = (),
        described: bool = True,
        portal: str = "",
        most: int = 0,
    ) -> list[bytes]:
        if self._random.random() < 0.08:
            results = self._random.choice([(), (0,), (1,)])
        values, formats = [], []
        for kind in STATEMENTS[chosen][1]:
            binary = kind in SIZES and self._random.random() < 0.3
            values.append(self._value(kind, binary))
            formats.append(int(binary))
        if self._random.random() < 0.02:
            values.append(b"1")
        bound = bind(values, name, portal, formats if any(formats) else [], results)
        told = [describe("P", portal)] if described else []
        return [bound, *told, execute(portal, most), SYNC]

    def _value(self, kind: str, binary: bool) -> bytes | None:
        if self._random.random() < 0.04:
            return None
        if kind == "interval":
            return self._random.choice([b"1 day", b"2 hours", b"soon"])
        number = self._random.choice([*range(12), 0, -1, 40, 99_999, 2**40])
        if binary:
            short = struct.pack(SIZES[kind], DIGITS[kind] if number == 7 else number % 100)
            return short[1:] if self._random.random() < 0.05 else short
        odd = (b" 7 ", b"", b"\xb2", b"x", b"+3", b"1_0", b"007", b"-", b"--1")
        return self._random.choice(odd) if self._random.random() < 0.06 else b"%d" % number


@pytest.mark.parametrize("seed", range(3))
async def test_a_round_trip_is_answered_as_its_messages_are(seed: int) -> None:
    async with serving() as served:
        for schema in SCHEMAS:
            async with await _entered(served, schema) as client:
                for sql in (f"create schema {schema}", *TABLES):
                    assert wire.kinds(await client.run(sql))[-2:] == "CZ"
        speaker = Speaker(seed)
        for _ in range(40):
            said = []
            clients = [await _entered(served, each) for each in SCHEMAS]
            async with clients[0], clients[1]:
                for asked in speaker.scene():
                    said.append(asked)
                    one_by_one = [each + FLUSH if each.startswith(b"B") else each for each in asked]
                    at_once, singly = [
                        await _answers(client, each)
                        for client, each in zip(clients, (asked, one_by_one), strict=True)
                    ]
                    assert at_once == singly, said


async def _entered(served: Served, schema: str) -> Wire:
    hello = wire.startup(user="me", database="main", options=f"-c search_path={schema}")
    return await Wire.enter(served.port, hello)


async def _answers(client: Wire, asked: list[bytes]) -> list[wire.Message]:
    await client.send(b"".join(asked))
    got = []
    for each in asked:
        if each == SYNC or each.startswith(b"Q"):
            got += await client.until_ready()
    return got

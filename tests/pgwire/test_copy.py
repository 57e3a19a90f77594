"""COPY, in and out, in all formats."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import ProgramLimitExceeded, QserverError
from qserver.pgwire.copy_binary import HEADER, TRAILER, BinaryWriter, Tuples
from qserver.query.copying.statement import CopyFormat, read_copy
from qserver.query.copying.text import Lines, TextWriter
from qserver.values.types import INTEGER, TEXT
from tests.known_work import least_steps
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
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
special = st.text(st.sampled_from("a\\\t\n\r\"',.;N|"), max_size=8)
cells = st.lists(st.tuples(st.none() | texts | special, st.none() | special), max_size=6)
FORMATS = (
    CopyFormat(),
    CopyFormat(delimiter="|", null="nothing"),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ";", "NULL", quote="'", escape="'"),
    CopyFormat("csv", ",", "", quote='"', escape="\\"),
    CopyFormat("csv", ",", "", force_quote=("*",)),
)


@given(st.sampled_from(FORMATS), cells, st.data())
def test_what_is_written_is_read(
    form: CopyFormat, given_rows: list[tuple[str | None, ...]], data: st.DataObject
) -> None:
    writer = TextWriter(form, ("a", "b"), (TEXT, TEXT))
    whole = b"".join(map(writer.line, given_rows))
    assert _fed(Lines(form, ("a", "b"), "t"), whole, data) == given_rows


@pytest.mark.parametrize(
    "field, value",
    [('""""', '"'), ('""""""', '""'), ('"""a"', '"a'), ('"a"""', 'a"'), ('a"b""c"d', 'ab"cd')],
)
def test_quotes_in_quotes_are_doubled(field: str, value: str) -> None:
    lines = Lines(CopyFormat("csv", ",", ""), ("a", "b"), "t")
    assert list(lines.feed(f"{field},x\n".encode(), last=True)) == [(value, "x")]


@given(cells, st.data())
def test_what_is_written_in_binary_is_read(
    given_rows: list[tuple[str | None, ...]], data: st.DataObject
) -> None:
    writer = BinaryWriter((TEXT, TEXT))
    whole = HEADER + b"".join(map(writer.line, given_rows)) + TRAILER
    assert _fed(Tuples((TEXT, TEXT), "t"), whole, data) == given_rows


def _fed(reader: Lines | Tuples, whole: bytes, data: st.DataObject) -> list[Any]:
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    found: list[Any] = []
    for start, end in zip([0, *places], [*places, len(whole)], strict=True):
        found += reader.feed(whole[start:end])
    return [*found, *reader.feed(b"", last=True)]


@given(st.sampled_from(FORMATS), st.binary(max_size=40))
def test_no_bytes_raise_anything_but_an_error_of_ours(form: CopyFormat, piece: bytes) -> None:
    for reader in (Lines(form, ("a", "b"), "t"), Tuples((INTEGER, TEXT), "t")):
        for sent in (piece, HEADER + piece):
            try:
                list(reader.feed(sent, last=True))
            except QserverError:
                pass


QUOTED, ESCAPED = CopyFormat("csv", ",", ""), CopyFormat("csv", ",", "", escape="\\")


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        (CopyFormat(), b"a\\\n" * 40_000),
        (CopyFormat(), b"\\\t" * 300_000 + b"\n"),
        (QUOTED, b'"' + b"\n" * 100_000),
        (ESCAPED, b'"' + b"some text\n" * 10_000),
    ],
)
def test_a_record_of_many_lines_is_read_line_by_line(form: CopyFormat, piece: bytes) -> None:
    """Once its beginning was read anew for each of its lines: 600 steps, while all others wait."""
    assert least_steps(lambda: list(Lines(form, ("a",), "t").feed(piece)), enough=60) < 60


def test_a_record_that_is_too_long_is_refused_where_it_is() -> None:
    piece = b"x" * (1 << 20)
    for form, before in ((CopyFormat(), b"1\n2\n"), (QUOTED, b'1\n"2\n')):
        reader = Lines(form, ("a",), "t")
        assert list(reader.feed(before))
        with pytest.raises(ProgramLimitExceeded):
            for _ in range(9):
                list(reader.feed(piece))
        assert reader.where() == "COPY t, line 3"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("copy t from stdin", CopyFormat()),
        ("COPY t FROM STDIN WITH (FORMAT csv, HEADER)", CopyFormat("csv", ",", "", True)),
        ("copy t to stdout csv header delimiter ';'", CopyFormat("csv", ";", "", True)),
        ("copy t to stdout (format binary);", CopyFormat("binary")),
        ("copy binary t to stdout", CopyFormat("binary")),
        ("copy t to stdout with delimiter as '|' null as 'x'", CopyFormat("text", "|", "x")),
        ("copy t to stdout (format 'csv', null 'x', header off)", CopyFormat("csv", ",", "x")),
    ],
)
def test_options(sql: str, expected: CopyFormat) -> None:
    assert read_copy(sql).format == expected


@pytest.mark.parametrize(
    "sql",
    [
        "copy",
        "copy t",
        "copy t from '/etc/passwd'",
        "copy t to program 'rm'",
        "copy t from stdin where id > 1",
        "copy t from stdin (format xml)",
        "copy t from stdin (format csv, format csv)",
        "copy t from stdin (delimiter 'ab')",
        "copy t from stdin (nothing)",
        "copy (select 1) from stdin",
        "copy t (a from stdin",
        "copy t from stdin (format csv) more",
    ],
)
def test_wrong_statements_are_refused(sql: str) -> None:
    with pytest.raises(QserverError):
        read_copy(sql)


def test_parts_of_the_statement() -> None:
    found = read_copy('copy s."T x" (a, "B") from stdin')
    assert (found.table, found.columns) == (("s", "T x"), ("a", "B"))
    assert read_copy("copy (select (1), ')' from t) to stdout").query == "select (1), ')' from t"


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

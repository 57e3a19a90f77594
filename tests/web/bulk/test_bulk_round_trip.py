"""Rows that went out in bulk come in again, and are the same: every type, in every format."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.query.bulk import BulkInsert
from qserver.query.results import RunOptions
from qserver.query.row_stream import RowStream
from qserver.query.sql_database import SqlDatabase
from qserver.sql.execution import Rows
from qserver.values.jsonb import jsonb_of
from qserver.values.types import BYTEA, DOUBLE, JSON, JSONB, NUMERIC, TEXT, Kind, SqlType, array_of
from qserver.web.bulk.bulk_array import JsonArrayDecoder
from qserver.web.bulk.bulk_rows import Batches, CsvDecoder, JsonLinesDecoder
from qserver.web.statements.requests import decode_value
from qserver.web.statements.rows import RowEncoder
from qserver.web.streaming.streams import CsvLines, Form, JsonArray, JsonLines
from tests.sql.databases import opened_sql
from tests.values.strategies import ALL_TYPES, arrays, stored, structures

# JSON cannot tell NULL from a JSON null, nor a list that is an element from a dimension.
SOME_JSON = structures.filter(lambda value: value is not None).map(jsonb_of)
FLAT_JSON = st.one_of(
    st.integers(), st.booleans(), st.text("a\"\\{},'ü\n", max_size=4), st.just({"a": [1]})
).map(jsonb_of)
TYPES = (*ALL_TYPES, array_of(BYTEA))
NAMES = tuple(f"c{at}" for at in range(len(TYPES)))
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    **{each: stored(each) for each in ALL_TYPES},
    JSON: SOME_JSON.map(str),
    JSONB: SOME_JSON,
    array_of(JSONB): arrays(FLAT_JSON),
    array_of(BYTEA): arrays(st.binary(max_size=3)),
}
ROWS = st.lists(st.tuples(*[st.none() | VALUES[each] for each in TYPES]), min_size=1, max_size=3)
FORMS: tuple[Form, ...] = (CsvLines, JsonLines, JsonArray)


def batches(form: Form, body: bytes) -> Batches:
    if form is CsvLines:
        return CsvDecoder(None).feed(body, last=True)
    if form is JsonLines:
        return JsonLinesDecoder(None).feed(body, last=True)
    return JsonArrayDecoder(None).feed(body, last=True)


async def put(database: SqlDatabase, table: str, form: Form, body: bytes) -> None:
    transaction = await database.open()
    insert = BulkInsert(database, transaction, table, "error", RunOptions(), texts=form is CsvLines)
    try:
        for batch in batches(form, body):
            assert batch is not None
            await insert.add(batch)
        await insert.commit()
    finally:
        transaction.release()


def written(stream: RowStream, form: Form, rows: Rows) -> bytes:
    lines = form(RowEncoder(stream.columns, stream.types))
    body = lines.head(stream)
    for first, row in enumerate(rows, 1):
        body += lines.rows(stream, first, [row])
    return body + lines.done(stream, len(rows), 0, 0)


def shown(rows: Rows) -> list[list[str]]:
    """The rows with every difference: signs of zeros, scales, NaNs; JSON by its value."""
    return [
        [
            repr(jsonb_of(decode_value(value.encode())) if each.kind is Kind.JSON else value)
            if value is not None
            else "NULL"
            for each, value in zip(TYPES, row, strict=True)
        ]
        for row in rows
    ]


@pytest.mark.long
@settings(max_examples=8)
@given(ROWS)
async def test_every_type_comes_back_through_every_format(rows: Rows) -> None:
    columns = ", ".join(f"{name} {each}" for name, each in zip(NAMES, TYPES, strict=True))
    async with opened_sql() as database:
        await database.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        for table in ("first", "second"):
            await database.execute(f"CREATE TABLE {table} ({columns})")
        stream = await database.stream("SELECT * FROM first")
        await put(database, "first", CsvLines, written(stream, CsvLines, rows))
        await stream.aclose()
        for form in FORMS:
            stream = await database.stream("SELECT * FROM first")
            found = [row async for page in stream for row in page]
            assert shown(found) == shown(rows)
            await put(database, "second", form, written(stream, form, found))
            again = (await database.execute("SELECT * FROM second")).rows
            assert shown(again) == shown(rows), form
            await database.execute("TRUNCATE second")


JSONS: list[Any] = ["", "text", '"', 0, False, [], {}, ["a", None]]
AWKWARD: list[tuple[SqlType, list[Any]]] = [
    (TEXT, [*"\",\r\n\\'; \t", "", "\\N", "NULL", "null", "\ufeff", "\u2028", "ü", "\U0001f600"]),
    (DOUBLE, [-0.0, 0.0, nan, inf, -inf, 5e-324, 1.7976931348623157e308, 0.1, 1e22]),
    (BYTEA, [b"", b"\0", b"\\", b"\\x00", bytes(range(256))]),
    (NUMERIC, [Decimal(text) for text in ("0.00", "-1.50", "NaN", "Infinity", "1" + "0" * 300)]),
    (JSONB, [*map(jsonb_of, JSONS)]),
    (array_of(TEXT), [(), ("",), ("NULL", None, "{}", ",", '"', "\\", "\r\n")]),
    (array_of(BYTEA), [(b"", b"\0"), ((b"a",), (b"b",))]),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("sql_type", "values"), AWKWARD, ids=lambda each: str(each)[:10])
async def test_a_column_alone_keeps_what_is_awkward(
    form: Form, sql_type: SqlType, values: list[Any]
) -> None:
    rows: Rows = [(None,), *[(value,) for value in values], (None,)]
    async with opened_sql() as database:
        await database.execute(f"CREATE TABLE t (a {sql_type})")
        stream = await database.stream("SELECT a FROM t")
        await put(database, "t", form, written(stream, form, rows))
        await stream.aclose()
        assert repr((await database.execute("SELECT a FROM t")).rows) == repr(rows)

"""Writes an export as SQL text, or as one JSON object per line. All mark their end.

    -- qserver export, release …          {"qserver_export": 1, …, "before": […], "after": […]}
    CREATE …;  INSERT …;  CREATE …;       {"table": "users", "row": {"id": 1, "name": "Ada"}}
    -- end of the qserver export          {"end": true, "rows": 1}

For PostgreSQL, rows are those of COPY, which psql loads fastest and which takes every identity.

In JSON, integers, floating-point numbers, booleans and NULL are JSON's own. All other values are
strings, as PostgreSQL prints them: JSON has no exact form for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from qserver import __version__
from qserver.cli.cells import as_json
from qserver.cli.transfer.inserts import Inserts
from qserver.cli.transfer.snapshot import Snapshot, TableShape, Texts
from qserver.values.identifiers import quote_identifier

SQL_FIRST: Final = "-- qserver export"
SQL_LAST: Final = "-- end of the qserver export"
FORMAT: Final = 1
"""The version of the JSON format; an importer refuses a higher number."""
_AS_JSON: Final = frozenset(
    {"smallint", "integer", "bigint", "boolean", "real", "double precision"}
)
_NOT_JSON: Final = frozenset({"NaN", "Infinity", "-Infinity"})

_FOR_PSQL: Final = ("SET client_encoding = 'UTF8'", "SET standard_conforming_strings = on")
COPY_END: Final = "\\.\n\n"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

Lines = Iterator[tuple[str, int]]
"""Pieces of the file, each with the number of rows so far."""


class Head(msgspec.Struct, frozen=True):
    """The first line of an export in JSON."""

    qserver_export: int
    release: str
    database: str
    version: int
    before: list[str]
    after: list[str]
    tables: list[Shape]


class Shape(msgspec.Struct, frozen=True):
    table: str
    columns: list[str]
    types: list[str]
    is_numbered: bool

    @staticmethod
    def of(table: TableShape) -> Shape:
        return Shape(table.name, list(table.columns), list(table.types), table.is_numbered)

    def to_table(self) -> TableShape:
        return TableShape(self.table, tuple(self.columns), tuple(self.types), self.is_numbered)


def as_sql(taken: Snapshot) -> Lines:
    yield f"{SQL_FIRST}, release {__version__}: {taken.database}, version {taken.version}\n\n", 0
    for text in taken.before:
        yield f"{text};\n", 0
    inserts = Inserts()
    count = 0
    for table, values in taken.rows:
        count += 1
        full = inserts.take(table, values)
        if full is not None:
            yield f"{full};\n", count
    last = inserts.finish()
    if last is not None:
        yield f"{last};\n", count
    for text in taken.after:
        yield f"{text};\n", count
    yield f"{SQL_LAST}, {count} rows\n", count


def as_postgres(taken: Snapshot) -> Lines:
    yield f"{SQL_FIRST}, release {__version__}: {taken.database}, version {taken.version}\n\n", 0
    yield "".join(f"{text};\n" for text in _FOR_PSQL), 0
    for text in taken.before:
        yield f"{text};\n", 0
    count = 0
    current: TableShape | None = None
    for table, values in taken.rows:
        count += 1
        if table is not current:
            yield ("" if current is None else COPY_END) + _copy(table), count
            current = table
        yield "\t".join(map(_copied, values)) + "\n", count
    if current is not None:
        yield COPY_END, count
    for text in taken.after:
        yield f"{text};\n", count
    yield f"{SQL_LAST}, {count} rows\n", count


def as_ndjson(taken: Snapshot) -> Lines:
    head = Head(
        FORMAT,
        __version__,
        taken.database,
        taken.version,
        list(taken.before),
        list(taken.after),
        [Shape.of(table) for table in taken.tables],
    )
    yield f"{as_json(head)}\n", 0
    count = 0
    for table, values in taken.rows:
        count += 1
        yield f'{{"table":{as_json(table.name)},"row":{_row(table, values)}}}\n', count
    yield f"{as_json({'end': True, 'rows': count})}\n", count


WRITERS: Final[dict[str, Callable[[Snapshot], Lines]]] = {
    "sql": as_sql,
    "ndjson": as_ndjson,
    "postgres": as_postgres,
}


def _copy(table: TableShape) -> str:
    names = ", ".join(map(quote_identifier, table.columns))
    return f"COPY {table.name} ({names}) FROM stdin;\n"


def _copied(text: str | None) -> str:
    return "\\N" if text is None else text.translate(_ESCAPES)


def _row(table: TableShape, values: Texts) -> str:
    pairs = zip(table.columns, values, table.types, strict=True)
    return "{" + ",".join(f"{as_json(name)}:{_value(text, of)}" for name, text, of in pairs) + "}"


def _value(text: str | None, of_type: str) -> str:
    if text is None:
        return "null"
    return text if of_type in _AS_JSON and text not in _NOT_JSON else as_json(text)

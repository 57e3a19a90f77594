"""Reads a database at one version: definitions and all rows, from one streaming request.

    catalog now ─► one statement:  definitions, columns  UNION ALL  rows of table 1  UNION ALL  …
                   one stream:     the same columns? ─► rows, each with the number of its part

A stream reads one version from beginning to end, so one statement for everything gives a consistent
snapshot of any size. That statement must name the tables, so the stream begins with the definitions
of its own version. If they differ from those that the statement was built for, because a table was
changed in between, the statement is built again.

Values arrive as the texts that PostgreSQL would print, which are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from qserver.client import Client
from qserver.client.synchronous import Stream
from qserver.errors import TooManyRequests, UndefinedColumn, UndefinedObject, UndefinedTable
from qserver.values.identifiers import PUBLIC, quote_identifier

Texts = Sequence[str | None]

ATTEMPTS: Final = 30
_CHANGED: Final = (UndefinedTable, UndefinedColumn, UndefinedObject)
"""Errors of a statement that was built for tables that have changed."""
_DEFINITIONS: Final = 0
_COLUMNS: Final = 1
_FIRST_TABLE: Final = 2

_OF_DEFINITIONS: Final = (
    "ARRAY[position::text, after_rows::text, statement]::text[] AS line"
    " FROM qserver_catalog.definitions"
)
_OF_COLUMNS: Final = (
    "ARRAY[t.table_schema, t.table_name, c.column_name, c.ordinal_position::text, c.data_type,"
    " c.identity_generation, c.is_generated]::text[] AS line"
    " FROM information_schema.tables AS t LEFT JOIN information_schema.columns AS c"
    " ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
    " WHERE t.table_type = 'BASE TABLE' AND t.table_schema <> ALL (ARRAY['pg_catalog',"
    " 'information_schema', 'qserver_catalog'])"
)


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns of a table that an export holds; the database computes generated columns."""

    name: str
    """Quoted for SQL."""
    columns: tuple[str, ...]
    types: tuple[str, ...]
    is_numbered: bool
    """Does it have a column GENERATED ALWAYS AS IDENTITY, which needs OVERRIDING SYSTEM VALUE?"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state at the first row; `rows` can be read once."""

    database: str
    version: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    tables: tuple[TableShape, ...]
    row_count: int
    """The approximate number of rows."""
    rows: Iterator[tuple[TableShape, Texts]]


@contextmanager
def snapshot(client: Client) -> Iterator[Snapshot]:
    """Read the database at one version; the block holds the connection."""
    for _ in range(ATTEMPTS):
        described = client.tables()
        lines = client.query(f"SELECT {_OF_COLUMNS}").rows
        shapes = _shapes([line for (line,) in lines])
        with ExitStack() as open_streams:
            try:
                stream = open_streams.enter_context(client.stream(_statement(shapes)))
            except _CHANGED:
                continue
            rows = _Parts(stream)
            definitions, columns = rows.head()
            if _shapes(columns) != shapes:
                continue
            ordered = sorted(definitions, key=lambda line: int(line[0]))
            yield Snapshot(
                described["database"],
                stream.version or 0,
                tuple(text for _, after, text in ordered if after == "false"),
                tuple(text for _, after, text in ordered if after == "true"),
                shapes,
                sum(int(each["row_count"]) for each in described["tables"]),
                rows.of_tables(shapes),
            )
            return
    raise TooManyRequests(
        "tables are changed faster than they can be read", hint="Try again in a quiet moment."
    )


class _Parts:
    """Splits the rows of the stream: the head first, then those of tables."""

    def __init__(self, stream: Stream) -> None:
        self._rows = iter(stream)
        self._first: tuple[Any, ...] | None = None

    def head(self) -> tuple[list[Any], list[Any]]:
        definitions: list[Any] = []
        columns: list[Any] = []
        for part, line in self._rows:
            if part >= _FIRST_TABLE:
                self._first = (part, line)
                break
            (definitions if part == _DEFINITIONS else columns).append(line)
        return definitions, columns

    def of_tables(self, shapes: tuple[TableShape, ...]) -> Iterator[tuple[TableShape, Texts]]:
        if self._first is not None:
            yield shapes[self._first[0] - _FIRST_TABLE], self._first[1]
        for part, line in self._rows:
            assert part >= _FIRST_TABLE, "the parts of a UNION ALL come one after the other"
            yield shapes[part - _FIRST_TABLE], line


def _shapes(lines: list[Any]) -> tuple[TableShape, ...]:
    tables: dict[tuple[str, str], list[Any]] = {}
    for schema, table, *column in lines:
        tables.setdefault((schema, table), []).append(column)
    return tuple(_shape(*place, tables[place]) for place in sorted(tables))


def _shape(schema: str, table: str, columns: list[Any]) -> TableShape:
    name = quote_identifier(table)
    if schema != PUBLIC:
        name = f"{quote_identifier(schema)}.{name}"
    # A table without columns has one line whose column is NULL.
    stored = [each for each in columns if each[0] is not None and each[4] == "NEVER"]
    stored.sort(key=lambda each: int(each[1]))
    return TableShape(
        name,
        tuple(each[0] for each in stored),
        tuple(each[2] for each in stored),
        any(each[3] == "ALWAYS" for each in stored),
    )


def _statement(shapes: tuple[TableShape, ...]) -> str:
    parts = [f"SELECT {_DEFINITIONS} AS part, {_OF_DEFINITIONS}"]
    parts.append(f"SELECT {_COLUMNS} AS part, {_OF_COLUMNS}")
    for number, shape in enumerate(shapes, _FIRST_TABLE):
        values = ", ".join(f"{quote_identifier(column)}::text" for column in shape.columns)
        parts.append(f"SELECT {number} AS part, ARRAY[{values}]::text[] AS line FROM {shape.name}")
    return _union(parts)


def _union(parts: list[str]) -> str:
    """A balanced tree: the depth of a statement is limited."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_union(parts[:middle])}) UNION ALL ({_union(parts[middle:])})"

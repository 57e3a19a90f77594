"""Renders rows as INSERT statements; each column reads its literals as exactly the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qserver.cli.transfer.snapshot import TableShape, Texts
from qserver.values.identifiers import quote_identifier

ROWS_MAX: Final = 500
BYTES_MAX: Final = 256 * 1024
"""An INSERT ends after this many rows, or characters."""
BARE: Final = frozenset({"smallint", "integer", "bigint", "boolean"})
"""Types whose literals need no quotes."""


class Inserts:
    """Builds INSERT statements, table by table; `take` and `finish` return complete ones.

    `before_rows` stands between VALUES and the first row: with a blank there, and one row per line,
    the line of an error is the line of its row.
    """

    def __init__(self, before_rows: str = "\n") -> None:
        self._before_rows = before_rows
        self._table: TableShape | None = None
        self._columns: tuple[str, ...] = ()
        self._tuples: list[str] = []
        self._size = 0

    def take(
        self, table: TableShape, values: Texts, columns: tuple[str, ...] | None = None
    ) -> str | None:
        """Add a row; return the statement before it, if the row starts a new one."""
        columns = table.columns if columns is None else columns
        text = tuple_of(values, _types_of(table, columns))
        full = None
        is_other = table is not self._table or columns != self._columns
        is_full = len(self._tuples) >= ROWS_MAX or self._size + len(text) > BYTES_MAX
        if is_other or is_full or not columns:  # DEFAULT VALUES inserts a single row
            full = self.finish()
            self._table, self._columns = table, columns
        self._tuples.append(text)
        self._size += len(text)
        return full

    def finish(self) -> str | None:
        table, tuples = self._table, self._tuples
        self._table, self._tuples, self._size = None, [], 0
        if table is None:
            return None
        return insert(table, self._columns, self._before_rows + ",\n".join(tuples))


def insert(table: TableShape, columns: Sequence[str], rows: str) -> str:
    if not columns:
        return f"INSERT INTO {table.name} DEFAULT VALUES"
    names = ", ".join(map(quote_identifier, columns))
    overriding = " OVERRIDING SYSTEM VALUE" if table.is_numbered else ""
    return f"INSERT INTO {table.name} ({names}){overriding} VALUES{rows}"


def tuple_of(values: Texts, types: Sequence[str]) -> str:
    return f"({', '.join(map(_literal, values, types))})"


def _literal(text: str | None, of_type: str) -> str:
    if text is None:
        return "NULL"
    # A file can be edited: a bare literal must be a single word or number.
    if of_type in BARE and text.removeprefix("-").isalnum():
        return text
    return "'" + text.replace("'", "''") + "'"


def _types_of(table: TableShape, columns: tuple[str, ...]) -> Sequence[str]:
    if columns is table.columns:
        return table.types
    return [table.types[table.columns.index(column)] for column in columns]

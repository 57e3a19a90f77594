"""COPY FROM: pieces of data to rows of texts, and these on the way of bulk inserts.

    pieces ─► reader ─► batches of rows ─► `query.bulk`: steps of a transaction
                 └─ the first bad row: its error, with line and column

The doors differ in where pieces come from, and in who commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import msgspec

from qserver.errors import QserverError, UndefinedTable
from qserver.query.bulk import BulkInsert, RowBatch, find_relation
from qserver.query.copying.counting import CopyClock
from qserver.query.copying.statement import CopyStatement
from qserver.query.copying.text import CopiedRow, Lines, shortened
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions
from qserver.query.sql_database import SqlDatabase
from qserver.values.casts import cast_function
from qserver.values.schema import Table
from qserver.values.types import TEXT, SqlType

ROWS_AT_ONCE: Final = 1000
"""Rows of one step."""


class Reader(Protocol):
    line: int
    """Of the row that was given out last."""

    def feed(self, piece: bytes, *, last: bool = False) -> Iterator[CopiedRow]: ...
    def where(self) -> str: ...


class MakeReader(Protocol):
    def __call__(self, types: tuple[SqlType, ...], table: str) -> Reader: ...


class CopyIn:
    """One COPY FROM, in an open transaction."""

    def __init__(
        self,
        sql: SqlDatabase,
        transaction: OpenTransaction,
        statement: CopyStatement,
        options: RunOptions,
        read_binary: MakeReader,
    ) -> None:
        name, form = ".".join(statement.table), statement.format
        inside = msgspec.structs.replace(options, counts=False)
        self.insert = BulkInsert(
            sql, transaction, name, "error", inside, texts=True, overriding=True
        )
        self._clock = CopyClock(sql.request_of(options), transaction, statement.text)
        table = find_relation(transaction.transaction.catalog, name)
        if not isinstance(table, Table):
            raise UndefinedTable(f'relation "{name}" does not exist')
        self._table = table
        self.columns = statement.columns or _settable(table)
        self.insert.check_columns(self.columns)
        self._types = tuple([table.column(each).type for each in self.columns])
        self._reader: Reader
        if form.is_binary:
            self._reader = read_binary(self._types, table.name)
        else:
            self._reader = Lines(form, self.columns, table.name)
        self._first = 1
        self._batch: list[Any] = []
        self._lines: list[int] = []
        """The lines of the rows of the batch."""

    def batches(self, piece: bytes, *, last: bool = False) -> Iterator[RowBatch]:
        """Yield rows as soon as there are many, and at the end those that are left."""
        self._clock.works()
        try:
            for row in self._reader.feed(piece, last=last):
                self._batch.append(row)
                self._lines.append(self._reader.line)
                if len(self._batch) >= ROWS_AT_ONCE:
                    yield self._taken()
        except QserverError as error:
            if error.where is None:
                error.where = self._reader.where()
            raise
        if last and self._batch:
            yield self._taken()
        self._clock.waits()

    def end(self) -> int:
        """Count the run, all of whose rows were added; return how many there were."""
        rows = self.insert.affected_rows
        self._clock.count(rows)
        return rows

    def _taken(self) -> RowBatch:
        batch = RowBatch(self.columns, self._batch, self._first)
        self._first += len(self._batch)
        self._batch = []
        return batch

    async def add(self, batch: RowBatch) -> None:
        """Insert rows; raise the error of the first bad one, with its place in the data."""
        lines, self._lines = self._lines, []
        try:
            await self.insert.add(batch)
        except QserverError as error:
            if error.row is None:
                error.where = f"COPY {self._table.name}, line {lines[-1]}"
            else:
                at = error.row - batch.first
                error.where = f"COPY {self._table.name}, line {lines[at]}"
                error.where += self._column_of(batch.rows[at], error)
            raise

    def _column_of(self, row: CopiedRow, error: QserverError) -> str:
        """Return the column whose text cannot be read, as a part of the place."""
        for name, sql_type, text in zip(self.columns, self._types, row, strict=True):
            if text is None:
                continue
            try:
                cast_function(TEXT, sql_type)(text)
            except QserverError as other:
                if (other.code, other.message) == (error.code, error.message):
                    error.column = error.column or name
                    return f', column {name}: "{shortened(text)}"'
        return ""


def _settable(table: Table) -> tuple[str, ...]:
    return tuple([each.name for each in table.columns if not (each.hidden or each.generated)])

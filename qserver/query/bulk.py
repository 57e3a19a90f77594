"""Bulk insert: many rows as steps of one transaction, run while the rows arrive.

    rows of equal names ─► columns, each of one kind ─► INSERT … VALUES ␀␀ ─► a step ─┐
                                                                     ▲               │ fails
                                                                     └─ its halves ◄─┘

The rows take the place of a list of values, see `fingerprint`: a thousand of them are one statement
with a cached plan, and all rules of INSERT hold. A failed step leaves nothing. It is retried in
halves, until the bad row is alone.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from qserver.engine.stored_answers import StoredAnswer
from qserver.engine.work import run
from qserver.errors import (
    CardinalityViolation,
    DataError,
    DuplicateColumn,
    FeatureNotSupported,
    Forbidden,
    GeneratedAlways,
    IntegrityError,
    InvalidColumnReference,
    OutOfMemory,
    ProgramLimitExceeded,
    StatementError,
    UndefinedColumn,
    UndefinedTable,
    WithCheckOptionViolation,
    WrongObjectType,
)
from qserver.lexing.fingerprint import Parameterized, parameterize
from qserver.query.bulk_values import column_of
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.catalog import Catalog
from qserver.values.identifiers import catalog_key, key_of_name, quoted
from qserver.values.keys import Row
from qserver.values.relations import Definition
from qserver.values.schema import Table
from qserver.values.temporary import TEMPORARY

OnConflict: TypeAlias = Literal["error", "ignore", "update"]


class RowBatch(msgspec.Struct, frozen=True):
    """Rows with the same column names, in order; perhaps only the names."""

    names: tuple[str, ...]
    rows: list[Row]
    first: int
    """The number of the first row."""


_OF_A_ROW: Final = (
    CardinalityViolation,
    DataError,
    IntegrityError,
    ProgramLimitExceeded,
    StatementError,
    WithCheckOptionViolation,
)
_OF_ALL_ROWS: Final = (
    FeatureNotSupported,
    Forbidden,
    InvalidColumnReference,
    UndefinedTable,
    WrongObjectType,
)
_OF_NAMES: Final = (DuplicateColumn, GeneratedAlways, UndefinedColumn)

_SAMPLES: Final = {"i": "0", "l": "9999999999", "n": "0.5", "s": "''", "t": "TRUE"}
"""A literal of each kind, for the text of the statement."""


class BulkInsert:
    """Inserts into one table of an open transaction."""

    def __init__(
        self,
        sql: SqlDatabase,
        transaction: OpenTransaction,
        table: str,
        on_conflict: OnConflict,
        options: RunOptions,
        *,
        texts: bool = False,
        overriding: bool = False,
    ) -> None:
        """`texts`: values are texts and all rows have the same names, as in CSV.

        `overriding`: values for columns GENERATED ALWAYS AS IDENTITY are taken.
        """
        self.affected_rows = 0
        self._sql = sql
        self._transaction = transaction
        self._options = options
        self._texts = texts
        self._overriding = overriding
        self._of_all = (*_OF_ALL_ROWS, *_OF_NAMES) if texts else _OF_ALL_ROWS
        self._table = _find(transaction, table)
        self._on_conflict = on_conflict
        if on_conflict == "update" and self._table.has_row_id:
            raise InvalidColumnReference(
                f'table "{table}" has no primary key, so no row can be updated',
                table=self._table.name,
            )
        self._statements: dict[tuple[tuple[str, ...], str], tuple[str, Parameterized]] = {}
        """The last texts of names and kinds."""

    def check_columns(self, names: tuple[str, ...]) -> None:
        """Raise if the table lacks a column."""
        for name in names:
            self._table.position(name)

    async def add(self, batch: RowBatch) -> None:
        """Insert rows; raise the error of the first bad one, with its number."""
        names, rows = batch.names, batch.rows
        if not rows:
            self.check_columns(names)
            return
        if names or len(rows) == 1:  # rows without a column come one by one
            try:
                statement = self._statement(names, rows)
                outcome = await self._sql.inside(self._transaction, (statement,), self._options)
                self.affected_rows += outcome.results[0].affected_rows
                return
            except OutOfMemory as error:
                if self._transaction.is_over:
                    raise self._too_much(batch.first) from error
                raise
            except _OF_A_ROW as error:
                error.position = error.statement = None
                if isinstance(error, self._of_all):
                    raise
                if len(rows) == 1:
                    error.row = batch.first
                    raise
            self._transaction.failed = False
        half = len(rows) // 2
        await self.add(RowBatch(names, rows[:half], batch.first))
        await self.add(RowBatch(names, rows[half:], batch.first + half))

    def _too_much(self, row: int) -> OutOfMemory:
        return OutOfMemory(
            "the rows take more memory than one transaction may hold",
            detail=f"The limit is {self._transaction.bytes_most} bytes of rows and their keys,"
            f" reached near row {row}. Nothing was applied.",
            hint="Send them in several requests.",
            table=self._table.name,
        )

    async def commit(
        self, request_id: str | None = None, answer: tuple[bytes, StoredAnswer] | None = None
    ) -> int:
        """Commit all rows, and store the answer if it has a name; return the version."""
        transaction = self._transaction
        if answer is None and not transaction.transaction.changes_anything:
            return transaction.version
        outcome = await run(self._sql.committing(transaction, self._options, answer, request_id))
        version: int = outcome.version
        return version

    def _statement(self, names: tuple[str, ...], rows: list[Row]) -> Statement:
        if not names:
            return Statement(f"INSERT INTO {self._target} DEFAULT VALUES{self._action(names)}")
        columns: list[Row] = list(zip(*rows, strict=True))
        kinds = ""
        changed = False
        for at, name in enumerate(names):
            sql_type = self._table.column(name).type
            kind, column = column_of(columns[at], sql_type, self._texts)
            changed |= column is not columns[at]
            columns[at] = column
            kinds += kind
        if changed:
            rows = list(zip(*columns, strict=True))
        text, sample = self._text(names, kinds)
        literals: list[Any] = [rows if type(each) is list else each for each in sample.literals]
        parameterized = Parameterized(sample.fingerprint, literals, sample.kinds)
        return Statement(text, None, parameterized)

    def _text(self, names: tuple[str, ...], kinds: str) -> tuple[str, Parameterized]:
        """The statement with two rows that stand for all, and its fingerprint."""
        known = self._statements.get((names, kinds))
        if known is None:
            row = ", ".join([_SAMPLES[kind] for kind in kinds])
            columns = ", ".join(map(quoted, names))
            text = (
                f"INSERT INTO {self._target} ({columns}){self._override(names)}"
                f" VALUES ({row}), ({row}){self._action(names)}"
            )
            known = text, parameterize(text)
            if len(self._statements) >= _STATEMENTS_KEPT:
                self._statements.clear()
            self._statements[names, kinds] = known
        return known

    @property
    def _target(self) -> str:
        return ".".join(map(quoted, self._table.path))

    def _override(self, names: tuple[str, ...]) -> str:
        numbered = self._overriding and any(self._table.column(each).identity for each in names)
        return " OVERRIDING SYSTEM VALUE" if numbered else ""

    def _action(self, names: tuple[str, ...]) -> str:
        """The ON CONFLICT clause: a column that is left out keeps its value."""
        if self._on_conflict == "error":
            return ""
        if self._on_conflict == "ignore" or not names:
            return " ON CONFLICT DO NOTHING"
        table = self._table
        key = [table.columns[at].name for at in table.primary_key]
        changed = [name for name in names if name not in key] or key[:1]
        changes = ", ".join([f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in changed])
        return f" ON CONFLICT ({', '.join(map(quoted, key))}) DO UPDATE SET {changes}"


_STATEMENTS_KEPT: Final = 64


def find_relation(catalog: Catalog, name: str) -> Definition | None:
    """The definition under a name, with its schema and a dot before it if that is not public.

    A dot may also be part of the name, unless a relation of the schema is meant. A temporary
    relation comes first.
    """
    if "\0" in name:
        return None
    key = key_of_name(name)
    return catalog.find(catalog_key(TEMPORARY, key)) or catalog.find(key) or catalog.find(name)


def _find(transaction: OpenTransaction, name: str) -> Table:
    found = find_relation(transaction.transaction.catalog, name)
    if found is None:
        raise UndefinedTable(f'relation "{name}" does not exist', table=name)
    if not isinstance(found, Table):
        raise WrongObjectType(f'"{name}" is not a table', table=name)
    return found

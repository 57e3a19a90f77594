"""Moves a source into a database of qserver, over HTTP, in steps that a second run goes on with.

    definitions ─► transactions, each with a mark of its own
    rows        ─► bulk requests, then a mark for the table
    the rest    ─► one transaction each, with its mark

The marks are a table of the schema `qserver_import` in the database, which the last step drops. A
run that was interrupted leaves it: the next one skips what has a mark, and loads a table that has
none from its beginning, after it has emptied it. So no table is ever left half full for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from qserver.cli.errors import sentence
from qserver.cli.moving.move import Move, MovedTable
from qserver.cli.transfer.batches import batches, insert_batch
from qserver.client import Client, ConnectionFailed, ConnectionLost, Statement
from qserver.errors import DataInUse, DuplicateTable, Forbidden, QserverError, Unauthorized

SCHEMA: Final = "qserver_import"
STATEMENTS_AT_ONCE: Final = 500
HOPELESS: Final = (ConnectionFailed, ConnectionLost, Unauthorized, Forbidden)
"""Errors after which nothing else can succeed."""
_SOURCE: Final = "source"


class Mover:
    def __init__(
        self,
        client: Client,
        move: Move,
        progress: Callable[[int, int, float | None], None],
        stop_on_error: bool = False,
    ) -> None:
        self._client = client
        self._move = move
        self._progress = progress
        self._stop_on_error = stop_on_error
        self._done: set[str] = set()
        self._opening: list[str | Statement] = []
        """Makes the table of marks, with the first step: if that fails, nothing is left."""
        self._bytes = 0
        self.goes_on = False
        """Has an earlier run done a part of it?"""
        self.rows = 0
        self.failures: list[str] = []
        """What failed, with the reason."""
        self.is_unfinished = False
        """Are there tables whose rows failed? The next run tries them again."""

    def run(self) -> None:
        """Move everything. What fails alone is listed; raises what ends the whole."""
        self._begin()
        for number, part in enumerate(_parts(self._move.before) or [[]]):
            try:
                self._step(f"schema {number}", part)
            except DuplicateTable as error:
                error.hint = "Import into an empty database: qserver database create NAME"
                raise
        for table in self._move.tables:
            step = f"rows {table.sql_name}"
            if step not in self._done:
                self._load(table, step)
        for number, definition in enumerate(self._move.after):
            try:
                self._step(f"after {number}", [definition.statement])
            except HOPELESS:
                raise
            except QserverError as error:
                self._failed(f"{definition.what}: {sentence(error)}", error)
        if not self.is_unfinished:
            self._client.query(f"DROP SCHEMA {SCHEMA} CASCADE")

    def _begin(self) -> None:
        """Find the marks of an earlier run, or make the table for them."""
        found = self._client.query(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = $1", [SCHEMA]
        )
        if not found.rows[0][0]:
            self._opening = [
                f"CREATE SCHEMA {SCHEMA}",
                f"CREATE TABLE {SCHEMA}.marks (step text PRIMARY KEY, note text)",
                self._mark(_SOURCE, self._move.state),
            ]
            return
        found = self._client.query(f"SELECT step, note FROM {SCHEMA}.marks")
        marks = {step: note for step, note in found.rows}  # noqa: C416 (rows have any length)
        if marks.get(_SOURCE) != self._move.state:
            raise DataInUse(
                "an import of something else, or of an older state of it, is unfinished here",
                hint=f"Import into another database, or DROP SCHEMA {SCHEMA} CASCADE and what it"
                " has made, and begin anew.",
            )
        self._done = set(marks)
        self.goes_on = len(marks) > 1

    def _step(self, name: str, statements: Iterable[str]) -> None:
        if name not in self._done:
            self._client.transaction([*self._opening, *statements, self._mark(name)])
            self._opening = []

    def _mark(self, step: str, note: str | None = None) -> Statement:
        return Statement(f"INSERT INTO {SCHEMA}.marks VALUES ($1, $2)", [step, note])

    # --- rows -------------------------------------------------------------------------------------

    def _load(self, table: MovedTable, step: str) -> None:
        """Load the rows of a table, all or none."""
        self._client.query(f"TRUNCATE {table.sql_name}")
        before, first = self.rows, 1
        try:
            for body, count in batches(table.columns, table.rows()):
                insert_batch(self._client, table.route_name, body)
                first += count
                self.rows += count
                self._bytes += len(body)
                total = sum(each.row_count for each in self._move.tables)
                self._progress(self._bytes, self.rows, self.rows / total if total else None)
            self._step(step, [])
        except HOPELESS:
            raise
        except QserverError as error:
            self._client.query(f"TRUNCATE {table.sql_name}")
            self.rows, self.is_unfinished = before, True
            row = "" if error.row is None else f" (row {first + error.row - 1})"
            reason = f"rows of {table.sql_name}{row}: {sentence(error)}; none was taken"
            self._failed(reason, error)

    def _failed(self, reason: str, error: QserverError) -> None:
        self.failures.append(reason)
        if self._stop_on_error:
            raise error


def _parts(statements: list[str]) -> list[list[str]]:
    starts = range(0, len(statements), STATEMENTS_AT_ONCE)
    return [statements[start : start + STATEMENTS_AT_ONCE] for start in starts]

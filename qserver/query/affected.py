"""What a request changes: a bound on the number of rows, and the changes of a dry run.

Rows that foreign keys change (CASCADE, SET NULL, SET DEFAULT) count and are listed too.
"""

from __future__ import annotations

from collections.abc import Generator

from qserver.engine.work import Step
from qserver.errors import ProgramLimitExceeded, TooManyAffected
from qserver.functions.context import Context
from qserver.limits import ANSWER_ROWS_MAX
from qserver.query.cursor import Cursor
from qserver.query.results import Diff, Redefinition, RunOptions
from qserver.query.statements import StatementRun
from qserver.storage.changes import net_changes, redefined
from qserver.storage.page import Value
from qserver.storage.transaction import Transaction
from qserver.storage.writes import ENGINE_TREES
from qserver.values.sizes import size_of


class AffectedGuard:
    """Enforces `max_affected` over all statements of one run."""

    def __init__(self, run: StatementRun, most: int) -> None:
        self._run = run
        self._most = most
        self._affected = 0
        self._rows_before = 0

    def check_midway(self, cursor: Cursor) -> None:
        """Stop a running statement that exceeds the bound.

        Its row count is known only at its end; until then the written keys tell, of which a row
        that moves to another key takes two.
        """
        if cursor.plan is not None:
            rows = (self._rows_written() - self._rows_before) // 2
            self._check(self._affected + rows)

    def check_after(self, cursor: Cursor) -> None:
        self._affected += cursor.affected_rows
        self._check(self._affected + self._run.affected_besides)
        self._rows_before = self._rows_written()

    def _rows_written(self) -> int:
        writes, of_indexes = self._run.transaction.writes, self._run.transaction.catalog.rows_of
        return sum(
            len(writes[tree])
            for tree in writes
            if tree not in ENGINE_TREES and tree not in of_indexes
        )

    def _check(self, affected: int) -> None:
        if affected > self._most:
            raise TooManyAffected(
                f"more than {self._most} rows would be affected",
                detail="Rows that foreign keys change count, too. Nothing was applied.",
                hint="Narrow the statement, or allow more with max_affected.",
            )


def diff_of(
    transaction: Transaction, options: RunOptions, context: Context
) -> Generator[Step, None, Diff]:
    """Return the changes of a transaction, as many as an answer may have.

    More are an error, unless the request wants only the first ones.
    """
    most = ANSWER_ROWS_MAX if options.cut_rows is None else options.cut_rows

    def hold(row: Value) -> None:
        context.hold_bytes(64 + 32 * len(row) + sum(map(size_of, row)))

    changes = yield from net_changes(transaction, hold, most + 1)
    is_long = len(changes) > most
    if is_long and options.cut_rows is None:
        raise ProgramLimitExceeded(
            f"more than {most} rows would change",
            hint="Narrow the statement, or ask for the first changes with max_rows.",
        )
    before, after = transaction.catalog_before, transaction.catalog
    schema = tuple([Redefinition(key, before, after) for key in redefined(transaction)])
    return Diff(changes[:most], is_long, context.held, schema)

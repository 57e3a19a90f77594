"""SAVEPOINT, RELEASE and ROLLBACK TO between the statements of one request.

    INSERT …   SAVEPOINT a ─► the writes so far join the whole, see `storage.stepped`
    INSERT …   ROLLBACK TO a ─► later writes are discarded, and the whole is as it was
    COMMIT     (the end of the list)

A list of statements is applied as a whole or not at all, also inside an open transaction. So it
begins with an unnamed savepoint of its own, to which a failure rolls back. Savepoints from before
the list stay; only a separate request rolls back to them. Inside the list that could not be undone:
a savepoint knows former values, not those that a rollback discards. And a list runs again from its
beginning if a sequence has no value left, which needs what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from qserver.engine.work import Step
from qserver.errors import (
    ActiveTransaction,
    FeatureNotSupported,
    InvalidSavepoint,
    NoActiveTransaction,
    ProgramLimitExceeded,
)
from qserver.limits import SAVEPOINTS_MAX
from qserver.query.body import run_statements
from qserver.query.cursor import StatementSteps
from qserver.query.cursors import outside_of_block
from qserver.query.planning import Planner
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request
from qserver.query.results import Result, RunOptions
from qserver.query.session import Session
from qserver.query.statement_port import Opening
from qserver.query.transaction_control import command_of
from qserver.sql import ast
from qserver.storage.stepped import SteppedTransaction, StepTransaction
from qserver.storage.transaction import Transaction

BEGINNING: Final = ""
"""The name of the savepoint of a list, which no user can write."""


class ListedSavepoints:
    """The savepoints of one list of statements, which runs as one step."""

    def __init__(
        self,
        stepped: SteppedTransaction,
        step: StepTransaction,
        results: list[Result],
        session: Session | None,
        open_portal: Callable[[Opening], StatementSteps] | None = None,
    ) -> None:
        """`results` are those of the statements so far."""
        self._session = session
        self._open_portal = open_portal
        self._stepped = stepped
        self._step = step
        self._results = results
        self._kept = 0
        """The results of statements whose writes have joined the whole."""
        self.begun = False
        """Whether there was a savepoint."""

    def perform(self, node: ast.TransactionControl | Opening) -> StatementSteps:
        if isinstance(node, Opening):
            return (yield from self._declare(node))
        kind, name = command_of(node)
        if kind is None or name is None:
            raise ActiveTransaction(
                f"{node.kind.upper()} cannot stand between the statements of a request",
                hint="All statements of a request are applied together, or none of them.",
            )
        yield None  # a request with savepoints is not short: the coordinator never runs it
        stepped = self._stepped
        if kind == "savepoint":
            check_room(stepped)
            yield from self._begin()
            stepped.set_savepoint(name)
            if self._session is not None:
                self._session.set_savepoint(name)
            return 0
        self._check_own(node, name)
        if kind == "release":
            yield from self._keep()
            yield from stepped.release(name)
            if self._session is not None:
                self._session.release(name)
        else:
            if self._session is not None:
                yield from self._session.make_way()
            yield from stepped.roll_back_to(name)
            if self._session is not None:
                self._session.roll_back_to(name)
            self._kept = len(self._results)
            self._step.go_on()
        return 0

    def _begin(self) -> StatementSteps:
        """Move what was written so far into the whole, from where it can be undone."""
        if not self.begun:
            self._stepped.set_savepoint(BEGINNING)
            self.begun = True
        yield from self._keep()
        return 0

    def _declare(self, asked: Opening) -> StatementSteps:
        """Open a cursor, which reads the whole: the writes so far are part of it."""
        if self._open_portal is None:
            raise outside_of_block()
        yield None  # as a savepoint
        yield from self._begin()
        return (yield from self._open_portal(asked))

    def end(self) -> Generator[None, None, None]:
        """Keep the writes of the list, and its savepoints."""
        if self.begun or self._step.changes_anything:
            yield from self._keep()
        if self.begun:
            yield from self._stepped.forget_savepoint(BEGINNING)

    def undo(self) -> None:
        """Discard the writes of the list, and its savepoints."""
        if self.begun:
            for _ in self._stepped.roll_back_to(BEGINNING):
                pass
            for _ in self._stepped.release(BEGINNING):
                pass
            self._step.go_on()

    def _keep(self) -> Generator[None, None, None]:
        """Move the writes since the last call into the whole."""
        new = self._results[self._kept :]
        self._kept = len(self._results)
        yield from self._stepped.keep(self._step, sum([each.affected_rows for each in new]))
        self._step.go_on()

    def _check_own(self, node: ast.TransactionControl, name: str) -> None:
        stepped = self._stepped
        if self.begun and stepped.has_savepoint(name, since=BEGINNING):
            return
        if not stepped.has_savepoint(name):
            raise InvalidSavepoint(f'savepoint "{name}" does not exist')
        raise FeatureNotSupported(
            f'{node.kind.upper()} of savepoint "{name}" is a step of its own: it is older than'
            " the other statements of the request",
            detail="The statements of a request are applied together or not at all, and what was"
            " written before them could not be brought back if a later one failed.",
            hint="Send it alone, and the other statements behind it.",
        )


def run_with_savepoints(
    planner: Planner,
    request: Request,
    statements: list[PreparedStatement],
    options: RunOptions,
    transaction: Transaction,
) -> Generator[Step, Any, list[Result]]:
    """Run a list of statements with savepoints in it; otherwise as `run_statements`."""
    stepped = SteppedTransaction(transaction.snapshot, whole=transaction)
    step = stepped.step(0)
    results: list[Result] = []
    listed = ListedSavepoints(stepped, step, results, request.session)
    run = run_statements(planner, request, statements, options, step, listed.perform, results)
    yield from run
    yield from listed.end()
    step.report_reads()
    return results


def savepoint_alone() -> NoActiveTransaction:
    """The error for a savepoint that is the only statement of its request."""
    error = NoActiveTransaction(
        "savepoints can only be used in a transaction",
        hint="Send it among the statements of POST /v1/transaction, or in an open transaction.",
    )
    error.statement = 0
    return error


def check_room(stepped: SteppedTransaction) -> None:
    if stepped.savepoints >= SAVEPOINTS_MAX:
        raise ProgramLimitExceeded(
            f"a transaction has at most {SAVEPOINTS_MAX} savepoints",
            hint="Release those that are not needed.",
        )

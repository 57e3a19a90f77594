"""A transaction that stays open between its statements, so that two can overlap.

    the probe         T1 SELECT       T1 UPDATE            T1 commit
    body of T1    ────●───── waits ───●───── waits ────────●────►  first phase, second phase …
    body of T2       ────●── waits ───────●──● commit ►

A request carries a whole transaction, so no HTTP client can hold one open. To make two overlap, the
probe feeds their bodies statement by statement.

A body without a statement to run yields, as a long query does: the engine does not know that this
is a probe. Each body reads the newest snapshot of its beginning. After a conflict the engine runs
the body again, and the body repeats all of its statements at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.world import World
from qserver.errors import QserverError
from qserver.probes.steps import SqlStep, Step, counted, judge
from qserver.query.cursor import END
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import RequestEnvironment
from qserver.query.sql_database import Result, SqlDatabase
from qserver.query.statements import StatementRun
from qserver.storage.transaction import Transaction


class _RolledBack(Exception):  # the probe asked for it
    """Ends a transaction without a commit."""


class _Command:
    """A statement for the body, and its result when there is one."""

    __slots__ = ("answered", "result", "step")

    def __init__(self, step: SqlStep) -> None:
        self.step = step
        self.answered = trio.Event()
        self.result: Result | None = None


class OpenTransaction:
    """`perform` gives it statements; `commit` or `roll_back` ends it."""

    def __init__(
        self,
        name: str,
        database: SqlDatabase,
        world: World,
        note: Callable[[Step], None],
        max_retries: int,
    ) -> None:
        self.name = name
        self.begun = trio.Event()
        self._ended = trio.Event()
        self._database = database
        self._note = note
        self._max_retries = max_retries
        engine = database.database
        environment = RequestEnvironment(
            world.now, trio.current_time, world.chance, engine.sequences
        )
        self._request = environment.request()
        self._commands: list[_Command] = []
        self._commits = self._rolls_back = False
        self._outcome: Outcome | None = None
        self._error: QserverError | None = None

    # --- for the probe ---

    async def perform(self, *steps: SqlStep) -> None:
        """Run statements in the transaction, and note whether each meets its claim."""
        for step in steps:
            command = _Command(step)
            self._commands.append(command)
            await command.answered.wait()
            outcome = self._error if command.result is None else command.result
            assert outcome is not None, "a statement is answered, or the transaction has failed"
            self._note_named(judge(step, outcome))

    async def commit(self, *, code: str | None = None, may_conflict: bool = False) -> int:
        """Commit; `code` is the expected error. Returns the number of retries."""
        self._commits = True
        await self._ended.wait()
        expected = "a commit" if code is None else f"error {code}"
        if self._error is not None:
            fits = self._error.code == code or (may_conflict and self._error.code == "40001")
            found = f"error {self._error.code}: {self._error.message}"
        else:
            assert self._outcome is not None
            fits = code is None
            found = f"committed, run {counted(1 + self._outcome.retries, 'time')}"
        detail = found if fits else f"expected {expected}, found {found}"
        self._note_named(Step("COMMIT", fits, detail))
        return self._outcome.retries if self._outcome is not None else 0

    async def roll_back(self) -> None:
        """End the transaction without a commit."""
        self._rolls_back = True
        await self._ended.wait()
        self._note_named(Step("ROLLBACK", True, "done"))

    def _note_named(self, step: Step) -> None:
        self._note(Step(f"{self.name}: {step.sql}", step.ok, step.detail))

    # --- for the engine ---

    async def run(self) -> None:
        """Run the body in the engine, and keep the outcome."""
        try:
            self._outcome = await self._database.database.transact(
                self._body, max_retries=self._max_retries
            )
        except _RolledBack:
            pass
        except QserverError as error:
            self._error = error
        finally:
            self._ended.set()
            for command in self._commands:
                command.answered.set()

    def _body(self, transaction: Transaction) -> Generator[None, None, None]:
        self.begun.set()
        run = StatementRun(self._database.planner, transaction, self._request)
        done = 0
        while True:
            while done < len(self._commands):
                command = self._commands[done]
                command.result = yield from _result(run, command.step)
                command.answered.set()
                done += 1
            if self._rolls_back:
                raise _RolledBack
            if self._commits:
                return
            yield


def _result(run: StatementRun, step: SqlStep) -> Generator[None, None, Result]:
    cursor = run.start(PreparedStatement(step.sql, step.parameters))
    while cursor.gather() is not END:
        yield
    heading, version = cursor.heading, run.transaction.snapshot.version
    return Result(heading.columns, heading.types, cursor.rows, cursor.affected_rows, version)

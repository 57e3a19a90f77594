"""A transaction that stays open between its statements, so that two can really overlap.

Requests carry whole transactions, so nobody can hold one open over HTTP. To show what happens when
two of them overlap, their bodies are steered from outside, statement by statement:

    the probe         T1 SELECT       T1 UPDATE            T1 commit
    body of T1    ────●───── waits ───●───── waits ────────●────►  first phase, second phase …
    body of T2       ────●── waits ───────●──● commit ►

A body that has nothing to do yields, which is all that a long query does either: the engine is
not told that this is a probe. Each reads the snapshot that was newest when it began. A body that is
run again after a conflict is given all of its statements again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.world import World
from qserver.errors import QserverError
from qserver.probes.steps import SqlStep, Step, counted, judge
from qserver.query.cursor import END
from qserver.query.request import RequestEnvironment
from qserver.query.sql_database import Result, SqlDatabase
from qserver.query.statements import StatementRun
from qserver.storage.transaction import Transaction


class _RolledBack(Exception):  # the end that was asked for
    """The probe wants nothing of this transaction to stay."""


class _Command:
    """A statement that was handed to the body, and its result once there is one."""

    __slots__ = ("answered", "result", "step")

    def __init__(self, step: SqlStep) -> None:
        self.step = step
        self.answered = trio.Event()
        self.result: Result | None = None


class OpenTransaction:
    """Give it statements with `perform`, and an end with `commit` or `roll_back`."""

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
        environment = RequestEnvironment(world.now, trio.current_time, world.chance, engine.sequences)
        self._request = environment.request()
        self._commands: list[_Command] = []
        self._commits = self._rolls_back = False
        self._outcome: Outcome | None = None
        self._error: QserverError | None = None

    # --- for the probe ---

    async def perform(self, *steps: SqlStep) -> None:
        """Run statements in the transaction, and note whether they keep what they claim."""
        for step in steps:
            command = _Command(step)
            self._commands.append(command)
            await command.answered.wait()
            outcome = self._error if command.result is None else command.result
            assert outcome is not None, "a statement is answered, or the transaction has failed"
            self._note_named(judge(step, outcome))

    async def commit(self, *, code: str | None = None, may_conflict: bool = False) -> int:
        """End it; `code` is the error that must come of it. Tells how often it was run again."""
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
        """End it, and leave nothing behind."""
        self._rolls_back = True
        await self._ended.wait()
        self._note_named(Step("ROLLBACK", True, "done"))

    def _note_named(self, step: Step) -> None:
        self._note(Step(f"{self.name}: {step.sql}", step.ok, step.detail))

    # --- for the engine ---

    async def run(self) -> None:
        """Hand the body to the engine, and wait for what becomes of it."""
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
    cursor = run.start(step.sql, step.parameters)
    while cursor.gather() is not END:
        yield
    heading, version = cursor.heading, run.transaction.snapshot.version
    return Result(heading.columns, heading.types, cursor.rows, cursor.affected_rows, version)

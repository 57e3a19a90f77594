"""Planted bugs in transactions that are begun without waiting, and in the groups of the log."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from qserver.engine import coordinator, log_writer
from qserver.engine.coordinator import Coordinator
from qserver.engine.gateway import Gateway
from qserver.engine.log_writer import LogWriter
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Answer, Append, Commit, Failed
from qserver.engine.work import Step
from qserver.limits import ROUNDS_UNSYNCED_MAX
from qserver.query.sql_database import Result, SqlDatabase, Statement, TransactionResult
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import merge_writes
from qserver.values.steps import at_once
from simulations.mutants.mutant import Mutant


def _tell_when_published(original: Any) -> Any:
    def next_round(self: Coordinator, *arguments: Any) -> tuple[Snapshot, Append, Any]:
        snapshot, append, moves = original(self, *arguments)
        durable, self.versions.durable = self.versions.durable, snapshot
        for reply, answer in append.answers:
            if reply._callback is not None:
                reply.put(answer)
        self.versions.durable = durable
        return snapshot, append, moves

    return next_round


def _tell_of_what_came_to_nothing(original: Any) -> Any:
    def perform(
        self: SqlDatabase, statements: Sequence[Statement], *others: Any
    ) -> Generator[Step, Any, Any]:
        steps = original(self, statements, *others)
        try:
            step = next(steps)
            while not isinstance(step, Reply):
                step = steps.send((yield step))
            step = steps.send((yield step))
            snapshot = self.database.snapshots.take()
            while snapshot is None:
                step = steps.send((yield step))
            nothing = Result((), (), [], 1, snapshot.version)
            return TransactionResult([nothing for _ in statements], snapshot.version, 0)
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    return perform


def _tell_of_what_is_not_durable(original: Any) -> Any:
    def commit(
        self: Gateway, generation: Any, attempt: Any, commit: Commit, *rest: Any
    ) -> Generator[Step, Any, Any]:
        steps = original(self, generation, attempt, commit, *rest)
        if commit.transaction is not None:
            return (yield from steps)
        try:
            step = next(steps)
            try:
                answer = yield step
            except Exception as error:
                steps.throw(error)
                raise
            steps.send(answer)
            steps.send(None)  # it wanted to wait until that is durable
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    return commit


def _run_untried_without_the_others(original: Any) -> Any:
    def run_work(self: Coordinator, commit: Commit, transaction: Transaction) -> Answer:
        if commit.transaction is None:
            transaction.earlier = None
        answer: Answer = original(self, commit, transaction)
        return answer

    return run_work


def _keep_what_was_written_before_an_error(original: Any) -> Any:
    def run_work(self: Coordinator, commit: Commit, transaction: Transaction) -> Answer:
        answer: Answer = original(self, commit, transaction)
        if commit.transaction is None and isinstance(answer, Failed):
            assert transaction.earlier is not None
            at_once(merge_writes(transaction.earlier, transaction.writes))
        return answer

    return run_work


def _release_what_has_only_begun(original: Any) -> Any:
    async def run(self: LogWriter) -> None:
        group = await self.mailbox.take(ROUNDS_UNSYNCED_MAX)
        released = False
        while True:
            await self._begin(group)
            following = self.mailbox.take_nowait(ROUNDS_UNSYNCED_MAX)
            if not released:
                self.release(group)
            released = bool(following)
            if released:
                self.release(following)
            group = following or await self.mailbox.take(ROUNDS_UNSYNCED_MAX)

    return run


BEGUN: Final = ("sql_bank", "sql_keys")

MUTANTS: Final = (
    Mutant(
        "release_what_has_only_begun",
        "the answers of the next group leave when its append has begun",
        ("bank", "hot_key", "list_append"),
        ((log_writer.LogWriter, "run", _release_what_has_only_begun),),
    ),
    Mutant(
        "tell_when_published",
        "who began a transaction without waiting is told of its end before it is durable",
        BEGUN,
        ((coordinator.Coordinator, "next_round", _tell_when_published),),
    ),
    Mutant(
        "tell_of_what_came_to_nothing",
        "who began a transaction without waiting is told that it ended well, though it has to be"
        " run again",
        ("sql_keys",),
        ((SqlDatabase, "perform", _tell_of_what_came_to_nothing),),
    ),
    Mutant(
        "tell_of_what_is_not_durable",
        "work that was left to the coordinator and wrote nothing is answered before what it saw is"
        " durable",
        ("sql_references", "sql_predicates"),
        ((Gateway, "_commit", _tell_of_what_is_not_durable),),
    ),
    Mutant(
        "run_untried_without_the_others",
        "work that comes untried does not see what was run before it in the same round",
        BEGUN,
        ((coordinator.Coordinator, "run_work", _run_untried_without_the_others),),
    ),
    Mutant(
        "keep_what_was_written_before_an_error",
        "what untried work wrote before it raised is installed with the writes of others",
        BEGUN,
        (
            (
                coordinator.Coordinator,
                "run_work",
                _keep_what_was_written_before_an_error,
            ),
        ),
    ),
)

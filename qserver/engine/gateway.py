"""The gateway: runs work, commits its writes, and reruns it when it conflicts.

    tried        take the newest snapshot ─► run ─► nothing written? ─► durable ─► answer
                        ▲                     └─► Commit ─► durable ─► answer
                        │                           └─► Conflicted
                        └── a short random pause ◄──────┘   after `max_retries`: an exclusive commit

    untried      Commit with the work alone ─► the coordinator runs it ─► durable ─► answer
                                                      └─► not short: the work is tried after all

Work that is known to be short goes to the coordinator untried: nothing can come between there, so
nothing has to be validated. The gateway tries all other work itself. An exclusive commit is a try
that no other commit can disturb. Each of the three is one generator, see `work`; the caller chooses
whether a task or a callback waits for it.

No answer, and no error that work raised, leaves before every version that it saw or made is
durable: an error can reveal as much about the data as a row.

When the generation ends, the gateway reruns work whose commit was not sent on the next generation.
Work whose commit was sent ends in OutcomeUnknown, because only the log knows its outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import msgspec
import trio

from qserver.engine.generation import Generation
from qserver.engine.mailbox import Reply
from qserver.engine.messages import (
    Answer,
    Commit,
    Committed,
    Conflicted,
    ExclusiveCommit,
    Failed,
    Work,
)
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.versions import EngineRestarted
from qserver.engine.work import FOREVER, Step, before, begin, timed_out
from qserver.errors import SerializationFailure
from qserver.limits import RETRY_PAUSE_SECONDS_MAX
from qserver.storage.conflict import Conflict
from qserver.storage.conflict_place import located
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction

if TYPE_CHECKING:
    from random import Random


class Outcome(msgspec.Struct, frozen=True):
    """A request's result, the version it saw or made, and how often it was rerun."""

    result: Any
    version: int
    retries: int = 0


class GatewayStatistics(msgspec.Struct, frozen=True):
    transactions: int
    retries: int
    exclusive: int
    restarts: int


Attempted: TypeAlias = Generator[Step, Any, Outcome | Conflict]


class Gateway:
    def __init__(
        self,
        alive: Callable[[], Awaitable[Generation]],
        alive_nowait: Callable[[], Generation | None],
        snapshots: SnapshotSource,
        chance: Random,
    ) -> None:
        self._alive = alive
        self._alive_nowait = alive_nowait
        self._snapshots = snapshots
        self._chance = chance
        self._numbers = count(1)
        self._transactions = self._retries = self._exclusive = self._restarts = 0

    def transact(
        self,
        work: Work,
        max_retries: int,
        deadline: float,
        untried: bool = False,
        run: Transaction | None = None,
        request_id: str | None = None,
    ) -> Generator[Step, Any, Outcome]:
        """Run work and commit its writes, serializably.

        `deadline`, by Trio's clock, bounds everything up to the sending of the commit. The gateway
        waits for a commit that was sent, because its outcome is of more use than a guess. `untried`
        is for work that is known to be short: the coordinator runs it first. `run` is a transaction
        that was run already, and cannot be run again.
        """
        self._transactions += 1
        attempt = _Attempt(work, max_retries, deadline, untried, request_id)
        while True:
            try:
                generation = self._alive_nowait()
                if generation is None:
                    generation = yield partial(before, deadline, self._alive)
                if generation.checkpointer.cache.is_full:
                    wait = generation.checkpointer.wait_for_room
                    yield partial(before, deadline, wait)
                    generation.versions.check_alive()
                if attempt.untried:
                    answer = yield from self._leave(generation, attempt)
                elif run is not None:
                    answer = yield from self._send(generation, attempt, run)
                elif attempt.conflict is not None and attempt.retries >= max_retries:
                    answer = yield from self._commit_exclusively(generation, attempt)
                else:
                    newest = self._snapshots.take(newest=True)
                    if newest is None:
                        raise EngineRestarted
                    answer = yield from self._try(generation, attempt, newest)
            except EngineRestarted:
                self._restarts += 1
                continue
            except SerializationFailure as error:  # which the work itself has raised
                living = self._alive_nowait()
                if living is not None:
                    yield partial(living.explain, error)
                raise
            if isinstance(answer, Outcome):
                return answer
            if attempt.untried:  # nothing conflicts there: the work is not short
                attempt.untried = False
                continue
            attempt.conflict = answer
            if max_retries > 0:
                yield partial(self._pause, attempt)
            if max_retries == 0 or attempt.is_too_late():
                yield from self._give_up(generation, attempt.conflict)
            attempt.retries += 1
            self._retries += 1

    def _leave(self, generation: Generation, attempt: _Attempt) -> Attempted:
        if attempt.is_too_late():
            raise timed_out()
        commit = Commit(next(self._numbers), None, attempt.work, Reply(), attempt.request_id)
        put = generation.submit
        return self._commit(generation, attempt, commit, put, None)

    def _try(
        self,
        generation: Generation,
        attempt: _Attempt,
        snapshot: Snapshot,
        exclusive: ExclusiveCommit | None = None,
    ) -> Attempted:
        """Run the work here, and have its reads validated."""
        transaction, result, short = yield from self._run(generation, snapshot, attempt)
        if not transaction.changes_anything:
            if exclusive is not None:
                exclusive.returned.put(None)  # others need not wait for the disk with it
            if snapshot.version > generation.versions.durable.version:
                yield _durable(generation, snapshot.version, attempt.deadline)
            self._snapshots.check_guard()
            return Outcome(result, snapshot.version, attempt.retries)
        work = attempt.work if short and attempt.max_retries and exclusive is None else None
        commit = Commit(next(self._numbers), transaction, work, Reply(), attempt.request_id)
        put = generation.submit if exclusive is None else exclusive.returned.put
        return (yield from self._commit(generation, attempt, commit, put, result))

    def _send(
        self, generation: Generation, attempt: _Attempt, transaction: Transaction
    ) -> Attempted:
        """Commit a transaction as it is."""
        if not transaction.changes_anything:
            self._snapshots.check_guard()
            return Outcome(None, transaction.snapshot.version)
        yield from transaction.load_written()
        if attempt.is_too_late():
            raise timed_out()
        commit = Commit(next(self._numbers), transaction, None, Reply(), attempt.request_id)
        return (yield from self._commit(generation, attempt, commit, generation.submit, None))

    def _commit_exclusively(self, generation: Generation, attempt: _Attempt) -> Attempted:
        """Run the work here while the coordinator lets no other transaction commit."""
        self._exclusive += 1
        exclusive = ExclusiveCommit(next(self._numbers), Reply(), Reply())
        try:
            snapshot = yield partial(
                before, attempt.deadline, generation.grant_exclusive, exclusive
            )
            return (yield from self._try(generation, attempt, snapshot, exclusive))
        finally:
            exclusive.returned.put(None)  # has no effect if something was returned before

    def _run(
        self, generation: Generation, snapshot: Snapshot, attempt: _Attempt
    ) -> Generator[Step, Any, tuple[Transaction, Any, bool]]:
        """Return the work's transaction, its result, and whether it was short."""
        transaction = Transaction(snapshot)
        transaction.marks = []
        if attempt.retries:
            transaction.retries = attempt.retries
        try:
            result, rest = begin(attempt.work(transaction))
            if rest is not None:
                result = yield from rest.go_on(attempt.deadline)
            yield from transaction.load_written()
        except Exception:
            if snapshot.version > generation.versions.durable.version:
                yield _durable(generation, snapshot.version, attempt.deadline)
            self._snapshots.check_guard()
            raise
        if attempt.is_too_late():  # short work has no step at which the deadline is checked
            if attempt.conflict is not None:
                yield from self._give_up(generation, attempt.conflict)
            raise timed_out()
        return transaction, result, rest is None

    def _commit(
        self,
        generation: Generation,
        attempt: _Attempt,
        commit: Commit,
        put: Callable[[Commit], None],
        result: Any,
    ) -> Attempted:
        """Send a commit, wait for its answer, and return the outcome or the conflict."""
        newest = generation.versions.newest.version
        generation.send(put, commit)
        try:
            answer: Answer = commit.reply.taken() if commit.reply.answered else (yield commit.reply)
        finally:
            generation.settle(commit.number)
        if isinstance(answer, Conflicted):
            return _located(answer.conflict, generation, commit.transaction)
        if answer.version > generation.versions.durable.version:
            yield _durable(generation, answer.version)
        if answer.version <= newest:  # nothing was appended since, which would have been refused
            self._snapshots.check_guard()
        if isinstance(answer, Failed):
            raise answer.error
        assert isinstance(answer, Committed)
        if commit.transaction is None:
            return Outcome(answer.result, answer.version, attempt.retries)
        if answer.retried:
            self._retries += 1
            return Outcome(answer.result, answer.version, attempt.retries + 1)
        return Outcome(result, answer.version, attempt.retries)

    async def _pause(self, attempt: _Attempt) -> None:
        pause = self._chance.uniform(0, RETRY_PAUSE_SECONDS_MAX)
        with trio.CancelScope(deadline=attempt.deadline):
            await trio.sleep(pause)

    def _give_up(
        self, generation: Generation, conflict: Conflict
    ) -> Generator[Step, Any, NoReturn]:
        error = SerializationFailure(
            "could not serialize access due to concurrent update",
            detail=_described(conflict),
            hint="The transaction might succeed if retried.",
            conflict=conflict,
        )
        try:
            yield _durable(generation, conflict.version_found or 0)
            yield partial(generation.explain, error)
        except EngineRestarted:
            pass  # the version found is gone, and so is the conflict
        raise error

    def statistics(self) -> GatewayStatistics:
        return GatewayStatistics(self._transactions, self._retries, self._exclusive, self._restarts)

    def __repr__(self) -> str:
        return f"a gateway after {self._transactions} transactions"


class _Attempt(msgspec.Struct, eq=False):
    work: Work
    max_retries: int
    deadline: float
    untried: bool
    request_id: str | None
    retries: int = 0
    conflict: Conflict | None = None

    def is_too_late(self) -> bool:
        return self.deadline != FOREVER and trio.current_time() >= self.deadline


def _durable(generation: Generation, version: int, deadline: float = FOREVER) -> Step:
    return partial(before, deadline, generation.versions.wait_durable, version)


def _located(
    conflict: Conflict, generation: Generation, transaction: Transaction | None
) -> Conflict:
    """Return the conflict with its table and the versions that it is between."""
    if transaction is None:
        return conflict
    return located(conflict, transaction, generation.versions.newest.version)


def _described(conflict: Conflict) -> str:
    where = " ".join(str(part) for part in (conflict.table, conflict.key) if part is not None)
    return f"{conflict.reason}: {where}" if where else conflict.reason

"""The gateway: runs work on a view, commits what it wrote, and runs it again when it conflicts.

    take the newest view ─► run ─► nothing written? ─► wait until that view is durable ─► answer
            ▲                 └─► Commit ─► durable ─► answer
            │                         └─► Conflicted
            └── a short random pause ◄──────┘   after `max_retries`: a turn of one's own

No answer, and no error that work raised, leaves before every version that it saw or made is
durable: an error can tell as much about the data as a row.

Work that is known to be short can also be begun without a task that waits for its end:
`transact_nowait` leaves it to the coordinator to run, and everything else to `transact`.

When the incarnation falls, work whose commit was not sent is simply run again on the next one; work
whose commit was sent ends in OutcomeUnknown, because only the log knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec
import trio

from qserver.engine.incarnation import Fallen, Incarnation
from qserver.engine.mailbox import Reply, Told
from qserver.engine.messages import Answer, Commit, Committed, Conflicted, Failed, Turn, Work
from qserver.engine.work import before, begin, finish, timed_out
from qserver.errors import (
    ReadOnlyTransaction,
    SerializationFailure,
    TooManyRequests,
)
from qserver.limits import RETRIES_DEFAULT, RETRY_PAUSE_SECONDS_MAX
from qserver.storage.conflict import Conflict
from qserver.storage.transaction import Transaction
from qserver.storage.view import View

if TYPE_CHECKING:
    from random import Random

FOREVER: Final = float("inf")


class Outcome(msgspec.Struct, frozen=True):
    """What a request came to: the version it saw or made, and how often it was run again."""

    result: Any
    version: int
    retries: int = 0


Made = TypeVar("Made")

Done: TypeAlias = Callable[[Made | Exception | None], None]
"""Told what became of work that nobody waits for: an outcome that is durable; an error where that
cannot be known; None where nothing was applied, and `transact` is to be asked."""


class GatewayStatistics(msgspec.Struct, frozen=True):
    reads: int
    transactions: int
    retries: int
    turns: int
    falls: int


class Gateway:
    def __init__(
        self,
        alive: Callable[[], Awaitable[Incarnation]],
        alive_nowait: Callable[[], Incarnation | None],
        chance: Random,
    ) -> None:
        self._alive = alive
        self._alive_nowait = alive_nowait
        self._chance = chance
        self._numbers = count(1)
        self._reads = self._transactions = self._retries = self._turns = self._falls = 0

    async def read(self, work: Work, *, deadline: float = float("inf")) -> Outcome:
        """Run work that writes nothing on the newest durable view: no message, no waiting."""
        self._reads += 1
        with trio.CancelScope(deadline=deadline) as scope:
            incarnation = await self._alive()
            view = incarnation.published.durable
            return Outcome(await read_view(view, work), view.version)
        assert scope.cancelled_caught
        raise timed_out()

    async def transact(
        self,
        work: Work,
        *,
        max_retries: int = RETRIES_DEFAULT,
        deadline: float = float("inf"),
    ) -> Outcome:
        """Run work and commit what it writes, serializably.

        `deadline`, by Trio's clock, bounds everything up to the sending of the commit. What was
        sent is waited for, because its outcome is of more use than a guess.
        """
        self._transactions += 1
        attempt = _Attempt(work, max_retries, deadline)
        while True:
            try:
                incarnation = self._alive_nowait() or await before(deadline, self._alive())
                if attempt.conflict is not None and attempt.retries >= max_retries:
                    answer = await self._take_turn(incarnation, attempt)
                else:
                    answer = await self._try(incarnation, attempt)
            except Fallen:
                self._falls += 1
                continue
            if isinstance(answer, Outcome):
                return answer
            attempt.conflict = answer
            if max_retries > 0:
                await self._pause(attempt)
            if max_retries == 0 or attempt.is_too_late():
                await self._give_up(incarnation, attempt.conflict)
            attempt.retries += 1
            self._retries += 1

    def transact_nowait(
        self, work: Work, done: Done[Made], make: Callable[[Any, int], Made]
    ) -> bool:
        """Send short work to the coordinator, and have `done` told later what became of it.

        `make` makes the outcome of the work's result and the version. False: not now; nothing has
        been done.
        """
        incarnation = self._alive_nowait()
        if incarnation is None:
            return False
        published = incarnation.published
        number = next(self._numbers)

        token = trio.lowlevel.current_trio_token()
        returned = False

        def tell(answer: Answer | Exception) -> None:
            if not returned:
                token.run_sync_soon(tell, answer)
                return
            incarnation.settle(number)
            if isinstance(answer, Exception):
                done(answer)
            elif type(answer) is Committed and answer.version <= published.durable.version:
                self._transactions += 1
                done(make(answer.result, answer.version))
            else:
                done(None)

        try:
            commit = Commit(number, None, work, Told(tell))
            incarnation.send(incarnation.submit, commit)
        except (TooManyRequests, Fallen):
            return False
        finally:
            returned = True
        return True

    async def _try(self, incarnation: Incarnation, attempt: _Attempt) -> Outcome | Conflict:
        view = incarnation.published.newest
        transaction, result, short = await self._run(incarnation, view, attempt)
        if not transaction.changes_anything:
            await before(attempt.deadline, incarnation.published.wait_durable(view.version))
            return Outcome(result, view.version, attempt.retries)
        again = attempt.work if short and attempt.max_retries else None
        commit = Commit(next(self._numbers), transaction, again, Reply())
        answer = await incarnation.commit(commit)
        return await self._judge(incarnation, attempt, transaction, result, answer)

    async def _take_turn(self, incarnation: Incarnation, attempt: _Attempt) -> Outcome | Conflict:
        """The same, while the coordinator lets nobody else commit."""
        self._turns += 1
        turn = Turn(next(self._numbers), Reply(), Reply())
        try:
            view = await before(attempt.deadline, incarnation.turn(turn))
            transaction, result, _ = await self._run(incarnation, view, attempt)
            if not transaction.changes_anything:
                turn.returned.put(None)
                await before(attempt.deadline, incarnation.published.wait_durable(view.version))
                return Outcome(result, view.version, attempt.retries)
            commit = Commit(next(self._numbers), transaction, None, Reply())
            incarnation.send(turn.returned.put, commit)
            answer = await incarnation.answer(commit)
            return await self._judge(incarnation, attempt, transaction, result, answer)
        finally:
            turn.returned.put(None)  # counts only if nothing was returned before

    async def _run(
        self, incarnation: Incarnation, view: View, attempt: _Attempt
    ) -> tuple[Transaction, Any, bool]:
        transaction = Transaction(view)
        try:
            result, rest = begin(attempt.work, transaction)
            if rest is not None:
                result = await before(attempt.deadline, finish(rest))
        except Exception:
            await before(attempt.deadline, incarnation.published.wait_durable(view.version))
            raise
        if attempt.is_too_late():  # short work passes no place that would tell
            if attempt.conflict is not None:
                await self._give_up(incarnation, attempt.conflict)
            raise timed_out()
        return transaction, result, rest is None

    async def _judge(
        self,
        incarnation: Incarnation,
        attempt: _Attempt,
        transaction: Transaction,
        result: Any,
        answer: Answer,
    ) -> Outcome | Conflict:
        if isinstance(answer, Conflicted):
            return msgspec.structs.replace(
                answer.conflict,
                table=answer.conflict.table or _table_of(transaction.view, answer.conflict),
                version_read=transaction.view.version,
                version_found=incarnation.published.newest.version,
            )
        if answer.version > incarnation.published.durable.version:
            await incarnation.published.wait_durable(answer.version)
        if isinstance(answer, Failed):
            raise answer.error
        assert isinstance(answer, Committed)
        if answer.again:
            self._retries += 1
            return Outcome(answer.result, answer.version, attempt.retries + 1)
        return Outcome(result, answer.version, attempt.retries)

    async def _pause(self, attempt: _Attempt) -> None:
        pause = self._chance.uniform(0, RETRY_PAUSE_SECONDS_MAX)
        with trio.CancelScope(deadline=attempt.deadline):
            await trio.sleep(pause)

    async def _give_up(self, incarnation: Incarnation, conflict: Conflict) -> NoReturn:
        try:
            await incarnation.published.wait_durable(conflict.version_found or 0)
        except Fallen:
            pass  # what was found is gone, and so is what it conflicted with
        raise SerializationFailure(
            "could not serialize access due to concurrent update",
            detail=_described(conflict),
            hint="The transaction might succeed if retried.",
            conflict=conflict,
        )

    def statistics(self) -> GatewayStatistics:
        return GatewayStatistics(
            self._reads, self._transactions, self._retries, self._turns, self._falls
        )

    def __repr__(self) -> str:
        return f"a gateway after {self._reads} reads and {self._transactions} transactions"


class _Attempt:
    """What is remembered of a request between its attempts."""

    __slots__ = ("conflict", "deadline", "max_retries", "retries", "work")

    def __init__(self, work: Work, max_retries: int, deadline: float) -> None:
        self.work = work
        self.max_retries = max_retries
        self.deadline = deadline
        self.retries = 0
        self.conflict: Conflict | None = None

    def is_too_late(self) -> bool:
        return self.deadline != FOREVER and trio.current_time() >= self.deadline


async def read_view(view: View, work: Work) -> Any:
    """The result of work that writes nothing, on any view."""
    transaction = Transaction(view)
    result, rest = begin(work, transaction)
    if rest is not None:
        result = await finish(rest)
    if transaction.changes_anything:
        raise ReadOnlyTransaction("cannot write in a read-only transaction")
    return result


def _table_of(view: View, conflict: Conflict) -> str | None:
    return None if conflict.tree is None else view.catalog.name_of_tree(conflict.tree)


def _described(conflict: Conflict) -> str:
    where = " ".join(str(part) for part in (conflict.table, conflict.key) if part is not None)
    return f"{conflict.reason}: {where}" if where else conflict.reason

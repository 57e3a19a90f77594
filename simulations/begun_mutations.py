"""What planted bugs do to transactions that are begun without waiting, and to the groups of the
log; `mutants.py` says which there are, and plants them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from qserver.engine.coordinator import Coordinator
from qserver.engine.gateway import Done, Gateway, Outcome
from qserver.engine.log_writer import LogWriter
from qserver.engine.mailbox import Told
from qserver.engine.messages import Append, Work
from qserver.limits import ROUNDS_UNSYNCED_MAX
from qserver.storage.transaction import Transaction
from qserver.storage.view import View


def tell_when_published(original: Any) -> Any:
    def next_round(self: Coordinator, *arguments: Any) -> tuple[View, Append]:
        view, append = original(self, *arguments)
        durable, self.published.durable = self.published.durable, view
        for reply, answer in append.answers:
            if isinstance(reply, Told):
                reply.put(answer)
        self.published.durable = durable
        return view, append

    return next_round


def tell_of_the_first_run(original: Any) -> Any:
    def transact_nowait(self: Gateway, work: Work, done: Done) -> bool:
        results: list[Any] = []

        def tell(outcome: Outcome | Exception | None) -> None:
            if isinstance(outcome, Outcome):
                outcome = Outcome(results[0], outcome.version, outcome.retries)
            done(outcome)

        return bool(original(self, _noting(work, results), tell))

    return transact_nowait


def tell_of_what_came_to_nothing(original: Any) -> Any:
    def transact_nowait(self: Gateway, work: Work, done: Done) -> bool:
        results: list[Any] = []

        def tell(outcome: Outcome | Exception | None) -> None:
            incarnation = self._alive_nowait()
            if outcome is None and incarnation is not None:
                outcome = Outcome(results[0], incarnation.published.durable.version)
            done(outcome)

        return bool(original(self, _noting(work, results), tell))

    return transact_nowait


def begin_without_footprint(original: Any) -> Any:
    def transact_nowait(self: Gateway, work: Work, done: Done) -> bool:
        def forgetful(transaction: Transaction) -> Generator[Any, None, Any]:
            result = yield from work(transaction)
            transaction.keys, transaction.ranges, transaction.names_seen = {}, [], {}
            return result

        return bool(original(self, forgetful, done))

    return transact_nowait


def release_what_has_only_begun(original: Any) -> Any:
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


def _noting(work: Work, results: list[Any]) -> Work:
    """The same work, whose results are noted."""

    def noted(transaction: Transaction) -> Generator[Any, None, Any]:
        result = yield from work(transaction)
        results.append(result)
        return result

    return noted

"""Planted bugs where work fails: in an exclusive commit, and at the coordinator."""

from __future__ import annotations

from typing import Any, Final

import trio

from qserver.engine import coordinator, gateway, versions
from qserver.engine.coordinator import Coordinator
from qserver.engine.gateway import Gateway
from qserver.engine.generation import Generation
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Answer, Commit, ExclusiveCommit, Failed
from qserver.engine.versions import Versions
from qserver.engine.work import WorkSteps
from qserver.errors import CheckViolation, QueryCanceled
from qserver.storage import find_conflict
from qserver.storage.transaction import Transaction
from qserver.storage.writes import merge_writes
from qserver.values.steps import at_once
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import CROWDED


class _KeptReply(Reply[Any]):
    """A reply that passes a commit on, and never says that there is none."""

    def put(self, content: Any) -> None:
        if content is not None:
            super().put(content)


def _keep_turn_on(*errors: type[BaseException]) -> Any:
    """Return the exclusive commit in all cases but these."""

    def change(original: Any) -> Any:
        def commit_exclusively(self: Gateway, generation: Generation, attempt: Any) -> WorkSteps:
            asked: list[ExclusiveCommit] = []

            class Lent:
                """The generation, except for granting and taking back exclusive commits."""

                def __getattr__(self, name: str) -> Any:
                    return getattr(generation, name)

                @staticmethod
                async def grant_exclusive(wanted: ExclusiveCommit) -> Any:
                    asked.append(ExclusiveCommit(wanted.number, wanted.granted, _KeptReply()))
                    return await generation.grant_exclusive(asked[0])

                @staticmethod
                def send(_: Any, commit: Commit) -> None:
                    generation.send(asked[0].returned.put, commit)

            try:
                result = yield from original(self, Lent(), attempt)
            except BaseException as error:
                if not isinstance(error, errors):
                    _give_back(asked)
                raise
            _give_back(asked)
            return result

        return commit_exclusively

    return change


def _give_back(asked: list[ExclusiveCommit]) -> None:
    for exclusive in asked:
        Reply.put(exclusive.returned, None)


def _commit_what_failed(original: Any) -> Any:
    def run(self: Gateway, generation: Any, snapshot: Any, attempt: Any) -> WorkSteps:
        try:
            return (yield from original(self, generation, snapshot, attempt))
        except CheckViolation:
            if attempt.retries < attempt.max_retries or attempt.retries == 0:
                raise
            transaction = Transaction(snapshot)
            rest = attempt.work(transaction)
            try:
                for _ in rest:
                    pass
            except CheckViolation as error:
                return transaction, error, False
            return transaction, None, False

    return run


def _tell_what_failed(original: Any) -> Any:
    def commit(self: Gateway, *arguments: Any) -> WorkSteps:
        outcome = yield from original(self, *arguments)
        if isinstance(getattr(outcome, "result", None), CheckViolation):
            raise outcome.result
        return outcome

    return commit


def _keep_what_was_written_again(original: Any) -> Any:
    def run_work(self: Coordinator, commit: Commit, work: Transaction) -> Answer:
        answer: Answer = original(self, commit, work)
        if commit.transaction is not None and isinstance(answer, Failed):
            assert work.earlier is not None
            at_once(merge_writes(work.earlier, work.writes))
        return answer

    return run_work


def _gather_who_gave_up(original: Any) -> Any:
    async def wait_durable(self: Versions, version: int) -> None:
        try:
            await original(self, version)
        except trio.Cancelled:
            self._waiting.append((version + 1_000_000, trio.Event()))
            raise

    return wait_durable


def _never(*_: Any) -> None:
    return None


MUTANTS: Final = (
    Mutant(
        "keep_the_exclusive_commit_after_an_error",
        "an exclusive commit is not returned when the work raises in it",
        ("exclusive_commits",),
        ((gateway.Gateway, "_commit_exclusively", _keep_turn_on(CheckViolation)),),
    ),
    Mutant(
        "keep_the_exclusive_commit_after_a_deadline",
        "an exclusive commit is not returned when the deadline passes in it",
        ("exclusive_commits",),
        ((gateway.Gateway, "_commit_exclusively", _keep_turn_on(QueryCanceled)),),
    ),
    Mutant(
        "keep_the_exclusive_commit_of_who_left",
        "an exclusive commit is not returned when the client leaves in it",
        ("exclusive_commits",),
        ((gateway.Gateway, "_commit_exclusively", _keep_turn_on(GeneratorExit)),),
    ),
    Mutant(
        "commit_what_failed_in_an_exclusive_commit",
        "what work wrote before it raised in an exclusive commit is committed",
        ("exclusive_commits",),
        (
            (gateway.Gateway, "_run", _commit_what_failed),
            (gateway.Gateway, "_commit", _tell_what_failed),
        ),
    ),
    Mutant(
        "keep_what_was_written_before_it_failed_again",
        "what work wrote before it raised, where it was run again, is installed with the others'",
        ("exclusive_commits",),
        ((coordinator.Coordinator, "run_work", _keep_what_was_written_again),),
    ),
    Mutant(
        "gather_who_gave_up",
        "who gives up waiting for what is durable is remembered for ever",
        ("exclusive_commits",),
        ((versions.Versions, "wait_durable", _gather_who_gave_up),),
    ),
    Mutant(
        "write_beside_the_undecided",
        "a shard accepts a blind write of a key that an undecided transaction writes",
        ("blind_writes",),
        ((find_conflict, "writes_overlap", lambda original: _never),),
        shape=CROWDED,
    ),
)

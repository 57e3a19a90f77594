"""At the end of a batch the actors do what their tasks would do a turn of the loop later."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from qserver.durability.memory import MemoryLog
from qserver.durability.port import Ended, StoredRecord
from qserver.engine.batch import Batch
from qserver.engine.database import Database
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Answer, Commit, Committed
from qserver.errors import LogFailed, OutcomeUnknown
from tests.engine import counters
from tests.engine.fakes import Laboratory
from tests.engine.test_lone_commit import Steps


class QuickLog(MemoryLog):
    """A log that can append before `append` returns."""

    def __init__(self) -> None:
        super().__init__()
        self.here = True
        self.fails = False
        self.groups: list[list[int]] = []

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        self.groups.append([version for version, _ in records])
        if self.fails:
            return Ended(LogFailed("the disk is broken"))
        ended = super().append(records)
        return ended if self.here else _waiting(ended)


async def _waiting(ended: Awaitable[None]) -> None:
    await trio.lowlevel.checkpoint()
    await ended


class Room:
    """A database, and clients that are answered by callback."""

    def __init__(self) -> None:
        self.world = Laboratory()
        self.world.passes_by = True
        self.log = QuickLog()
        self.database = Database(self.log, self.world, name="batches")
        self.answers: dict[int, Any] = {}

    def submit(self, number: int, work: Any) -> None:
        generation = self.database._generation
        assert generation is not None
        reply = Reply[Answer]()
        reply.then(lambda reply: self.answers.update({number: reply.error or reply.content}))
        commit = Commit(number, None, work, reply)
        generation.send(generation.submit, commit)

    async def __aenter__(self) -> Room:
        self._nursery = trio.open_nursery()
        nursery = await self._nursery.__aenter__()
        await nursery.start(self.database.run)
        await self.database.transact(counters.create(4))
        await trio.testing.wait_all_tasks_blocked()
        self.log.groups.clear()
        self._scope = nursery.cancel_scope
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._scope.cancel()
        await self._nursery.__aexit__(*error)


def test_calls_at_the_end_are_made_in_order_and_may_add_others() -> None:
    batch, made = Batch(), list[str]()
    with pytest.raises(AssertionError, match="nobody"):
        batch.at_end(lambda: None)
    batch.open()
    batch.at_end(lambda: batch.at_end(lambda: made.append(f"{batch!r}")))
    batch.at_end(lambda: made.append("second"))
    assert repr(batch) == "a batch that is open, 2 calls at its end"
    batch.end()
    assert made == ["second", "a batch that is ending, 0 calls at its end"]
    assert repr(batch) == "a batch that is over, 0 calls at its end"


def test_a_batch_counts_requests_until_it_is_asked() -> None:
    batch = Batch()
    assert not batch.was_of_one(), "nothing is known of who came without a batch"
    for requests, is_one in (((1,), True), ((2,), False), ((1, 1), False), ((1,), True)):
        for number in requests:
            batch.open(number)
            batch.end()
        assert batch.was_of_one() is is_one
        assert not batch.was_of_one()


async def test_commits_of_a_batch_are_one_round_and_one_sync_and_wake_no_actor() -> None:
    async with Room() as room:
        steps = Steps()
        room.world.batch.open()
        for number in range(1001, 1005):
            room.submit(number, counters.increment(number % 4))
        assert room.answers == {} and room.log.groups == []
        trio.lowlevel.add_instrument(steps)
        room.world.batch.end()
        assert all(isinstance(each, Committed) for each in room.answers.values())
        assert len(room.answers) == 4 and len(room.log.groups) == 1 == len(room.log.groups[0])
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
        assert steps.of_task["_act"] == 0
        assert await counters.total(room.database) == 4


async def test_an_append_that_does_not_end_at_once_is_awaited_by_the_task_in_order() -> None:
    async with Room() as room:
        room.log.here = False
        room.world.batch.open()
        room.submit(1001, counters.increment(1))
        room.world.batch.end()
        assert room.answers == {} and len(room.log.groups) == 1
        room.submit(1002, counters.increment(1))  # before the task has taken the group
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(room.answers) == [1001, 1002]
        first, second = room.log.groups
        assert second == [first[0] + 1]
        assert await counters.total(room.database) == 2


async def test_a_sync_that_fails_at_the_end_of_a_batch_ends_the_generation_alone() -> None:
    async with Room() as room:
        room.log.fails = True
        room.world.batch.open()
        room.submit(1001, counters.increment(1))
        room.world.batch.end()
        assert room.answers == {}
        await trio.testing.wait_all_tasks_blocked()
        room.log.fails = False
        outcome = await room.database.transact(counters.increment(2))
        assert isinstance(room.answers[1001], OutcomeUnknown)
        assert outcome.result == [1]
        assert await counters.total(room.database) == 1, "the first is not in the log"


async def test_a_bug_while_answers_leave_ends_the_generation_and_not_who_ends_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Room() as room:
        writer = room.database._generation._log_writer  # type: ignore[union-attr]

        def broken(group: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(writer, "release", broken)
        room.world.batch.open()
        room.submit(1001, counters.increment(1))
        room.world.batch.end()
        await trio.testing.wait_all_tasks_blocked()
        outcome = await room.database.transact(counters.increment(1))
        assert outcome.result == [2], "it is in the log"
        assert isinstance(room.answers[1001], OutcomeUnknown)
        assert any("a bug" in report for report in room.world.reports)


async def test_who_is_answered_at_the_end_of_a_batch_may_submit_from_there() -> None:
    async with Room() as room:
        room.world.batch.open()
        room.submit(1001, counters.increment(1))
        reply = Reply[Answer]()
        generation = room.database._generation
        assert generation is not None
        reply.then(lambda _: room.submit(1003, counters.increment(1)))
        generation.send(generation.submit, Commit(1002, None, counters.increment(2), reply))
        room.world.batch.end()
        assert sorted(room.answers) == [1001], "a client cannot hold the loop by going on"
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(room.answers) == [1001, 1003]
        assert await counters.total(room.database) == 3

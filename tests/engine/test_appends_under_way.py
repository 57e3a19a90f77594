"""An append that does not end in its batch releases its group where it ends, without a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.durability.memory import MemoryLog
from qserver.durability.port import StoredRecord, UnderWay
from qserver.engine.database import Database
from qserver.engine.messages import Committed
from qserver.engine.turns import Turns, current_line
from qserver.errors import LogFailed, OutcomeUnknown
from tests.engine import counters
from tests.engine.test_batch import Room
from tests.engine.test_lone_commit import Steps


class HeldAppend(UnderWay):
    """An append that a thread does, which ends when the test says so."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._done = trio.Event()
        self._callback: Callable[[], None] = self._done.set

    def then(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def finish(self, error: Exception | None = None) -> None:
        self.error = error
        self._done.set()
        self._callback()

    def __await__(self) -> Generator[Any, Any, None]:
        self._callback = self._done.set
        yield from self._done.wait().__await__()
        if self.error is not None:
            raise self.error


class ThreadLog(MemoryLog):
    """A log whose appends are under way, once they are held."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.groups: list[list[int]] = []
        self.held: list[HeldAppend] = []

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        self.groups.append([version for version, _ in records])
        ended = super().append(records)
        if not self.holds:
            return ended
        self.held.append(HeldAppend())
        return self.held[-1]


class ThreadRoom(Room):
    log: ThreadLog  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.log = ThreadLog()
        self.database = Database(self.log, self.world, name="batches")

    async def __aenter__(self) -> ThreadRoom:
        await super().__aenter__()
        self.log.holds = True
        return self

    def commit(self, *numbers: int) -> HeldAppend:
        """Commit a batch; return its append."""
        self.world.batch.open()
        for number in numbers:
            self.submit(number, counters.increment(1))
        self.world.batch.end()
        assert not set(numbers) & set(self.answers)
        return self.log.held[-1]

    async def restarted(self) -> int:
        """Return the sum of all counters in the next generation."""
        await wait_all_tasks_blocked()
        self.log.holds = False
        return await counters.total(self.database)


async def test_its_end_releases_the_group_and_wakes_no_actor() -> None:
    async with ThreadRoom() as room:
        for number in (1001, 1003):
            steps = Steps()
            trio.lowlevel.add_instrument(steps)
            append = room.commit(number, number + 1)
            await wait_all_tasks_blocked()
            append.finish()
            assert isinstance(room.answers[number], Committed)
            assert isinstance(room.answers[number + 1], Committed)
            await wait_all_tasks_blocked()
            trio.lowlevel.remove_instrument(steps)
            assert steps.of_task["_act"] == 0
        assert await counters.total(room.database) == 4


async def test_what_is_submitted_meanwhile_is_the_next_group() -> None:
    async with ThreadRoom() as room:
        append = room.commit(1001)
        for number in (1002, 1003):
            room.submit(number, counters.increment(1))
            await wait_all_tasks_blocked()
        first = room.log.groups[-1]
        assert len(room.log.held) == 1 and room.answers == {}, "one append is under way"
        append.finish()
        await wait_all_tasks_blocked()
        assert sorted(room.answers) == [1001]
        assert room.log.groups[-1] == [first[0] + 1, first[0] + 2]
        room.log.held[-1].finish()
        await wait_all_tasks_blocked()
        assert sorted(room.answers) == [1001, 1002, 1003]
        room.commit(1004).finish()
        assert sorted(room.answers)[-1] == 1004


async def test_a_failure_ends_the_generation_alone() -> None:
    async with ThreadRoom() as room:
        room.commit(1001).finish(LogFailed("the disk is broken"))
        assert room.answers == {}
        await room.restarted()
        assert isinstance(room.answers[1001], OutcomeUnknown)


async def test_after_the_end_of_its_generation_it_releases_nothing() -> None:
    async with ThreadRoom() as room:
        append = room.commit(1001)
        room.world.kill("log")
        await wait_all_tasks_blocked()
        assert isinstance(room.answers[1001], OutcomeUnknown)
        append.finish()
        assert await room.restarted() == 1, "it is in the log"


async def test_a_bug_while_answers_leave_ends_the_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ThreadRoom() as room:
        writer = room.database._generation._log_writer  # type: ignore[union-attr]

        def broken(group: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(writer, "release", broken)
        room.commit(1001).finish()
        assert await room.restarted() == 1
        assert isinstance(room.answers[1001], OutcomeUnknown)
        assert any("a bug" in report for report in room.world.reports)


async def test_while_several_owners_take_turns_the_task_releases_it_in_its_own() -> None:
    async with ThreadRoom() as room:
        append = room.commit(1001)
        for owner in (Turns(), Turns()):
            current_line().meet(owner)
        append.finish()
        assert room.answers == {}
        await wait_all_tasks_blocked()
        assert sorted(room.answers) == [1001]

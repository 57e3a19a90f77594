"""Checkpoints run beside commits, when they are due, and a failure of theirs costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.durability.memory import MemoryLog
from qserver.durability.port import NO_PARTS, CheckpointParts, StoredPage
from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointerStatistics, CheckpointPolicy
from qserver.engine.database import Database, DatabaseState
from qserver.errors import LogFailed, OutcomeUnknown
from qserver.limits import CHECKPOINT_RETRY_SECONDS
from tests.engine import counters, fakes
from tests.engine.fakes import HeldLog, Laboratory, Observed, until_restarted

NEVER = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9)


class SlowLog(MemoryLog):
    """A log whose checkpoints can be held and made to fail, and that notes its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails = False
        self._go_on = trio.Event()
        self._go_on.set()

    def hold(self) -> None:
        self._go_on = trio.Event()

    def release(self) -> None:
        self._go_on.set()

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self.calls.append(f"{len(pages)} pages")
        await self._go_on.wait()
        if self.fails:
            raise LogFailed("the disk is full")
        await super().save_pages(pages)

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        self.calls.append(f"checkpoint {version}")
        await super().save_checkpoint(version, data, parts, after)

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        self.calls.append(f"forget {version}")
        newest = self._checkpoints.newest
        assert newest is not None and version <= newest[0]
        await super().forget(version, pages)


opened = partial(fakes.opened, shards=2)


def statistics(database: Database) -> CheckpointerStatistics:
    generation = database.statistics().generation
    assert generation is not None
    return generation.checkpoints


async def test_enough_log_makes_a_checkpoint_due_and_it_cuts_the_log() -> None:
    log = SlowLog()
    async with opened(log, policy=CheckpointPolicy(log_bytes=2000, seconds=1e9)) as database:
        await database.transact(counters.create(5))
        while not statistics(database).checkpoints:
            await database.transact(counters.increment(1))
        await wait_all_tasks_blocked()
        found = statistics(database)
        assert found.version > 2 and found.log_bytes < 2000 and found.trouble is None
        first, *_ = [version for version, _ in await log.read(0, 10_000)] or [found.version + 1]
        assert first == found.version + 1, "the log begins behind the checkpoint"


async def test_log_that_is_not_durable_yet_still_counts_after_a_checkpoint() -> None:
    log = HeldLog()
    async with opened(log, policy=CheckpointPolicy(log_bytes=1000, seconds=1e9)) as database:
        await database.transact(counters.create(5))
        log.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.transact, counters.create(100, "large"))
            await wait_all_tasks_blocked()
            assert log.versions == 1, "the large commit is on its way"
            log.release()
        await wait_all_tasks_blocked()
        assert statistics(database).version == 2, "it alone makes a checkpoint due"


async def test_time_makes_a_checkpoint_due_if_anything_was_committed(
    autojump_clock: MockClock,
) -> None:
    log = SlowLog()
    async with opened(log, policy=CheckpointPolicy(log_bytes=1 << 60, seconds=300)) as database:
        await database.transact(counters.create(5))
        await trio.sleep(301)
        assert statistics(database).version == 1
        calls = ["1 pages", "checkpoint 1", "forget 1"]
        assert log.calls == calls
        await trio.sleep(3000)
        assert log.calls == calls, "nothing was committed, so nothing is saved"


async def test_commits_go_on_while_a_checkpoint_is_saved() -> None:
    log = SlowLog()
    async with opened(log, policy=NEVER) as database, trio.open_nursery() as nursery:
        await database.transact(counters.create(5))
        log.hold()
        asked = Observed(nursery, database.checkpoint)
        await wait_all_tasks_blocked()
        outcome = await database.transact(counters.increment(1))
        assert outcome.version == 2 and asked.outcomes == []
        log.release()
        await wait_all_tasks_blocked()
        assert asked.outcomes == [None] and statistics(database).version == 1
        assert [version for version, _ in await log.read(0, 10)] == [2]


async def test_pages_are_saved_a_few_at_a_time_and_forgotten_when_the_checkpoint_is_there() -> None:
    log = SlowLog()
    policy, world = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9, pages_at_once=4), Laboratory()
    async with opened(log, world, shards=1, policy=policy) as database:
        await database.transact(counters.create(500))
        await database.checkpoint()
        assert log.calls == ["4 pages", "4 pages", "4 pages", "checkpoint 1", "forget 1"]
        log.calls.clear()
        await database.transact(counters.increment(1, 499))
        world.sent.clear()  # a message that is kept is a reader of its snapshot
        await database.checkpoint()
        assert log.calls == ["3 pages", "checkpoint 2", "forget 2"]
        assert statistics(database).pages_forgotten == 3
        assert "after 2 checkpoints" in repr(database._generation.checkpointer)  # type: ignore[union-attr]


async def test_a_checkpoint_that_fails_is_told_and_tried_again_while_commits_go_on(
    autojump_clock: MockClock,
) -> None:
    log, world = SlowLog(), Laboratory()
    async with opened(log, world, policy=CheckpointPolicy(log_bytes=1, seconds=1e9)) as database:
        log.fails = True
        await database.transact(counters.create(5))
        await database.transact(counters.increment(1))
        await wait_all_tasks_blocked()
        assert statistics(database).failures == 1
        assert statistics(database).trouble == "the disk is full"
        assert len(world.reports) == 1 and "a checkpoint failed" in world.reports[0]
        log.fails = False
        await trio.sleep(CHECKPOINT_RETRY_SECONDS + 1)
        assert statistics(database).version == 2 and statistics(database).trouble is None
        assert database.statistics().restarts == 0


async def test_who_asks_for_a_checkpoint_is_told_that_it_failed() -> None:
    log = SlowLog()
    async with opened(log, policy=NEVER) as database:
        await database.transact(counters.create(5))
        log.fails = True
        with pytest.raises(LogFailed):
            await database.checkpoint()


async def test_who_waits_for_a_checkpoint_gets_it_from_the_next_generation(
    autojump_clock: MockClock,
) -> None:
    log, world = SlowLog(), Laboratory()
    async with opened(log, world, policy=NEVER) as database, trio.open_nursery() as nursery:
        await database.transact(counters.create(5))
        log.hold()
        asked = Observed(nursery, database.checkpoint)
        await wait_all_tasks_blocked()
        world.kill("checkpointer")
        await until_restarted(database)
        log.release()
        await database.transact(counters.increment(1))
        await wait_all_tasks_blocked()
        assert asked.outcomes == [None] and statistics(database).version == 1


async def test_closing_takes_a_last_checkpoint_and_the_next_start_needs_no_log(
    tmp_path: Path,
) -> None:
    async with await open_log(tmp_path / "data") as log:
        database = Database(log, Laboratory(), shards=3)
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            await database.transact(counters.create(5))
            await database.transact(counters.increment(3))
            await database.close()
        assert database.state is DatabaseState.CLOSED
        assert await log.read(0, 10) == []
    async with await open_log(tmp_path / "data") as log:
        again = Database(log, Laboratory(), shards=8)
        async with trio.open_nursery() as nursery:
            await nursery.start(again.run)
            snapshot = again.snapshots.take()
            assert snapshot is not None and (snapshot.version, snapshot.shards) == (2, 8)
            assert await counters.total(again) == 1
            assert (await again.transact(counters.increment(3))).result == [2]
            nursery.cancel_scope.cancel()


async def test_closing_where_no_checkpoint_can_be_saved_loses_nothing() -> None:
    log, world = SlowLog(), Laboratory()
    async with opened(log, world, policy=NEVER) as database:
        await database.transact(counters.create(5))
        log.fails = True
        await database.close()
    assert any("closes without a checkpoint" in report for report in world.reports)
    log.fails = False
    async with opened(log, policy=NEVER) as database:
        assert await counters.total(database) == 0


async def test_after_recovery_somebody_is_told_before_anybody_works() -> None:
    told: list[DatabaseState] = []

    def tell() -> None:
        told.append(database.state)

    database = Database(MemoryLog(), Laboratory(), after_recovery=tell)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        assert told == [DatabaseState.RECOVERING]
        nursery.cancel_scope.cancel()


async def test_a_full_disk_lets_reads_go_on_and_commits_again_when_there_is_room(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.2  # the log's thread works in real time
    world = Laboratory()
    async with await open_log(tmp_path / "data") as log:
        async with opened(log, world, policy=NEVER) as database:
            await database.transact(counters.create(5))
            connection = log._file._open
            assert connection is not None
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(OutcomeUnknown):
                await database.transact(counters.create(5000, "others"))
            assert (await counters.read(database, counters.look(1))).version == 1
            assert "is full" in str(database.trouble)
            # The connection was given up with the failure, and its limit with it: there is room.
            outcome = await database.transact(counters.create(5000, "others"))
            assert outcome.version == 2 and database.statistics().restarts == 1
    assert len(world.reports) == 1


async def test_many_commits_and_checkpoints_at_once_on_a_file(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        policy = CheckpointPolicy(log_bytes=1, seconds=1e9, pages_at_once=2)
        database = Database(log, Laboratory(), policy=policy)
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            await database.transact(counters.create(300))
            async with trio.open_nursery() as clients:
                for client in range(8):
                    clients.start_soon(partial(increments, database, client))
            await database.checkpoint()  # another may have been under way all the time
            assert statistics(database).checkpoints > 1
            nursery.cancel_scope.cancel()
        again = Database(log, Laboratory())
        async with trio.open_nursery() as nursery:
            await nursery.start(again.run)
            assert await counters.total(again) == 8 * 25
            nursery.cancel_scope.cancel()


async def increments(database: Database, client: int) -> None:
    for number in range(25):
        await database.transact(counters.increment(client * 30 + number))


# --- beside others -------------------------------------------------------------------------------


class SteppedLog(MemoryLog):
    """A log that notes the size of each step, and takes a while for it."""

    def __init__(self, seconds: float = 0.001) -> None:
        super().__init__()
        self.steps: list[int] = []
        self.ticks: list[int] = []
        self.ticker = 0
        self._seconds = seconds

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self.steps.append(sum(len(data) for _, data in pages))
        self.ticks.append(self.ticker)
        await trio.sleep(self._seconds)
        await super().save_pages(pages)

    async def tick(self) -> None:
        """Somebody else who wants to run, each time that the loop comes round."""
        while True:
            self.ticker += 1
            await trio.lowlevel.checkpoint()


async def test_a_step_saves_a_bounded_number_of_bytes_and_others_run_after_each_page() -> None:
    log = SteppedLog(seconds=0.0)
    policy = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9, step_bytes=3000, time_share=1.0)
    async with opened(log, policy=policy) as database, trio.open_nursery() as nursery:
        await database.transact(counters.create(5000))
        nursery.start_soon(log.tick)
        with trio.CancelScope(shield=True):
            await database.checkpoint()
        nursery.cancel_scope.cancel()
    pages = sizes_of(log)
    largest = max(pages)
    assert len(log.steps) > 10
    assert max(log.steps) < 3000 + largest, "a step ends with the page that fills it"
    between = [later - earlier for earlier, later in zip(log.ticks, log.ticks[1:], strict=False)]
    pages_of_step = 3000 // largest
    assert min(between) >= pages_of_step, "between two steps the loop comes round for each page"


def sizes_of(log: MemoryLog) -> list[int]:
    return [len(data) for data in log._pages.values()]


async def time_of_checkpoint(
    policy: CheckpointPolicy, grown: int = 0, hurry: bool = False
) -> float:
    """How long a checkpoint of many steps of 1 ms takes, by the clock that jumps."""
    log = SteppedLog()
    async with opened(log, policy=policy) as database:
        await database.transact(counters.create(5000))
        began = trio.current_time()
        if hurry:
            await database.close()
        else:
            generation = database._generation
            assert generation is not None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(database.checkpoint)
                await wait_all_tasks_blocked()
                generation.checkpointer.note_logged(grown)
        return (trio.current_time() - began) / len(log.steps)


async def test_a_checkpoint_takes_its_share_of_the_time_and_all_of_it_when_the_log_grows(
    autojump_clock: MockClock,
) -> None:
    policy = CheckpointPolicy(log_bytes=2_000_000, seconds=1e9, step_bytes=3000, time_share=0.2)
    assert await time_of_checkpoint(policy) == pytest.approx(0.005, rel=0.1)
    assert await time_of_checkpoint(policy, grown=1_500_000) == pytest.approx(0.005, rel=0.1)
    assert await time_of_checkpoint(policy, grown=3_000_000) == pytest.approx(0.003, rel=0.1)
    assert await time_of_checkpoint(policy, grown=4_000_000) == pytest.approx(0.001, rel=0.1)
    assert await time_of_checkpoint(policy, hurry=True) == pytest.approx(0.001, rel=0.1)


async def test_a_commit_waits_for_one_step_of_a_checkpoint_and_not_for_all(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        policy = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9, step_bytes=3000, time_share=1.0)
        async with opened(log, policy=policy) as database, trio.open_nursery() as nursery:
            await database.transact(counters.create(5000))
            saving = Observed(nursery, database.checkpoint)
            commits = 0
            while not saving.outcomes:
                await database.transact(counters.increment(1))
                commits += 1
            assert saving.outcome is None
            assert commits > 5


async def test_large_records_are_forgotten_in_several_steps(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(version, bytes(300_000)) for version in range(1, 11)])
        await log.save_checkpoint(10, b"all")
        assert await log._queue.run(lambda: log._file.forget(10, [])) is False
        left = await log.read(0, 100)
        assert left[0][0] == 4, "a megabyte at a time"
        await log.forget(10, [])
        assert await log.read(0, 100) == []


class ForgetfulLog(MemoryLog):
    """A log that can forget a few records, and then fails for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.forgets = 0

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        if self.forgets == 0:
            raise LogFailed("the disk is full")
        self.forgets -= 1
        await super().forget(version, pages)


async def test_records_that_a_failure_left_behind_are_forgotten_without_another_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qserver.engine.checkpointer.RECORDS_FORGOTTEN_AT_ONCE", 1)
    log = ForgetfulLog()
    log.forgets = 1
    async with opened(log, policy=NEVER) as database:
        await database.transact(counters.create(4))
        for number in range(3):
            await database.transact(counters.increment(number))
        with pytest.raises(LogFailed, match="full"):
            await database.checkpoint()
        assert len(await log.read(0, 100)) == 3
    log.forgets = 100
    async with opened(log, policy=NEVER) as database:  # it has forgotten how far it came
        await database.checkpoint()
    assert await log.read(0, 100) == []


# --- history -------------------------------------------------------------------------------------


def kept_versions(database: Database) -> list[int]:
    generation = database._generation
    assert generation is not None
    return [kept.version for kept in generation.checkpointer.saved.kept]


HOUR = CheckpointPolicy(log_bytes=1, seconds=1e9, history=3600.0)


async def test_history_keeps_checkpoints_and_the_log_and_lets_them_go_with_time(
    autojump_clock: MockClock,
) -> None:
    log, world = MemoryLog(), Laboratory()
    async with opened(log, world, policy=HOUR) as database:
        await database.transact(counters.create(300))
        for number in range(4):
            world.time += 600
            await database.transact(counters.increment(number))
            await database.checkpoint()
        assert kept_versions(database)[0] == 0 and len(kept_versions(database)) > 4
        assert len(await log.read(0, 100)) == 5
        world.time += 3600 - 700
        await database.checkpoint()
        assert (await log.read(0, 1))[0][0] <= 4
        world.time += 3600
        world.sent.clear()  # what was sent would be read for ever
        await database.checkpoint()
        assert kept_versions(database) == [5]
        assert await log.read(0, 100) == []
        assert len(log._pages) == statistics(database).pages


async def test_what_is_pinned_stays_over_restarts_until_it_is_let_go(
    autojump_clock: MockClock,
) -> None:
    log, world = MemoryLog(), Laboratory()
    async with opened(log, world, policy=HOUR) as database:
        await database.transact(counters.create(300))
        await database.checkpoint()
        pinned = await database.pin_checkpoint("a branch", 1)
        assert pinned is not None and pinned.version == 1
        for number in range(3):
            world.time += 7200
            await database.transact(counters.increment(number))
            await database.checkpoint()
        assert kept_versions(database) == [1, 3, 4], "version 3 was the newest an hour ago"
        world.time += 7200
        await database.checkpoint()
        assert kept_versions(database) == [1, 4]
        assert await log.read(0, 100) == [], "a name keeps pages, and no log"
        assert await database.pin_checkpoint("too late", 1) is None
    async with opened(log, world, policy=HOUR) as database:
        assert kept_versions(database) == [1, 4]
        await database.unpin_checkpoint("a branch")
        await database.unpin_checkpoint("a branch")
        world.sent.clear()
        await database.checkpoint()
        assert kept_versions(database) == [4]
        assert len(log._pages) == statistics(database).pages

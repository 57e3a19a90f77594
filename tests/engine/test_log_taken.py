"""A log that somebody else has taken over ends the database; it is not fought for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.durability.port import NO_PARTS, CheckpointParts, StoredPage, StoredRecord
from qserver.engine.database import Database, DatabaseState
from qserver.engine.gateway import Outcome
from qserver.errors import Applied, LogTaken, OutcomeUnknown, QserverError
from tests.engine import counters
from tests.engine.fakes import HeldLog, Laboratory, Observed, opened


class Shared:
    """A log of which the owner is whoever has fenced it last."""

    def __init__(self) -> None:
        self.log = HeldLog()
        self.owner: Owner | None = None


class Owner(HeldLog):
    """One process's way to a shared log."""

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        self.claimed = False

    def check(self, version: int = 0) -> None:
        if self.claimed and self.shared.owner is not self:
            raise LogTaken("another process writes the log", version=version)

    async def append(self, records: Sequence[StoredRecord]) -> None:
        await trio.lowlevel.checkpoint()
        for each in records:
            self.check(each[0])
            await self.shared.log.append([each])
            await trio.lowlevel.checkpoint()

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        self.check()
        return await self.shared.log.read(after, most)

    async def fence(self, version: int) -> bool:
        self.check()
        ends = await self.shared.log.fence(version)
        if ends:
            self.shared.owner, self.claimed = self, True
        return ends

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self.check()
        await self.shared.log.save_pages(pages)

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        self.check()
        await self.shared.log.save_checkpoint(version, data, parts, after)

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        return await self.shared.log.load_checkpoint(version)

    async def load_outlines(self) -> list[StoredRecord]:
        return await self.shared.log.load_outlines()

    async def load_parts(self, version: int) -> CheckpointParts | None:
        return await self.shared.log.load_parts(version)

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        return await self.shared.log.load_pages(after, most)

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        self.check()
        await self.shared.log.forget(version, pages)


async def test_the_database_ends_and_refuses_everything_with_the_reason(
    autojump_clock: MockClock,
) -> None:
    shared, world = Shared(), Laboratory()
    async with opened(Owner(shared), world, counters=3) as old, opened(Owner(shared)) as new:
        with pytest.raises(LogTaken) as caught:
            await old.transact(counters.increment(1))
        assert (caught.value.applied, caught.value.retryable) == (Applied.NO, True)
        assert old.state is DatabaseState.TAKEN and old.snapshots.take() is None
        for call in (old.transact, partial(counters.read, old)):
            with pytest.raises(LogTaken, match="another process writes the log"):
                await call(counters.look(1))
        with pytest.raises(LogTaken):
            await old.checkpoint()
        await trio.sleep(1000)
        assert world.reports == [
            "database main ends: its log was taken over:"
            " <log_taken QS021: another process writes the log, not applied, try again>"
        ]
        assert old.statistics().restarts == 1, "no other generation is tried"
        assert await new.transact(counters.increment(1)) == Outcome([1], 2)


async def test_what_is_refused_was_not_applied_and_what_came_before_it_was(
    autojump_clock: MockClock,
) -> None:
    shared = Shared()
    async with opened(Owner(shared), counters=9) as old, trio.open_nursery() as nursery:
        shared.log.hold()
        first = Observed(nursery, lambda: old.transact(counters.increment(0)))
        await wait_all_tasks_blocked()
        calls = [
            Observed(nursery, partial(old.transact, counters.increment(number)))
            for number in range(1, 9)
        ]
        await wait_all_tasks_blocked()
        shared.owner = None
        shared.log.release()
        await wait_all_tasks_blocked()
        assert first.outcome == Outcome([1], 2), "its append was under way, and succeeded"
        assert {type(call.outcome) for call in calls} == {LogTaken}
        async with opened(Owner(shared)) as new:
            assert await counters.total(new) == 1


async def test_nobody_is_shown_anything_once_the_log_writer_knows(
    autojump_clock: MockClock,
) -> None:
    shared = Shared()
    async with opened(Owner(shared), counters=3) as old:
        shown: list[object] = []
        report = old._world.report

        def look(text: str, error: Exception) -> None:
            report(text, error)
            trio.lowlevel.current_trio_token().run_sync_soon(
                lambda: shown.append(old.snapshots.take())
            )

        old._world.report = look  # type: ignore[method-assign]
        shared.owner = None
        with pytest.raises(LogTaken):
            await old.transact(counters.increment(1))
        await trio.sleep(1)
        assert shown == [None]


async def test_a_checkpoint_that_meets_the_other_ends_the_database_too(
    autojump_clock: MockClock,
) -> None:
    shared = Shared()
    async with opened(Owner(shared), counters=3) as old:
        await old.transact(counters.increment(1))
        async with opened(Owner(shared)):
            with pytest.raises(LogTaken):
                await old.checkpoint()
        assert old.state is DatabaseState.TAKEN


async def test_a_log_that_was_taken_while_the_database_fell_is_not_read_again(
    autojump_clock: MockClock,
) -> None:
    shared, world = Shared(), Laboratory()
    async with opened(Owner(shared), world, counters=3) as old:
        shared.owner = None
        world.kill("shard 0")
        with pytest.raises(LogTaken):
            while True:
                await trio.sleep(1)
                await old.transact(counters.look(1))
        assert old.state is DatabaseState.TAKEN


@pytest.mark.parametrize("seed", range(20))
async def test_two_writers_never_both_acknowledge(autojump_clock: MockClock, seed: int) -> None:
    """Writers take the log from each other at any time: what was acknowledged is there, once."""
    chance, shared = Random(seed), Shared()
    acknowledged, unknown, attempts = 0, 0, 0

    async def client(database: Database) -> None:
        nonlocal acknowledged, unknown, attempts
        for _ in range(10):
            await trio.sleep(chance.uniform(0, 0.3))
            attempts += 1
            try:
                await database.transact(counters.increment(chance.randrange(3)))
                acknowledged += 1
            except OutcomeUnknown:
                unknown += 1
            except QserverError as error:
                assert isinstance(error, LogTaken) and error.applied is Applied.NO

    async def writer(started: trio.Event) -> None:
        world = Laboratory(Random(seed))
        async with opened(Owner(shared), world) as database, trio.open_nursery() as clients:
            started.set()
            for _ in range(3):
                clients.start_soon(client, database)

    async with opened(Owner(shared), counters=3):
        pass
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            started = trio.Event()
            nursery.start_soon(writer, started)
            await started.wait()
            await trio.sleep(chance.uniform(0, 1))
    async with opened(Owner(shared)) as last:
        total = await counters.total(last)
    assert acknowledged <= total <= acknowledged + unknown
    assert 0 < acknowledged < attempts, "some were refused"

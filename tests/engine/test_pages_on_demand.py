"""Memory is a cache: pages come and go while readers read, and none is forgotten that is needed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from random import Random

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.port import StoredPage
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.work import FOREVER, run
from qserver.engine.world import OrdinaryWorld
from qserver.errors import DataCorrupted, LogFailed, OutOfMemory, PageUnreadable
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters, fakes

ROWS = 2000
POLICY = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9)


def opened_on(
    log: MemoryLog, cache: PageCache | None = None
) -> AbstractAsyncContextManager[Database]:
    # The laboratory keeps all messages, and the pages that they hold.
    world = OrdinaryWorld(lambda: 1000.0, Random(0), lambda text, error: None)
    return fakes.opened(log, world, 2, policy=POLICY, cache=cache)


async def a_log() -> MemoryLog:
    log = MemoryLog()
    async with opened_on(log) as database:
        await database.transact(counters.create(ROWS))
        await database.checkpoint()
    return log


def total(snapshot: Snapshot) -> int:
    table = snapshot.catalog.tables["counters"]
    return sum(row[1] for _, rows in snapshot.pages(table.id) for row in rows)


def pages_of(log: MemoryLog) -> int:
    return sum(number > 0 for number in log._pages)


async def test_opening_reads_no_page_and_a_point_read_only_its_path() -> None:
    cache = PageCache()
    async with opened_on(await a_log(), cache) as database:
        snapshot = await database.wait_durable_snapshot()
        table = snapshot.catalog.tables["counters"]
        assert snapshot.count(table.id) == ROWS
        assert cache.loads == 0
        assert snapshot.get_entry(table.id, (1234,)) == (1234, 0)
        assert cache.loads == snapshot.trees.tree(table.id).roots[0].height + 1
        assert snapshot.get_entry(table.id, (1234,)) == (1234, 0)
        assert cache.loads == snapshot.trees.tree(table.id).roots[0].height + 1


@pytest.mark.long
async def test_a_cache_that_holds_next_to_nothing_gives_the_same_rows() -> None:
    cache = PageCache(most=20_000)
    async with opened_on(await a_log(), cache) as database:
        for number in range(0, ROWS, 7):
            await database.transact(counters.increment(number, (number + 999) % ROWS))
            if number % 70 == 0:
                await database.checkpoint()
                cache.make_room()
        snapshot = await database.wait_durable_snapshot()
        assert total(snapshot) == 2 * len(range(0, ROWS, 7))
        assert cache.evictions > 100
        cache.make_room()
        assert cache.held <= 20_000


async def test_a_reader_of_an_old_snapshot_keeps_its_pages_and_nobody_else_does() -> None:
    log, cache = await a_log(), PageCache(most=0)
    async with opened_on(log, cache) as database:
        before = await database.wait_durable_snapshot()
        pages = pages_of(log)
        for _ in range(3):
            await database.transact(counters.increment(*range(0, ROWS, 40)))
            await database.checkpoint()
        assert pages_of(log) > pages
        assert total(before) == 0
        assert total(await database.wait_durable_snapshot()) == 3 * len(range(0, ROWS, 40))
        del before
        await database.checkpoint()
        assert pages_of(log) == pages
        assert total(await database.wait_durable_snapshot()) == 3 * len(range(0, ROWS, 40))


async def test_pages_that_a_reader_still_needed_are_forgotten_after_a_restart() -> None:
    log, cache = await a_log(), PageCache(most=0)
    pages = pages_of(log)
    async with opened_on(log, cache) as database:
        before = await database.wait_durable_snapshot()
        await database.transact(counters.increment(*range(0, ROWS, 40)))
        await database.checkpoint()
        assert total(before) == 0
    assert pages_of(log) > pages
    del before
    async with opened_on(log, cache) as database:
        await database.checkpoint()
        assert pages_of(log) == pages
        assert total(await database.wait_durable_snapshot()) == len(range(0, ROWS, 40))


class FailingLog(MemoryLog):
    fails = False

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        if self.fails:
            raise LogFailed("the disk is away")
        return super().load(numbers)


async def test_a_page_that_cannot_be_read_fails_the_statement_and_nothing_else() -> None:
    log, cache = FailingLog(), PageCache(most=0)
    async with opened_on(log, cache) as database:
        await database.transact(counters.create(ROWS))
        await database.checkpoint()
        cache.make_room()
        log.fails = True
        with pytest.raises(PageUnreadable, match="the disk is away"):
            await database.transact(counters.increment(1))
        assert database.pages.trouble is not None
        log.fails = False
        await database.transact(counters.increment(1))
        assert database.pages.trouble is None
        assert database.statistics().restarts == 0
        assert total(await database.wait_durable_snapshot()) == 1


async def test_a_page_that_cannot_be_read_fails_the_commit_of_a_transaction_that_has_run() -> None:
    log, cache = FailingLog(), PageCache(most=0)
    async with opened_on(log, cache) as database:
        await database.transact(counters.create(ROWS))
        await database.checkpoint()
        for fails in (True, False):
            transaction = Transaction(await database.wait_durable_snapshot())
            counters.put(transaction, 1, 7)  # without a look at what is there
            cache.make_room()
            log.fails = fails
            if fails:
                with pytest.raises(PageUnreadable, match="the disk is away"):
                    await run(database.committing(transaction, FOREVER))
            else:
                await run(database.committing(transaction, FOREVER))
        assert database.statistics().restarts == 0
        assert total(await database.wait_durable_snapshot()) == 7


async def test_a_damaged_page_is_never_taken_for_a_good_one() -> None:
    log, cache = await a_log(), PageCache(most=0)
    first = min(number for number in log._pages if number > 0)
    log._pages[first] = log._pages[first][:-1] + b"?"
    async with opened_on(log, cache) as database:
        with pytest.raises(DataCorrupted, match=f"page {first}"):
            await database.transact(counters.increment(0))
        with pytest.raises(DataCorrupted, match=f"page {first}"):
            total(await database.wait_durable_snapshot())
        assert isinstance(database.pages.trouble, DataCorrupted)
        await database.transact(counters.increment(ROWS - 1))
        await database.checkpoint()
        assert database.statistics().restarts == 0
        assert isinstance(database.pages.trouble, DataCorrupted), "it stays known"


class UnsaveableLog(MemoryLog):
    fails = True

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        if self.fails:
            raise LogFailed("the disk is full")
        await super().save_pages(pages)


async def test_writers_wait_for_room_and_are_refused_while_nothing_can_be_saved(
    autojump_clock: MockClock,
) -> None:
    log, cache = UnsaveableLog(), PageCache(most=200_000)
    async with opened_on(log, cache) as database:
        await database.transact(counters.create(ROWS))
        assert cache.is_full
        with pytest.raises(OutOfMemory, match="cannot be saved") as caught:
            while True:
                await database.transact(counters.increment(1))
        assert caught.value.detail == "the disk is full"
        log.fails = False
        await trio.sleep(20)
        assert cache.unsaved <= cache.most >> 3
        await database.transact(counters.increment(1))


async def test_many_unsaved_pages_bring_a_checkpoint_forward() -> None:
    log, cache = MemoryLog(), PageCache(most=400_000)
    async with opened_on(log, cache) as database:
        await database.transact(counters.create(ROWS))
        await database.transact(counters.increment(1))
        assert not cache.is_full
        generation = database.statistics().generation
        assert generation is not None and generation.checkpoints.checkpoints > 0


async def test_of_two_databases_the_one_with_more_unsaved_pages_saves_them() -> None:
    cache, saved = PageCache(most=4000), []

    class Some:
        def __init__(self, name: str) -> None:
            self.name = name

        def save_soon(self) -> None:
            saved.append(self.name)

    one, other = Some("one"), Some("other")
    cache.note_unsaved(one, 400)
    assert saved == []
    cache.note_unsaved(other, 200)
    assert saved == ["one"]
    cache.forget_unsaved(one)
    cache.note_unsaved(other, 600)
    assert saved == ["one", "other"]

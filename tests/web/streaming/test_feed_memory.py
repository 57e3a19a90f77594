"""Readers of changes hold no more than the pool has counted, wherever they stand."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing

import pytest
import trio

from qserver.engine import feed as engine_feed
from qserver.engine.feed import Run
from qserver.limits import ANSWER_PART_BYTES
from qserver.query.memory_pool import MemoryPool
from tests.web.streaming.test_feed import ALL, fed, stream

READERS = 24


class WatchedPool(MemoryPool):
    """Notes how much was held at most."""

    __slots__ = ("peak",)

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0

    def take(self, count: int) -> None:
        super().take(count)
        self.peak = max(self.peak, self.held)


@pytest.mark.long
@pytest.mark.parametrize("catches_up", [True, False])
async def test_parts_of_a_long_version_are_counted_while_they_are_made_and_sent(
    catches_up: bool,
) -> None:
    """Readers that all stand in it hold the part that they send, and one of them makes another."""
    async with fed() as (database, feed, past), AsyncExitStack() as ended:
        since, pool = feed.newest(), WatchedPool()
        if not catches_up:
            feed.open()
        await database.execute(
            "INSERT INTO b SELECT repeat('x', 400) || i FROM generate_series(1, 6000) i"
        )
        readers = [stream(feed, past, since, ALL, pool) for _ in range(READERS + 1)]
        for reader in readers:
            await ended.enter_async_context(aclosing(reader))
        await anext(readers.pop())  # it has the rows of the version made
        rows = pool.held

        async def read(reader: AsyncGenerator[bytes, None]) -> None:
            await anext(reader)

        gc.collect()
        tracemalloc.start(1)
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(3):
                async with trio.open_nursery() as nursery:
                    for reader in readers:
                        nursery.start_soon(read, reader)
                gc.collect()
                held = tracemalloc.get_traced_memory()[0] - before
                assert pool.held - rows >= READERS * ANSWER_PART_BYTES
                assert held <= 1.1 * (pool.held - rows)
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        assert peak <= 1.1 * (pool.peak - rows) + 4 * ANSWER_PART_BYTES


@pytest.mark.parametrize("rows_of_version", [60, 25])
async def test_a_reader_that_sends_older_versions_keeps_no_run_of_its_own(
    rows_of_version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lags for long stands elsewhere than all others, and would keep rows for itself."""
    monkeypatch.setattr(engine_feed, "RUN_BYTES", 20_000)
    monkeypatch.setattr(engine_feed, "RUNS_KEPT_MAX", 2)
    async with fed() as (database, feed, past), AsyncExitStack() as ended:
        since, pool = feed.newest(), MemoryPool()
        for _ in range(READERS):  # each has a run to itself
            await database.execute(
                "INSERT INTO b SELECT repeat('x', 1000) || i FROM generate_series(1, $1) i",
                [rows_of_version],
            )
        for number in range(READERS):
            reader = stream(feed, past, since + number, ALL, pool)
            await anext(await ended.enter_async_context(aclosing(reader)))
        gc.collect()
        runs = [each for each in gc.get_objects() if isinstance(each, Run)]
        rows = sum(each.bytes for run in runs for each in run.versions)
        assert 0 < rows <= 2 * 2 * 20_000


async def test_a_long_run_counts_once_for_as_long_as_a_reader_has_it() -> None:
    async with fed() as (database, feed, past):
        since, pool = feed.newest(), MemoryPool()
        await database.execute("INSERT INTO a VALUES (1, 1)")
        await database.execute(
            "INSERT INTO b SELECT repeat('x', 400) || i FROM generate_series(1, 6000) i"
        )
        first, second = (stream(feed, past, since, ALL, pool) for _ in range(2))
        part = await anext(first)  # of the short version; the long one is in the same run
        run = pool.held - len(part)
        assert run > 6000 * 400
        other = await anext(second)
        assert pool.held == run + len(part) + len(other)
        await first.aclose()
        assert pool.held > run
        await second.aclose()
        assert pool.held == 0

"""Statements share one memory, and give back what they held however they end."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.engine.database import Database
from qserver.errors import OutOfMemory, QserverError
from qserver.query.memory_pool import MemoryPool
from qserver.query.sql_database import SqlDatabase
from tests.engine.fakes import Laboratory

MIB = 1024 * 1024


def test_the_pool_refuses_what_is_one_byte_too_much() -> None:
    pool = MemoryPool(100)
    pool.take(60)
    pool.take(40)
    with pytest.raises(OutOfMemory, match="the service needs more memory"):
        pool.take(1)
    pool.give_back(40)
    assert pool.held == 60
    pool.take_anyway(90)  # what has happened already cannot be refused
    assert pool.held == 150


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i FROM generate_series(1, 50000) AS s(i) ORDER BY -i",
        "SELECT i / (i - 40000) FROM generate_series(1, 50000) AS s(i) ORDER BY -i",
        "INSERT INTO t SELECT i FROM generate_series(1, 50000) AS s(i) RETURNING id",
        "INSERT INTO t SELECT i % 9 FROM generate_series(1, 50000) AS s(i) RETURNING id",
        "SELECT string_agg(repeat('x', 1000), '') FROM generate_series(1, 1000000)",
    ],
)
async def test_whatever_becomes_of_a_statement_its_memory_is_given_back(sql: str) -> None:
    world, pool = Laboratory(), MemoryPool(64 * MIB)
    database = Database(MemoryLog(), world, shards=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        service = SqlDatabase(database, world, pool)
        await service.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        try:
            await service.execute(sql)
        except QserverError:
            pass  # some end so
        await wait_all_tasks_blocked()  # large lists are freed in pieces, and then given back
        assert pool.held == 0
        stream = await service.stream("SELECT i FROM generate_series(1, 9000) AS s(i) ORDER BY -i")
        await stream.__anext__()
        assert pool.held > 0
        await stream.aclose()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert pool.held == 0


async def test_a_transaction_larger_than_its_share_of_the_memory_is_refused_as_a_whole() -> None:
    world, cache = Laboratory(), PageCache(8 * MIB)
    database = Database(MemoryLog(), world, shards=1, cache=cache)
    pool = MemoryPool(cache.most // 2)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        service = SqlDatabase(database, world, pool)
        await service.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        fill = "INSERT INTO t SELECT i, 0 FROM generate_series($1::int, $2::int) AS s(i)"
        with pytest.raises(OutOfMemory, match="more than one transaction may"):
            await service.execute(fill, [1, 10_000])
        assert pool.held == 0
        assert (await service.execute("SELECT count(*) FROM t")).rows == [(0,)]
        for first in range(1, 40_000, 4000):
            await service.execute(fill, [first, first + 3999])
        with pytest.raises(OutOfMemory):
            await service.execute("UPDATE t SET n = 1")
        await wait_all_tasks_blocked()
        assert pool.held == 0
        assert (await service.execute("SELECT count(*), sum(n) FROM t")).rows == [(40_000, 0)]
        nursery.cancel_scope.cancel()


async def test_what_a_transaction_has_written_counts_as_memory_of_statements() -> None:
    world = Laboratory()
    database = Database(MemoryLog(), world, shards=1)
    most = 0

    class Watched(MemoryPool):
        def take(self, count: int) -> None:
            nonlocal most
            super().take(count)
            most = max(most, self.held)

    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        service = SqlDatabase(database, world, Watched())
        await service.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        await service.execute("INSERT INTO t SELECT i FROM generate_series(1, 10000) AS s(i)")
        nursery.cancel_scope.cancel()
    assert most > 10_000 * 256

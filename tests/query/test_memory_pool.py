"""Statements share one memory, and give back what they held however they end."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-400, 400)), max_size=60))
def test_an_organization_holds_no_more_than_it_leaves_free(wishes: list[tuple[int, int]]) -> None:
    pool = MemoryPool(1000)
    parts = [pool.part() for _ in range(4)]
    for who, count in wishes:
        part = parts[who]
        if count < 0:
            part.give_back(min(-count, part.held))
            continue
        before = part.held
        try:
            part.take(count)
        except OutOfMemory:
            assert part.held == before and before + count > pool.most - pool.held - count
        else:
            assert part.held == before + count <= pool.most - pool.held
        assert pool.held == sum(each.held for each in parts) <= pool.most
    free = pool.most - pool.held
    pool.part().take(free // 2)  # whoever comes next gets a half of what is left
    assert free >= 1000 // 2 ** len(parts)


def test_greedy_organizations_get_as_much_each_and_leave_as_much_free() -> None:
    pool = MemoryPool(1200)
    for count in range(1, 6):
        parts = [pool.part() for _ in range(count)]
        greedy = list(parts)
        while greedy:  # by turns, a byte each, until nobody gets one more
            for part in list(greedy):
                try:
                    part.take(1)
                except OutOfMemory:
                    greedy.remove(part)
        fair = 1200 // (count + 1)
        assert all(fair - count <= each.held <= fair for each in parts), parts
        for each in parts:
            each.give_back(each.held)
    assert pool.held == 0


def test_an_organization_that_is_alone_may_hold_all() -> None:
    pool = MemoryPool(100)
    part = pool.part()
    pool.has_one_user = True
    part.take(100)
    with pytest.raises(OutOfMemory):
        part.take(1)
    part.give_back(60)
    pool.has_one_user = False
    with pytest.raises(OutOfMemory, match="the organization needs more memory than its share"):
        part.take(11)
    part.take(10)
    assert (part.held, pool.held, part.refused) == (50, 50, 2)
    part.take_anyway(90)
    assert (part.held, pool.held) == (140, 140)


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

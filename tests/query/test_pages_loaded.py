"""Statements count the pages that they load, and yield for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.query.sql_database import SqlDatabase
from qserver.storage.btree import LEAVES_OF_RUN, UNREAD_COSTS, children_of
from qserver.storage.page import Tree
from tests.engine import fakes

ROWS = 6000
LOADS_AT_ONCE = 4 * LEAVES_OF_RUN // UNREAD_COSTS + 3
"""Four runs of leaves that have to be loaded, and what is above them."""


@asynccontextmanager
async def opened_on(
    log: MemoryLog, cache: PageCache
) -> AsyncIterator[tuple[Database, SqlDatabase]]:
    world = OrdinaryWorld(lambda: 1000.0, Random(0), lambda text, error: None)
    async with fakes.opened(log, world, shards=1, cache=cache) as database:
        yield database, SqlDatabase(database, world)


class LoadsOfSteps(trio.abc.Instrument):
    """Counts what is loaded between two moments at which others may run."""

    def __init__(self, cache: PageCache) -> None:
        self._cache = cache
        self._before = cache.loads
        self.loads: list[int] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._before = self._cache.loads

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.loads.append(self._cache.loads - self._before)


async def filled() -> MemoryLog:
    log = MemoryLog()
    async with opened_on(log, PageCache()) as (database, sql):
        await sql.execute("CREATE TABLE t (id INT PRIMARY KEY, other INT)")
        await sql.execute(
            f"INSERT INTO t SELECT i, i * 7919 % {ROWS} FROM generate_series(0, {ROWS - 1}) AS s(i)"
        )
        await database.checkpoint()
    return log


async def plan_of(sql: SqlDatabase, statement: str, options: str = "(ANALYZE)") -> list[str]:
    return [line for (line,) in (await sql.execute(f"EXPLAIN {options} {statement}")).rows]


async def test_explain_analyze_tells_the_pages_that_were_loaded() -> None:
    async with opened_on(await filled(), PageCache()) as (_, sql):
        assert "Pages loaded: 3" in await plan_of(sql, "SELECT other FROM t WHERE id = 4711")
        again = await plan_of(sql, "SELECT other FROM t WHERE id = 4711")
        assert not [line for line in again if line.startswith("Pages loaded")]


async def test_each_node_tells_the_pages_that_it_loaded() -> None:
    async with opened_on(await filled(), PageCache()) as (_, sql):
        lines = await plan_of(sql, "SELECT other FROM t WHERE id = 4711", "(ANALYZE, BUFFERS)")
        assert [line.strip() for line in lines if "Buffers" in line] == [
            "Buffers: shared read=3",
            "Buffers: shared read=3",
        ]
        again = await plan_of(sql, "SELECT other FROM t WHERE id = 4711", "(ANALYZE, BUFFERS)")
        assert not [line for line in again if "Buffers" in line]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM t WHERE other % 7 = 3",
        "SELECT sum(other) FROM t",
        "SELECT id FROM t WHERE other < 10 ORDER BY id DESC",
        "UPDATE t SET other = other + 1 WHERE other % 3 = 1",
        f"INSERT INTO t SELECT i * 2 + {ROWS}, 0 FROM generate_series(1, 5000) AS s(i)",
        "DELETE FROM t",
    ],
)
async def test_others_run_after_a_bounded_number_of_loads(statement: str) -> None:
    cache = PageCache()
    async with opened_on(await filled(), cache) as (_, sql):
        loads = await loads_of(sql, cache, statement)
        assert 0 < max(loads) <= LOADS_AT_ONCE
        assert cache.loads == sum(loads)


async def loads_of(sql: SqlDatabase, cache: PageCache, statement: str) -> list[int]:
    steps = LoadsOfSteps(cache)
    trio.lowlevel.add_instrument(steps)
    await sql.execute(statement)
    await trio.lowlevel.checkpoint()
    trio.lowlevel.remove_instrument(steps)
    return steps.loads


def let_leaves_go(database: Database) -> None:
    """Let all leaves go, and nothing above them: those keep the vectors of their columns."""
    snapshot = database.snapshots.take()
    assert snapshot is not None
    for root in snapshot.trees.tree(snapshot.catalog.tables["t"].id).roots:
        pages: list[Tree] = [root]
        while pages:
            page = pages.pop()
            if page.height == 0:
                database.pages.cache.drop([page])
                page.evict()
            pages += children_of(page)


@pytest.mark.parametrize(
    ("condition", "most"),
    [("other % 3 <> 1", ROWS), ("other % 100 = 3", ROWS), ("other IN (5, 2345, 4444)", 3)],
)
async def test_rows_that_vectors_have_found_are_read_in_steps(condition: str, most: int) -> None:
    cache = PageCache()
    statement = f"SELECT count(DISTINCT -other) FROM t WHERE {condition}"
    async with opened_on(await filled(), cache) as (database, sql):
        await sql.execute(statement)
        found = (await sql.execute(statement)).rows
        let_leaves_go(database)
        loads = await loads_of(sql, cache, statement)
        assert 0 < max(loads) <= LOADS_AT_ONCE and sum(loads) <= most
        assert (await sql.execute(statement)).rows == found


@pytest.mark.half
async def test_look_ups_that_load_a_page_each_let_others_run() -> None:
    cache = PageCache()
    async with opened_on(await filled(), cache) as (_, sql):
        cache.most = 0
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            before = cache.loads
            found = await sql.execute(
                "SELECT b.id FROM t AS a JOIN LATERAL"
                " (SELECT id FROM t WHERE t.id = a.other) AS b ON true WHERE a.id < 500"
            )
            nursery.cancel_scope.cancel()
        loaded = cache.loads - before
        assert len(found.rows) == 500 and loaded > 500
        assert turns > loaded // 64

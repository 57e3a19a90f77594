"""Requests leave no cycles behind: reference counts free all that they made.

The cyclic collector looks at everything young that is still there. If each commit left a few dozen
objects to it, that would take longer than the commit's own work in the shards does.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

import pytest

from qserver.query.sql_database import (
    RunOptions,
    SqlDatabase,
    Statement,
    TransactionResult,
)
from tests.query.begun import Ends, begin_nowait
from tests.sql.databases import opened_sql

Way: TypeAlias = Callable[[SqlDatabase, str], Awaitable[None]]

REQUESTS = 50
READ = "SELECT n FROM t WHERE id = $1"
WRITE = "UPDATE t SET n = n + 1 WHERE id = $1"


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def execute(database: SqlDatabase, sql: str) -> None:
    await database.execute(sql, [1])


async def begin(database: SqlDatabase, sql: str) -> None:
    ends = Ends()
    begun = begin_nowait(database, [Statement(sql, [1])], RunOptions(), ends)
    assert isinstance(begun or await ends.wait(), TransactionResult)


@pytest.mark.half
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("way", "sql"),
    [(execute, READ), (begin, READ), (execute, WRITE), (begin, WRITE)],
    ids=["read", "read at once", "write", "write begun at once"],
)
async def test_requests_leave_nothing_to_the_collector(way: Way, sql: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
        await database.execute("INSERT INTO t VALUES (1, 0)")
        for _ in range(REQUESTS):
            await way(database, sql)
        gc.collect()
        for _ in range(REQUESTS):
            await way(database, sql)
        assert gc.collect() < REQUESTS

"""Scratch databases: empty, whole, and gone afterwards."""

from __future__ import annotations

import pytest

from qserver.durability.memory import MemoryLog
from qserver.engine.database import DatabaseState
from qserver.errors import DatabaseUnavailable, UndefinedTable
from qserver.query.scratch import scratch_database
from tests.sql.databases import quiet_world

WORLD = quiet_world()


async def test_each_is_empty_and_nothing_of_it_is_left_for_the_next() -> None:
    async with scratch_database(WORLD) as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        assert (await database.execute("SELECT count(*) FROM t")).rows == [(0,)]
    async with scratch_database(WORLD) as database:
        with pytest.raises(UndefinedTable):
            await database.execute("SELECT count(*) FROM t")


async def test_it_is_closed_when_the_block_ends() -> None:
    async with scratch_database(WORLD, shards=2) as database:
        assert database.database.state.value == "open"
    assert database.database.state is DatabaseState.CLOSED
    with pytest.raises(DatabaseUnavailable):
        await database.execute("SELECT 1 WHERE random() < 0")


async def test_what_the_block_raises_leaves_as_it_is_and_the_database_is_closed() -> None:
    with pytest.raises(LookupError):
        async with scratch_database(WORLD) as database:
            raise LookupError
    assert database.database.state is DatabaseState.CLOSED


async def test_a_second_one_on_the_same_log_recovers_what_the_first_committed() -> None:
    log = MemoryLog()
    async with scratch_database(WORLD, log=log) as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        await database.execute("INSERT INTO t VALUES (7)")
    async with scratch_database(WORLD, log=log) as database:
        assert (await database.execute("SELECT id FROM t")).rows == [(7,)]

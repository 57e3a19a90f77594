"""A temporary database: empty when it opens, and gone when its block ends.

Probes and benchmarks run here, so that they create, break and fill up no user's data. It is a whole
database all the same: coordinator, shards, log writer, and a log that keeps real bytes. Two of them
on one log, one after the other, are a database that was stopped and has recovered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.port import Log
from qserver.engine.database import Database
from qserver.engine.world import World
from qserver.limits import SHARDS_DEFAULT
from qserver.query.sql_database import SqlDatabase

NAME = "scratch"


@asynccontextmanager
async def scratch_database(
    world: World,
    *,
    shards: int = SHARDS_DEFAULT,
    log: Log | None = None,
    cache: PageCache | None = None,
) -> AsyncIterator[SqlDatabase]:
    """Open a database, on a log of its own unless one is given; its actors end with the block."""
    log = MemoryLog() if log is None else log
    database = Database(log, world, name=NAME, shards=shards, cache=cache)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        try:
            yield SqlDatabase(database, world)
        except Exception as error:
            failure = error  # raised below: inside of the nursery it would become a group
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure

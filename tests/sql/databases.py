"""A database that understands SQL, open for the length of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log
from qserver.engine.database import Database
from qserver.engine.sql_gateway import SqlDatabase
from qserver.engine.world import OrdinaryWorld

NOON = 1_700_000_000.0
"""When it is in tests, unless they say otherwise: 2023-11-14 22:13:20 UTC."""


@asynccontextmanager
async def opened_sql(
    log: Log | None = None, *, shards: int = 4, now: float = NOON
) -> AsyncIterator[SqlDatabase]:
    """What goes wrong inside the engine fails the test."""

    def report(text: str, error: Exception) -> None:
        raise AssertionError(text) from error

    world = OrdinaryWorld(lambda: now, Random(0), report)
    database = Database(log or MemoryLog(), world, shards=shards)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run)
        yield SqlDatabase(database, world)
        nursery.cancel_scope.cancel()

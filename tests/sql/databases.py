"""A database that understands SQL, open for the length of a test."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from random import Random

from qserver.durability.port import Log
from qserver.engine.world import Compute, OrdinaryWorld, compute_here
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import SqlDatabase

NOON = 1_700_000_000.0
"""When it is in tests, unless they say otherwise: 2023-11-14 22:13:20 UTC."""


def quiet_world(now: float = NOON, compute: Compute = compute_here) -> OrdinaryWorld:
    """A fixed time, and chance with a seed. What goes wrong inside the engine fails the test."""
    return OrdinaryWorld(lambda: now, Random(0), fail, compute)


def fail(text: str, error: Exception) -> None:
    raise AssertionError(text) from error


def opened_sql(
    log: Log | None = None,
    *,
    shards: int = 4,
    now: float = NOON,
    compute: Compute = compute_here,
) -> AbstractAsyncContextManager[SqlDatabase]:
    return scratch_database(quiet_world(now, compute), shards=shards, log=log)

"""Deletes expired stored answers, in the background.

A pass walks the tree of answers in the order of names, a bounded number per step, and pauses
between steps. An expired answer is never returned, swept or not: the sweeper only frees space.

The sweeper uses the database as any client does. If a step fails, the next pass tries again.
"""

from __future__ import annotations

from functools import partial

import msgspec
import trio

from qserver.engine.database import Database
from qserver.engine.stored_answers import StoredAnswer, forget_answers
from qserver.engine.world import World
from qserver.errors import Applied, QserverError
from qserver.limits import ANSWERS_SWEPT_AT_ONCE, ANSWERS_SWEPT_SECONDS
from qserver.storage.page import Key
from qserver.storage.writes import ANSWERS_TREE
from qserver.values.keys import TOP

STEP_PAUSE_SECONDS = 0.1


class SweepPolicy(msgspec.Struct, frozen=True):
    seconds: float = ANSWERS_SWEPT_SECONDS
    """The time between two passes."""
    at_once: int = ANSWERS_SWEPT_AT_ONCE
    pause: float = STEP_PAUSE_SECONDS


async def sweep_answers(
    database: Database, world: World, policy: SweepPolicy | None = None
) -> None:
    """Run passes at intervals until the task is cancelled."""
    policy = policy or SweepPolicy()
    while True:
        await trio.sleep(policy.seconds)
        try:
            await _pass(database, world, policy)
        except QserverError as error:
            if error.retryable or error.applied is Applied.UNKNOWN:
                continue  # the load is high, or the database restarts
            world.report(f"expired answers of database {database.name} were not deleted", error)


async def _pass(database: Database, world: World, policy: SweepPolicy) -> None:
    after: Key | None = None
    while True:
        names, last = await _expired(database, after, world.now(), policy.at_once)
        if names:
            await database.transact(partial(forget_answers, names=names, now=world.now()))
        if last is None:
            return
        after = (*last, TOP)
        await trio.sleep(policy.pause)


async def _expired(
    database: Database, after: Key | None, now: float, most: int
) -> tuple[list[bytes], Key | None]:
    """Return the expired names of one step, and the last key read, if there is more."""
    snapshot = await database.wait_durable_snapshot()
    keys, rows = snapshot.first_entries(ANSWERS_TREE, after, None, False, most)
    names = [
        key[0] for key, row in zip(keys, rows, strict=True) if StoredAnswer(*row).expires <= now
    ]
    return names, keys[-1] if len(keys) == most else None

"""Holds snapshots open across named events, and reads them when their pages are gone.

    take ──► the newest snapshot, durable or not, or an older version that is made again
      │
    wait ──► until a point has been reached so many times more: a checkpoint was saved, pages of an
      │      old one were forgotten, a kept one was dropped, a sync failed, pages were let go
    read ──► after all pages are let go, every entry is what was published under its version

Readers of workloads are quick, so nothing brings these together otherwise. A snapshot that never
became durable, or whose version was published anew, is not judged.
"""

from __future__ import annotations

from random import Random
from typing import Final

import trio

from qserver.engine.database import Database, DatabaseState
from qserver.errors import HistoryTooOld, InvalidRequest, LogTaken, QserverError
from qserver.storage.snapshot import Snapshot
from simulations.inspection import entries_of
from simulations.world import SimulatedWorld

EVENTS: Final = (
    "a checkpoint was saved",
    "a checkpoint was saved",
    "pages of an old checkpoint were forgotten",
    "a kept checkpoint was dropped",
    "a sync failed",
    "pages were let go",
)
LOOKED_FOR_EVERY: Final = 0.02
LOOKS_MOST: Final = 50
"""A snapshot is held for no longer than so many looks: it must be gone when all is at rest."""
OLDER_MOST: Final = 6

_TOO_OLD: Final = (HistoryTooOld, InvalidRequest)


async def hold_snapshots(
    world: SimulatedWorld, database: Database, chance: Random, problems: list[str]
) -> None:
    """Hold one snapshot after the other while faults strike."""
    while True:
        await trio.sleep(chance.uniform(0.0, 0.2))
        if world.faults.on and database.state is DatabaseState.OPEN:
            try:
                problems.extend(await _hold(world, database, chance))
            except LogTaken:
                return
            except QserverError as error:
                if not world.explains(error) and not isinstance(error, _TOO_OLD):
                    problems.append(f"a snapshot could not be held: {error!r}")


async def _hold(world: SimulatedWorld, database: Database, chance: Random) -> list[str]:
    snapshot = await _taken(database, chance)
    published = None if snapshot is None else world.published.get(snapshot.version)
    if snapshot is None or published is None:
        return []
    point = chance.choice(EVENTS)
    wanted = world.reached.get(point, 0) + chance.choice((1, 2, 2))
    for _ in range(LOOKS_MOST):
        if not world.faults.on or world.reached.get(point, 0) >= wanted:
            break
        await trio.sleep(LOOKED_FOR_EVERY)
    durable = database.snapshots.take()
    if (
        durable is None
        or snapshot.version > durable.version
        or world.published.get(snapshot.version) is not published
        or world.two_publish
        or world.pages_torn
    ):
        return []
    if world.reached.get(point, 0) >= wanted:
        world.reach("a snapshot was held across checkpoints")
    assert world.cache is not None
    world.cache.evict_all()
    problems = []
    with world.without_faults():
        for tree in published.entries:
            found = entries_of(snapshot, tree)
            if found != published.entries[tree]:
                problems.append(f"held version {snapshot.version}: tree {tree} holds {found}")
    return problems


async def _taken(database: Database, chance: Random) -> Snapshot | None:
    newest = database.snapshots.take(newest=True)
    if newest is None or not database.history.seconds or chance.random() < 0.5:
        return newest
    return await database.snapshot_at(max(newest.version - chance.randint(1, OLDER_MOST), 0))

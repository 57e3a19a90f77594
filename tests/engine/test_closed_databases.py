"""A database that was closed leaves nothing in memory, whatever happened to it."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ref

import pytest
import trio

from qserver.durability.sqlite import open_log
from qserver.engine.database import Database
from qserver.errors import PageUnreadable
from qserver.storage.btree import get
from qserver.storage.page import Branch
from qserver.storage.snapshot import Snapshot
from simulations.run import plan_for, simulate
from tests.engine import counters
from tests.engine.fakes import Laboratory


async def used(folder: Path) -> tuple[ref[Database], Snapshot]:
    async with await open_log(folder / "data") as log:
        database = Database(log, Laboratory())
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            await database.transact(counters.create(300))
            await database.checkpoint()
            snapshot = database.snapshots.take()
            nursery.cancel_scope.cancel()
    assert snapshot is not None
    return ref(database), snapshot


async def test_nothing_keeps_a_database_that_was_closed(tmp_path: Path) -> None:
    database, snapshot = await used(tmp_path)
    gc.collect()
    assert database() is None, "its pages know their store, and that must not know it"
    assert snapshot.version == 1


async def test_a_snapshot_that_outlives_its_database_says_so(tmp_path: Path) -> None:
    _, snapshot = await used(tmp_path)
    [table] = snapshot.catalog.tables.values()
    root = snapshot.trees.tree(table.id).root_of(snapshot.ranges(table.id, snapshot.catalog)[0])
    assert isinstance(root, Branch)
    for leaf in root.children:
        leaf.evict()
    with pytest.raises(PageUnreadable, match="the database was closed meanwhile"):
        get(root, (1,))


@pytest.mark.long
def test_crashed_databases_of_the_simulation_are_not_kept() -> None:
    def databases() -> int:
        gc.collect()
        return sum(isinstance(each, Database) for each in gc.get_objects())

    before = databases()
    for seed in (2, 3, 5):
        simulate(plan_for(seed, "sql_bank", "storm"))
    assert databases() == before

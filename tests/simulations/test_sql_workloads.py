"""The checks below SQL see what they are for, and a service survives two crashes at once."""

from __future__ import annotations

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.errors import HistoryTooOld
from qserver.query.sql_database import SqlDatabase
from qserver.storage.transaction import Transaction
from simulations.determinism import run_repeatably
from simulations.disk import Disk
from simulations.faults import Faults, make_profile
from simulations.service import Service
from simulations.trace import Trace
from simulations.workloads.sql_history import SqlHistory
from simulations.workloads.sql_references import SqlReferences
from simulations.workloads.sql_workload import tree_problems
from simulations.world import SimulatedWorld
from tests.engine.counters import read


def calm_world() -> SimulatedWorld:
    profile = make_profile("calm", 1)
    return SimulatedWorld(1, profile, Faults(1, profile.probabilities), Trace(keep_events=False))


@pytest.mark.parametrize(
    ("table", "key", "row", "problem"),
    [
        ("wards", (2,), (2, 1), "index wards_of_parent says"),
        ("wards", (1,), None, "index wards_of_parent says"),
        ("wards", (3,), (1, 1), "under other keys"),
        ("parents", (1,), None, "rows of wards refer to nothing"),
    ],
)
def test_trees_that_disagree_are_seen(
    table: str, key: tuple[int], row: tuple[int, ...] | None, problem: str
) -> None:
    def damage(transaction: Transaction) -> None:
        transaction.put_entry(transaction.table(table).id, key, row)

    async def main() -> tuple[list[str], list[str]]:
        world = calm_world()
        database = Database(MemoryLog(), world, shards=3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.run)
            sql = SqlDatabase(database, world)
            for statement in (
                *SqlReferences.tables,
                "INSERT INTO parents VALUES (1)",
                "INSERT INTO wards VALUES (1, 1)",
            ):
                await sql.execute(statement)
            before: list[str] = (await read(database, tree_problems)).result
            await database.transact(damage)
            after: list[str] = (await read(database, tree_problems)).result
            nursery.cancel_scope.cancel()
        return before, after

    before, after = run_repeatably(1, main, virtual_seconds_max=10.0, steps_max=100_000)
    assert before == []
    assert any(problem in each for each in after), after


def test_nobody_waits_for_a_process_that_crashed_twice_at_once() -> None:
    async def main() -> int:
        world = calm_world()
        async with trio.open_nursery() as nursery:
            service = Service(world, Disk(world, nursery))
            nursery.start_soon(service.run)
            await service.read(lambda transaction: None)
            world.crash_wanted.set()
            service.crash(lose_all=True)
            await service.read(lambda transaction: None)
            nursery.cancel_scope.cancel()
        return service.crashes

    assert run_repeatably(1, main, virtual_seconds_max=10.0, steps_max=100_000) == 1


@pytest.mark.parametrize("another", [True, False])
def test_a_refused_version_was_the_newest_only_if_no_process_has_made_another(
    another: bool,
) -> None:
    """A version that two processes may have made counts, though its contents are not known."""

    async def main() -> tuple[int, list[str]]:
        world = calm_world()
        workload = SqlHistory(1, world.profile)
        async with trio.open_nursery() as nursery:
            service = Service(world, Disk(world, nursery))
            nursery.start_soon(service.run)
            await workload.setup(service)
            service.keep_history(0.0)
            world.two_publish = True
            if another:
                await workload.must(service, "UPDATE meta SET width = 0")
            newest, changes = workload.newest, service.kept.changes
            workload._judge_refusal(service, newest, HistoryTooOld("old"), newest, changes)
            nursery.cancel_scope.cancel()
        return newest, workload.problems

    newest, problems = run_repeatably(1, main, virtual_seconds_max=10.0, steps_max=100_000)
    assert problems == ([] if another else [f"{newest} is kept, and refused"])

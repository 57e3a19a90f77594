"""What is wrong with data, or left over, is seen; and nothing is seen where nothing is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from qserver.durability.pages import encode_page
from qserver.engine.database import Database
from qserver.storage.btree import leaf_of
from qserver.storage.ranges import Range, Trees, laid_over
from qserver.storage.transaction import Transaction
from qserver.storage.view import View, empty_view
from simulations.determinism import run_repeatably
from simulations.disk import Disk
from simulations.faults import Faults, make_profile
from simulations.inspection import disk_problems, range_problems, view_problems, waiting_problems
from simulations.service import Service
from simulations.trace import Trace
from simulations.workloads.workload import create_table
from simulations.world import SimulatedWorld


def simulated(look: Callable[[Service, Disk], Awaitable[Any]]) -> Any:
    """The answer of a look at a service that has a table with two rows, and a checkpoint of it."""

    def work(transaction: Transaction) -> None:
        table = create_table(transaction, "things", "id", "name", unique=(1,))
        transaction.insert(table, (1, 1))
        transaction.insert(table, (2, 2))

    async def main() -> Any:
        profile = make_profile("calm", 1)
        world = SimulatedWorld(1, profile, Faults(1, {}), Trace(keep_events=False))
        async with trio.open_nursery() as nursery:
            disk = Disk(world, nursery)
            service = Service(world, disk)
            nursery.start_soon(service.run)
            await service.transact(work)
            await service.tidy_up()
            answer = await look(service, disk)
            nursery.cancel_scope.cancel()
        return answer

    return run_repeatably(1, main, virtual_seconds_max=100.0, steps_max=100_000)


async def problems_on_disk(service: Service, disk: Disk) -> list[str]:
    return service.problems + disk_problems(disk)


def test_after_a_checkpoint_the_disk_holds_what_it_needs() -> None:
    assert simulated(problems_on_disk) == []


def test_a_page_that_nothing_leads_to_is_seen() -> None:
    async def look(service: Service, disk: Disk) -> list[str]:
        disk.shelf.put([(99, encode_page(leaf_of([(1,)], [(1, 1)]), 99, {}))])
        return await problems_on_disk(service, disk)

    assert simulated(look) == ["pages that no checkpoint leads to: [99]"]


def test_a_page_that_is_missing_is_seen() -> None:
    async def look(service: Service, disk: Disk) -> list[str]:
        disk.shelf.remove([min(disk.shelf.pages)])
        return await problems_on_disk(service, disk)

    (problem,) = simulated(look)
    assert problem.startswith("pages that the checkpoint leads to are missing")


def test_a_record_that_the_checkpoint_has_is_seen() -> None:
    async def look(service: Service, disk: Disk) -> list[str]:
        disk._records.insert(0, (1, b""))
        return await problems_on_disk(service, disk)

    assert simulated(look) == ["records of versions that the checkpoint has: [1]"]


def test_a_tree_of_no_table_is_seen() -> None:
    view = empty_view(1)
    assert view_problems(view) == []
    stray = Trees().changed({7: laid_over(7, (), [leaf_of([(1,)], [(1,)])], 0, 1)})
    assert view_problems(View(1, 0.0, view.catalog, stray, 1)) == ["tree 7 belongs to no table"]


def test_a_range_that_a_shard_has_lost_kept_or_mistaken_is_seen() -> None:
    async def look(service: Service, disk: Disk) -> tuple[list[str], list[str]]:
        database = service._database
        assert isinstance(database, Database)
        before = range_problems(database)
        incarnation: Any = database._incarnation
        shard = next(each for each in incarnation._shards if len(each.roots) > 1)
        lost, mistaken, *_ = list(shard.roots)
        shard.roots[mistaken] = leaf_of([(9,)], [(9,)])
        shard.roots[Range(99, None, None, 0)] = shard.roots.pop(lost)
        return before, range_problems(database)

    before, after = simulated(look)
    assert before == []
    assert sorted(problem.split()[2] for problem in after) == ["has", "lacks", "still"]


@pytest.mark.parametrize("asked", ["_turns", "checkpoint"])
def test_who_still_waits_in_a_process_at_rest_is_seen(asked: str) -> None:
    async def look(service: Service, disk: Disk) -> tuple[list[str], list[str]]:
        database = service._database
        assert isinstance(database, Database)
        incarnation: Any = database._incarnation
        before = waiting_problems(database)
        if asked == "_turns":
            incarnation._turns[1] = object()
        else:
            incarnation.checkpointer._asked.append(object())
        after = waiting_problems(database)
        incarnation._turns.clear()
        incarnation.checkpointer._asked.clear()
        return before, after

    before, after = simulated(look)
    assert before == []
    assert len(after) == 1 and "still wait for a" in after[0]

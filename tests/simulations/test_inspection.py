"""What is wrong with data, or left over, is seen; and nothing is seen where nothing is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from qserver.durability import saved_columns
from qserver.durability.pages import encode_page
from qserver.durability.saved_columns import encode_column
from qserver.durability.seal import unsealed
from qserver.engine.database import Database
from qserver.storage.btree import branch_of
from qserver.storage.page import Branch, Leaf, Tree
from qserver.storage.ranges import Range, Trees, laid_over
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import vector_of
from simulations.determinism import run_repeatably
from simulations.disk import Disk
from simulations.faults import Faults, make_profile
from simulations.inspection import (
    disk_problems,
    range_problems,
    recovery_problems,
    snapshot_problems,
    waiting_problems,
)
from simulations.pages import published
from simulations.service import Service
from simulations.shelf import Shelf
from simulations.sizes import SMALL, sized
from simulations.trace import Trace
from simulations.workloads.workload import create_table
from simulations.world import SimulatedWorld
from tests.storage.trees import leaf_of


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
        disk.shelf.put([(99, encode_page(leaf_of([(1,)], [(1, 1)]), 99, len))])
        return await problems_on_disk(service, disk)

    assert simulated(look) == ["pages that no checkpoint leads to: [99]"]


def test_a_saved_column_of_other_values_is_seen() -> None:
    def more(transaction: Transaction) -> None:
        table = transaction.table("things")
        for number in range(3, 50):
            transaction.insert(table, (number, number))

    async def look(service: Service, disk: Disk) -> tuple[list[str], list[str]]:
        await service.transact(more)
        await service.tidy_up()
        before = service.problems + disk_problems(disk)
        number, data = min((disk.shelf.pages | disk.shelf.unsynced).items())
        saved = saved_columns._decode(unsealed(data, "a column", number))
        wanted = ColumnVector(saved.position, saved.family, saved.scale)
        other = vector_of([0] * saved.rows, wanted)
        disk.shelf.put([(number, encode_column(saved.page, saved.rows, wanted, other))])
        return before, disk_problems(disk)

    with sized(SMALL):
        before, (problem,) = simulated(look)
    assert before == []
    assert problem.startswith("column ") and problem.endswith("has other values than its rows")


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

    assert simulated(look) == ["the log begins with version 1, checkpoints are of [1]"]


def test_a_tree_of_no_table_is_seen() -> None:
    snapshot = empty_snapshot(1)
    assert snapshot_problems(snapshot) == []
    stray = Trees().changed({7: laid_over(7, (), [leaf_of([(1,)], [(1,)])], 0, 1)})
    assert snapshot_problems(Snapshot(1, 0.0, snapshot.catalog, stray, 1)) == [
        "tree 7 belongs to no table"
    ]


def test_a_range_that_a_shard_has_lost_kept_or_mistaken_is_seen() -> None:
    async def look(service: Service, disk: Disk) -> tuple[list[str], list[str]]:
        database = service._database
        assert isinstance(database, Database)
        before = range_problems(database)
        generation: Any = database._generation
        shard = next(each for each in generation._shards if len(each.roots) > 1)
        lost, mistaken, *_ = list(shard.roots)
        shard.roots[mistaken] = leaf_of([(9,)], [(9,)])
        shard.roots[Range(99, None, None, 0)] = shard.roots.pop(lost)
        return before, range_problems(database)

    before, after = simulated(look)
    assert before == []
    assert sorted(problem.split()[2] for problem in after) == ["has", "lacks", "still"]


def snapshot_of(trees: dict[int, Tree]) -> Snapshot:
    laid = {number: laid_over(number, (), [tree], 0, 1) for number, tree in trees.items()}
    return Snapshot(1, 0.0, empty_snapshot(1).catalog, Trees().changed(laid), 1)


SEPARATED_WRONGLY = Branch([(2,)], [leaf_of([(1,)], [(1,)]), leaf_of([(1,)], [(1,)])], 2, 1)
MISCOUNTED = Branch([(2,)], [leaf_of([(1,)], [(1,)]), leaf_of([(2,)], [(2,)])], 3, 1)
UNEVEN = Branch([(2,)], [leaf_of([(1,)], [(1,)]), branch_of([], [leaf_of([(2,)], [(2,)])])], 2, 1)
WITH_EMPTY_PAGE = branch_of([(2,)], [leaf_of([(1,)], [(1,)]), leaf_of([], [])])
WITHOUT_SEPARATOR = Branch([], [leaf_of([(1,)], [(1,)]), leaf_of([(2,)], [(2,)])], 2, 1)
OVERFULL = Leaf([(n,) for n in range(65)], [(n,) for n in range(65)], 65)
VALUELESS = Leaf([(1,), (2,)], [(1,)], 2)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (SEPARATED_WRONGLY, "a page has keys that do not belong there"),
        (MISCOUNTED, "3 entries are counted, 2 are there"),
        (UNEVEN, "pages are not equally deep"),
        (WITH_EMPTY_PAGE, "a page is empty"),
        (WITHOUT_SEPARATOR, "0 keys part 2 pages"),
        (OVERFULL, "a page has 65 entries, and 64 are the most"),
        (VALUELESS, "a page has 2 entries where 2 are counted, and 1 values"),
    ],
)
def test_a_tree_that_is_built_wrongly_is_seen(tree: Tree, problem: str) -> None:
    snapshot = snapshot_of({SEQUENCES_TREE: tree})
    assert [each for each in snapshot_problems(snapshot) if each.endswith(problem)]


def test_what_was_recovered_otherwise_than_published_is_seen() -> None:
    catalog = empty_snapshot(1).catalog
    one, other = leaf_of([(1,)], [(1,)]), leaf_of([(1,)], [(2,)])
    snapshot = snapshot_of({7: one})
    was = published(snapshot, None, Shelf())
    assert published(snapshot, was, Shelf()).entries[7] is was.entries[7]
    assert recovery_problems(snapshot_of({7: leaf_of([(1,)], [(1,)])}), was) == []
    assert recovery_problems(snapshot_of({7: other}), was) == [
        "tree 7 holds {(1,): (2,)}, not {(1,): (1,)}"
    ]
    lost = Snapshot(1, 0.0, catalog.changed({}, 9), Trees(), 1)
    assert len(recovery_problems(lost, was)) == 2
    more = Snapshot(1, 0.0, catalog, snapshot.trees, 2)
    assert recovery_problems(more, was) == ["there are 2 shards, not 1"]


@pytest.mark.parametrize("asked", ["_exclusive", "checkpoint"])
def test_who_still_waits_in_a_process_at_rest_is_seen(asked: str) -> None:
    async def look(service: Service, disk: Disk) -> tuple[list[str], list[str]]:
        database = service._database
        assert isinstance(database, Database)
        generation: Any = database._generation
        before = waiting_problems(database)
        if asked == "_exclusive":
            generation._exclusive[1] = object()
        else:
            generation.checkpointer._asked.append(object())
        after = waiting_problems(database)
        generation._exclusive.clear()
        generation.checkpointer._asked.clear()
        return before, after

    before, after = simulated(look)
    assert before == []
    assert len(after) == 1 and "still wait for a" in after[0]

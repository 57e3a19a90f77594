"""Checks that the data themselves are sound, whatever a workload has done with them.

    a recovered snapshot   pages in order and equally deep, every key in its range, every row under
                           its key, an entry of each index for each row and no other, no tree that
                           belongs to no table, no reference that leads nowhere; and the same
                           time, definitions, rows and entries as the snapshot that was published
                           under its version
    a snapshot in memory   the same by itself, when its process crashes or comes to rest
    the disk at the end    no page that the checkpoint does not lead to, no record that it has made
                           superfluous, no saved column with other values than the rows of its page
    the process at rest    no task waits for anything, and each shard has exactly the ranges that
                           the newest snapshot gives it, with the same roots

The first check follows each recovery, so also each crash and each power cycle. Recovery builds its
own trees from pages and records, so the trees of a crashing process are checked, too.
"""

from __future__ import annotations

from itertools import groupby
from math import inf
from typing import Any

from qserver.durability.check_columns import ColumnsCheck
from qserver.durability.check_snapshot import problems_of
from qserver.durability.checkpoint import decode_checkpoint, roots_of
from qserver.durability.column_numbers import page_of
from qserver.durability.kept import decode_outline
from qserver.durability.memory import MemoryLog
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import StoredChildren, decode_page
from qserver.engine.database import Database, DatabaseStatistics
from qserver.storage.page import Key, Value
from qserver.storage.ranges import roots_of_shard
from qserver.storage.snapshot import Snapshot
from qserver.values.constraints import ForeignKey
from qserver.values.schema import Table
from simulations.disk import Disk
from simulations.pages import Published
from simulations.world import SimulatedWorld


def snapshot_problems(snapshot: Snapshot) -> list[str]:
    problems = [problem for problem in problems_of(snapshot) if problem is not None]
    for _, table in sorted(snapshot.catalog.tables.items()):
        for key in table.foreign_keys:
            problems += reference_problems(snapshot, table, key)
    return problems


def recovery_problems(recovered: Snapshot, published: Published) -> list[str]:
    """Return where a recovered snapshot differs from the one published under its version."""
    problems = []
    if recovered.time != published.time:
        problems.append(f"its time is {recovered.time}, not {published.time}")
    for kind in ("tables", "others", "owners", "trees_used", "moments", "last_change"):
        before, after = getattr(published.catalog, kind), getattr(recovered.catalog, kind)
        if before != after:
            problems.append(f"{kind} of the catalog are {after}, not {before}")
    if recovered.shards != published.shards:
        problems.append(f"there are {recovered.shards} shards, not {published.shards}")
    for number in sorted({*(number for number, _ in recovered.trees.items()), *published.entries}):
        is_now, was = entries_of(recovered, number), published.entries.get(number, {})
        if is_now != was:
            problems.append(f"tree {number} holds {is_now}, not {was}")
        changed = [trees.tree(number).last_change for trees in (recovered.trees, published.trees)]
        if changed[0] != changed[1]:
            problems.append(f"tree {number} was changed at {changed[0]}, not {changed[1]}")
    return problems


def entries_of(snapshot: Snapshot, tree: int) -> dict[Key, Value]:
    entries: dict[Key, Value] = {}
    for keys, values in snapshot.pages(tree):
        entries.update(zip(keys, values, strict=True))
    return entries


def reference_problems(snapshot: Snapshot, table: Table, key: ForeignKey) -> list[str]:
    other = snapshot.catalog.tables[key.table]
    there = {_values(other, key.referenced, row) for row in rows_of(snapshot, other)}
    orphans = [
        row
        for row in rows_of(snapshot, table)
        if None not in (values := _values(table, key.columns, row)) and values not in there
    ]
    return [f"rows of {table.name} refer to nothing: {orphans}"] if orphans else []


def rows_of(snapshot: Snapshot, table: Table) -> list[tuple[Any, ...]]:
    return [row for _, page in snapshot.pages(table.id) for row in page]


def _values(table: Table, columns: tuple[str, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([row[table.position(column)] for column in columns])


def reach_shapes(world: SimulatedWorld, snapshot: Snapshot) -> None:
    """Note which kinds of trees a snapshot has."""
    for _, tree in snapshot.trees.items():
        height = max(root.height for root in tree.roots)
        if height > 0:
            world.reach("a tree had several pages")
        if height > 1:
            world.reach("a tree had several levels of branches")
        if height > 2:
            world.reach("a tree had three levels of branches")
        if len(tree.ranges) > 1:
            world.reach("a tree was recovered in several ranges")


def page_numbers(disk: Disk) -> tuple[set[int], set[int]]:
    """Return the pages that the disk holds, or columns of, and those that checkpoints lead to."""
    shelf = disk.shelf
    held = {**shelf.pages, **shelf.unsynced}
    reached: set[int] = set()
    for version, _ in shelf.checkpoints.outlines():
        stored = shelf.checkpoints.get(version)
        assert stored is not None
        waiting = list(roots_of(decode_checkpoint(*stored)))
        while waiting:
            number = waiting.pop()
            if number in reached or number not in held:
                reached.add(number)
                continue
            reached.add(number)
            page = decode_page(number, held[number])
            if isinstance(page, StoredChildren):
                waiting += page.numbers
    return {page_of(number) for number in held}, reached


def column_problems(disk: Disk) -> list[str]:
    """Return which saved columns have other values than the rows below their pages."""
    log = MemoryLog()
    log._pages = {**disk.shelf.pages, **disk.shelf.unsynced}
    check = ColumnsCheck(log, LoggedPages(log))
    columns = sorted(number for number in log._pages if page_of(number) != number)
    for page, numbers in groupby(columns, page_of):
        branch = decode_page(page, log._pages[page])
        assert isinstance(branch, StoredChildren), "a leaf has no columns"
        for _ in check.check(page, sum(branch.lengths), list(numbers)):
            pass
    if check.damaged:
        check.problems.append(f"{check.damaged} saved columns are damaged")
    return check.problems


def disk_problems(disk: Disk, horizon: float = inf) -> list[str]:
    """Return what the disk holds needlessly, right after a checkpoint, and what it lacks.

    Versions from the horizon on are kept, and the newest.
    """
    held, reached = page_numbers(disk)
    problems = []
    # What is below a page that could not be read when it died cannot be known, and stays.
    if held - reached and not disk.world.pages_torn:
        problems.append(f"pages that no checkpoint leads to: {sorted(held - reached)}")
    if reached - held:
        problems.append(f"pages that the checkpoint leads to are missing: {sorted(reached - held)}")
    if not problems:
        problems += column_problems(disk)
    outlines = [decode_outline(*each) for each in disk.shelf.checkpoints.outlines()]
    kept = [each.version for each in outlines]
    needless = [each.version for each in outlines[1:] if each.time <= horizon]
    if needless:
        problems.append(f"history goes back to {needless[-1]}, and checkpoints of {kept} are kept")
    beginnings = {0, *kept} if horizon < inf else {*kept[-1:]}
    records = disk.versions()
    if records and kept and records[0] - 1 not in beginnings:
        problems.append(f"the log begins with version {records[0]}, checkpoints are of {kept}")
    return problems


def leftovers(statistics: DatabaseStatistics, streams: int = 0) -> list[str]:
    """Return what a database at rest must not have; it has so many streams to followers."""
    generation = statistics.generation
    if generation is None:
        return [f"the database is {statistics.state}"]
    problems = []
    if statistics.watches.watches:
        problems.append(f"{statistics.watches.watches} live queries were never closed")
    if generation.unanswered:
        problems.append(f"{generation.unanswered} commits were never answered")
    if generation.versions.waiting > streams:
        problems.append(f"{generation.versions.waiting} still wait for what is durable")
    for shard in generation.shards:
        if shard.undecided:
            problems.append(f"shard {shard.shard} has {shard.undecided} undecided transactions")
    for mailbox in generation.mailboxes:
        if mailbox.waiting or mailbox.waiting_most > mailbox.capacity:
            problems.append(f"{mailbox} is not empty or was overfull")
    if generation.versions.newest != generation.versions.durable:
        problems.append(f"what is published is not durable: {generation.versions}")
    return problems


def waiting_problems(database: Database) -> list[str]:
    """Return the waiters of a database at rest that its statistics do not show."""
    generation: Any = database._generation
    if generation is None:
        return []
    problems = []
    if generation._exclusive:
        problems.append(f"{len(generation._exclusive)} still wait for an exclusive commit")
    if generation.checkpointer._asked:
        problems.append(f"{len(generation.checkpointer._asked)} still wait for a checkpoint")
    return problems


def range_problems(database: Database) -> list[str]:
    """Return ranges that a shard of a database at rest lacks, still has, or has another root of."""
    generation: Any = database._generation
    if generation is None:
        return []
    newest = generation.versions.newest
    problems = []
    for shard in generation._shards:
        there, expected = shard.roots, roots_of_shard(newest.trees, shard.number)
        for each in sorted({*there, *expected}, key=repr):
            if each not in there:
                problems.append(f"shard {shard.number} lacks {each}")
            elif each not in expected:
                problems.append(f"shard {shard.number} still has {each}")
            elif there[each] is not expected[each]:
                problems.append(f"shard {shard.number} has another root of {each}")
    return problems

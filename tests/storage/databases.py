"""What the tests of snapshots and transactions share: a table, and how to fill and commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from qserver.storage import ranges
from qserver.storage.btree import pages
from qserver.storage.catalog import Catalog
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.page import Key, Value
from qserver.storage.ranges import Trees, roots_of_shard
from qserver.storage.routing import parts_of, written
from qserver.storage.snapshot import Page, Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Index, Table, define_table
from qserver.values.steps import at_once
from qserver.values.types import INTEGER, NUMERIC, TEXT
from tests.values.making import define_index

PLAIN = define_table(1, "plain", [Column("id", INTEGER), Column("note", TEXT)], ["id"])
"""A table without indexes."""


def _people() -> Table:
    columns = [
        Column("id", INTEGER),
        Column("email", TEXT),
        Column("city", TEXT),
        Column("score", NUMERIC),
    ]
    table = define_table(2, "people", columns, ["id"])
    email = define_index(3, "people_email_key", table, ["email"], unique=True)
    place = define_index(4, "people_place", table, ["city", "score"], descending=[False, True])
    return table.with_index(email).with_index(place)


PEOPLE = _people()
"""A table with a unique index on a column that may be NULL, and one with mixed directions."""

EMAIL: Index = PEOPLE.index("people_email_key")
PLACE: Index = PEOPLE.index("people_place")


def database(shards: int, tables: Iterable[Table] = (PLAIN, PEOPLE)) -> Snapshot:
    """A database with these tables, all empty."""
    catalog = Catalog().changed({table.name: table for table in tables}, trees_used=9)
    return Snapshot(1, 0.0, catalog, Trees(), shards)


def view_with(entries: Mapping[Key, Value], shards: int, tree: int = 1) -> Snapshot:
    """A database one of whose trees holds the entries."""
    snapshot = database(shards)
    trees = at_once(written(snapshot, snapshot.catalog, {tree: dict(entries)}))
    return Snapshot(1, 0.0, snapshot.catalog, trees, shards)


def commit(transaction: Transaction) -> Snapshot:
    """The next snapshot, as if nobody else had committed anything."""
    snapshot, catalog = transaction.snapshot, transaction.snapshot.catalog
    changes = transaction.catalog_changes
    if transaction.changes_catalog:
        catalog = catalog.changed(changes.definitions, transaction.catalog.trees_used)
    trees = at_once(written(snapshot, catalog, transaction.writes, changes.dropped))
    return Snapshot(snapshot.version + 1, 0.0, catalog, trees, snapshot.shards)


def database_with(*rows: Value, shards: int = 3, table: Table = PEOPLE) -> Snapshot:
    transaction = Transaction(database(shards))
    for row in rows:
        transaction.insert(table, row)
    return commit(transaction)


@contextmanager
def ranges_of(most: int, least: int) -> Iterator[None]:
    """Ranges are cut and joined at these sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "RANGE_ENTRIES_MAX", most)
        patch.setattr(ranges, "RANGE_ENTRIES_MIN", least)
        yield


def laid_out(snapshot: Snapshot) -> Snapshot:
    """The same entries, cut as the sizes of the moment say."""
    trees = {number: tree.laid_out(snapshot.shards) for number, tree in snapshot.trees.items()}
    return Snapshot(
        snapshot.version, 0.0, snapshot.catalog, snapshot.trees.changed(trees), snapshot.shards
    )


def tree_entries(snapshot: Snapshot, tree: int) -> dict[Key, Value]:
    """All entries of a tree, each of which must be in the range that its key belongs to."""
    entries: dict[Key, Value] = {}
    ranged = snapshot.trees.tree(tree)
    for each, root in zip(ranged.ranges, ranged.roots, strict=False):
        for key, value in flat(pages(root)):
            assert each.low is None or each.low <= key
            assert each.high is None or key < each.high
            entries[key] = value
    return entries


def flat(stream: Iterable[Page]) -> list[tuple[Key, Value]]:
    return [entry for page in stream for entry in zip(*page, strict=True)]


# --- what the shards would say -------------------------------------------------------------------


def stale_reads(transaction: Transaction, now: Snapshot) -> list[Conflict]:
    """What shards that have installed this snapshot find stale."""
    found = [
        stale_read(part, roots_of_shard(now.trees, shard))
        for shard, part in at_once(parts_of(transaction, 0, now)).items()
    ]
    return [conflict for conflict in found if conflict is not None]


def overlaps(reader: Transaction, writer: Transaction, newest: Snapshot) -> list[Conflict]:
    """Which reads the writes of another in the same round make untrue."""
    writes = at_once(parts_of(writer, 1, newest))
    found = [
        overlap(part, writes[shard].writes, "another")
        for shard, part in at_once(parts_of(reader, 0, newest)).items()
        if shard in writes
    ]
    return [conflict for conflict in found if conflict is not None]


def write_overlaps(one: Transaction, other: Transaction, newest: Snapshot) -> list[Conflict]:
    """Which keys both write."""
    writes = at_once(parts_of(other, 1, newest))
    found = [
        writes_overlap(part, writes[shard].writes)
        for shard, part in at_once(parts_of(one, 0, newest)).items()
        if shard in writes
    ]
    return [conflict for conflict in found if conflict is not None]

"""What the tests of views and transactions share: a table, and how to fill and commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from qserver.storage import ranges
from qserver.storage.btree import Key, Value, pages
from qserver.storage.catalog import Catalog
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.ranges import Trees, roots_of_shard
from qserver.storage.routing import at_once, parts_of, written
from qserver.storage.transaction import Transaction
from qserver.storage.view import Page, View
from qserver.values.schema import Column, Index, Table, define_table
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


def database(shards: int, tables: Iterable[Table] = (PLAIN, PEOPLE)) -> View:
    """A database with these tables, all empty."""
    catalog = Catalog().changed({table.name: table for table in tables}, trees_used=9)
    return View(1, 0.0, catalog, Trees(), shards)


def view_with(entries: Mapping[Key, Value], shards: int, tree: int = 1) -> View:
    """A database one of whose trees holds the entries."""
    view = database(shards)
    trees = written(view, view.catalog, {tree: dict(entries)})
    return View(1, 0.0, view.catalog, trees, shards)


def commit(transaction: Transaction) -> View:
    """The next view, as if nobody else had committed anything."""
    view, catalog = transaction.view, transaction.view.catalog
    if transaction.changes_catalog:
        catalog = catalog.changed(transaction.catalog_changes, transaction.catalog.trees_used)
    trees = written(view, catalog, transaction.writes, transaction.dropped)
    return View(view.version + 1, 0.0, catalog, trees, view.shards)


def database_with(*rows: Value, shards: int = 3, table: Table = PEOPLE) -> View:
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


def laid_out(view: View) -> View:
    """The same entries, cut as the sizes of the moment say."""
    trees = {number: tree.laid_out(view.shards) for number, tree in view.trees.items()}
    return View(view.version, 0.0, view.catalog, view.trees.changed(trees), view.shards)


def tree_entries(view: View, tree: int) -> dict[Key, Value]:
    """All entries of a tree, each of which must be in the range that its key belongs to."""
    entries: dict[Key, Value] = {}
    ranged = view.trees.tree(tree)
    for each, root in zip(ranged.ranges, ranged.roots, strict=False):
        for key, value in flat(pages(root)):
            assert each.low is None or each.low <= key
            assert each.high is None or key < each.high
            entries[key] = value
    return entries


def flat(stream: Iterable[Page]) -> list[tuple[Key, Value]]:
    return [entry for page in stream for entry in zip(*page, strict=True)]


# --- what the shards would say -------------------------------------------------------------------


def stale_reads(transaction: Transaction, now: View) -> list[Conflict]:
    """What shards that have installed this view find stale."""
    found = [
        stale_read(part, roots_of_shard(now.trees, shard))
        for shard, part in at_once(parts_of(transaction, 0, now)).items()
    ]
    return [conflict for conflict in found if conflict is not None]


def overlaps(reader: Transaction, writer: Transaction, newest: View) -> list[Conflict]:
    """Which reads the writes of another in the same round make untrue."""
    writes = at_once(parts_of(writer, 1, newest))
    found = [
        overlap(part, writes[shard].writes, "another")
        for shard, part in at_once(parts_of(reader, 0, newest)).items()
        if shard in writes
    ]
    return [conflict for conflict in found if conflict is not None]


def write_overlaps(one: Transaction, other: Transaction, newest: View) -> list[Conflict]:
    """Which keys both write."""
    writes = at_once(parts_of(other, 1, newest))
    found = [
        writes_overlap(part, writes[shard].writes)
        for shard, part in at_once(parts_of(one, 0, newest)).items()
        if shard in writes
    ]
    return [conflict for conflict in found if conflict is not None]

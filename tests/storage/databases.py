"""What the tests of views and transactions share: a table, and how to fill and commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qserver.storage.btree import Key, Value, pages
from qserver.storage.catalog import Catalog
from qserver.storage.partition import Partition, Writes
from qserver.storage.transaction import Transaction
from qserver.storage.view import Page, View
from qserver.values.keys import partition_of
from qserver.values.schema import Column, Index, Table, define_index, define_table
from qserver.values.types import INTEGER, NUMERIC, TEXT

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


def database(partitions: int, tables: Iterable[Table] = (PLAIN, PEOPLE)) -> View:
    """A database with these tables, all empty."""
    catalog = Catalog().changed({table.name: table for table in tables}, trees_used=9)
    return View(1, 0.0, catalog, tuple(Partition() for _ in range(partitions)))


def view_with(
    entries: Mapping[Key, Value], partitions: int, tree: int = 1, hashed: int | None = None
) -> View:
    """A database one of whose trees holds the entries, each where its key belongs."""
    view = database(partitions)
    writes: list[Writes] = [{tree: {}} for _ in range(partitions)]
    for key, value in entries.items():
        writes[partition_of(key[:hashed], partitions)][tree][key] = value
    changed = zip(view.partitions, writes, strict=True)
    return View(1, 0.0, view.catalog, tuple(each.changed(made) for each, made in changed))


def commit(transaction: Transaction) -> View:
    """The next view, as if nobody else had committed anything."""
    view, parts = transaction.view, transaction.parts(position=0)
    partitions = [
        partition.changed(parts[shard].writes, parts[shard].dropped)
        if shard in parts
        else partition
        for shard, partition in enumerate(view.partitions)
    ]
    catalog = view.catalog
    if transaction.changes_catalog:
        catalog = catalog.changed(transaction.catalog_changes, transaction.catalog.trees_used)
    return View(view.version + 1, 0.0, catalog, tuple(partitions))


def database_with(*rows: Value, partitions: int = 3, table: Table = PEOPLE) -> View:
    transaction = Transaction(database(partitions))
    for row in rows:
        transaction.insert(table, row)
    return commit(transaction)


def tree_entries(view: View, tree: int, hashed: int | None = None) -> dict[Key, Value]:
    """All entries of a tree, each of which must be in the partition that its key names."""
    entries: dict[Key, Value] = {}
    for shard, partition in enumerate(view.partitions):
        for key, value in flat(pages(partition.tree(tree))):
            assert partition_of(key[:hashed], len(view.partitions)) == shard
            entries[key] = value
    return entries


def flat(stream: Iterable[Page]) -> list[tuple[Key, Value]]:
    return [entry for page in stream for entry in zip(*page, strict=True)]

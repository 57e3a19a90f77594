"""What the tests of views and transactions share: a table, and how to fill and commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qserver.storage.btree import Key, Value, pages
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.routing import written
from qserver.storage.transaction import Transaction
from qserver.storage.view import Page, View
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

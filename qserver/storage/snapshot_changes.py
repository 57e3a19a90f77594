"""Computes the net difference of two versions, row by row: of a database, or of two.

    definition then, and now      listed
    ────────────────────────────  ─────────────────────────────────────────
    the same, but for ids         rows that differ
    rows of the same form         a change of schema, and rows that differ
    none then                     a change of schema, and all rows, inserted
    none now, or another form     a change of schema

Tables are compared by name: a renamed table is gone, and a new one is there. A restore makes a
table anew, with new ids; so ids say nothing about its definition.

Pages that both trees share are not opened. A rebuilt version shares fewer pages, so equal rows are
skipped one by one. Two databases share fewer still, and say which by `drop_shared`: one number may
stand for two pages there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import msgspec

from qserver.storage.btree import EntryChange
from qserver.storage.changes import Change
from qserver.storage.footprint import tree_changes
from qserver.storage.page import DropShared, Key, without_shared
from qserver.storage.ranges import NOTHING
from qserver.storage.snapshot import Snapshot
from qserver.values.comparison import same_row
from qserver.values.identifiers import name_of_key
from qserver.values.keys import TOP, Bound
from qserver.values.relations import Definition, without_ids
from qserver.values.schema import Table

ROWS_BEFORE_YIELDING = 250
"""Rows that are compared before others may run: a millisecond."""


class TableDifference(msgspec.Struct):
    """How much of a table differs; `table` is its catalog key."""

    table: str
    schema: int = 0
    """1 if its definition differs."""
    insert: int = 0
    update: int = 0
    delete: int = 0

    def add(self, op: str) -> None:
        setattr(self, op, getattr(self, op) + 1)


def snapshot_changes(
    before: Snapshot,
    after: Snapshot,
    tables: set[str] | None = None,
    start: tuple[str, Key | None] | None = None,
    drop_shared: DropShared = without_shared,
) -> Iterator[tuple[str, Key | None, Change] | None]:
    """Yield changes, each with the catalog key of its table and the key of its row, in order.

    `tables` limits it to some tables, by their catalog keys; `start` is the change to begin after.
    Yields None now and then, where the caller may let others run.
    """
    for name, was, now in _definitions(before, after, tables):
        if start is not None and name < start[0]:
            continue
        behind = start[1] if start is not None and start[0] == name else None
        is_first = start is None or start[0] != name
        if is_first and _is_redefined(was, now):
            yield name, None, Change(name_of_key(name))
        if isinstance(now, Table) and (was is None or _are_alike(was, now)):
            low = None if behind is None else (*behind, TOP)
            for entry in _differing(before, after, was, now, low, drop_shared):
                if entry is None:
                    yield None
                else:
                    key, row_before, row_after = entry
                    yield name, key, Change(now, row_before, row_after, table_before=was)
        yield None


def snapshot_counts(
    before: Snapshot,
    after: Snapshot,
    tables: set[str] | None = None,
    drop_shared: DropShared = without_shared,
) -> Iterator[TableDifference | None]:
    """Yield how many changes `snapshot_changes` would yield of each table that differs, and None.

    Rows of a table that only one of them has are counted without a look at any.
    """
    for name, was, now in _definitions(before, after, tables):
        found = TableDifference(name, int(_is_redefined(was, now)))
        if isinstance(now, Table):
            if was is None:
                found.insert = after.count(now.id)
            elif _are_alike(was, now):
                for entry in _differing(before, after, was, now, None, drop_shared):
                    if entry is None:
                        yield None
                    else:
                        found.add(Change(now, *entry[1:]).op)
        yield found if found != TableDifference(name) else None


def _definitions(
    before: Snapshot, after: Snapshot, tables: set[str] | None
) -> Iterator[tuple[str, Definition | None, Definition | None]]:
    """Yield the definitions of a name as they were and are, in the order of names."""
    old, new = before.catalog, after.catalog
    for name in sorted({*old.tables, *old.others, *new.tables, *new.others}):
        if tables is None or name in tables:
            yield name, old.find(name), new.find(name)


def _differing(
    before: Snapshot,
    after: Snapshot,
    was: Table | None,
    now: Table,
    low: Bound,
    drop_shared: DropShared,
) -> Iterator[EntryChange | None]:
    """Yield the entries of a table whose rows differ, and None now and then."""
    old_tree = NOTHING if was is None else before.trees.tree(was.id)
    for piece in tree_changes(old_tree, after.trees.tree(now.id), low, None, drop_shared):
        for count, entry in enumerate(piece, start=1):
            if not same_row(entry[1], entry[2]):
                yield entry
            if count % ROWS_BEFORE_YIELDING == 0:
                yield None
        yield None


def _is_redefined(was: Definition | None, now: Definition | None) -> bool:
    return was != now and without_ids(was) != without_ids(now)


def _are_alike(was: Definition, now: Table) -> TypeGuard[Table]:
    """Whether rows and keys have the same form in both."""
    return (
        isinstance(was, Table)
        and was.primary_key == now.primary_key
        and [each.type for each in was.columns] == [each.type for each in now.columns]
    )

"""Computes the net difference of two versions, row by row.

    definition then, and now      listed
    ────────────────────────────  ─────────────────────────────────────────
    the same, but for ids         rows that differ
    rows of the same form         a change of schema, and rows that differ
    none then                     a change of schema, and all rows, inserted
    none now, or another form     a change of schema

Tables are compared by name: a renamed table is gone, and a new one is there. A restore makes a
table anew, with new ids; so ids say nothing about its definition.

Pages that both trees share are not opened. A rebuilt version shares fewer pages, so equal rows are
skipped one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from qserver.storage.changes import Change
from qserver.storage.footprint import tree_changes
from qserver.storage.page import Key
from qserver.storage.ranges import NOTHING
from qserver.storage.snapshot import Snapshot
from qserver.values.comparison import same_row
from qserver.values.identifiers import name_of_key
from qserver.values.keys import TOP
from qserver.values.relations import Definition, without_ids
from qserver.values.schema import Table


def snapshot_changes(
    before: Snapshot,
    after: Snapshot,
    tables: set[str] | None = None,
    start: tuple[str, Key | None] | None = None,
) -> Iterator[tuple[str, Key | None, Change] | None]:
    """Yield changes, each with the catalog key of its table and the key of its row, in order.

    `tables` limits it to some tables, by their catalog keys; `start` is the change to begin after.
    Yields None now and then, where the caller may let others run.
    """
    old, new = before.catalog, after.catalog
    for name in sorted({*old.tables, *old.others, *new.tables, *new.others}):
        if (tables is not None and name not in tables) or (start is not None and name < start[0]):
            continue
        behind = start[1] if start is not None and start[0] == name else None
        was, now = old.find(name), new.find(name)
        is_first = start is None or start[0] != name
        if is_first and was != now and without_ids(was) != without_ids(now):
            yield name, None, Change(name_of_key(name))
        if isinstance(now, Table) and (was is None or _are_alike(was, now)):
            old_tree = NOTHING if was is None else before.trees.tree(was.id)
            low = None if behind is None else (*behind, TOP)
            for piece in tree_changes(old_tree, after.trees.tree(now.id), low, None):
                for key, row_before, row_after in piece:
                    if not same_row(row_before, row_after):
                        yield name, key, Change(now, row_before, row_after, table_before=was)
                yield None
        yield None


def _are_alike(was: Definition, now: Table) -> TypeGuard[Table]:
    """Whether rows and keys have the same form in both."""
    return (
        isinstance(was, Table)
        and was.primary_key == now.primary_key
        and [each.type for each in was.columns] == [each.type for each in now.columns]
    )

"""Computes the net difference of two versions, row by row.

A table that was created, dropped or redefined is a change of schema. Rows of a new table are
insertions. Rows of a table that was dropped, or whose rows have another form now, are not listed.

Pages that both trees share are not opened. A rebuilt version shares fewer pages, so equal rows are
skipped one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from qserver.storage.changes import Change
from qserver.storage.footprint import changes_between
from qserver.storage.page import Key
from qserver.storage.snapshot import Snapshot
from qserver.values.comparison import same_row
from qserver.values.keys import TOP
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
        if was != now and behind is None and (start is None or start[0] != name):
            yield name, None, Change(name.replace("\0", "."))
        if isinstance(now, Table) and (was is None or _are_alike(was, now)):
            low = None if behind is None else (*behind, TOP)
            for piece in changes_between(before, after, now.id, low, None):
                for key, row_before, row_after in piece:
                    if not same_row(row_before, row_after):
                        yield name, key, Change(now, row_before, row_after)
                yield None
        yield None


def _are_alike(was: object, now: Table) -> bool:
    return isinstance(was, Table) and was.id == now.id and was.columns == now.columns

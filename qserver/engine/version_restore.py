"""Restores an older version of a database, as one ordinary transaction.

    newest ── differences of rows, definitions ──► a new version with the contents of the old one

The transaction reads everything, so no commit comes in between, and it is alone in its version. A
table whose definition is unchanged gets the rows that differ, also if an earlier restore made it
anew. A table that was dropped or redefined since is recreated in new trees, with its indexes,
because tree numbers are never reused.

Sequences do not go back. Each continues after the furthest position that it, or the sequence that
has its name now, ever reached, whether it was dropped, renamed, redefined or recreated since. A
sequence keeps its id, by which its positions are found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from qserver.durability.records import Definitions
from qserver.engine.sequence_states import (
    SequenceState,
    furthest,
    leave_position,
    position_left,
    put_state,
    state_of,
)
from qserver.errors import OutOfMemory
from qserver.storage.footprint import tree_changes
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.comparison import same_row
from qserver.values.relations import Definition, Sequence, without_ids
from qserver.values.schema import Table
from qserver.values.sizes import size_of

ENTRY_BYTES = 200
"""What a change takes in memory beside its values."""


def restore_version(
    old: Snapshot,
    bytes_most: int,
    check: Callable[[Transaction], None] | None,
    transaction: Transaction,
) -> Generator[None, None, None]:
    """Write the contents of an older version, if `check` does not raise.

    It depends on the whole catalog and on all rows, so what was checked is true of the commit.
    """
    if check is not None:
        check(transaction)
    transaction.whole_catalog_seen = True
    transaction.own_version = True
    transaction.changes_rows = True
    work = VersionRestore(old, bytes_most, transaction)
    now = transaction.snapshot.catalog
    work.note_positions()
    names = sorted({*now.tables, *now.others, *old.catalog.tables, *old.catalog.others})
    for name in names:
        yield from work.restore(name, now.find(name), old.catalog.find(name))
    changes = transaction.catalog_changes
    if changes.definitions:
        text, names = f"-- as in version {old.version}", list(changes.definitions)
        transaction.note_for_log(Definitions(text, names, dict(changes.rewritten)))


class VersionRestore:
    def __init__(self, old: Snapshot, bytes_most: int, transaction: Transaction) -> None:
        self._old = old
        self._transaction = transaction
        self._bytes_most = bytes_most
        self._held = 0
        self._positions: dict[int, SequenceState] = {}
        """Where the sequences are that do not stay as they are, by their ids."""

    def note_positions(self) -> None:
        transaction, was = self._transaction, self._old.catalog
        for name, definition in transaction.snapshot.catalog.others.items():
            if isinstance(definition, Sequence) and definition != was.find(name):
                self._positions[definition.id] = state_of(transaction, definition)

    def restore(
        self, name: str, now: Definition | None, was: Definition | None
    ) -> Generator[None, None, None]:
        transaction = self._transaction
        if isinstance(now, Table):
            for tree in _trees(now):
                transaction.ranges.append(ScannedRange(tree, None, None, None))
            if isinstance(was, Table) and (now == was or without_ids(now) == without_ids(was)):
                for tree, before in zip(_trees(now), _trees(was), strict=True):
                    yield from self._change_entries(tree, before)
                return
        if now == was:
            return
        self._remove(name, now, was)
        if isinstance(was, Table):
            yield from self._recreate(name, now, was)
        elif isinstance(was, Sequence):
            self._count_on(name, now, was)
        elif was is not None:
            transaction.define(name, was)
        yield

    def _change_entries(self, tree: int, before: int) -> Generator[None, None, None]:
        there, wanted = self._transaction.snapshot.trees.tree(tree), self._old.trees.tree(before)
        for piece in tree_changes(there, wanted, None, None):
            for key, now, was in piece:
                if not same_row(now, was):
                    self._put(tree, key, was)
            yield

    def _remove(self, name: str, now: Definition | None, was: Definition | None) -> None:
        transaction = self._transaction
        if isinstance(now, Table):
            transaction.define(name, None)
            transaction.drop_trees(*_trees(now))
        elif isinstance(now, Sequence) and not isinstance(was, Sequence):
            transaction.define(name, None)
            leave_position(transaction, now)
        elif now is not None and was is None:
            transaction.define(name, None)

    def _recreate(
        self, name: str, now: Definition | None, was: Table
    ) -> Generator[None, None, None]:
        transaction = self._transaction
        indexes = tuple(replace(each, id=transaction.next_tree()) for each in was.indexes)
        table = replace(was, id=transaction.next_tree(), indexes=indexes)
        transaction.define(name, table)
        if isinstance(now, Table):
            transaction.note_rewritten(now.id, table.id)
        for tree, into in zip(_trees(was), _trees(table), strict=True):
            for keys, rows in self._old.pages(tree):
                for key, row in zip(keys, rows, strict=True):
                    self._put(into, key, row)
                yield

    def _count_on(self, name: str, now: Definition | None, was: Sequence) -> None:
        transaction = self._transaction
        states = [state_of(self._old, was)]
        left = position_left(transaction, was)
        if left is not None:
            states.append(left)
        for each in {was.id, now.id if isinstance(now, Sequence) else was.id}:
            if each in self._positions:
                states.append(self._positions[each])
        position = furthest(was, states)
        is_alike = isinstance(now, Sequence) and now == replace(was, state=now.state)
        if is_alike and position == self._positions[was.id]:
            return
        again = replace(was, state=transaction.next_tree())
        if isinstance(now, Sequence):
            leave_position(transaction, now)
        transaction.define(name, again)
        put_state(transaction, again, position)

    def _put(self, tree: int, key: Key, row: Value | None) -> None:
        self._held += ENTRY_BYTES + sum(map(size_of, key)) + sum(map(size_of, row or ()))
        if self._held > self._bytes_most:
            raise OutOfMemory(
                "too much has changed since that version to be restored at once",
                hint="Make a branch of that version instead: that takes no memory.",
            )
        self._transaction.put_entry(tree, key, row)


def _trees(table: Table) -> list[int]:
    return [table.id, *(index.id for index in table.indexes)]

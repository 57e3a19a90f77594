"""Temporary relations: laid over a snapshot for one session, and taken out before its commit.

    snapshot of the database ──► laid_over: the session's own on top ──► a transaction, as any other
                                                                            │
         the engine commits what is left  ◄── part_from ────────────────────┤
         the session keeps the rest       ◄── definitions and trees ────────┘

Their names and the numbers of their trees tell them from all others (`values.temporary`). Two
sessions never see each other's, because neither has more in its snapshot than its own. Nothing of
them reaches a shard, the log, a checkpoint or the feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Final

import msgspec

from qserver.storage.btree import get
from qserver.storage.page import Tree
from qserver.storage.ranges import NOTHING, Range, RangedTree
from qserver.storage.snapshot import Snapshot
from qserver.storage.stepped import size_of_entry
from qserver.storage.transaction import Mark, Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, TreeWrites, changed
from qserver.values.relations import Definition
from qserver.values.steps import Steps
from qserver.values.temporary import TEMPORARY_FIRST, TemporaryNumbers, is_temporary


class TemporaryPart(msgspec.Struct, frozen=True):
    """The temporary relations of a session, at one moment."""

    definitions: Mapping[str, Definition] = {}
    trees: Mapping[int, RangedTree] = {}
    sizes: Mapping[int, int] = {}
    """The memory that each tree takes, about."""

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())


NO_TEMPORARY: Final = TemporaryPart()


def laid_over(snapshot: Snapshot, part: TemporaryPart, numbers: TemporaryNumbers) -> Snapshot:
    """Return the snapshot with temporary relations in it."""
    catalog = msgspec.structs.replace(snapshot.catalog, temporary=numbers)
    catalog = catalog.changed(part.definitions, catalog.trees_used)
    trees = snapshot.trees.changed(part.trees) if part.trees else snapshot.trees
    return msgspec.structs.replace(snapshot, catalog=catalog, trees=trees)


def part_from(
    transaction: Transaction, base: Snapshot, before: TemporaryPart
) -> Steps[TemporaryPart]:
    """Take temporary relations out of a transaction; return them as they are after it.

    What is left has read and written `base`, and knows nothing else.
    """
    changes, writes = transaction.catalog_changes, transaction.writes
    definitions: dict[str, Definition] = dict(before.definitions)
    for name in filter(is_temporary, changes.definitions):
        definition = changes.definitions[name]
        if definition is None:
            definitions.pop(name, None)
        else:
            definitions[name] = definition
    trees, sizes = dict(before.trees), dict(before.sizes)
    for tree in [tree for tree in writes if tree >= TEMPORARY_FIRST]:
        former, of_tree = trees.get(tree, NOTHING).roots[0], writes.pop(tree)
        sizes[tree] = sizes.get(tree, 0) + (yield from _growth(former, of_tree))
        root = yield from changed(former, of_tree)
        trees[tree] = RangedTree.of({Range(tree, None, None, 0): root})
    for tree in changes.dropped:
        trees.pop(tree, None)
        sizes.pop(tree, None)
    _leave_the_rest(transaction, base)
    return TemporaryPart(definitions, trees, sizes)


def _growth(tree: Tree, changes: TreeWrites) -> Steps[int]:
    """Return by how much memory a tree grows with these changes."""
    size = 0
    for count, (key, new) in enumerate(changes.items(), 1):
        old = get(tree, key)
        size += 0 if new is None else size_of_entry(new)
        size -= 0 if old is None else size_of_entry(old)
        if not count % CHANGES_AT_ONCE:
            yield
    return size


def _leave_the_rest(transaction: Transaction, base: Snapshot) -> None:
    """Leave what the transaction did to the database itself."""
    changes = transaction.catalog_changes
    lasting = {name: each for name, each in changes.definitions.items() if not is_temporary(name)}
    transaction.catalog_changes = msgspec.structs.replace(
        changes,
        definitions=lasting,
        dropped=tuple(tree for tree in changes.dropped if tree < TEMPORARY_FIRST),
        rewritten={new: old for new, old in changes.rewritten.items() if new < TEMPORARY_FIRST},
    )
    used = transaction.catalog.trees_used
    if lasting or used != base.catalog.trees_used:
        transaction.catalog = base.catalog.changed(lasting, used)
    else:
        transaction.catalog = base.catalog
    transaction.snapshot = base
    _leave_the_footprint(transaction)


def _leave_the_footprint(transaction: Transaction) -> None:
    ranges = [each.tree < TEMPORARY_FIRST for each in transaction.ranges]
    names = [not is_temporary(name) for name in transaction.names_seen]
    if transaction.marks:
        ranges_left, names_left = _counts(ranges), _counts(names)
        transaction.marks[:] = [
            Mark(ranges_left[mark.ranges], names_left[mark.names], mark.keys)
            for mark in transaction.marks
        ]
    for tree in [tree for tree in transaction.keys if tree >= TEMPORARY_FIRST]:
        del transaction.keys[tree]
    transaction.ranges[:] = [each for each in transaction.ranges if each.tree < TEMPORARY_FIRST]
    for name in [name for name in transaction.names_seen if is_temporary(name)]:
        del transaction.names_seen[name]


def _counts(kept: list[bool]) -> list[int]:
    """Return how many of the first so many are kept, for each number."""
    return [0, *accumulate(kept)]

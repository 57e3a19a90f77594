"""A partition: what one shard holds of every table and index, as an immutable value.

A tree is named by a number that the catalog hands out once: a table's rows are one tree, each
index is another. A tree that was never written is empty, so creating a table needs no word to
the shards. Rows are found by primary key; an index entry's key begins with the indexed columns
and its value is the primary key of the row.

The map from number to tree is pyrsistent's: it is small, keyed, and written once a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec
from pyrsistent import PMap, pmap

from qserver.storage.btree import EMPTY, Key, Tree, Value, apply

TreeWrites: TypeAlias = dict[Key, Value | None]
"""Changes of one tree by key; None deletes."""

Writes: TypeAlias = dict[int, TreeWrites]
"""Changes of one partition, by the number of the tree."""

SEQUENCES_TREE: Final = 0
"""A tree of the engine's own: how far each sequence's numbers are reserved."""


class Partition(msgspec.Struct, frozen=True, eq=False):
    """Trees by number. Two partitions are told apart by identity, as pages are."""

    trees: PMap[int, Tree] = pmap()

    def tree(self, number: int) -> Tree:
        return self.trees.get(number, EMPTY)

    def changed(self, writes: Mapping[int, TreeWrites], dropped: Iterable[int] = ()) -> Partition:
        """The next partition: each touched page is copied once for the whole batch."""
        trees = self.trees
        for number, changes in writes.items():
            keys = sorted(changes)
            trees = trees.set(
                number,
                apply(trees.get(number, EMPTY), keys, [changes[key] for key in keys]),
            )
        for number in dropped:  # last: a tree that was dropped is never written again
            trees = trees.discard(number)
        return Partition(trees)

    def __repr__(self) -> str:
        rows = sum(map(len, self.trees.values()))
        return f"a partition with {rows} entries in {len(self.trees)} trees"


def merge_writes(into: Writes, writes: Mapping[int, TreeWrites]) -> None:
    """Add later changes to earlier ones; the later win."""
    for number, changes in writes.items():
        earlier = into.get(number)
        if earlier is None:
            into[number] = changes.copy()
        else:
            earlier.update(changes)

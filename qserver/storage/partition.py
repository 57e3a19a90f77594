"""A partition: what one shard holds of every table and index, as an immutable value.

A tree is named by a number that the catalog hands out once: a table's rows are one tree, each
index is another. A tree that was never written is empty, so creating a table needs no word to
the shards. Rows are found by primary key; an index entry's key begins with the indexed columns
and its value is the primary key of the row.

Trees are filed in blocks of neighbouring numbers, both plain dicts that nobody changes:

    blocks {0: {1: •, 7: •}, 2: {33: •}}      tree 7 is in block 7 >> BLOCK_BITS

Every read passes here, and two look-ups in dicts are what Python does fastest. A round copies
the few blocks that it touches and the map of blocks, so old views stay cheap to keep even when
there are thousands of trees, which copies of one dict with all of them would not be.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from qserver.storage.btree import EMPTY, Key, Tree, Value, apply

TreeWrites: TypeAlias = dict[Key, Value | None]
"""Changes of one tree by key; None deletes."""

Writes: TypeAlias = dict[int, TreeWrites]
"""Changes of one partition, by the number of the tree."""

SEQUENCES_TREE: Final = 0
"""A tree of the engine's own: how far each sequence's numbers are reserved."""


BLOCK_BITS: Final = 4

CHANGES_AT_ONCE: Final = 2048
"""Changes that are made, or encoded, before others may run."""

Block: TypeAlias = dict[int, Tree]

_NO_TREES: Final[Block] = {}


class Partition(msgspec.Struct, frozen=True, eq=False):
    """Trees by number. Two partitions are told apart by identity, as pages are."""

    blocks: dict[int, Block] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(trees: Mapping[int, Tree]) -> Partition:
        """The partition that holds these trees."""
        blocks: dict[int, Block] = {}
        for number, tree in trees.items():
            blocks.setdefault(number >> BLOCK_BITS, {})[number] = tree
        return Partition(blocks)

    def tree(self, number: int) -> Tree:
        return self.blocks.get(number >> BLOCK_BITS, _NO_TREES).get(number, EMPTY)

    @property
    def trees(self) -> dict[int, Tree]:
        """All of them, by number."""
        return {number: tree for block in self.blocks.values() for number, tree in block.items()}

    def changed(self, writes: Mapping[int, TreeWrites], dropped: Iterable[int] = ()) -> Partition:
        """The next partition: each touched page is copied once for the whole batch."""
        blocks = self.blocks.copy()
        for number, changes in writes.items():
            at = number >> BLOCK_BITS
            block = blocks.get(at, _NO_TREES)
            keys = sorted(changes)
            tree = apply(block.get(number, EMPTY), keys, [changes[key] for key in keys])
            blocks[at] = {**block, number: tree}
        return _without(blocks, dropped)

    def changed_in_pieces(
        self, writes: Mapping[int, TreeWrites], dropped: Iterable[int] = ()
    ) -> Generator[None, None, Partition]:
        """The same, for many changes: yields now and then, so that others can run."""
        blocks = self.blocks.copy()
        for number, changes in writes.items():
            at = number >> BLOCK_BITS
            tree = blocks.get(at, _NO_TREES).get(number, EMPTY)
            keys = yield from _sorted_in_pieces(changes)
            while piece := list(islice(keys, CHANGES_AT_ONCE)):
                tree = apply(tree, piece, [changes[key] for key in piece])
                yield
            blocks[at] = {**blocks.get(at, _NO_TREES), number: tree}
        return _without(blocks, dropped)

    def __repr__(self) -> str:
        trees = self.trees
        rows = sum(map(len, trees.values()))
        return f"a partition with {rows} entries in {len(trees)} trees"


def _without(blocks: dict[int, Block], dropped: Iterable[int]) -> Partition:
    """The partition of blocks, less the trees that are dropped."""
    for number in dropped:  # last: a tree that was dropped is never written again
        at = number >> BLOCK_BITS
        rest = {each: tree for each, tree in blocks.get(at, {}).items() if each != number}
        if rest:
            blocks[at] = rest
        else:
            blocks.pop(at, None)
    return Partition(blocks)


def _sorted_in_pieces(changes: TreeWrites) -> Generator[None, None, Iterator[Key]]:
    """The keys in order: runs are sorted one by one, and merged as they are asked for."""
    keys = iter(changes)
    runs: list[list[Key]] = []
    while run := list(islice(keys, CHANGES_AT_ONCE)):
        run.sort()
        if runs and runs[-1][-1] < run[0]:
            runs[-1] += run
        else:
            runs.append(run)
        yield
    return iter(runs[0]) if len(runs) == 1 else merge(*runs)


def count_changes(writes: Mapping[int, TreeWrites]) -> int:
    return sum(map(len, writes.values()))


def merge_writes(into: Writes, writes: Mapping[int, TreeWrites]) -> None:
    """Add later changes to earlier ones; the later win."""
    for number, changes in writes.items():
        earlier = into.get(number)
        if earlier is None:
            into[number] = changes.copy()
        else:
            earlier.update(changes)


def merge_writes_in_pieces(
    into: Writes, writes: Mapping[int, TreeWrites]
) -> Generator[None, None, None]:
    """The same, for many changes: yields now and then, so that others can run."""
    for number, changes in writes.items():
        earlier = into.setdefault(number, {})
        entries = iter(changes.items())
        while piece := list(islice(entries, CHANGES_AT_ONCE)):
            earlier.update(piece)
            yield

"""Writes: changes of trees, by the number of the tree and then by key.

A tree is named by a number that the catalog hands out once: a table's rows are one tree, each
index is another. Rows are found by primary key; an index entry's key begins with the indexed
columns and its value is the primary key of the row. A tree that was never written is empty, so
creating a table needs no word to the shards.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias

from qserver.storage.btree import Key, Tree, Value, apply

TreeWrites: TypeAlias = dict[Key, Value | None]
"""Changes of one tree by key; None deletes."""

Writes: TypeAlias = dict[int, TreeWrites]
"""Changes by the number of the tree."""

SEQUENCES_TREE: Final = 0
"""A tree of the engine's own: how far each sequence's numbers are reserved."""

CHANGES_AT_ONCE: Final = 2048
"""Changes that are made, or encoded, before others may run."""


def changed(tree: Tree, changes: TreeWrites) -> Tree:
    """The tree with these changes made; each touched page is copied once for the whole batch."""
    keys = sorted(changes)
    return apply(tree, keys, [changes[key] for key in keys])


def changed_in_pieces(tree: Tree, changes: TreeWrites) -> Generator[None, None, Tree]:
    """The same for many changes: yields now and then, so that others can run."""
    keys = yield from _sorted_in_pieces(changes)
    while piece := list(islice(keys, CHANGES_AT_ONCE)):
        tree = apply(tree, piece, [changes[key] for key in piece])
        yield
    return tree


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


def count_changes(writes: Mapping[Any, TreeWrites]) -> int:
    return sum(map(len, writes.values()))


def merge_writes(into: dict[Any, TreeWrites], writes: Mapping[Any, TreeWrites]) -> None:
    """Add later changes to earlier ones; the later win."""
    for number, changes in writes.items():
        earlier = into.get(number)
        if earlier is None:
            into[number] = changes.copy()
        else:
            earlier.update(changes)


def merge_writes_in_pieces(
    into: dict[Any, TreeWrites], writes: Mapping[Any, TreeWrites]
) -> Generator[None, None, None]:
    """The same, for many changes: yields now and then, so that others can run."""
    for number, changes in writes.items():
        earlier = into.setdefault(number, {})
        entries = iter(changes.items())
        while piece := list(islice(entries, CHANGES_AT_ONCE)):
            earlier.update(piece)
            yield

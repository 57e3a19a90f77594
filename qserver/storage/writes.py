"""Writes: changes of trees, by the number of the tree and then by key.

The catalog assigns each tree a number, once: a table's rows are one tree, each index is another.
The key of a row is its primary key; an index entry's key begins with the indexed columns and its
value is the primary key of the row. A tree that was never written is empty, so creating a table
needs no message to the shards.

What is done with many changes is a generator, which yields now and then so that others can run. Few
changes, up to `CHANGES_AT_ONCE`, are one piece: it does not yield.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias

from qserver.storage.btree import apply
from qserver.storage.page import Key, Tree, Value
from qserver.values.steps import Steps

TreeWrites: TypeAlias = dict[Key, Value | None]
"""Changes of one tree by key; None deletes."""

Writes: TypeAlias = dict[int, TreeWrites]

Moment: TypeAlias = tuple[int, float]
"""A version and its time. The time tells apart what a version was before a backup was restored."""

NEVER: Final[Moment] = (0, 0.0)

SEQUENCES_TREE: Final = 0
"""A tree of the engine's own: how far each sequence's values are reserved."""

ANSWERS_TREE: Final = -(2**20)
"""Another one: answers that are stored by the commit that they are about. System tables, which have
no trees, have numbers just below 0."""

ENGINE_TREES: Final = frozenset({SEQUENCES_TREE, ANSWERS_TREE})
"""Trees that belong to no table. Users' trees have numbers above 0."""

CHANGES_AT_ONCE: Final = 256
"""Changes that are made, or encoded, before others may run."""


def changed(tree: Tree, changes: TreeWrites) -> Steps[Tree]:
    """Return the tree with these changes made; a piece of them copies each touched page once."""
    if len(changes) <= CHANGES_AT_ONCE:
        in_order = sorted(changes)
        return apply(tree, in_order, [changes[key] for key in in_order])
    keys = yield from sorted_keys(changes)
    given, values = iter(changes), iter(changes.values())
    while True:
        piece, beside = list(islice(keys, CHANGES_AT_ONCE)), list(islice(values, CHANGES_AT_ONCE))
        if piece != list(islice(given, CHANGES_AT_ONCE)):  # they did not come in order
            beside = [changes[key] for key in piece]
        tree = apply(tree, piece, beside)
        if len(piece) < CHANGES_AT_ONCE:
            return tree
        yield


def sorted_keys(changes: TreeWrites) -> Steps[Iterator[Key]]:
    """Return the keys in order: sorts runs one by one, and merges them on demand."""
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


def merge_writes(into: dict[Any, TreeWrites], writes: Mapping[Any, TreeWrites]) -> Steps[None]:
    """Add later changes to earlier ones; the later win."""
    for number, changes in writes.items():
        earlier = into.get(number)
        if earlier is None:
            into[number] = changes.copy()  # a million entries take some hundredths of a second
        elif len(changes) <= CHANGES_AT_ONCE:
            earlier.update(changes)
        else:
            entries = iter(changes.items())
            while piece := list(islice(entries, CHANGES_AT_ONCE)):
                earlier.update(piece)
                yield
        if len(changes) > CHANGES_AT_ONCE:
            yield

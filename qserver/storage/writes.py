"""Writes: changes of trees, by the number of the tree and then by key.

The catalog assigns each tree a number, once: a table's rows are one tree, each index is another.
The key of a row is its primary key; an index entry's key begins with the indexed columns and its
value is the primary key of the row. A tree that was never written is empty, so creating a table
needs no message to the shards.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias

from qserver.storage.btree import apply
from qserver.storage.page import Key, Tree, Value

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


def changed(tree: Tree, changes: TreeWrites) -> Tree:
    """Return the tree with these changes made; the batch copies each touched page once."""
    given = list(changes)
    keys = sorted(given)
    if keys == given:  # most often rows come in order: no look-ups
        return apply(tree, keys, list(changes.values()))
    return apply(tree, keys, [changes[key] for key in keys])


def changed_in_pieces(tree: Tree, changes: TreeWrites) -> Generator[None, None, Tree]:
    """Do the same for many changes; yield now and then, so that others can run."""
    keys = yield from sorted_in_pieces(changes)
    given, values = iter(changes), iter(changes.values())
    while piece := list(islice(keys, CHANGES_AT_ONCE)):
        beside = list(islice(values, CHANGES_AT_ONCE))
        if piece != list(islice(given, CHANGES_AT_ONCE)):  # they did not come in order
            beside = [changes[key] for key in piece]
        tree = apply(tree, piece, beside)
        yield
    return tree


def sorted_in_pieces(changes: TreeWrites) -> Generator[None, None, Iterator[Key]]:
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
    """Do the same for many changes; yield now and then, so that others can run."""
    for number, changes in writes.items():
        if number not in into:
            into[number] = changes.copy()  # a million entries take some hundredths of a second
            yield
            continue
        earlier = into[number]
        entries = iter(changes.items())
        while piece := list(islice(entries, CHANGES_AT_ONCE)):
            earlier.update(piece)
            yield

"""Writes: changes of trees, by the number of the tree and then by key.

The catalog assigns each tree a number, once: a table's rows are one tree, each index is another.
The key of a row is its primary key; an index entry's key begins with the indexed columns and its
value is the primary key of the row. A tree that was never written is empty, so creating a table
needs no message to the shards.

What is done with many changes is a generator, which yields now and then so that others can run. Few
changes, up to `CHANGES_AT_ONCE`, are one piece: it does not yield.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import chain, islice
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

KEYS_AT_ONCE: Final = 512
"""Keys that are sorted before others may run."""

RUNS_AT_ONCE: Final = 16
"""Sorted runs that are merged into one."""


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
    """Return the keys in order: sorts runs one by one, and merges the last of them on demand.

    Python's sort finds the runs in what it sorts, and merges them faster than a heap does. It
    cannot be interrupted, so it gets a piece at a time.
    """
    keys = iter(changes)
    runs: list[list[Key]] = []
    while run := list(islice(keys, KEYS_AT_ONCE)):
        run.sort()
        if runs and runs[-1][-1] < run[0]:
            runs[-1] += run
        else:
            runs.append(run)
        yield
    while len(runs) > RUNS_AT_ONCE:
        longer = []
        for first in range(0, len(runs), RUNS_AT_ONCE):
            whole: list[Key] = []
            for piece in _merged(runs[first : first + RUNS_AT_ONCE]):
                whole += piece
                yield
            longer.append(whole)
        runs = longer
    return chain.from_iterable(_merged(runs))


def _merged(runs: list[list[Key]]) -> Iterator[list[Key]]:
    """Yield the keys of sorted runs in order, at most KEYS_AT_ONCE at a time.

    Each run offers as many, and those that no other run has a smaller one behind are taken.
    """
    rest = [(run, 0) for run in runs]
    while len(rest) > 1:
        share = KEYS_AT_ONCE // len(rest)
        last = min([run[min(start + share, len(run)) - 1] for run, start in rest])
        ends = [bisect_right(run, last, start, min(start + share, len(run))) for run, start in rest]
        piece: list[Key] = []
        for (run, start), end in zip(rest, ends, strict=True):
            piece += run[start:end]
        piece.sort()
        yield piece
        rest = [(run, end) for (run, _), end in zip(rest, ends, strict=True) if end < len(run)]
    for run, start in rest:
        for at in range(start, len(run), KEYS_AT_ONCE):
            yield run[at : at + KEYS_AT_ONCE]


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

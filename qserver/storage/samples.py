"""Samples of trees: a few entries at even places, by which a planner judges the rest.

A place is the number of entries before it, and branches know how many entries each child holds. So
a sample follows from the entries alone: not from how they were inserted, where pages were cut, or
which of them are in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import sqrt
from typing import Final, TypeAlias

from qserver.storage.btree import count_between
from qserver.storage.page import Key, Leaf, Tree, Value, load_ahead, open_branch, read_leaf
from qserver.storage.ranges import RangedTree
from qserver.values.distinct import Distinct
from qserver.values.keys import NULL_KEY, TOP, Bound, Descending

PLACES: Final = 32
"""Places of a sample: as many leaves are read."""

ENTRIES_OF_PLACE: Final = 8

WHOLE: Final = PLACES * ENTRIES_OF_PLACE
"""A tree of at most so many entries is its own sample."""


Entries: TypeAlias = tuple[list[Key], list[Value]]


def sample(tree: RangedTree) -> list[Entries]:
    """Return runs of neighbouring entries from even places."""
    length = len(tree)
    if length <= WHOLE:
        places = [(0, length)]
    else:
        firsts = [(2 * at + 1) * length // (2 * PLACES) for at in range(PLACES)]
        places = [(at, min(at + ENTRIES_OF_PLACE, length)) for at in firsts]
    found: list[tuple[int, Leaf, int, int]] = []
    _find(tree.roots, list(enumerate(places)), found)
    load_ahead([leaf for _, leaf, _, _ in found])
    runs: list[Entries] = [([], []) for _ in places]
    for number, leaf, first, last in found:
        keys, values = read_leaf(leaf)
        runs[number][0].extend(keys[first:last])
        runs[number][1].extend(values[first:last])
    return runs


Place: TypeAlias = tuple[int, tuple[int, int]]


def _find(
    pages: Sequence[Tree], places: list[Place], found: list[tuple[int, Leaf, int, int]]
) -> None:
    """Add the part of each leaf that belongs to a place: its number, the leaf, first and last."""
    ends = list(accumulate([page.length for page in pages]))
    below: dict[int, list[Place]] = {}
    for number, (first, last) in places:
        at = bisect_right(ends, first)
        while at < len(pages) and (start := ends[at] - pages[at].length) < last:
            below.setdefault(at, []).append((number, (max(first - start, 0), last - start)))
            at += 1
    for at, parts in below.items():
        page = pages[at]
        if isinstance(page, Leaf):
            found += [
                (number, page, first, min(last, page.length)) for number, (first, last) in parts
            ]
        else:
            _find(open_branch(page)[1], parts, found)


def count(tree: RangedTree, low: Bound, high: Bound) -> int:
    """Return the number of entries with low <= key < high."""
    return sum([count_between(root, low, high) for root in tree.roots_between(low, high)])


def distinct_prefixes(tree: RangedTree, runs: list[Entries], width: int) -> Distinct:
    """Estimate how many prefixes of a width the keys of a tree have.

    An entry whose prefix has n entries stands for 1/n of a prefix. So the mean of that over entries
    at even places, times all entries, is the number of prefixes, however uneven they are.
    """
    length = len(tree)
    if length <= WHOLE:
        prefixes = [key[:width] for keys, _ in runs for key in keys]
        whole = [each for each in prefixes if not _has_null(each)]
        return Distinct(len(set(whole)), 1 - len(whole) / max(1, length))
    parts, nulls = 0.0, 0
    for keys, _ in runs:
        at = len(keys) // 2
        prefix = keys[at][:width]
        if _has_null(prefix):
            nulls += 1
        elif keys[0][:width] != prefix and keys[-1][:width] != prefix:
            parts += 1 / sum([key[:width] == prefix for key in keys])
        else:
            parts += 1 / count(tree, prefix, (*prefix, TOP))
    return Distinct(parts * length / len(runs), nulls / len(runs))


def _has_null(prefix: Key) -> bool:
    return any(
        each is NULL_KEY or (type(each) is Descending and each.value is NULL_KEY) for each in prefix
    )


def distinct_values(runs: list[list[Key]], length: int) -> Distinct:
    """Estimate how many values the rows of a table have, from those at its places.

    Values that are seen at one place, and at two, tell how many are not seen (Chao's estimator).
    Where none is seen at two places that is only the least: there may be as many as the changes
    between neighbours say, if the values follow the order of the rows, like dates. Then it is their
    geometric mean.
    """
    rows = sum(map(len, runs))
    whole = [[each for each in run if not _has_null(each)] for run in runs]
    left = sum(map(len, whole))
    nulls = 1 - left / max(1, rows)
    places = Counter([each for run in whole for each in set(run)])
    if not left or rows >= length:
        return Distinct(len(places), nulls)
    most = length * left / rows
    times = Counter(places.values())
    least = len(places) + times[1] * (times[1] - 1) / (2 * (times[2] + 1))
    if times[1] and not times[2]:
        most = min(most, most * sum(places.values()) / left)
        return Distinct(sqrt(min(least, most) * most), nulls)
    return Distinct(min(least, most), nulls)

"""A view: the whole database at one version.

Whoever holds a view can read it for ever, without a lock, a message or a copy: the catalog and
one partition per shard are all immutable. Every question about data is asked of a view.

A request that only reads asks it directly, by the same port as it would a `Transaction`, but no
footprint is kept: the view is durable, so nothing that was read can turn out to be untrue, and
nobody will ask later what it was. A query that follows a million index entries remembers none.

Keys are spread over partitions by hash, so an ordered scan merges one stream per partition:

    partition 0   3  9 12 | 31 ...      a page of each is at hand; up to the smallest of their
    partition 1   1  4  5 | 20 ...      last keys (5) everything is known, so that much of each
    partition 2   2  8 30 | 44 ...      is put together and sorted; `sort` finds the runs and
                                        merges them at C speed.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias

import msgspec

from qserver.storage.btree import (
    Key,
    Tree,
    Value,
    first_of_each,
    get,
    last_of_each,
    leaf_after,
    leaf_before,
    pages,
    pages_backward,
    value_runs,
)
from qserver.storage.catalog import Catalog
from qserver.storage.partition import Partition
from qserver.values.keys import partition_of
from qserver.values.relations import Definition

Page: TypeAlias = tuple[list[Key], list[Value]]
Predicate: TypeAlias = Callable[[Value], Any]


PICKED_MAX = 64
"""So many entries are picked one by one; more of them are quicker to get by whole pages."""


class View(msgspec.Struct, frozen=True, eq=False):
    """Catalog and partitions at a version; `time` is when it was published."""

    version: int
    time: float
    catalog: Catalog
    partitions: tuple[Partition, ...]
    _roots: dict[int, list[Tree]] = msgspec.field(default_factory=dict)

    def roots(self, tree: int) -> list[Tree]:
        """The parts of a tree, one of each partition. Remembered, for a view does not change."""
        roots = self._roots.get(tree)
        if roots is None:
            roots = self._roots[tree] = [partition.tree(tree) for partition in self.partitions]
        return roots

    def find_definition(self, name: str) -> Definition | None:
        """What is defined under a name."""
        return self.catalog.find(name)

    def get_entry(self, tree: int, key: Key, hashed: int | None = None) -> Value | None:
        """The value at a key; `hashed` says how many leading elements decide the partition."""
        at = partition_of(key if hashed is None else key[:hashed], len(self.partitions))
        return get(self.partitions[at].tree(tree), key)

    def scan(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        """`pages_in_order`, for compiled code; what the predicate tells is of use to footprints."""
        return self.pages_in_order(tree, low, high, backward, limit)

    def scan_in_any_order(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Predicate | None = None,
    ) -> Iterator[list[Value]]:
        """`value_runs`, likewise."""
        return self.value_runs(tree, low, high)

    def count(self, tree: int) -> int:
        return sum(map(len, self.roots(tree)))

    def pages(self, tree: int, low: Key | None = None, high: Key | None = None) -> Iterator[Page]:
        """Entries with low <= key < high, a page at a time, in no particular order."""
        for root in self.roots(tree):
            yield from pages(root, low, high)

    def value_runs(
        self, tree: int, low: Key | None = None, high: Key | None = None
    ) -> Iterator[list[Value]]:
        """The values of the same entries, in no particular order, many at a time."""
        for root in self.roots(tree):
            yield from value_runs(root, low, high)

    def pages_in_order(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        """The same entries in the order of their keys, or backward.

        `limit` is a hint that so many will do: if they are few, they are the first page, and
        nothing behind them was looked at. Whoever goes on gets all the same.
        """
        if limit is not None and 0 < limit <= PICKED_MAX:
            return self._few_first(tree, low, high, backward, limit)
        walk = pages_backward if backward else pages
        streams = [walk(root, low, high) for root in self.roots(tree)]
        return merged(streams, backward)

    def _few_first(
        self, tree: int, low: Key | None, high: Key | None, backward: bool, few: int
    ) -> Iterator[Page]:
        keys, values = self._picked(tree, low, high, backward, few)
        if keys:
            yield keys, values
        if len(keys) < few:
            return
        if backward:
            yield from self.pages_in_order(tree, low, keys[-1], backward)
        else:
            yield from _without_first(self.pages_in_order(tree, keys[-1], high))

    def first_rows(
        self, tree: int, low: Key | None, high: Key | None, backward: bool, most: int
    ) -> list[Value]:
        """The values of the first entries of a range, at most so many."""
        if most <= PICKED_MAX:
            if backward:
                return self._picked(tree, low, high, backward, most)[1]
            return self._first_picked(tree, low, high, most)
        found: list[Value] = []
        for _, page in self.pages_in_order(tree, low, high, backward):
            found += page
            if len(found) >= most:
                break
        return found[:most]

    def _picked(
        self, tree: int, low: Key | None, high: Key | None, backward: bool, most: int
    ) -> Page:
        """The first entries of a range, taken one by one: for a few of them that is quickest."""
        roots = self.roots(tree)
        heads = last_of_each(roots, high) if backward else first_of_each(roots, low)
        heads.sort()
        next_head, step = (-1, -1) if backward else (0, 1)
        bound = low if backward else high
        keys: list[Key] = []
        values: list[Value] = []
        for _ in range(most):
            if not heads:
                break
            key, at, leaf, root = heads.pop(next_head)
            if bound is not None and (key < bound if backward else key >= bound):
                break
            keys.append(key)
            values.append(leaf.values[at])
            at += step
            if not 0 <= at < leaf.length:
                following = leaf_before(root, key) if backward else leaf_after(root, key)
                if following is None:
                    continue
                leaf, at = following, following.length - 1 if backward else 0
            insort(heads, (leaf.keys[at], at, leaf, root))
        return keys, values

    def _first_picked(self, tree: int, low: Key | None, high: Key | None, most: int) -> list[Value]:
        """The values alone, forward: a heap does that with half the steps, and it is asked often.

        There is no heap from the other end, and none that gives keys as cheaply.
        """
        heads = first_of_each(self.roots(tree), low)
        heapify(heads)
        values: list[Value] = []
        for _ in range(most if heads else 0):
            key, at, leaf, root = heads[0]
            if high is not None and key >= high:
                break
            values.append(leaf.values[at])
            at += 1
            if at < leaf.length:
                heapreplace(heads, (leaf.keys[at], at, leaf, root))
                continue
            following = leaf_after(root, key)
            if following is not None:
                heapreplace(heads, (following.keys[0], 0, following, root))
                continue
            heappop(heads)
            if not heads:
                break
        return values

    def __repr__(self) -> str:
        return (
            f"the view of version {self.version}: {len(self.catalog.tables)} tables"
            f" in {len(self.partitions)} partitions"
        )


def empty_view(partitions: int) -> View:
    """Version 0 of every database."""
    return View(0, 0.0, Catalog(), tuple(Partition() for _ in range(partitions)))


def merged(streams: list[Iterator[Page]], backward: bool = False) -> Iterator[Page]:
    """One ordered stream of pages from several whose keys are distinct."""
    waiting: list[tuple[Page, Iterator[Page]]] = []
    for stream in streams:
        page = next(stream, None)
        if page is not None:
            waiting.append((page, stream))
    while len(waiting) > 1:
        last_keys = [page[0][-1] for page, _ in waiting]
        limit = max(last_keys) if backward else min(last_keys)
        entries: list[tuple[Key, Value]] = []
        still: list[tuple[Page, Iterator[Page]]] = []
        for (keys, values), stream in waiting:
            cut = _count_up_to(keys, limit, backward)
            entries.extend(zip(keys[:cut], values[:cut], strict=True))
            rest = (keys[cut:], values[cut:]) if cut < len(keys) else next(stream, None)
            if rest is not None:
                still.append((rest, stream))
        waiting = still
        entries.sort(key=_key_of_entry, reverse=backward)
        yield [key for key, _ in entries], [value for _, value in entries]
    for page, stream in waiting:
        yield page
        yield from stream


def _without_first(stream: Iterator[Page]) -> Iterator[Page]:
    """The stream without its first entry."""
    for keys, values in stream:
        if len(keys) > 1:
            yield keys[1:], values[1:]
        break
    yield from stream


def _count_up_to(keys: list[Key], limit: Key, backward: bool) -> int:
    """How many leading keys are not beyond `limit`."""
    if not backward:
        return bisect_right(keys, limit)
    low, high = 0, len(keys)
    while low < high:  # bisect cannot search a descending list
        middle = (low + high) // 2
        if keys[middle] >= limit:
            low = middle + 1
        else:
            high = middle
    return low


def _key_of_entry(entry: tuple[Key, Value]) -> Key:
    return entry[0]

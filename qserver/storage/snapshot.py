"""A snapshot: the whole database at one version.

The catalog and all trees are immutable, so a snapshot can be read for ever, without a lock, a
message or a copy. All reads of data go through a snapshot.

A request that only reads uses the snapshot directly, by the same interface as a `Transaction`, but
without a footprint: the snapshot is durable, so nothing that was read can turn out to be untrue,
and nothing is validated later. A query that follows a million index entries remembers none.

The ranges of a large tree (see `ranges`) lie in the order of their keys, so an ordered scan reads
one after the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from qserver.storage.btree import (
    count_between,
    entries_at,
    first_entries,
    get,
    last_entries,
    pages,
    pages_backward,
    value_runs,
)
from qserver.storage.catalog import Catalog
from qserver.storage.columns import ScanPart, chunks
from qserver.storage.page import Key, Value
from qserver.storage.ranges import Range, Trees
from qserver.storage.writes import Moment
from qserver.values.keys import TOP, Bound, Predicate
from qserver.values.relations import Definition
from qserver.values.schema import Table

Page: TypeAlias = tuple[list[Key], list[Value]]


PICKED_MAX = 64
"""Up to so many first entries of a range are handed out alone; more come by whole pages."""


class Lease:
    """Shared by consecutive snapshots; dies with the last of them.

    It covers pages of the versions `first` to `last`; None: later ones may join.
    """

    __slots__ = ("__weakref__", "first", "last")

    def __init__(self, first: int, last: int | None = None) -> None:
        self.first = first
        self.last = last

    def __repr__(self) -> str:
        return f"a lease of versions {self.first} to {self.last or 'the newest'}"


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """Catalog and trees at a version, cut into ranges for `shards` shards.

    `time` is when it was published. A reader of its trees must hold the snapshot, and with it the
    lease: meanwhile no page that it can reach is forgotten.
    """

    version: int
    time: float
    catalog: Catalog
    trees: Trees
    shards: int
    lease: Lease | None = None

    def find_definition(self, name: str) -> Definition | None:
        return self.catalog.find(name)

    def get_entry(self, tree: int, key: Key) -> Value | None:
        ranged = self.trees.tree(tree)
        return get(ranged.roots[bisect_right(ranged.lows, key)], key)

    def scan(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        """Call `pages_in_order`, for compiled code; only footprints need the predicate."""
        return self.pages_in_order(tree, low, high, backward, limit)

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Value]]:
        """Call `value_runs`, likewise."""
        return self.value_runs(tree, low, high)

    def count(self, tree: int, low: Bound = None, high: Bound = None) -> int:
        """Return the number of entries with low <= key < high."""
        roots = self.trees.tree(tree).roots_between(low, high)
        return sum([count_between(root, low, high) for root in roots])

    def entries_at(self, tree: int, keys: list[Key]) -> dict[Key, Value]:
        """Return the entries at those of the ascending keys that exist."""
        found: dict[Key, Value] = {}
        start = 0
        for root, _, high in self.trees.tree(tree).pieces(keys[0], (*keys[-1], TOP)):
            assert high is not None, "there is a last key"
            stop = bisect_left(keys, high, start)
            found |= entries_at(root, keys[start:stop])
            start = stop
        return found

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[ScanPart]:
        """Yield the same values in the same order, as chunks where there are enough."""
        for root in self.trees.tree(tree).roots_between(low, high):
            yield from chunks(root, low, high)

    def pages(
        self, tree: int, low: Bound = None, high: Bound = None, backward: bool = False
    ) -> Iterator[Page]:
        """Yield entries with low <= key < high, a page at a time, in order."""
        roots = self.trees.tree(tree).roots_between(low, high)
        if backward:
            for root in reversed(roots):
                yield from pages_backward(root, low, high)
        else:
            for root in roots:
                yield from pages(root, low, high)

    def value_runs(self, tree: int, low: Bound = None, high: Bound = None) -> Iterator[list[Value]]:
        """Yield the values of the same entries, many at a time."""
        for root in self.trees.tree(tree).roots_between(low, high):
            yield from value_runs(root, low, high)

    def pages_in_order(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        """Yield the same entries in the order of their keys, or backward.

        `limit` hints that so many will do: if they are few, they are the first page, and nothing
        behind them is read. A caller that goes on gets all entries.
        """
        if limit is not None and 0 < limit <= PICKED_MAX:
            return self._few_first(tree, low, high, backward, limit)
        return self.pages(tree, low, high, backward)

    def _few_first(
        self, tree: int, low: Bound, high: Bound, backward: bool, few: int
    ) -> Iterator[Page]:
        keys, values = self.first_entries(tree, low, high, backward, few)
        if keys:
            yield keys, values
        if len(keys) < few:
            return
        if backward:
            yield from self.pages(tree, low, keys[-1], backward)
        else:
            yield from _without_first(self.pages(tree, keys[-1], high))

    def first_rows(
        self, tree: int, low: Bound, high: Bound, backward: bool, most: int
    ) -> list[Value]:
        """Return the values of the first entries of a range, at most `most`."""
        return self.first_entries(tree, low, high, backward, most)[1]

    def first_entries(self, tree: int, low: Bound, high: Bound, backward: bool, most: int) -> Page:
        """Return the first entries of a range, or the last, at most `most`."""
        roots = self.trees.tree(tree).roots_between(low, high)
        take = last_entries if backward else first_entries
        if len(roots) == 1:
            return take(roots[0], low, high, most)
        keys: list[Key] = []
        values: list[Value] = []
        for root in reversed(roots) if backward else roots:
            more_keys, more_values = take(root, low, high, most - len(keys))
            keys += more_keys
            values += more_values
            if len(keys) >= most:
                break
        return keys, values

    def ranges(self, tree: int, catalog: Catalog | None = None) -> tuple[Range, ...]:
        """Return the ranges of a tree, or the first that it would have: on its table's shard.

        What this snapshot does not know is in `catalog`, that of a transaction. What it knows is as
        here for all transactions of a round, also for the one that drops it.
        """
        ranges = self.trees.tree(tree).ranges
        if ranges:
            return ranges
        table = self.catalog.table_of_tree(tree)
        if table == tree and catalog is not None:
            table = catalog.table_of_tree(tree)
        return (Range(tree, None, None, table % self.shards),)

    def last_change(self, table: Table) -> Moment:
        """Return when the rows or the definition of a table were last changed."""
        rows = self.trees.tree(table.id).last_change
        return max(rows, self.catalog.last_change_of(table.key))

    def __repr__(self) -> str:
        return (
            f"the snapshot of version {self.version}: {len(self.catalog.tables)} tables"
            f" on {self.shards} shards"
        )


def empty_snapshot(shards: int, lease: Lease | None = None) -> Snapshot:
    """Return version 0 of every database."""
    return Snapshot(0, 0.0, Catalog(), Trees(), shards, lease)


def _without_first(stream: Iterator[Page]) -> Iterator[Page]:
    for keys, values in stream:
        if len(keys) > 1:
            yield keys[1:], values[1:]
        break
    yield from stream

"""The footprint of a live query: what it read, in bounded memory, to test commits against.

    keys      points of a tree, present or absent
    ranges    `ScannedRange`, with the predicate that its rows had to satisfy

It is the footprint of a `Transaction` without the values: a live query is compared with later
versions, not with the one that it read. If the query reads too many keys or ranges of a tree, the
whole tree becomes its footprint: every change of the tree may then matter, which is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from qserver.limits import LIVE_KEYS_MAX, LIVE_RANGES_MAX
from qserver.storage.btree import EntryChange, cuts, difference
from qserver.storage.page import DropShared, Key, Value, without_shared
from qserver.storage.ranges import RangedTree
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.keys import Bound


class Footprint:
    """Keys and ranges by tree."""

    __slots__ = ("keys", "ranges", "whole")

    def __init__(self) -> None:
        self.keys: dict[int, set[Key]] = {}
        self.ranges: dict[int, list[ScannedRange]] = {}
        self.whole: set[int] = set()
        """Trees whose every change matters."""

    def add_key(self, tree: int, key: Key) -> None:
        if tree in self.whole:
            return
        keys = self.keys.get(tree)
        if keys is None:
            self.keys[tree] = {key}
        elif key not in keys:
            keys.add(key)
            if len(keys) > LIVE_KEYS_MAX:
                self.add_all(tree)

    def remove_key(self, tree: int, key: Key) -> None:
        self.keys.get(tree, set()).discard(key)

    def add_range(self, scanned: ScannedRange) -> None:
        if scanned.tree in self.whole:
            return
        ranges = self.ranges.setdefault(scanned.tree, [])
        ranges.append(scanned)
        if len(ranges) > LIVE_RANGES_MAX:
            self.add_all(scanned.tree)

    def add_all(self, tree: int) -> None:
        """Cover a whole tree."""
        self.whole.add(tree)
        self.keys.pop(tree, None)
        self.ranges[tree] = [ScannedRange(tree, None, None, None)]

    def trees(self) -> set[int]:
        return {*self.keys, *self.ranges}

    def copy(self) -> Footprint:
        """Return a footprint with its own keys; the ranges are shared."""
        copied = Footprint()
        copied.keys = {tree: set(keys) for tree, keys in self.keys.items()}
        copied.ranges = {tree: list(ranges) for tree, ranges in self.ranges.items()}
        copied.whole = set(self.whole)
        return copied

    def settled(self) -> Footprint:
        """Return a copy whose ranges no scan narrows any more."""
        settled = Footprint()
        settled.keys, settled.whole = self.keys, self.whole
        settled.ranges = {
            tree: [msgspec.structs.replace(each) for each in ranges]
            for tree, ranges in self.ranges.items()
        }
        return settled

    def __repr__(self) -> str:
        return (
            f"a footprint of {sum(map(len, self.keys.values()))} keys and"
            f" {sum(map(len, self.ranges.values()))} ranges"
        )


class _Ranges(list[ScannedRange]):
    """Adds the ranges that a transaction reads to a footprint, which bounds their number."""

    def __init__(self, footprint: Footprint) -> None:
        super().__init__()
        self._footprint = footprint

    def append(self, scanned: ScannedRange) -> None:
        self._footprint.add_range(scanned)


class FootprintReader(Transaction):
    """Reads a snapshot as a transaction does, and records the footprint of a live query."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.footprint = Footprint()
        self.ranges = _Ranges(self.footprint)

    def get_entry(self, tree: int, key: Key) -> Value | None:
        self.footprint.add_key(tree, key)
        return self.snapshot.get_entry(tree, key)


def changes_between(
    before: Snapshot, now: Snapshot, tree: int, low: Bound, high: Bound
) -> Iterator[list[EntryChange]]:
    """Yield the entries of a range that two snapshots do not share; see `tree_changes`."""
    return tree_changes(before.trees.tree(tree), now.trees.tree(tree), low, high)


def tree_changes(
    old: RangedTree,
    new: RangedTree,
    low: Bound,
    high: Bound,
    drop_shared: DropShared = without_shared,
) -> Iterator[list[EntryChange]]:
    """Yield the entries of a range that two trees do not share, a few thousand keys at a time.

    Entries with equal values may be among them.
    """
    for root, first, last in new.pieces(low, high):
        for was, start, stop in old.pieces(first, last):
            if was.height == root.height and not any(drop_shared([was], [root])):
                continue
            ends: list[Bound] = [*sorted({*cuts(was, start, stop), *cuts(root, start, stop)})]
            for end in (*ends, stop):
                yield list(difference(was, root, start, end, drop_shared))
                start = end

"""Finds the footprints that a changed key touches, by look-ups instead of testing each footprint.

    tree ─► by key       {(7,): …}                  keys that were read
            by prefix    1: {(7,): …}               ranges of all keys with one prefix
            by interval  [low, high) in blocks      other ranges
            everything                              whole trees

An equality on the first columns of an index scans a range of keys with one prefix, so most ranges
are found by a look-up too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeAlias, TypeVar

from qserver.storage.footprint import Footprint
from qserver.storage.page import Key
from qserver.storage.transaction import ScannedRange
from qserver.values.keys import TOP

Owner = TypeVar("Owner", bound=Hashable)

BLOCK_INTERVALS_MAX: Final = 32
"""Intervals of one block: a look-up passes over the blocks that end before its key."""

_START: Final[Key] = ()
_END: Final[Key] = (TOP,)

Owned: TypeAlias = tuple[Owner, ScannedRange]


class _Block(Generic[Owner]):
    """Intervals in the order of their lower bounds, and the highest upper bound."""

    __slots__ = ("highs", "last", "lows", "owned")

    def __init__(self, lows: list[Key], highs: list[Key], owned: list[Owned[Owner]]) -> None:
        self.lows = lows
        self.highs = highs
        self.owned = owned
        self.last = max(highs)


class Intervals(Generic[Owner]):
    def __init__(self) -> None:
        self._blocks: list[_Block[Owner]] = []

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def add(self, owner: Owner, scanned: ScannedRange) -> None:
        low, high = _ends(scanned)
        blocks = self._blocks
        if not blocks:
            blocks.append(_Block([low], [high], [(owner, scanned)]))
            return
        at = max(0, bisect_right(blocks, low, key=_first) - 1)
        block = blocks[at]
        place = bisect_right(block.lows, low)
        block.lows.insert(place, low)
        block.highs.insert(place, high)
        block.owned.insert(place, (owner, scanned))
        block.last = max(block.last, high)
        if len(block.lows) > BLOCK_INTERVALS_MAX:
            half = BLOCK_INTERVALS_MAX // 2
            blocks[at : at + 1] = [
                _Block(block.lows[:half], block.highs[:half], block.owned[:half]),
                _Block(block.lows[half:], block.highs[half:], block.owned[half:]),
            ]

    def remove(self, owner: Owner, scanned: ScannedRange) -> None:
        for at, block in enumerate(self._blocks):
            for place, (each, range_) in enumerate(block.owned):
                if range_ is scanned and each == owner:
                    del block.lows[place], block.highs[place], block.owned[place]
                    if block.lows:
                        block.last = max(block.highs)
                    else:
                        del self._blocks[at]
                    return
        raise KeyError("the interval is not there")

    def owners(self) -> Iterator[Owner]:
        for block in self._blocks:
            yield from (owner for owner, _ in block.owned)

    def at(self, key: Key) -> Iterator[Owned[Owner]]:
        """Yield the intervals that contain a key."""
        for block in self._blocks:
            if key < block.lows[0]:
                break
            if key < block.last:
                for place in range(bisect_right(block.lows, key)):
                    if key < block.highs[place]:
                        yield block.owned[place]


def _first(block: _Block[Any]) -> Key:
    return block.lows[0]


def _ends(scanned: ScannedRange) -> tuple[Key, Key]:
    return (
        _START if scanned.low is None else scanned.low,
        _END if scanned.high is None else scanned.high,
    )


class TreeFootprints(Generic[Owner]):
    """The footprints on one tree."""

    __slots__ = ("everything", "intervals", "keys", "prefixes")

    def __init__(self) -> None:
        self.keys: dict[Key, set[Owner]] = {}
        self.prefixes: dict[int, dict[Key, list[Owned[Owner]]]] = {}
        self.intervals: Intervals[Owner] = Intervals()
        self.everything: list[Owned[Owner]] = []

    def __bool__(self) -> bool:
        return bool(self.keys or self.prefixes or self.intervals or self.everything)

    @property
    def has_ranges(self) -> bool:
        return bool(self.prefixes or self.intervals or self.everything)

    def ranges_at(self, key: Key) -> Iterator[Owned[Owner]]:
        """Yield the ranges that contain a key, with their owners."""
        yield from self.everything
        for length, ranges in self.prefixes.items():
            yield from ranges.get(key[:length], ())
        if self.intervals:
            yield from self.intervals.at(key)

    def owners(self) -> Iterator[Owner]:
        """Yield all owners, some of them more than once."""
        for owners in self.keys.values():
            yield from owners
        for ranges in self.prefixes.values():
            for owned in ranges.values():
                yield from (owner for owner, _ in owned)
        yield from self.intervals.owners()
        yield from (owner for owner, _ in self.everything)

    def add_range(self, owner: Owner, scanned: ScannedRange) -> None:
        low, high = scanned.low, scanned.high
        if low is None and high is None:
            self.everything.append((owner, scanned))
        elif _is_prefix(scanned):
            assert low is not None
            ranges = self.prefixes.setdefault(len(low), {})
            ranges.setdefault(low, []).append((owner, scanned))
        else:
            self.intervals.add(owner, scanned)

    def remove_range(self, owner: Owner, scanned: ScannedRange) -> None:
        low, high = scanned.low, scanned.high
        if low is None and high is None:
            _remove(self.everything, owner, scanned)
        elif _is_prefix(scanned):
            assert low is not None
            ranges = self.prefixes[len(low)]
            _remove(ranges[low], owner, scanned)
            if not ranges[low]:
                del ranges[low]
            if not ranges:
                del self.prefixes[len(low)]
        else:
            self.intervals.remove(owner, scanned)


def _is_prefix(scanned: ScannedRange) -> bool:
    return scanned.low is not None and scanned.high == (*scanned.low, TOP)


def _remove(owned: list[Owned[Owner]], owner: Owner, scanned: ScannedRange) -> None:
    for place, (each, range_) in enumerate(owned):
        if range_ is scanned and each == owner:
            del owned[place]
            return
    raise KeyError("the range is not there")


class FootprintIndex(Generic[Owner]):
    """Footprints by tree and key. A footprint must not change while it is in the index."""

    def __init__(self) -> None:
        self.trees: dict[int, TreeFootprints[Owner]] = {}

    def add(self, owner: Owner, footprint: Footprint) -> None:
        for tree, keys in footprint.keys.items():
            of_tree = self._of_tree(tree)
            for key in keys:
                owners = of_tree.keys.get(key)
                if owners is None:
                    of_tree.keys[key] = {owner}
                else:
                    owners.add(owner)
        for tree, ranges in footprint.ranges.items():
            of_tree = self._of_tree(tree)
            for scanned in ranges:
                of_tree.add_range(owner, scanned)

    def remove(self, owner: Owner, footprint: Footprint) -> None:
        for tree, keys in footprint.keys.items():
            of_tree = self._of_tree(tree)
            for key in keys:
                owners = of_tree.keys[key]
                owners.discard(owner)
                if not owners:
                    del of_tree.keys[key]
        for tree, ranges in footprint.ranges.items():
            of_tree = self._of_tree(tree)
            for scanned in ranges:
                of_tree.remove_range(owner, scanned)
        for tree in footprint.trees():
            if tree in self.trees and not self.trees[tree]:
                del self.trees[tree]

    def _of_tree(self, tree: int) -> TreeFootprints[Owner]:
        found = self.trees.get(tree)
        if found is None:
            found = self.trees[tree] = TreeFootprints()
        return found

    def __repr__(self) -> str:
        return f"footprints on {len(self.trees)} trees"

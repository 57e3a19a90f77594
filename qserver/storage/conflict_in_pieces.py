"""The conflict test of a large part, cut into small ones: others run between them.

A part conflicts exactly when one of its reads or writes does. So it is cut by

    keys        CHANGES_AT_ONCE of them are looked up at once
    ranges      at the separators high up in the trees: what lies between two of them is a few
                thousand entries, whichever of the two trees has them
    writes      of others, which each range is held against; and its own, against undecided ones

The questions are those of `conflict`; what is told first may differ.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

import msgspec

from qserver.storage.btree import Key, cuts
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.partition import CHANGES_AT_ONCE, Partition, Writes, count_changes
from qserver.storage.transaction import Part, ScannedRange

RANGES_AT_ONCE: Final = 4
"""Ranges, each of a few thousand entries at most, that are compared before others run."""

Each = TypeVar("Each")


def is_long(parts: Iterable[Part], now: Partition) -> bool:
    """Would it take long to vote on these parts, or to install them?"""
    count = 0
    for part in parts:
        count += count_changes(part.writes) + len(part.keys) + len(part.ranges)
        if count > CHANGES_AT_ONCE:
            return True
        if part.ranges and part.base is not now and any(_is_wide(part, now)):
            return True
    return False


def _is_wide(part: Part, now: Partition) -> Iterator[bool]:
    for scanned in part.ranges:
        before, after = part.base.tree(scanned.tree), now.tree(scanned.tree)
        yield before is not after and max(before.height, after.height) > 1


def conflict_in_pieces(
    part: Part, now: Partition, others: Mapping[str, Writes], undecided: Writes
) -> Generator[None, None, Conflict | None]:
    """What stands against the part; yields now and then.

    `others`: writes that its reads must not overlap, by whose they are.
    """
    rest = msgspec.structs.replace(part, keys={}, ranges=[], writes={})
    for keys in _pieces(part.keys.items(), CHANGES_AT_ONCE):
        yield
        piece = msgspec.structs.replace(rest, keys=dict(keys))
        conflict = stale_read(piece, now)
        for whose, writes in others.items():
            conflict = conflict or overlap(piece, writes, whose)
        if conflict is not None:
            return conflict
    for ranges in _pieces(_narrow_ranges(part, now), RANGES_AT_ONCE):
        yield
        conflict = stale_read(msgspec.structs.replace(rest, ranges=ranges), now)
        if conflict is not None:
            return conflict
    for whose, writes in others.items():
        conflict = yield from _ranges_overlap(part, rest, writes, whose)
        if conflict is not None:
            return conflict
    for some in _pieces_of_writes(part.writes) if undecided else ():
        yield
        conflict = writes_overlap(msgspec.structs.replace(rest, writes=some), undecided)
        if conflict is not None:
            return conflict
    return None


def _ranges_overlap(
    part: Part, rest: Part, writes: Writes, whose: str
) -> Generator[None, None, Conflict | None]:
    for some in _pieces_of_writes(writes):
        most = max(1, CHANGES_AT_ONCE // count_changes(some))
        for ranges in _pieces(part.ranges, most):
            yield
            conflict = overlap(msgspec.structs.replace(rest, ranges=ranges), some, whose)
            if conflict is not None:
                return conflict
    return None


def _narrow_ranges(part: Part, now: Partition) -> Iterator[ScannedRange]:
    """The ranges that may have changed, cut where they are long."""
    for scanned in part.ranges:
        before, after = part.base.tree(scanned.tree), now.tree(scanned.tree)
        if before is after:
            continue
        low = scanned.low
        found = {*cuts(before, low, scanned.high), *cuts(after, low, scanned.high)}
        ends: list[Key | None] = [*sorted(found), scanned.high]
        for end in ends:
            yield msgspec.structs.replace(scanned, low=low, high=end)
            low = end


def _pieces_of_writes(writes: Writes) -> Iterator[Writes]:
    for tree, changes in writes.items():
        for some in _pieces(changes.items(), CHANGES_AT_ONCE):
            yield {tree: dict(some)}


def _pieces(each: Iterable[Each], most: int) -> Iterator[list[Each]]:
    rest = iter(each)
    while piece := list(islice(rest, most)):
        yield piece

"""Finds a conflict of a part: at once, or of a large one in small pieces between which others run.

A part conflicts exactly when one of its reads or writes does. So a large one is cut by

    keys        CHANGES_AT_ONCE of them are looked up at once
    ranges      at the separators high up in the trees: between two of them lie a few thousand
                entries, in either tree
    writes      of others, against which each range is tested; and its own, against undecided ones

The tests are those of `conflict`; they may report another conflict first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from qserver.storage.btree import cuts
from qserver.storage.conflict import (
    Conflict,
    is_unchanged,
    overlap,
    stale_read,
    writes_overlap,
)
from qserver.storage.page import EMPTY, Key
from qserver.storage.ranges import Range, Roots
from qserver.storage.routing import Part
from qserver.storage.transaction import ScannedRange
from qserver.storage.writes import CHANGES_AT_ONCE, TreeWrites, count_changes
from qserver.values.keys import Bound
from qserver.values.steps import Steps

ACCEPTED: Final = "an accepted transaction"
UNDECIDED: Final = "an undecided transaction"

RANGES_AT_ONCE: Final = 4
"""Ranges, each of a few thousand entries at most, that are compared before others run."""

SCANS_AT_ONCE: Final = 512
"""Scans that are checked for changes before others run."""

Each = TypeVar("Each")
Scan: TypeAlias = tuple[Range, ScannedRange]
RangeWrites: TypeAlias = Mapping[Range, TreeWrites]


def is_long(parts: Iterable[Part], now: Roots) -> bool:
    """Return whether voting on these parts, or installing them, would take long."""
    count = 0
    for part in parts:
        count += count_changes(part.writes) + count_changes(part.keys) + len(part.scans)
        if count > CHANGES_AT_ONCE:
            return True
        if part.scans and any(_is_wide(part, now)):
            return True
    return False


def is_much(*writes: RangeWrites) -> bool:
    return sum(map(count_changes, writes)) > CHANGES_AT_ONCE


def _is_wide(part: Part, now: Roots) -> Iterator[bool]:
    for each, scanned in part.scans:
        low, high = each.clipped(scanned.low, scanned.high)
        before = part.base.trees.tree(scanned.tree).roots_between(low, high)
        after = now.get(each, EMPTY)
        yield before != (after,) and max(root.height for root in (*before, after)) > 1


def find_conflict(
    part: Part, now: Roots, accepted: RangeWrites, undecided: RangeWrites, in_pieces: bool
) -> Steps[Conflict | None]:
    """Return the first conflict that is found, or None.

    A part's reads must not overlap the writes that the round has `accepted`, nor those that are
    `undecided`, which its writes must not overlap either. `in_pieces`: it is large.
    """
    if not in_pieces:
        return _conflict_of(part, now, accepted, undecided)
    others = {ACCEPTED: accepted, UNDECIDED: undecided}
    rest = msgspec.structs.replace(part, keys={}, scans=[], writes={})
    for keys in _small(_doubtful_keys(part, now, others)):
        yield
        piece = msgspec.structs.replace(rest, keys=keys)
        conflict = stale_read(piece, now)
        for whose, writes in others.items():
            conflict = conflict or overlap(piece, writes, whose)
        if conflict is not None:
            return conflict
    for looked_at in _pieces(part.scans, SCANS_AT_ONCE):  # most often nothing has changed there
        yield
        for scans in _pieces(_narrow_scans(part, looked_at, now), RANGES_AT_ONCE):
            conflict = stale_read(msgspec.structs.replace(rest, scans=scans), now)
            if conflict is not None:
                return conflict
            yield
    for whose, writes in others.items():
        conflict = yield from _scans_overlap(part, rest, writes, whose)
        if conflict is not None:
            return conflict
    for some in _small(part.writes) if undecided else ():
        yield
        conflict = writes_overlap(msgspec.structs.replace(rest, writes=some), undecided)
        if conflict is not None:
            return conflict
    return None


def _conflict_of(
    part: Part, now: Roots, accepted: RangeWrites, undecided: RangeWrites
) -> Conflict | None:
    conflict = None
    if part.keys or part.scans:
        conflict = stale_read(part, now)
        conflict = conflict or overlap(part, accepted, ACCEPTED)
    if conflict is None and undecided:
        conflict = overlap(part, undecided, UNDECIDED)
        conflict = conflict or writes_overlap(part, undecided)
    return conflict


def _doubtful_keys(
    part: Part, now: Roots, others: Mapping[str, RangeWrites]
) -> dict[Range, dict[Key, Any]]:
    """Return the keys that were read in ranges that have changed, or that others write."""
    return {
        each: entries
        for each, entries in part.keys.items()
        if not is_unchanged(part, each, now) or any(each in writes for writes in others.values())
    }


def _scans_overlap(
    part: Part, rest: Part, writes: RangeWrites, whose: str
) -> Steps[Conflict | None]:
    for some in _small(writes):
        most = max(1, CHANGES_AT_ONCE // count_changes(some))
        for scans in _pieces(part.scans, most):
            yield
            conflict = overlap(msgspec.structs.replace(rest, scans=scans), some, whose)
            if conflict is not None:
                return conflict
    return None


def _narrow_scans(part: Part, scans: list[Scan], now: Roots) -> Iterator[Scan]:
    """Yield the ranges that may have changed, cut where they are long."""
    for each, scanned in scans:
        before, after = part.base.trees.tree(scanned.tree), now.get(each, EMPTY)
        low, high = each.clipped(scanned.low, scanned.high)
        if before.roots_between(low, high) == (after,):
            continue
        found = set(cuts(after, low, high))
        for root, first, last in before.pieces(low, high):
            found.update(cuts(root, first, last))
        ends: list[Bound] = [*sorted(found), high]
        for end in ends:
            yield each, msgspec.structs.replace(scanned, low=low, high=end)
            low = end


def _small(entries: Mapping[Range, dict[Key, Any]]) -> Iterator[dict[Range, dict[Key, Any]]]:
    for each, of_range in entries.items():
        for some in _pieces(of_range.items(), CHANGES_AT_ONCE):
            yield {each: dict(some)}


def _pieces(each: Iterable[Each], most: int) -> Iterator[list[Each]]:
    rest = iter(each)
    while piece := list(islice(rest, most)):
        yield piece

"""The conflict test: does everything that a transaction read still hold?

It compares values, not version numbers. Old and new trees share every page that did not change, so
a range costs only its changed pages, and an untouched tree costs one `is`. A scan with a predicate
conflicts only with a changed row that satisfies it before or after the change (precision locking):
a report on one account does not conflict with transfers between two others.

A shard runs three tests on its part of a transaction:

    stale_read        its reads against the installed roots
    overlap           its reads against writes that are accepted or undecided in this round
    writes_overlap    its writes against undecided ones
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from qserver.storage.btree import EntryChange, difference, get
from qserver.storage.page import EMPTY, Key, Tree, Value
from qserver.storage.ranges import Range
from qserver.storage.routing import Part
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange
from qserver.storage.writes import TreeWrites
from qserver.values.comparison import same_row


class Conflict(msgspec.Struct, frozen=True):
    """What a transaction read that no longer holds: a tree's key, or a table's definition."""

    reason: str
    tree: int | None = None
    key: Key | None = None
    table: str | None = None
    version_read: int | None = None
    version_found: int | None = None
    scanned: ScannedRange | None = None
    """The range, if no single key was read."""
    columns: tuple[str, ...] = ()
    """The columns of the key, see `conflict_place`."""
    statement: int | None = None
    changed_by: str | None = None
    """The request that made the change, if it is known."""
    is_exact: bool = False
    """Whether `version_found` is the version of the change, not only one that has it."""


def stale_read(part: Part, roots: Mapping[Range, Tree]) -> Conflict | None:
    """Return the first read of the part that the installed roots contradict."""
    base = part.base
    for each, entries in part.keys.items():
        if is_unchanged(part, each, roots):
            continue
        now = roots.get(each, EMPTY)
        for key, seen in entries.items():
            if differs(get(now, key), seen):
                return Conflict("a key that was read has changed", each.tree, key)
    for each, scanned in part.scans:
        now = roots.get(each, EMPTY)
        for key, was, becomes in _changes(base, each, now, scanned):
            if differs(was, becomes) and matters(scanned, was, becomes):
                reason = "a range that was read has changed"
                return Conflict(reason, scanned.tree, key, scanned=scanned)
    return None


def is_unchanged(part: Part, each: Range, roots: Mapping[Range, Tree]) -> bool:
    """Return whether all keys of a range were in one root when they were read, which is there."""
    before = part.base.trees.tree(each.tree).roots_between(each.low, each.high)
    return before == (roots.get(each, EMPTY),)


def _changes(
    base: Snapshot, each: Range, now: Tree, scanned: ScannedRange
) -> Iterator[EntryChange]:
    """Yield what has changed in a range since it was scanned, however it was cut then."""
    low, high = each.clipped(scanned.low, scanned.high)
    for before, first, last in base.trees.tree(each.tree).pieces(low, high):
        if before is not now:
            yield from difference(before, now, first, last)


def overlap(part: Part, writes: Mapping[Range, TreeWrites], whose: str) -> Conflict | None:
    """Return the first read of the part that these writes of another transaction contradict."""
    if not writes:
        return None
    for each, entries in part.keys.items():
        changes = writes.get(each)
        if changes is None:
            continue
        for key, seen in entries.items():
            if key in changes and differs(changes[key], seen):
                return Conflict(f"a key that was read is being changed by {whose}", each.tree, key)
    for each, scanned in part.scans:
        for key, becomes in writes.get(each, {}).items():
            if key in scanned:
                was = part.base.get_entry(each.tree, key)
                if differs(was, becomes) and matters(scanned, was, becomes):
                    reason = f"a range that was read is being changed by {whose}"
                    return Conflict(reason, each.tree, key, scanned=scanned)
    return None


def writes_overlap(part: Part, writes: Mapping[Range, TreeWrites]) -> Conflict | None:
    """Return the first key that both want to write."""
    for each, changes in part.writes.items():
        others = writes.get(each)
        if others is not None:
            for key in changes:
                if key in others:
                    return Conflict(
                        "a key is being written by an undecided transaction", each.tree, key
                    )
    return None


def differs(was: Value | None, now: Value | None) -> bool:
    """Return whether a reader could tell two values of an entry apart."""
    return was is not now and (was is None or now is None or not same_row(was, now))


def matters(scanned: ScannedRange, *rows: Value | None) -> bool:
    """Return whether a change between these rows could change what a scan found."""
    if scanned.counted:
        return None in rows
    predicate = scanned.predicate
    if predicate is None:
        return True
    try:
        return any(row is not None and predicate(row) for row in rows)
    except Exception:  # a row that the predicate cannot judge could matter
        return True

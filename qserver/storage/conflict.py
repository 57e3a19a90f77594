"""The conflict test: is what a transaction read then the same as what is there now?

Values are compared, not version numbers. Old and new trees share every page that did not change,
so a range costs only its changed pages, and a tree that nobody touched costs one `is`. A scan
with a predicate conflicts only with a changed row that satisfies it before or after the change
(precision locking): a report on one account does not mind transfers between two others.

Three questions, all asked by a shard of its part of a transaction:

    stale_read        against what is installed
    overlap           of its reads with writes that are accepted or undecided in this round
    writes_overlap    of its writes with undecided ones
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from qserver.storage.btree import Key, Value, difference, get
from qserver.storage.partition import Partition, TreeWrites, Writes
from qserver.storage.transaction import Part, ScannedRange
from qserver.values.comparison import same_row


class Conflict(msgspec.Struct, frozen=True):
    """What a transaction read that no longer holds: a tree's key, or a table's definition."""

    reason: str
    tree: int | None = None
    key: Key | None = None
    table: str | None = None
    version_read: int | None = None
    version_found: int | None = None


def stale_read(part: Part, now: Partition) -> Conflict | None:
    """The first read of the part that is no longer true of the installed partition."""
    base = part.base
    if base is now:
        return None
    for (tree, key), seen in part.keys.items():
        current = now.tree(tree)
        if current is not base.tree(tree) and _differs(get(current, key), seen):
            return Conflict("a key that was read has changed", tree, key)
    for scanned in part.ranges:
        before, after = base.tree(scanned.tree), now.tree(scanned.tree)
        if before is after:
            continue
        for key, was, becomes in difference(before, after, scanned.low, scanned.high):
            if _differs(was, becomes) and _matters(scanned, was, becomes):
                return Conflict("a range that was read has changed", scanned.tree, key)
    return None


def overlap(part: Part, writes: Mapping[int, TreeWrites], whose: str) -> Conflict | None:
    """The first read of the part that these writes of somebody else make untrue."""
    if not writes:
        return None
    for (tree, key), seen in part.keys.items():
        changes = writes.get(tree)
        if changes is not None and key in changes and _differs(changes[key], seen):
            return Conflict(f"a key that was read is being changed by {whose}", tree, key)
    for scanned in part.ranges:
        before = part.base.tree(scanned.tree)
        for key, becomes in writes.get(scanned.tree, {}).items():
            if key in scanned:
                was = get(before, key)
                if _differs(was, becomes) and _matters(scanned, was, becomes):
                    return Conflict(
                        f"a range that was read is being changed by {whose}", scanned.tree, key
                    )
    return None


def writes_overlap(part: Part, writes: Writes) -> Conflict | None:
    """The first key that both want to write."""
    for tree, changes in part.writes.items():
        others = writes.get(tree)
        if others is not None:
            for key in changes:
                if key in others:
                    return Conflict("a key is being written by an undecided transaction", tree, key)
    return None


def _differs(was: Value | None, now: Value | None) -> bool:
    return was is not now and (was is None or now is None or not same_row(was, now))


def _matters(scanned: ScannedRange, *rows: Value | None) -> bool:
    predicate = scanned.predicate
    if predicate is None:
        return True
    try:
        return any(row is not None and predicate(row) for row in rows)
    except Exception:  # a row that the predicate cannot judge could matter
        return True

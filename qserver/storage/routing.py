"""Routing: splits a transaction, which knows trees, into parts, which know ranges and shards.

    keys read, ranges scanned, writes ── the newest snapshot's ranges ──► a part for each shard

The newest snapshot decides, not the one that was read: ranges may have been cut or joined since. So
a part has the whole snapshot that was read, and a shard compares a range with whatever roots had
its keys then.

Large transactions are routed in steps, so that others can run between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec

from qserver.storage.catalog import Catalog
from qserver.storage.page import Key, Tree, Value
from qserver.storage.ranges import Range, RangedTree, Trees
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.storage.writes import (
    CHANGES_AT_ONCE,
    NEVER,
    Moment,
    TreeWrites,
    Writes,
    changed,
)
from qserver.values.steps import Steps


class Part(msgspec.Struct, frozen=True, eq=False):
    """A transaction's reads and writes on one shard."""

    position: int
    """Where the transaction stands in its round."""
    alone: bool
    """Whether no other shard has a part, so that this one decides."""
    base: Snapshot
    """The snapshot that the transaction read."""
    keys: dict[Range, dict[Key, Value | None]]
    scans: list[tuple[Range, ScannedRange]]
    writes: dict[Range, TreeWrites]
    dropped: tuple[int, ...] = ()


class Share:
    __slots__ = ("keys", "scans", "writes")

    def __init__(self) -> None:
        self.keys: dict[Range, dict[Key, Value | None]] = {}
        self.scans: list[tuple[Range, ScannedRange]] = []
        self.writes: dict[Range, TreeWrites] = {}


def parts_of(transaction: Transaction, position: int, newest: Snapshot) -> Steps[dict[int, Part]]:
    """Return the parts of a transaction, by shard."""
    catalog, dropped = transaction.catalog, transaction.catalog_changes.dropped
    shares: dict[int, Share] = defaultdict(Share)
    for tree, seen in transaction.keys.items():
        routed = yield from spread(newest, catalog, tree, seen)
        for each, entries in routed.items():
            shares[each.shard].keys[each] = entries
    for count, scanned in enumerate(transaction.ranges, start=1):
        for each in ranges_between(newest, catalog, scanned):
            shares[each.shard].scans.append((each, scanned))
        if count % CHANGES_AT_ONCE == 0:
            yield
    for tree, changes in transaction.writes.items():
        routed = yield from spread(newest, catalog, tree, changes)
        for each, entries in routed.items():
            shares[each.shard].writes[each] = entries
    for tree in dropped:  # also where it is written for the first time in this very round
        for each in newest.ranges(tree):
            shares[each.shard]
    alone = len(shares) == 1
    return {
        shard: Part(
            position, alone, transaction.snapshot, share.keys, share.scans, share.writes, dropped
        )
        for shard, share in shares.items()
    }


def unconditional_parts(writes: Writes, newest: Snapshot) -> Steps[dict[int, Part]]:
    """Return the parts of writes that need no check, because nothing could come between."""
    parts: dict[int, Part] = {}
    for tree, changes in writes.items():
        routed = yield from spread(newest, newest.catalog, tree, changes)
        for each, entries in routed.items():
            if each.shard not in parts:
                parts[each.shard] = Part(0, True, newest, {}, [], {})
            parts[each.shard].writes[each] = entries
    return parts


def spread(
    newest: Snapshot, catalog: Catalog, tree: int, entries: dict[Key, Any]
) -> Steps[dict[Range, dict[Key, Any]]]:
    ranges = newest.ranges(tree, catalog)
    if len(ranges) == 1:
        return {ranges[0]: entries}
    lows = newest.trees.tree(tree).lows
    place = yield from _place_of_all(entries, lows)
    if place is not None:
        return {ranges[place]: entries}
    parts: dict[int, dict[Key, Any]] = {}
    rest = iter(entries.items())
    for start in range(0, len(entries), CHANGES_AT_ONCE):
        if start:
            yield
        some = dict(islice(rest, CHANGES_AT_ONCE))
        first, last = bisect_right(lows, min(some)), bisect_right(lows, max(some))
        if first == last:
            parts.setdefault(first, {}).update(some)
            continue
        for key, value in some.items():
            at = bisect_right(lows, key)
            if at in parts:
                parts[at][key] = value
            else:
                parts[at] = {key: value}
    return {ranges[at]: part for at, part in parts.items()}


def _place_of_all(keys: Iterable[Key], lows: tuple[Key, ...]) -> Steps[int | None]:
    """Return the range where all keys lie, as those of rows that are written together mostly do."""
    rest = iter(keys)
    place: int | None = None
    while some := list(islice(rest, CHANGES_AT_ONCE)):
        if place is not None:
            yield
        first, last = bisect_right(lows, min(some)), bisect_right(lows, max(some))
        if first != last or place not in (None, first):
            return None
        place = first
    return place


def ranges_between(newest: Snapshot, catalog: Catalog, scanned: ScannedRange) -> tuple[Range, ...]:
    ranged = newest.trees.tree(scanned.tree)
    if len(ranged.ranges) > 1:
        return ranged.ranges_between(scanned.low, scanned.high)
    return newest.ranges(scanned.tree, catalog)


def written(
    snapshot: Snapshot,
    catalog: Catalog,
    writes: Writes,
    dropped: Collection[int] = (),
    moments: Mapping[int, Moment] = MappingProxyType({}),
) -> Steps[Trees]:
    """Return a snapshot's trees with writes made, without shards: for recovery.

    `moments`: when each of the trees was last written.
    """
    trees: dict[int, RangedTree] = {}
    for number, changes in writes.items():
        before = snapshot.trees.tree(number)
        routed = yield from spread(snapshot, catalog, number, changes)
        roots: dict[Range, Tree] = {}
        for each, entries in routed.items():
            roots[each] = yield from changed(before.root_of(each), entries)
            yield
        trees[number] = before.changed(roots, moments.get(number, NEVER)).laid_out(snapshot.shards)
    return snapshot.trees.changed(trees, dropped)

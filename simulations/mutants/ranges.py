"""Planted bugs in ranges: how trees are cut and joined, who owns what, and who is asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from qserver.durability import loading, recovery
from qserver.engine import coordinator, shard
from qserver.engine.messages import Installed, Own
from qserver.storage import conflict, find_conflict, ranges, routing
from qserver.storage.btree import EntryChange, difference, key_at, pages_backward, split
from qserver.storage.page import Key, Tree
from qserver.storage.ranges import Range, RangedTree, Roots, Trees
from qserver.storage.routing import Part
from qserver.storage.snapshot import Page, Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.values.keys import TOP
from qserver.values.steps import Steps
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import CROWDED
from simulations.sizes import JOINED, NARROW


def _cut_behind_the_key(original: Any) -> Any:
    def split(tree: Tree, key: Key) -> tuple[Tree, Tree]:
        left, right = original(tree, (*key, TOP))
        return left, right

    return split


def _join_without_the_last_entry(original: Any) -> Any:
    def join(one: Tree, other: Tree) -> Tree:
        if other.length > 1:
            other, _ = split(other, key_at(other, other.length - 1))
        joined: Tree = original(one, other)
        return joined

    return join


def _own_one_range(original: Any) -> Any:
    def own(self: shard.Shard, message: Own) -> Installed:
        first = dict(list(message.given.items())[:1])
        done: Installed = original(self, Own(message.round, message.taken, first))
        return done

    return own


def _keep_what_is_taken(original: Any) -> Any:
    def own(self: shard.Shard, message: Own) -> Installed:
        kept = [each for each in message.taken if each.low is not None]
        done: Installed = original(self, Own(message.round, kept, message.given))
        return done

    return own


def _route_by_what_was_read(original: Any) -> Any:
    def parts_of(
        transaction: Transaction, position: int, newest: Snapshot
    ) -> Steps[dict[int, Part]]:
        steps: Steps[dict[int, Part]] = original(transaction, position, transaction.snapshot)
        return steps

    return parts_of


def _ask_all_but_the_last(original: Any) -> Any:
    def ranges_between(self: RangedTree, low: Key | None, high: Key | None) -> tuple[Range, ...]:
        found: tuple[Range, ...] = original(self, low, high)
        return found[:-1] if len(found) > 1 and high is not None else found

    return ranges_between


def _ask_the_first_and_the_last(original: Any) -> Any:
    def ranges_between(self: RangedTree, low: Key | None, high: Key | None) -> tuple[Range, ...]:
        found: tuple[Range, ...] = original(self, low, high)
        return (found[0], found[-1]) if len(found) > 2 else found

    return ranges_between


def _clip_behind_the_bound(original: Any) -> Any:
    def clipped(self: Range, low: Key | None, high: Key | None) -> tuple[Key | None, Key | None]:
        first, last = original(self, low, high)
        return (first if first is low else (*first, TOP)), last

    return clipped


def _compare_with_the_first_root(original: Any) -> Any:
    def changes(
        base: Snapshot, each: Range, now: Tree, scanned: ScannedRange
    ) -> Iterator[EntryChange]:
        low, high = each.clipped(scanned.low, scanned.high)
        for before, first, last in list(base.trees.tree(each.tree).pieces(low, high))[:1]:
            yield from difference(before, now, first, last)

    return changes


def _take_any_root_for_the_same(original: Any) -> Any:
    def stale_read(part: Part, roots: Roots) -> Any:
        there = {
            each: seen
            for each, seen in part.keys.items()
            if roots.get(each) not in part.base.trees.tree(each.tree).roots
        }
        return original(replace(part, keys=there), roots)

    return stale_read


def _drop_all_but_the_last(original: Any) -> Any:
    def parts_of(
        transaction: Transaction, position: int, newest: Snapshot
    ) -> Steps[dict[int, Part]]:
        parts: dict[int, Part] = yield from original(transaction, position, newest)
        if transaction.catalog_changes.dropped and len(parts) > 1:
            at = max(parts)
            parts[at] = replace(parts[at], dropped=())
        return parts

    return parts_of


def _lay_the_first_bound_too_high(original: Any) -> Any:
    def bounds_of(number: int, tree: Any) -> tuple[Key, ...]:
        bounds: tuple[Key, ...] = original(number, tree)
        return ((*bounds[0], TOP), *bounds[1:]) if bounds else bounds

    return bounds_of


def _file_a_bound_to_the_left(original: Any) -> Any:
    def written(*arguments: Any) -> Steps[Trees]:
        module: Any = routing
        kept = module.bisect_right
        module.bisect_right = bisect_left
        try:
            trees: Trees = yield from original(*arguments)
        finally:
            module.bisect_right = kept
        return trees

    return written


def _look_left_of_a_bound(original: Any) -> Any:
    def root_at(self: RangedTree, key: Key) -> Tree:
        return self.roots[bisect_left(self.lows, key)]

    return root_at


def _stop_at_the_first_range(original: Any) -> Any:
    def first_entries(
        self: Snapshot, tree: int, low: Key | None, high: Key | None, backward: bool, most: int
    ) -> Page:
        pieces = list(self.trees.tree(tree).pieces(low, high))
        for _, first, last in reversed(pieces) if backward else pieces:
            found: Page = original(self, tree, first, last, backward, most)
            if found[0]:
                return found
        return [], []

    return first_entries


def _backward_in_the_order_of_ranges(original: Any) -> Any:
    def pages_of(
        self: Snapshot,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        backward: Any = False,
    ) -> Iterator[Page]:
        if not backward:
            yield from original(self, tree, low, high)
            return
        for root in self.trees.tree(tree).roots_between(low, high):
            yield from pages_backward(root, low, high)

    return pages_of


def _tell_the_new_owner_only(original: Any) -> Any:
    def note_moves(self: Any, moves: dict[int, Own], before: RangedTree, after: RangedTree) -> None:
        noted: dict[int, Own] = {}
        original(self, noted, before, after)
        moves.update({number: own for number, own in noted.items() if own.given})

    return note_moves


WITH_RANGES: Final = (("sizes", NARROW),)
SCANS: Final = ("range_sums", "sql_bounds", "sql_predicates")

MUTANTS: Final = (
    Mutant(
        "cut_behind_the_key",
        "the entry at which a range is cut stays left of the bound",
        ("bank", "range_sums", "registers"),
        ((ranges, "split", _cut_behind_the_key),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "join_without_the_last_entry",
        "two ranges become one without the last of several entries of the right one",
        ("sql_queue", "sql_keys", "sql_references"),
        ((ranges, "join", _join_without_the_last_entry),),
        shape=(("sizes", JOINED),),
    ),
    Mutant(
        "own_one_range",
        "of several ranges that a shard is given it takes the first",
        ("bank", "list_append", "registers"),
        ((shard.Shard, "own", _own_one_range),),
        shape=(*WITH_RANGES, ("shards", 2)),
    ),
    Mutant(
        "keep_what_is_taken",
        "a shard keeps the first range of a tree though another has it now",
        ("sql_queue", "range_sums", "list_append"),
        ((shard.Shard, "own", _keep_what_is_taken),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "tell_the_new_owner_only",
        "a shard that gives up ranges and gets none is not told",
        ("sql_queue", "range_sums", "sql_keys"),
        ((coordinator.Coordinator, "_note_moves", _tell_the_new_owner_only),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "route_by_what_was_read",
        "a transaction goes to the shards that had its keys when it read them",
        ("list_append", "range_sums", "sql_queue"),
        ((coordinator, "parts_of", _route_by_what_was_read),),
        shape=(*WITH_RANGES, *CROWDED),
    ),
    Mutant(
        "ask_all_but_the_last",
        "whether a scan still holds is not asked of the last range that it touched",
        SCANS,
        ((RangedTree, "ranges_between", _ask_all_but_the_last),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "ask_the_first_and_the_last",
        "whether a scan still holds is asked of the first and the last range that it touched",
        SCANS,
        ((RangedTree, "ranges_between", _ask_the_first_and_the_last),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "clip_behind_the_bound",
        "a scan over several ranges is not compared at the key where one begins",
        SCANS,
        ((Range, "clipped", _clip_behind_the_bound),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "compare_with_the_first_root",
        "a range that was several when it was scanned is compared with the first of them",
        (*SCANS, "sql_queue"),
        ((conflict, "_changes", _compare_with_the_first_root),),
        shape=(*WITH_RANGES, *CROWDED),
    ),
    Mutant(
        "take_any_root_for_the_same",
        "keys count as unchanged if the root that has them now is any that the tree had",
        ("sql_moves",),
        ((find_conflict, "stale_read", _take_any_root_for_the_same),),
        shape=(
            *WITH_RANGES,
            ("clients", 16),
            ("transactions_per_client", 60),
            ("long_work", 0.9),
        ),
    ),
    Mutant(
        "drop_all_but_the_last",
        "the last shard that has ranges of a dropped table keeps them",
        ("sql_definitions", "sql_migrations", "definitions"),
        ((coordinator, "parts_of", _drop_all_but_the_last),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "lay_the_first_bound_too_high",
        "the first bound of a tree that was stored is laid behind the key where it was",
        ("bank", "registers", "range_sums"),
        ((loading, "bounds_of", _lay_the_first_bound_too_high),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "file_a_bound_to_the_left",
        "recovery files an entry that lies on a bound in the range before it",
        ("bank", "registers", "list_append"),
        ((recovery, "written", _file_a_bound_to_the_left),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "look_left_of_a_bound",
        "a key that lies on a bound is looked for in the range before it",
        ("bank", "registers"),
        ((RangedTree, "root_at", _look_left_of_a_bound),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "stop_at_the_first_range",
        "a LIMIT is satisfied with what the first range has that has anything",
        ("sql_bounds", "sql_queue"),
        ((Snapshot, "first_entries", _stop_at_the_first_range),),
        shape=WITH_RANGES,
    ),
    Mutant(
        "backward_in_the_order_of_ranges",
        "a backward scan reads the ranges forward, each of them backward",
        ("sql_bounds",),
        ((Snapshot, "pages", _backward_in_the_order_of_ranges),),
        shape=WITH_RANGES,
    ),
)

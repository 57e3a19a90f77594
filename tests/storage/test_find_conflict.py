"""A large part gets the same verdict as a small one, in steps that are short."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.storage import find_conflict as module
from qserver.storage import writes as writes_module
from qserver.storage.btree import apply, cuts
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.find_conflict import find_conflict, is_long
from qserver.storage.page import EMPTY, Key, Value
from qserver.storage.ranges import Range, Roots, roots_of_shard
from qserver.storage.routing import Part, parts_of
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.storage.writes import (
    TreeWrites,
    merge_writes,
)
from qserver.storage.writes import changed as tree_changed
from qserver.values.keys import Predicate
from qserver.values.steps import at_once
from tests.steps import taken
from tests.storage.databases import laid_out, ranges_of, view_with
from tests.storage.trees import unhurried

TREE = 3
WHOLE = Range(TREE, None, None, 0)
Writes = dict[Range, TreeWrites]
MANY = 40_000


def rows(numbers: range, value: int = 0) -> Writes:
    return {WHOLE: {(number,): (number, value) for number in numbers}}


def snapshot_of(entries: dict[Key, Value]) -> Snapshot:
    """All entries in one range, however many they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qserver.storage.ranges.RANGE_ENTRIES_MAX", 10**9)
        return view_with(entries, 1, TREE)


def roots(snapshot: Snapshot) -> Roots:
    return roots_of_shard(snapshot.trees, 0)


def after(snapshot: Snapshot, changes: TreeWrites) -> Roots:
    """What the shard has, once the snapshot has been changed."""
    return {WHOLE: at_once(tree_changed(snapshot.trees.tree(TREE).roots[0], changes))}


def part_of(
    base: Snapshot,
    keys: range = range(0),
    ranges: tuple[ScannedRange, ...] = (),
    writes: Writes | None = None,
) -> Part:
    seen: dict[Key, Value | None] = {(number,): (number, 0) for number in keys}
    scans = [(WHOLE, each) for each in ranges]
    return Part(0, True, base, {WHOLE: seen}, scans, writes or {}, ())


def scanned(low: int | None = None, high: int | None = None) -> ScannedRange:
    def never(row: object) -> bool:
        return False

    return ScannedRange(
        TREE, None if low is None else (low,), None if high is None else (high,), never
    )


@pytest.fixture(scope="module")
def base() -> Snapshot:
    return snapshot_of({(number,): (number, 0) for number in range(MANY)})


@pytest.fixture(scope="module")
def changed() -> Snapshot:
    return snapshot_of({(number,): (number, 1, "other") for number in range(MANY)})


def test_many_keys_are_compared_in_steps(base: Snapshot) -> None:
    elsewhere = after(base, {(MANY + 1,): (MANY + 1, 5)})
    part = part_of(base, range(MANY))
    assert is_long([part], roots(base))
    steps, conflict = taken(find_conflict(part, elsewhere, {}, {}, in_pieces=True))
    assert conflict is None and steps >= 20
    _, conflict = taken(find_conflict(part, after(base, {(7,): (7, 2)}), {}, {}, in_pieces=True))
    assert conflict == Conflict("a key that was read has changed", TREE, (7,))


def test_a_long_range_that_has_changed_all_over_is_compared_in_steps(
    base: Snapshot, changed: Snapshot
) -> None:
    empty = snapshot_of({})
    for before, then in ((base, changed), (base, empty), (empty, base)):
        part = part_of(before, ranges=(scanned(),))
        assert is_long([part], roots(then))
        steps, conflict = taken(find_conflict(part, roots(then), {}, {}, in_pieces=True))
        assert conflict is None
        assert steps >= MANY // 4096 // module.RANGES_AT_ONCE


def test_a_range_is_held_against_many_writes_in_steps(base: Snapshot) -> None:
    part = part_of(base, ranges=(scanned(),))
    accepted = rows(range(MANY), 1)
    steps, conflict = taken(find_conflict(part, roots(base), accepted, {}, in_pieces=True))
    assert conflict is None and steps >= 20


def test_many_ranges_are_held_against_few_writes_in_few_steps(base: Snapshot) -> None:
    ranges = tuple([scanned(number, number + 1) for number in range(MANY)])
    accepted = rows(range(2), 1)
    steps, conflict = taken(
        find_conflict(part_of(base, ranges=ranges), roots(base), accepted, {}, in_pieces=True)
    )
    most = 2 * MANY // writes_module.CHANGES_AT_ONCE + MANY // module.SCANS_AT_ONCE + 10
    assert conflict is None and 20 <= steps <= most


def test_many_ranges_in_which_nothing_has_changed_are_looked_at_in_steps(base: Snapshot) -> None:
    ranges = tuple([scanned(number, number + 1) for number in range(MANY)])
    part = part_of(base, ranges=ranges)
    steps, conflict = taken(find_conflict(part, roots(base), {}, {}, in_pieces=True))
    assert conflict is None and steps >= MANY // module.SCANS_AT_ONCE


def test_many_ranges_are_routed_in_steps(base: Snapshot) -> None:
    transaction = Transaction(base)
    transaction.ranges = [scanned(number, number + 1) for number in range(MANY)]
    steps, parts = taken(parts_of(transaction, 0, base))
    assert steps >= 20 and len(parts[0].scans) == MANY


def test_many_writes_are_held_against_undecided_ones_in_steps(base: Snapshot) -> None:
    part = part_of(base, writes=rows(range(MANY)))
    steps, conflict = taken(
        find_conflict(part, roots(base), {}, rows(range(MANY, MANY + 1)), in_pieces=True)
    )
    assert conflict is None and steps >= 20


def test_many_writes_are_merged_in_steps() -> None:
    into = rows(range(10), 1)
    steps, _ = taken(merge_writes(into, rows(range(MANY))))
    assert steps >= 20
    assert into == rows(range(MANY))


def test_a_short_part_is_not_long(base: Snapshot, changed: Snapshot) -> None:
    assert not is_long([part_of(base, range(10), (scanned(),))], roots(base))
    assert not is_long([part_of(base, range(10))], roots(changed))


def test_cuts_leave_a_few_thousand_entries_between_them() -> None:
    keys = [(number,) for number in range(MANY)]
    tree = apply(EMPTY, keys, keys)
    found = [0, *(key[0] for key in cuts(tree)), MANY]
    assert found == sorted(found)
    assert max(high - low for low, high in pairwise(found)) <= 4096
    within = list(cuts(tree, (5000,), (30_000,)))
    assert within == [key for key in cuts(tree) if (5000,) < key < (30_000,)] and within


def only_those(value: int) -> Predicate:
    return lambda row: row[0] == value


# --- the same verdict ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHANGES_AT_ONCE", 2)
        patch.setattr(writes_module, "CHANGES_AT_ONCE", 2)
        yield


CHANGES = st.dictionaries(
    st.tuples(st.integers(0, 30)), st.none() | st.tuples(st.integers(0, 2)), max_size=20
)
ENDS = st.none() | st.tuples(st.integers(-1, 31))


@pytest.mark.usefixtures("tiny_pages", "tiny_pieces")
@unhurried
@given(
    CHANGES,
    CHANGES,
    CHANGES,
    CHANGES,
    CHANGES,
    CHANGES,
    st.lists(st.tuples(ENDS, ENDS, st.integers(0, 2)), max_size=4),
    st.sampled_from([(50, 0), (3, 1)]),
)
def test_the_verdict_on_the_pieces_is_the_verdict_on_the_part(
    was: dict[tuple[int], tuple[int] | None],
    becomes: dict[tuple[int], tuple[int] | None],
    reads: dict[tuple[int], tuple[int] | None],
    writes: dict[tuple[int], tuple[int] | None],
    accepted: dict[tuple[int], tuple[int] | None],
    undecided: dict[tuple[int], tuple[int] | None],
    ranges: list[tuple[tuple[int] | None, tuple[int] | None, int]],
    base_sizes: tuple[int, int],
) -> None:
    before: dict[Key, Value] = {key: value for key, value in was.items() if value is not None}
    with ranges_of(*base_sizes):
        base = laid_out(view_with(before, 1, TREE))
    snapshot = snapshot_of(before)
    now = after(snapshot, dict(becomes))
    part = Part(
        0,
        False,
        base,
        {WHOLE: dict(reads)},
        [(WHOLE, ScannedRange(TREE, low, high, only_those(only))) for low, high, only in ranges],
        {WHOLE: dict(writes)},
        (),
    )
    one: Writes = {WHOLE: dict(accepted)}
    two: Writes = {WHOLE: dict(undecided)}
    whole = (
        stale_read(part, now)
        or overlap(part, one, "one")
        or overlap(part, two, "two")
        or writes_overlap(part, two)
    )
    for in_pieces in (False, True):
        _, conflict = taken(find_conflict(part, now, one, two, in_pieces))
        assert (conflict is None) == (whole is None)
    other = Range(4, None, None, 0)
    merged = {WHOLE: dict(accepted)}
    taken(merge_writes(merged, {**two, other: dict(writes)}))
    assert merged == {WHOLE: {**accepted, **undecided}, other: writes}

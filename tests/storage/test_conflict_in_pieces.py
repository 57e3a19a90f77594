"""A large part gets the same verdict as a small one, in steps that are short."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.storage import conflict_in_pieces as module
from qserver.storage import partition as partition_module
from qserver.storage.btree import EMPTY, Key, Value, apply, cuts
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.conflict_in_pieces import conflict_in_pieces, is_long
from qserver.storage.partition import (
    CHANGES_AT_ONCE,
    Partition,
    Writes,
    merge_writes,
    merge_writes_in_pieces,
)
from qserver.storage.transaction import Part, ScannedRange
from qserver.storage.view import Predicate
from tests.storage.trees import unhurried

TREE = 3
MANY = 20 * CHANGES_AT_ONCE
Made = TypeVar("Made")


def taken(steps: Generator[None, None, Made]) -> tuple[int, Made]:
    """How many steps it took, and the result."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1


def rows(numbers: range, value: int = 0) -> Writes:
    return {TREE: {(number,): (number, value) for number in numbers}}


def part_of(
    base: Partition,
    keys: range = range(0),
    ranges: tuple[ScannedRange, ...] = (),
    writes: Writes | None = None,
) -> Part:
    seen: dict[tuple[int, Key], Value | None] = {(TREE, (number,)): (number, 0) for number in keys}
    return Part(0, True, base, seen, list(ranges), writes or {}, ())


def scanned(low: int | None = None, high: int | None = None) -> ScannedRange:
    def never(row: object) -> bool:
        return False

    return ScannedRange(
        TREE, None if low is None else (low,), None if high is None else (high,), never
    )


@pytest.fixture(scope="module")
def base() -> Partition:
    return Partition().changed(rows(range(MANY)))


@pytest.fixture(scope="module")
def changed(base: Partition) -> Partition:
    return base.changed({TREE: {(number,): (number, 1, "other") for number in range(MANY)}})


def test_many_keys_are_compared_in_steps(base: Partition) -> None:
    elsewhere = base.changed({TREE: {(MANY + 1,): (MANY + 1, 5)}})
    part = part_of(base, range(MANY))
    assert is_long([part], base)
    steps, conflict = taken(conflict_in_pieces(part, elsewhere, {}, {}))
    assert conflict is None and steps >= 20
    _, conflict = taken(conflict_in_pieces(part, base.changed(rows(range(7, 8), 2)), {}, {}))
    assert conflict == Conflict("a key that was read has changed", TREE, (7,))


def test_a_long_range_that_has_changed_all_over_is_compared_in_steps(
    base: Partition, changed: Partition
) -> None:
    for before, after in ((base, changed), (base, Partition()), (Partition(), base)):
        part = part_of(before, ranges=(scanned(),))
        assert is_long([part], after)
        steps, conflict = taken(conflict_in_pieces(part, after, {}, {}))
        assert conflict is None
        assert steps >= MANY // 4096 // module.RANGES_AT_ONCE


def test_a_range_is_held_against_many_writes_in_steps(base: Partition) -> None:
    part = part_of(base, ranges=(scanned(),))
    others = {"another": rows(range(MANY), 1)}
    steps, conflict = taken(conflict_in_pieces(part, base, others, {}))
    assert conflict is None and steps >= 20


def test_many_ranges_are_held_against_few_writes_in_few_steps(base: Partition) -> None:
    ranges = tuple([scanned(number, number + 1) for number in range(MANY)])
    others = {"another": rows(range(2), 1)}
    steps, conflict = taken(conflict_in_pieces(part_of(base, ranges=ranges), base, others, {}))
    assert conflict is None and 20 <= steps <= 100


def test_many_writes_are_held_against_undecided_ones_in_steps(base: Partition) -> None:
    part = part_of(base, writes=rows(range(MANY)))
    steps, conflict = taken(conflict_in_pieces(part, base, {}, rows(range(MANY, MANY + 1))))
    assert conflict is None and steps >= 20


def test_many_writes_are_merged_in_steps() -> None:
    into = rows(range(10), 1)
    steps, _ = taken(merge_writes_in_pieces(into, rows(range(MANY))))
    assert steps >= 20
    assert into == rows(range(MANY))


def test_a_short_part_is_not_long(base: Partition, changed: Partition) -> None:
    assert not is_long([part_of(base, range(10), (scanned(),))], base)
    assert not is_long([part_of(base, range(10))], changed)


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
        patch.setattr(partition_module, "CHANGES_AT_ONCE", 2)
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
)
def test_the_verdict_on_the_pieces_is_the_verdict_on_the_part(
    was: dict[tuple[int], tuple[int] | None],
    becomes: dict[tuple[int], tuple[int] | None],
    reads: dict[tuple[int], tuple[int] | None],
    writes: dict[tuple[int], tuple[int] | None],
    accepted: dict[tuple[int], tuple[int] | None],
    undecided: dict[tuple[int], tuple[int] | None],
    ranges: list[tuple[tuple[int] | None, tuple[int] | None, int]],
) -> None:
    base = Partition().changed({TREE: was})
    now = base.changed({TREE: becomes})
    part = Part(
        0,
        False,
        base,
        {(TREE, key): value for key, value in reads.items()},
        [ScannedRange(TREE, low, high, only_those(only)) for low, high, only in ranges],
        {TREE: writes},
        (),
    )
    whole = (
        stale_read(part, now)
        or overlap(part, {TREE: accepted}, "one")
        or overlap(part, {TREE: undecided}, "two")
        or writes_overlap(part, {TREE: undecided})
    )
    others: dict[str, Writes] = {"one": {TREE: accepted}, "two": {TREE: undecided}}
    _, conflict = taken(conflict_in_pieces(part, now, others, {TREE: undecided}))
    assert (conflict is None) == (whole is None)
    merged: Writes = {TREE: dict(accepted)}
    merge_writes(merged, {TREE: undecided, 4: writes})
    in_pieces: Writes = {TREE: dict(accepted)}
    taken(merge_writes_in_pieces(in_pieces, {TREE: undecided, 4: writes}))
    assert {tree: changes for tree, changes in merged.items() if changes} == {
        tree: changes for tree, changes in in_pieces.items() if changes
    }

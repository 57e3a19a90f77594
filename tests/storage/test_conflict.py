"""A transaction conflicts exactly when something that it read is no longer so."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.page import EMPTY, Key, Value
from qserver.storage.ranges import Range, Roots, roots_of_shard
from qserver.storage.routing import Part
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from qserver.storage.writes import TreeWrites, changed
from qserver.values.keys import Predicate
from qserver.values.steps import at_once
from tests.storage.databases import (
    PLAIN,
    commit,
    laid_out,
    overlaps,
    ranges_of,
    stale_reads,
    view_with,
    write_overlaps,
)
from tests.storage.trees import Changes, Model, changed_model, unhurried, within

pytestmark = pytest.mark.usefixtures("tiny_pages")

TREE = PLAIN.id
WHOLE = Range(TREE, None, None, 0)


# --- a single part -------------------------------------------------------------------------------


def part_of(
    base: Snapshot,
    *keys: Key,
    ranges: tuple[ScannedRange, ...] = (),
    writes: dict[Range, TreeWrites] | None = None,
) -> Part:
    """A part that read these keys of tree 1, and these ranges."""
    seen = {key: base.get_entry(TREE, key) for key in keys}
    scans = [(WHOLE, scanned) for scanned in ranges]
    return Part(0, True, base, {WHOLE: seen} if seen else {}, scans, writes or {}, ())


def snapshot_of(*rows: Value) -> Snapshot:
    """All rows in one range."""
    return view_with({row[:1]: row for row in rows}, 1, TREE)


def after(snapshot: Snapshot, changes: TreeWrites, tree: int = TREE) -> Roots:
    """What the shard has, once the snapshot has been changed."""
    before = roots_of_shard(snapshot.trees, 0)
    if not changes:
        return before
    each = Range(tree, None, None, 0)
    return before | {each: at_once(changed(before.get(each, EMPTY), changes))}


def everything(predicate: Predicate | None = None) -> ScannedRange:
    return ScannedRange(TREE, None, None, predicate)


def test_a_key_that_was_read_and_changed_is_a_conflict_that_names_it() -> None:
    base = snapshot_of((1, "a"), (2, "b"))
    part = part_of(base, (1,), (3,))
    assert stale_read(part, after(base, {})) is None
    assert stale_read(part, after(base, {(2,): (2, "other")})) is None
    for key, row in (((1,), (1, "other")), ((1,), None), ((3,), (3, "new"))):
        found = stale_read(part, after(base, {key: row}))
        assert found == Conflict("a key that was read has changed", TREE, key)


def test_a_range_that_was_read_and_changed_is_a_conflict_that_names_the_key() -> None:
    base = snapshot_of(*((at, "a") for at in range(0, 100, 2)))
    scanned = ScannedRange(TREE, (10,), (20,), None)
    part = part_of(base, ranges=(scanned,))
    for number in (8, 9, 20, 21, 99):
        assert stale_read(part, after(base, {(number,): (number, "b")})) is None
    for number in (10, 11, 18, 19):
        found = stale_read(part, after(base, {(number,): (number, "b")}))
        reason = "a range that was read has changed"
        assert found == Conflict(reason, TREE, (number,), scanned=scanned)


def test_what_returns_to_its_old_value_is_no_conflict() -> None:
    base = snapshot_of((1, "a"), (2, "b"))
    part = part_of(base, (1,), (9,), ranges=(everything(),))
    away = after(base, {(1,): (1, "x"), (2,): None, (9,): (9, "y")})
    assert stale_read(part, away) is not None
    back = {WHOLE: at_once(changed(away[WHOLE], {(1,): (1, "a"), (2,): (2, "b"), (9,): None}))}
    assert stale_read(part, back) is None
    assert overlap(part, {WHOLE: {(1,): (1, "a"), (9,): None}}, "another") is None


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (Decimal("1.0"), Decimal("1.00")),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (None, 0),
        ("a", "A"),
    ],
)
def test_values_that_a_reader_can_tell_apart_conflict(then: object, now: object) -> None:
    base = snapshot_of((7, then))
    for part in (part_of(base, (7,)), part_of(base, ranges=(everything(),))):
        assert stale_read(part, after(base, {(7,): (7, now)})) is not None
        assert stale_read(part, after(base, {(7,): (7, then)})) is None
        assert overlap(part, {WHOLE: {(7,): (7, now)}}, "another") is not None
        assert overlap(part, {WHOLE: {(7,): (7, then)}}, "another") is None


def test_two_nans_are_the_same() -> None:
    base = snapshot_of((7, float("nan")))
    part = part_of(base, (7,), ranges=(everything(),))
    assert stale_read(part, after(base, {(7,): (7, float("nan"))})) is None


def failing(row: Value) -> bool:
    raise ZeroDivisionError(f"cannot judge {row}")


def test_equal_roots_are_not_looked_into() -> None:
    base = snapshot_of((1, "a"))
    part = part_of(base, (1,), ranges=(everything(failing),))
    assert stale_read(part, after(base, {})) is None
    wrong = Part(0, True, base, {WHOLE: {(1,): ("never so",)}}, part.scans, {}, ())
    assert stale_read(wrong, after(base, {})) is None, "the same roots"
    elsewhere = after(base, {(1,): (1, "b")}, tree=9)
    assert stale_read(wrong, elsewhere) is None, "another root is new, but not this one"


def test_a_predicate_that_fails_on_a_changed_row_counts_as_a_conflict() -> None:
    base = snapshot_of((1, "a"), (2, "b"))
    part = part_of(base, ranges=(everything(failing),))
    assert stale_read(part, after(base, {(2,): (2, "c")})) is not None
    assert overlap(part, {WHOLE: {(2,): (2, "c")}}, "another") is not None
    assert stale_read(part, after(base, {(2,): (2, "b")})) is None


def test_a_predicate_that_answers_null_is_not_satisfied() -> None:
    base = snapshot_of((1, "a"))
    part = part_of(base, ranges=(everything(lambda row: None),))
    assert stale_read(part, after(base, {(1,): (1, "b")})) is None


def test_a_dropped_tree_conflicts_with_who_read_rows_of_it() -> None:
    base = snapshot_of((1, "a"))
    gone: Roots = {}
    assert stale_read(part_of(base, (1,)), gone) is not None
    assert stale_read(part_of(base, ranges=(everything(),)), gone) is not None
    assert stale_read(part_of(base, (2,)), gone) is None


def test_writes_that_meet_are_found_by_range_and_key() -> None:
    fifth, sixth = Range(5, None, None, 0), Range(6, None, None, 0)
    part = part_of(snapshot_of(), writes={WHOLE: {(1,): (1, "a"), (2,): None}, fifth: {(3,): ()}})
    assert writes_overlap(part, {}) is None
    others: dict[Range, TreeWrites] = {
        WHOLE: {(3,): (3, "b")},
        fifth: {(1,): ()},
        sixth: {(1,): ()},
    }
    assert writes_overlap(part, others) is None
    for key in ((1,), (2,)):
        found = writes_overlap(part, {WHOLE: {key: None}})
        assert found == Conflict("a key is being written by an undecided transaction", TREE, key)


# --- whole transactions against brute force ------------------------------------------------------

numbers = st.tuples(st.integers(0, 30))
rows = st.sampled_from(["a", "b", Decimal("1.0"), Decimal("1.00"), 1, True, None])
models = st.dictionaries(numbers, st.tuples(rows), max_size=30)
changes = st.dictionaries(numbers, st.none() | st.tuples(rows), max_size=6)
wipes = st.tuples(st.integers(0, 31), st.integers(0, 31)).map(
    lambda ends: dict.fromkeys([(at,) for at in range(*sorted(ends))])
)
bounds = st.none() | st.tuples(st.integers(-1, 31))
TINY = (4, 2)
sizes = st.sampled_from([TINY, (1, 0), (3, 1), (3, 0), (9, 4), (50_000, 5_000)])
"""At which ranges are cut and joined."""


def counted(row: Value) -> bool:
    """Stands for a count, to which only new and deleted rows matter."""
    return True


PREDICATES: tuple[Callable[[Value], object] | None, ...] = (
    None,
    counted,
    lambda row: row[0] == "a",
    lambda row: row[0] is None,
    lambda row: None if row[0] is None else row[0] == 1,
    lambda row: False,
)
scans = st.tuples(bounds, bounds, st.sampled_from(PREDICATES))
Scan = tuple[Key | None, Key | None, Predicate | None]


def differs(was: Value | None, now: Value | None) -> bool:
    """1.0 and 1.00, or 1 and true, are told apart by how they are spelled."""
    return repr(was) != repr(now)


def should_conflict(before: Model, after: Model, keys: set[Key], scanned: list[Scan]) -> bool:
    changed = {
        key: [row for row in (before.get(key), after.get(key)) if row is not None]
        for key in before | after
        if differs(before.get(key), after.get(key))
    }
    return any(key in changed for key in keys) or any(
        len(changed[key]) == 1
        if predicate is counted
        else predicate is None or any(predicate(row) for row in changed[key])
        for low, high, predicate in scanned
        for key in within(dict.fromkeys(changed, ()), low, high)
    )


def reading(snapshot: Snapshot, keys: set[Key], scanned: list[Scan]) -> Transaction:
    transaction = Transaction(snapshot)
    for key in sorted(keys):
        transaction.get_entry(TREE, key)
    for low, high, predicate in scanned:
        if predicate is counted:
            transaction.count(TREE, low, high)
            continue
        for _ in transaction.scan(TREE, low, high, predicate):
            pass
    return transaction


@unhurried
@given(
    before=models,
    steps=st.lists(st.tuples(changes | wipes, sizes), max_size=3),
    keys=st.sets(numbers, max_size=3),
    scanned=st.lists(scans, max_size=2),
    shards=st.integers(1, 3),
    size=sizes,
)
@example(
    before={(1,): ("a",)},
    steps=[({(1,): ("b",)}, TINY), ({(1,): ("a",)}, TINY)],
    keys={(1,)},
    scanned=[(None, None, None)],
    shards=2,
    size=TINY,
)
@example(  # a range becomes empty and joins one that did not change
    before={(1,): ("a",), (2,): ("a",), (3,): ("a",), (4,): ("a",), (5,): ("a",)},
    steps=[({(3,): None, (4,): None, (5,): None}, (3, 1)), ({}, (9, 4))],
    keys={(5,)},
    scanned=[],
    shards=2,
    size=(3, 0),
)
def test_a_read_is_stale_exactly_when_what_was_read_differs(
    before: Model,
    steps: list[tuple[Changes, tuple[int, int]]],
    keys: set[Key],
    scanned: list[Scan],
    shards: int,
    size: tuple[int, int],
) -> None:
    """However the tree was cut when it was read, and is now."""
    with ranges_of(*size):
        snapshot = view_with(before, shards, TREE)
    reader = reading(snapshot, keys, scanned)
    now, after = snapshot, before
    for step, then in steps:
        with ranges_of(*then):
            now, after = commit(writing(now, step)), changed_model(after, step)
            now = laid_out(now)
    found = stale_reads(reader, now)
    assert bool(found) == should_conflict(before, after, keys, scanned)
    for conflict in found:
        assert conflict.tree == TREE
        assert conflict.key is not None
        assert differs(before.get(conflict.key), after.get(conflict.key))


def writing(snapshot: Snapshot, changes: Changes) -> Transaction:
    writer = Transaction(snapshot)
    for key, row in changes.items():
        writer.put_entry(TREE, key, row)
    return writer


@unhurried
@given(
    before=models,
    writes=changes,
    keys=st.sets(numbers, max_size=3),
    scanned=st.lists(scans, max_size=2),
    shards=st.integers(1, 3),
    size=sizes,
)
def test_accepted_writes_overlap_a_read_exactly_when_they_make_it_differ(
    before: Model,
    writes: Changes,
    keys: set[Key],
    scanned: list[Scan],
    shards: int,
    size: tuple[int, int],
) -> None:
    """Also when the newest snapshot is cut otherwise than the one that was read."""
    snapshot = view_with(before, shards, TREE)
    with ranges_of(*size):
        newest = laid_out(snapshot)
    found = overlaps(reading(snapshot, keys, scanned), writing(newest, writes), newest)
    after = changed_model(before, writes)
    assert bool(found) == should_conflict(before, after, keys, scanned)


@unhurried
@given(before=models, one=changes, other=changes, shards=st.integers(1, 3))
def test_two_deltas_overlap_exactly_when_they_share_a_key(
    before: Model, one: Changes, other: Changes, shards: int
) -> None:
    snapshot = view_with(before, shards, TREE)
    found = write_overlaps(writing(snapshot, one), writing(snapshot, other), snapshot)
    assert bool(found) == (not one.keys().isdisjoint(other))

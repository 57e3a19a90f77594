"""A transaction conflicts exactly when something that it read is no longer so."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage.btree import Key, Value
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.partition import Partition, Writes
from qserver.storage.transaction import Part, ScannedRange, Transaction
from qserver.storage.view import Predicate, View
from tests.storage.databases import PLAIN, commit, database, view_with
from tests.storage.trees import Changes, Model, changed_model, unhurried, within

pytestmark = pytest.mark.usefixtures("tiny_pages")

TREE = PLAIN.id


# --- a single part -------------------------------------------------------------------------------


def part_of(
    base: Partition,
    *keys: Key,
    ranges: tuple[ScannedRange, ...] = (),
    writes: Writes | None = None,
) -> Part:
    """A part that read these keys of tree 1, and these ranges."""
    seen = {(TREE, key): dict(base_entries(base)).get(key) for key in keys}
    return Part(0, True, base, seen, list(ranges), writes or {}, ())


def base_entries(base: Partition) -> list[tuple[Key, Value]]:
    view = View(0, 0.0, database(1).catalog, (base,))
    return [entry for page in view.pages(TREE) for entry in zip(*page, strict=True)]


def partition_with(*rows: Value) -> Partition:
    return Partition().changed({TREE: {row[:1]: row for row in rows}})


def everything(predicate: Predicate | None = None) -> ScannedRange:
    return ScannedRange(TREE, None, None, predicate)


def test_a_key_that_was_read_and_changed_is_a_conflict_that_names_it() -> None:
    base = partition_with((1, "a"), (2, "b"))
    part = part_of(base, (1,), (3,))
    assert stale_read(part, base) is None
    assert stale_read(part, base.changed({TREE: {(2,): (2, "other")}})) is None
    for key, row in (((1,), (1, "other")), ((1,), None), ((3,), (3, "new"))):
        found = stale_read(part, base.changed({TREE: {key: row}}))
        assert found == Conflict("a key that was read has changed", TREE, key)


def test_a_range_that_was_read_and_changed_is_a_conflict_that_names_the_key() -> None:
    base = partition_with(*((at, "a") for at in range(0, 100, 2)))
    part = part_of(base, ranges=(ScannedRange(TREE, (10,), (20,), None),))
    for number in (8, 9, 20, 21, 99):
        assert stale_read(part, base.changed({TREE: {(number,): (number, "b")}})) is None
    for number in (10, 11, 18, 19):
        found = stale_read(part, base.changed({TREE: {(number,): (number, "b")}}))
        assert found == Conflict("a range that was read has changed", TREE, (number,))


def test_what_returns_to_its_old_value_is_no_conflict() -> None:
    base = partition_with((1, "a"), (2, "b"))
    part = part_of(base, (1,), (9,), ranges=(everything(),))
    away = base.changed({TREE: {(1,): (1, "x"), (2,): None, (9,): (9, "y")}})
    assert stale_read(part, away) is not None
    back = away.changed({TREE: {(1,): (1, "a"), (2,): (2, "b"), (9,): None}})
    assert stale_read(part, back) is None
    assert overlap(part, {TREE: {(1,): (1, "a"), (9,): None}}, "another") is None


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
    base = partition_with((7, then))
    for part in (part_of(base, (7,)), part_of(base, ranges=(everything(),))):
        assert stale_read(part, base.changed({TREE: {(7,): (7, now)}})) is not None
        assert stale_read(part, base.changed({TREE: {(7,): (7, then)}})) is None
        assert overlap(part, {TREE: {(7,): (7, now)}}, "another") is not None
        assert overlap(part, {TREE: {(7,): (7, then)}}, "another") is None


def test_two_nans_are_the_same() -> None:
    base = partition_with((7, float("nan")))
    part = part_of(base, (7,), ranges=(everything(),))
    assert stale_read(part, base.changed({TREE: {(7,): (7, float("nan"))}})) is None


def failing(row: Value) -> bool:
    raise ZeroDivisionError(f"cannot judge {row}")


def test_equal_roots_are_not_looked_into() -> None:
    base = partition_with((1, "a"))
    part = part_of(base, (1,), ranges=(everything(failing),))
    assert stale_read(part, base) is None
    wrong = Part(0, True, base, {(TREE, (1,)): ("never so",)}, part.ranges, {}, ())
    assert stale_read(wrong, base) is None, "the same partition"
    elsewhere = base.changed({9: {(1,): (1, "b")}})
    assert stale_read(wrong, elsewhere) is None, "another partition, but the same tree"


def test_a_predicate_that_fails_on_a_changed_row_counts_as_a_conflict() -> None:
    base = partition_with((1, "a"), (2, "b"))
    part = part_of(base, ranges=(everything(failing),))
    assert stale_read(part, base.changed({TREE: {(2,): (2, "c")}})) is not None
    assert overlap(part, {TREE: {(2,): (2, "c")}}, "another") is not None
    assert stale_read(part, base.changed({TREE: {(2,): (2, "b")}})) is None


def test_a_predicate_that_answers_null_is_not_satisfied() -> None:
    base = partition_with((1, "a"))
    part = part_of(base, ranges=(everything(lambda row: None),))
    assert stale_read(part, base.changed({TREE: {(1,): (1, "b")}})) is None


def test_a_dropped_tree_conflicts_with_who_read_rows_of_it() -> None:
    base = partition_with((1, "a"))
    gone = base.changed({}, dropped=[TREE])
    assert stale_read(part_of(base, (1,)), gone) is not None
    assert stale_read(part_of(base, ranges=(everything(),)), gone) is not None
    assert stale_read(part_of(base, (2,)), gone) is None


def test_writes_that_meet_are_found_by_tree_and_key() -> None:
    part = part_of(Partition(), writes={TREE: {(1,): (1, "a"), (2,): None}, 5: {(3,): ()}})
    assert writes_overlap(part, {}) is None
    assert writes_overlap(part, {TREE: {(3,): (3, "b")}, 5: {(1,): ()}, 6: {(1,): ()}}) is None
    for key in ((1,), (2,)):
        found = writes_overlap(part, {TREE: {key: None}})
        assert found == Conflict("a key is being written by an undecided transaction", TREE, key)


# --- whole transactions against brute force ------------------------------------------------------

numbers = st.tuples(st.integers(0, 30))
rows = st.sampled_from(["a", "b", Decimal("1.0"), Decimal("1.00"), 1, True, None])
models = st.dictionaries(numbers, st.tuples(rows), max_size=30)
changes = st.dictionaries(numbers, st.none() | st.tuples(rows), max_size=6)
bounds = st.none() | st.tuples(st.integers(-1, 31))

PREDICATES: tuple[Callable[[Value], object] | None, ...] = (
    None,
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
        predicate is None or any(predicate(row) for row in changed[key])
        for low, high, predicate in scanned
        for key in within(dict.fromkeys(changed, ()), low, high)
    )


def reading(view: View, keys: set[Key], scanned: list[Scan]) -> Transaction:
    transaction = Transaction(view)
    for key in sorted(keys):
        transaction.get_entry(TREE, key)
    for low, high, predicate in scanned:
        for _ in transaction.scan(TREE, low, high, predicate):
            pass
    return transaction


@unhurried
@given(
    before=models,
    steps=st.lists(changes, max_size=3),
    keys=st.sets(numbers, max_size=3),
    scanned=st.lists(scans, max_size=2),
    shards=st.integers(1, 3),
)
@example(
    before={(1,): ("a",)},
    steps=[{(1,): ("b",)}, {(1,): ("a",)}],
    keys={(1,)},
    scanned=[(None, None, None)],
    shards=2,
)
def test_a_read_is_stale_exactly_when_what_was_read_differs(
    before: Model, steps: list[Changes], keys: set[Key], scanned: list[Scan], shards: int
) -> None:
    view = view_with(before, shards, TREE)
    parts = reading(view, keys, scanned).parts(position=0)
    now, after = view, before
    for step in steps:
        writer = Transaction(now)
        for key, row in step.items():
            writer.put_entry(TREE, key, row)
        now, after = commit(writer), changed_model(after, step)
    found = [stale_read(part, now.shards[shard]) for shard, part in parts.items()]
    assert any(found) == should_conflict(before, after, keys, scanned)
    for conflict in filter(None, found):
        assert conflict.tree == TREE
        assert conflict.key is not None
        assert differs(before.get(conflict.key), after.get(conflict.key))


@unhurried
@given(
    before=models,
    writes=changes,
    keys=st.sets(numbers, max_size=3),
    scanned=st.lists(scans, max_size=2),
    shards=st.integers(1, 3),
)
def test_accepted_writes_overlap_a_read_exactly_when_they_make_it_differ(
    before: Model, writes: Changes, keys: set[Key], scanned: list[Scan], shards: int
) -> None:
    view = view_with(before, shards, TREE)
    parts = reading(view, keys, scanned).parts(position=0)
    writer = Transaction(view)
    for key, row in writes.items():
        writer.put_entry(TREE, key, row)
    found = [
        overlap(part, writer.writes.get(shard, {}), "another") for shard, part in parts.items()
    ]
    after = changed_model(before, writes)
    assert any(found) == should_conflict(before, after, keys, scanned)


@unhurried
@given(one=changes, other=changes, shards=st.integers(1, 3))
def test_two_deltas_overlap_exactly_when_they_share_a_key(
    one: Changes, other: Changes, shards: int
) -> None:
    mine, theirs = Transaction(database(shards)), Transaction(database(shards))
    for transaction, delta in ((mine, one), (theirs, other)):
        for key, row in delta.items():
            transaction.put_entry(TREE, key, row)
    found = [
        writes_overlap(part, theirs.writes.get(shard, {}))
        for shard, part in mine.parts(position=0).items()
    ]
    assert any(found) == (not one.keys().isdisjoint(other))

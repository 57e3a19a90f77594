"""A scan shows the snapshot with own and earlier writes made, and counts as read what it showed."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.storage.page import Key, Value
from qserver.storage.transaction import Transaction
from qserver.values.keys import TOP
from tests.storage.databases import PLAIN, database_with, flat, ranges_of, view_with
from tests.storage.trees import Changes, changed_model, unhurried, within

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

numbers = st.tuples(st.integers(0, 50))
models = st.sets(numbers, max_size=40).map(lambda keys: {key: (*key, "snapshot") for key in keys})
bounds = st.none() | st.tuples(st.integers(-1, 51))


def changes(name: str) -> st.SearchStrategy[Changes]:
    """Some keys, each to be deleted or to become a row that says by whom."""
    return st.dictionaries(numbers, st.booleans(), max_size=15).map(
        lambda kept: {key: (*key, name) if kept[key] else None for key in kept}
    )


def transaction_on(
    model: dict[Key, Value], earlier: Changes, own: Changes, shards: int
) -> Transaction:
    snapshot = view_with(model, shards, PLAIN.id)
    before = Transaction(snapshot)
    for key, row in earlier.items():
        before.put_entry(PLAIN.id, key, row)
    transaction = Transaction(snapshot, before.writes)
    for key, row in own.items():
        transaction.put_entry(PLAIN.id, key, row)
    return transaction


@unhurried
@given(
    model=models,
    earlier=changes("earlier"),
    own=changes("own"),
    shards=st.integers(1, 4),
    low=bounds,
    high=bounds,
)
def test_a_scan_shows_the_snapshot_with_the_writes_made_in_either_direction(
    model: dict[Key, Value],
    earlier: Changes,
    own: Changes,
    shards: int,
    low: Key | None,
    high: Key | None,
) -> None:
    transaction = transaction_on(model, earlier, own, shards)
    now = changed_model(changed_model(model, earlier), own)
    expected = [(key, now[key]) for key in within(now, low, high)]
    forward = list(transaction.scan(PLAIN.id, low, high))
    backward = list(transaction.scan(PLAIN.id, low, high, backward=True))
    assert all(keys for keys, _ in (*forward, *backward)), "no page is empty"
    assert flat(forward) == expected
    assert flat(backward) == expected[::-1]
    assert transaction.rows(PLAIN, low, high) == [row for _, row in expected]
    pages = list(transaction.scan_values(PLAIN.id, low, high))
    assert sorted(row for page in pages for row in page) == [row for _, row in expected]
    assert transaction.count(PLAIN.id, low, high) == len(expected)
    for key in model | earlier | own:
        assert transaction.get(PLAIN, key) == now.get(key)
    assert [(each.low, each.high) for each in transaction.ranges] == [(low, high)] * 5


@unhurried
@given(
    model=models,
    own=changes("own"),
    shards=st.integers(1, 4),
    low=bounds,
    high=bounds,
    backward=st.booleans(),
    limit=st.integers(0, 60),
)
def test_a_limit_is_a_hint_that_changes_the_pages_and_not_what_is_in_them(
    model: dict[Key, Value],
    own: Changes,
    shards: int,
    low: Key | None,
    high: Key | None,
    backward: bool,
    limit: int,
) -> None:
    transaction = transaction_on(model, {}, own, shards)
    plain = flat(transaction.scan(PLAIN.id, low, high, backward=backward))
    hinted = list(transaction.scan(PLAIN.id, low, high, backward=backward, limit=limit))
    assert flat(hinted) == plain
    assert all(keys for keys, _ in hinted), "no page is empty"


def test_with_a_limit_the_first_page_has_that_many_and_no_more_counts_as_read() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(90)}, {}, {}, 4)
    for keys, _ in transaction.scan(PLAIN.id, (5,), limit=7):
        assert keys == [(at,) for at in range(5, 12)]
        break
    for keys, _ in transaction.scan(PLAIN.id, (5,), backward=True, limit=7):
        assert keys == [(at,) for at in range(89, 82, -1)]
        break
    forward, backward = transaction.ranges
    assert (forward.low, forward.high) == ((5,), (11, TOP))
    assert (backward.low, backward.high) == ((83,), None)


def test_a_scan_values_hands_out_one_leaf_and_then_many_at_once() -> None:
    with ranges_of(50, 5):
        transaction = transaction_on({(at,): (at, "snapshot") for at in range(30)}, {}, {}, 2)
    runs = list(transaction.scan_values(PLAIN.id))
    leaves = [values for _, values in transaction.snapshot.pages(PLAIN.id)]
    assert runs[0] == leaves[0]
    assert len(runs) < len(leaves)
    assert [row for run in runs for row in run] == [row for leaf in leaves for row in leaf]


def test_a_scan_values_counts_as_read_in_full_however_early_it_ends() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(30)}, {}, {}, 2)
    for _ in transaction.scan_values(PLAIN.id, (3,), (99,)):
        break
    (scanned,) = transaction.ranges
    assert (scanned.low, scanned.high) == ((3,), (99,))


def test_a_scan_values_does_not_see_what_is_written_while_it_runs() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(20)}, {}, {}, 2)
    transaction.put(PLAIN, (100, "before"))
    seen = []
    for rows in transaction.scan_values(PLAIN.id):
        for row in rows:
            seen.append(row)
            transaction.put(PLAIN, (row[0] + 1000, "during"))
    assert sorted(seen) == [*((at, "snapshot") for at in range(20)), (100, "before")]


@unhurried
@given(
    model=models,
    own=changes("own"),
    low=bounds,
    high=bounds,
    backward=st.booleans(),
    pages_taken=st.integers(1, 6),
)
def test_a_scan_that_is_closed_early_counts_as_read_what_it_showed(
    model: dict[Key, Value],
    own: Changes,
    low: Key | None,
    high: Key | None,
    backward: bool,
    pages_taken: int,
) -> None:
    transaction = transaction_on(model, {}, own, shards=2)
    now = changed_model(model, own)
    scan = transaction.scan(PLAIN.id, low, high, backward=backward)
    pages = list(islice(scan, pages_taken))
    scan.close()  # type: ignore[attr-defined]
    (scanned,) = transaction.ranges
    shown = [key for keys, _ in pages for key in keys]
    assert sorted(key for key in now if key in scanned) == sorted(shown)
    if backward:
        assert scanned.high == high
        assert scanned.low in (low, *shown[-1:])
    else:
        assert scanned.low == low
        assert scanned.high in (high, *((*key, TOP) for key in shown[-1:]))


def test_a_scan_that_is_finished_counts_as_read_in_full() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(30)}, {}, {}, 2)
    assert len(flat(transaction.scan(PLAIN.id, (3,), (99,)))) == 27
    (scanned,) = transaction.ranges
    assert (scanned.low, scanned.high) == ((3,), (99,))


def test_a_scan_that_is_forgotten_half_way_counts_as_read_in_full() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(30)}, {}, {}, 2)
    for backward in (False, True):
        scan = transaction.scan(PLAIN.id, (3,), (99,), backward=backward)
        next(scan)
        (*_, scanned) = transaction.ranges
        assert (scanned.low, scanned.high) == ((3,), (99,)), "while somebody may still go on"


def test_a_scan_that_was_never_begun_counts_as_read_in_full() -> None:
    transaction = transaction_on({(1,): (1, "snapshot")}, {}, {}, 2)
    transaction.scan(PLAIN.id, (3,), (99,)).close()  # type: ignore[attr-defined]
    (scanned,) = transaction.ranges
    assert (scanned.low, scanned.high) == ((3,), (99,))


def test_leaving_a_loop_closes_its_scan() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(30)}, {}, {}, 1)
    for keys, _ in transaction.scan(PLAIN.id):
        assert keys == [(0,), (1,), (2,)]
        break
    (scanned,) = transaction.ranges
    assert (scanned.low, scanned.high) == (None, (2, TOP))


def test_an_empty_range_is_read_as_well() -> None:
    transaction = transaction_on({}, {}, {}, 3)
    assert transaction.rows(PLAIN, (1,), (5,)) == []
    (scanned,) = transaction.ranges
    assert (scanned.tree, scanned.low, scanned.high) == (PLAIN.id, (1,), (5,))
    assert transaction.keys == {}


def test_a_predicate_is_noted_by_a_scan_and_applied_by_rows() -> None:
    transaction = Transaction(database_with((1, "a"), (2, "b"), (3, "a"), table=PLAIN))

    def is_a(row: Value) -> bool:
        return bool(row[1] == "a")

    assert len(flat(transaction.scan(PLAIN.id, predicate=is_a))) == 3
    assert transaction.rows(PLAIN, predicate=is_a) == [(1, "a"), (3, "a")]
    assert [scanned.predicate for scanned in transaction.ranges] == [is_a, is_a]


def test_a_scan_does_not_see_what_is_written_while_it_runs() -> None:
    transaction = transaction_on({(at,): (at, "snapshot") for at in range(20)}, {}, {}, 2)
    transaction.put(PLAIN, (100, "before"))
    seen = []
    for _, rows in transaction.scan(PLAIN.id):
        for row in rows:
            seen.append(row)
            transaction.put(PLAIN, (row[0] + 1000, "during"))
    assert seen == [*((at, "snapshot") for at in range(20)), (100, "before")]
    assert len(transaction.rows(PLAIN)) == 42


def test_a_range_holds_its_low_end_and_not_its_high_end() -> None:
    transaction = Transaction(database_with(table=PLAIN))
    transaction.scan(PLAIN.id, (2,), (4,))
    transaction.scan(PLAIN.id)
    some, everything = transaction.ranges
    assert [number for number in range(6) if (number,) in some] == [2, 3]
    assert all((number,) in everything for number in range(6))

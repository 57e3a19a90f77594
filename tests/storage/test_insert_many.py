"""Many rows at once go in as one after the other would, and what was seen counts as read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import UniqueViolation
from qserver.storage.btree import entries_at, pages, value_runs
from qserver.storage.page import Key, Value
from qserver.storage.transaction import Transaction
from tests.storage.databases import EMAIL, PEOPLE, PLAIN, commit, database_with, flat, view_with
from tests.storage.trees import tree_of, unhurried

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

numbers = st.integers(0, 40)
people = st.tuples(
    numbers,
    st.none() | st.sampled_from("abcdefghij"),
    st.sampled_from(["here", "there"]),
    st.none(),
)
bounds = st.none() | st.tuples(st.integers(-1, 41))


@unhurried
@given(
    st.lists(people, max_size=4, unique_by=(lambda row: row[0], lambda row: row[1] or row[0])),
    st.lists(numbers, max_size=3),
    st.lists(people, min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_many_rows_go_in_as_one_after_the_other_would(
    there: list[Value], gone: list[int], rows: list[Value], shards: int
) -> None:
    snapshot = database_with(*there, shards=shards)
    one_by_one, at_once = Transaction(snapshot), Transaction(snapshot)
    outcomes = []
    for transaction in (one_by_one, at_once):
        for number in gone:
            transaction.delete(PEOPLE, (number,))
        transaction.journal = []
        try:
            if transaction is at_once:
                transaction.insert_many(PEOPLE, rows)
            else:
                for row in rows:
                    transaction.insert(PEOPLE, row)
        except UniqueViolation as error:
            outcomes.append((error.detail, error.constraint))
        else:
            outcomes.append((None, None))
            assert transaction.journal == [(PEOPLE, None, row) for row in rows]
    assert outcomes[0] == outcomes[1]
    if outcomes[0] == (None, None):
        assert one_by_one.writes == at_once.writes
        assert one_by_one.keys == at_once.keys


def test_that_the_keys_of_many_rows_were_free_is_part_of_the_footprint() -> None:
    transaction = Transaction(database_with(shards=2))
    transaction.insert_many(PEOPLE, [(at, f"{at}@x", "here", None) for at in range(5)])
    assert transaction.keys[PEOPLE.id] == {(at,): None for at in range(5)}
    assert len(transaction.keys[EMAIL.id]) == 5


def test_the_first_row_that_is_in_the_way_is_named() -> None:
    transaction = Transaction(database_with((3, "a", "here", None)))
    with pytest.raises(UniqueViolation) as caught:
        transaction.insert_many(PEOPLE, [(1, "b", "here", None), (3, "c", "here", None)])
    assert caught.value.detail == "Key (id)=(3) already exists."


@unhurried
@given(st.sets(st.tuples(numbers)), st.sets(st.tuples(numbers)))
def test_the_entries_at_some_keys_are_found_together(stored: set[Key], asked: set[Key]) -> None:
    tree = tree_of({key: (*key, "stored") for key in stored})
    assert entries_at(tree, sorted(asked)) == {key: (*key, "stored") for key in stored & asked}


@unhurried
@given(st.sets(st.tuples(numbers)), bounds, bounds)
def test_runs_hold_the_values_of_the_pages(
    stored: set[Key], low: Key | None, high: Key | None
) -> None:
    tree = tree_of({key: (*key, "stored") for key in stored})
    runs = list(value_runs(tree, low, high))
    assert all(runs)
    plain = [row for _, values in pages(tree, low, high) for row in values]
    assert [row for run in runs for row in run] == plain


@unhurried
@given(st.sets(st.tuples(numbers)), bounds, bounds, st.booleans(), st.integers(0, 50))
def test_a_snapshot_shows_what_a_transaction_does(
    stored: set[Key], low: Key | None, high: Key | None, backward: bool, limit: int
) -> None:
    snapshot = view_with({key: (*key, "stored") for key in stored}, 3, PLAIN.id)
    transaction = Transaction(snapshot)
    for number in range(42):
        assert snapshot.get_entry(PLAIN.id, (number,)) == transaction.get(PLAIN, (number,))
    ways = [
        reader.scan(PLAIN.id, low, high, None, backward, limit)
        for reader in (snapshot, transaction)
    ]
    assert flat(ways[0]) == flat(ways[1])
    anyhow = [reader.scan_values(PLAIN.id, low, high) for reader in (snapshot, transaction)]
    assert list(anyhow[0]) == list(anyhow[1])
    assert snapshot.find_definition("plain") == PLAIN


def test_what_went_in_together_is_there_after_the_commit() -> None:
    transaction = Transaction(database_with(shards=4))
    rows: list[Value] = [(at, None, "here", None) for at in range(300)]
    transaction.insert_many(PEOPLE, rows)
    assert Transaction(commit(transaction)).rows(PEOPLE) == rows

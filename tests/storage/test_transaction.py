"""What a transaction reads it notes, what it writes it reads again, and indexes follow rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from qserver.errors import UniqueViolation
from qserver.storage.page import Value
from qserver.storage.transaction import Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, Writes, merge_writes
from qserver.values.keys import NULL_KEY, Descending
from qserver.values.schema import Column, define_table
from qserver.values.steps import at_once
from qserver.values.types import INTEGER, TEXT, char
from tests.storage.databases import (
    EMAIL,
    PEOPLE,
    PLACE,
    PLAIN,
    commit,
    database,
    database_with,
    tree_entries,
)
from tests.values.making import define_index

ADA: Value = (1, "ada@x", "London", Decimal("9.5"))
BOB: Value = (2, "bob@x", "Paris", Decimal("7"))
EVE: Value = (3, None, "London", None)


# --- reading -------------------------------------------------------------------------------------


def test_a_read_is_noted_with_what_was_seen_there() -> None:
    snapshot = database_with(ADA, BOB)
    transaction = Transaction(snapshot)
    assert transaction.get(PEOPLE, (1,)) is ADA
    assert transaction.get(PEOPLE, (8,)) is None
    assert transaction.get_entry(EMAIL.id, ("bob@x",)) == (2,)
    assert transaction.keys == {2: {(1,): ADA, (8,): None}, 3: {("bob@x",): (2,)}}
    assert not transaction.changes_anything


def test_own_writes_are_read_back_and_are_no_knowledge_of_the_database() -> None:
    transaction = Transaction(database(3))
    transaction.put(PLAIN, (1, "mine"))
    assert transaction.get(PLAIN, (1,)) == (1, "mine")
    assert transaction.delete(PLAIN, (1,)) == (1, "mine")
    assert transaction.get(PLAIN, (1,)) is None
    assert transaction.keys == {}


def test_writes_of_the_same_turn_lie_between_own_writes_and_the_snapshot() -> None:
    snapshot = database_with(
        (1, "snapshot"), (2, "snapshot"), (3, "snapshot"), (4, "snapshot"), table=PLAIN
    )
    before = Transaction(snapshot)
    before.put(PLAIN, (2, "earlier"))
    before.put(PLAIN, (3, "earlier"))
    before.delete(PLAIN, (4,))
    transaction = Transaction(snapshot, before.writes)
    transaction.put(PLAIN, (3, "own"))
    seen = [transaction.get(PLAIN, (number,)) for number in (1, 2, 3, 4, 5)]
    assert seen == [(1, "snapshot"), (2, "earlier"), (3, "own"), None, None]
    noted = {key for keys in transaction.keys.values() for key in keys}
    assert noted == {(1,), (5,)}


def test_a_transaction_that_only_reads_changes_nothing() -> None:
    transaction = Transaction(database_with(ADA))
    transaction.table("people")
    transaction.rows(PEOPLE)
    assert not transaction.changes_anything
    assert not transaction.changes_catalog


# --- writing and indexes -------------------------------------------------------------------------


def test_inserting_adds_an_entry_to_each_index() -> None:
    snapshot = database_with(ADA, BOB, EVE)
    assert tree_entries(snapshot, PEOPLE.id) == {(1,): ADA, (2,): BOB, (3,): EVE}
    assert tree_entries(snapshot, EMAIL.id) == {
        ("ada@x",): (1,),
        ("bob@x",): (2,),
        (NULL_KEY, 3): (3,),
    }
    assert tree_entries(snapshot, PLACE.id) == {
        ("London", Descending(Decimal("9.5")), 1): (1,),
        ("Paris", Descending(Decimal(7)), 2): (2,),
        ("London", Descending(NULL_KEY), 3): (3,),
    }


def test_replacing_a_row_moves_its_entries() -> None:
    transaction = Transaction(database_with(ADA, BOB))
    transaction.put(PEOPLE, (1, "ada@y", None, Decimal("9.5")))
    snapshot = commit(transaction)
    assert tree_entries(snapshot, EMAIL.id) == {("ada@y",): (1,), ("bob@x",): (2,)}
    assert tree_entries(snapshot, PLACE.id) == {
        (NULL_KEY, Descending(Decimal("9.5")), 1): (1,),
        ("Paris", Descending(Decimal(7)), 2): (2,),
    }


def test_an_index_whose_columns_do_not_change_is_not_written() -> None:
    transaction = Transaction(database_with(ADA))
    transaction.put(PEOPLE, (1, "ada@x", "Rome", Decimal("9.50")))
    assert transaction.writes.keys() == {PEOPLE.id, PLACE.id}


def test_a_number_that_is_equal_but_written_otherwise_changes_the_row_only() -> None:
    transaction = Transaction(database_with(ADA))
    row = (1, "ada@x", "London", Decimal("9.50"))
    transaction.put(PEOPLE, row)
    snapshot = commit(transaction)
    assert str(tree_entries(snapshot, PEOPLE.id)[1,][3]) == "9.50"
    assert transaction.writes.keys() == {PEOPLE.id}


def test_deleting_removes_the_entries_and_says_what_was_there() -> None:
    transaction = Transaction(database_with(ADA, BOB, EVE))
    assert transaction.delete(PEOPLE, (3,)) is EVE
    assert transaction.delete(PEOPLE, (1,)) is ADA
    snapshot = commit(transaction)
    assert tree_entries(snapshot, PEOPLE.id) == {(2,): BOB}
    assert tree_entries(snapshot, EMAIL.id) == {("bob@x",): (2,)}
    assert list(tree_entries(snapshot, PLACE.id).values()) == [(2,)]


def test_deleting_what_is_absent_is_a_read_and_no_write() -> None:
    transaction = Transaction(database_with(ADA))
    assert transaction.delete(PEOPLE, (9,)) is None
    assert not transaction.changes_anything
    assert transaction.keys == {PEOPLE.id: {(9,): None}}


def test_a_put_without_indexes_is_blind() -> None:
    transaction = Transaction(database_with((1, "old"), table=PLAIN))
    transaction.put(PLAIN, (1, "new"))
    assert transaction.keys == {}
    assert transaction.writes == {PLAIN.id: {(1,): (1, "new")}}


# --- unique keys ---------------------------------------------------------------------------------


def test_a_second_row_with_a_primary_key_is_refused_in_the_words_of_postgresql() -> None:
    transaction = Transaction(database_with(ADA))
    with pytest.raises(UniqueViolation) as caught:
        transaction.insert(PEOPLE, (1, "else@x", None, None))
    error = caught.value
    assert str(error) == 'duplicate key value violates unique constraint "people_pkey"'
    assert error.detail == "Key (id)=(1) already exists."
    assert (error.table, error.constraint) == ("people", "people_pkey")
    assert not transaction.writes


def test_a_second_row_in_a_unique_index_is_refused_in_the_words_of_postgresql() -> None:
    transaction = Transaction(database_with(ADA, BOB))
    for row in ((9, "ada@x", None, None), (2, "ada@x", None, None)):
        with pytest.raises(UniqueViolation) as caught:
            transaction.put(PEOPLE, row)
        error = caught.value
        assert str(error) == 'duplicate key value violates unique constraint "people_email_key"'
        assert error.detail == "Key (email)=(ada@x) already exists."
        assert (error.table, error.constraint) == ("people", "people_email_key")


def test_the_detail_names_all_columns_and_shows_values_as_a_client_sees_them() -> None:
    columns = [Column("day", INTEGER), Column("code", char(4)), Column("room", TEXT)]
    table = define_table(5, "visits", columns, ["day", "code"])
    table = table.with_index(define_index(6, "one_room", table, ["room", "day"], unique=True))
    transaction = Transaction(database(2))
    transaction.insert(table, (1, "ab", "attic"))
    with pytest.raises(UniqueViolation) as caught:
        transaction.insert(table, (1, "ab", "attic"))
    assert caught.value.detail == "Key (day, code)=(1, ab  ) already exists."
    with pytest.raises(UniqueViolation) as caught:
        transaction.insert(table, (1, "cd", "attic"))
    assert caught.value.detail == "Key (room, day)=(attic, 1) already exists."


def test_a_refusal_depends_on_the_key_that_was_found() -> None:
    transaction = Transaction(database_with(ADA))
    with pytest.raises(UniqueViolation):
        transaction.insert(PEOPLE, (9, "ada@x", None, None))
    assert transaction.keys == {PEOPLE.id: {(9,): None}, EMAIL.id: {("ada@x",): (1,)}}


def test_nulls_in_a_unique_index_are_distinct() -> None:
    snapshot = database_with(EVE, (4, None, None, None), (5, None, None, None))
    assert set(tree_entries(snapshot, EMAIL.id)) == {(NULL_KEY, 3), (NULL_KEY, 4), (NULL_KEY, 5)}


def test_own_rows_count_for_unique_keys() -> None:
    transaction = Transaction(database(3))
    transaction.insert(PEOPLE, ADA)
    with pytest.raises(UniqueViolation, match="people_pkey"):
        transaction.insert(PEOPLE, ADA)
    with pytest.raises(UniqueViolation, match="people_email_key"):
        transaction.insert(PEOPLE, (9, "ada@x", None, None))


def test_a_unique_key_that_was_given_up_may_be_taken_in_the_same_transaction() -> None:
    transaction = Transaction(database_with(ADA, BOB))
    transaction.delete(PEOPLE, (1,))
    transaction.insert(PEOPLE, (9, "ada@x", None, None))
    transaction.put(PEOPLE, (2, "bob@y", None, None))
    transaction.put(PEOPLE, (8, "bob@x", None, None))
    entries = tree_entries(commit(transaction), EMAIL.id)
    assert entries == {("ada@x",): (9,), ("bob@y",): (2,), ("bob@x",): (8,)}


def test_a_row_may_keep_its_own_unique_key() -> None:
    transaction = Transaction(database_with(ADA))
    transaction.put(PEOPLE, (1, "ada@x", "Rome", None))
    transaction.put(PEOPLE, (1, "ada@x", "Oslo", None))
    snapshot = commit(transaction)
    assert tree_entries(snapshot, EMAIL.id) == {("ada@x",): (1,)}
    assert set(tree_entries(snapshot, PLACE.id)) == {("Oslo", Descending(NULL_KEY), 1)}


def test_what_many_writes_will_change_is_loaded_in_steps_even_if_all_of_it_was_read() -> None:
    transaction = Transaction(database(1))
    transaction.insert_many(PLAIN, [(number, "new") for number in range(3 * CHANGES_AT_ONCE)])
    assert transaction.keys[PLAIN.id].keys() == transaction.writes[PLAIN.id].keys()
    assert len(list(transaction.load_written())) >= 2


def test_later_deltas_win_over_earlier_ones_and_leave_them_as_they_were() -> None:
    one, other = Transaction(database(2)), Transaction(database(2))
    for number in range(8):
        one.put(PLAIN, (number, "one"))
        if number % 2:
            other.put(PLAIN, (number, "other"))
    both: Writes = {}
    at_once(merge_writes(both, one.writes))
    at_once(merge_writes(both, other.writes))
    assert both[PLAIN.id] == {(at,): (at, "other" if at % 2 else "one") for at in range(8)}
    assert all(row is not None and row[1] == "one" for row in one.writes[PLAIN.id].values())


def test_a_transaction_describes_itself() -> None:
    transaction = Transaction(database_with(ADA))
    transaction.rows(PEOPLE)
    transaction.get(PEOPLE, (1,))
    transaction.put(PLAIN, (1, "x"))
    assert repr(transaction) == (
        "a transaction on version 2 that read 1 keys and 1 ranges and writes 1 keys"
    )

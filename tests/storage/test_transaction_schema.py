"""A transaction that changes definitions sees its own changes, and nobody else does yet."""

from __future__ import annotations

import pytest

from qserver.errors import UndefinedTable
from qserver.storage.transaction import Transaction
from qserver.values.enumeration import enumeration_of
from qserver.values.schema import Column, Table, define_table
from qserver.values.types import INTEGER
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


def new_table(transaction: Transaction, name: str = "new") -> Table:
    return define_table(transaction.next_tree(), name, [Column("id", INTEGER)], ["id"])


def test_looking_up_a_table_makes_the_transaction_depend_on_it() -> None:
    transaction = Transaction(database(2))
    assert transaction.table("people") == PEOPLE
    assert transaction.find_definition("nobody") is None
    assert transaction.names_seen == {"people": PEOPLE, "nobody": None}
    assert not transaction.whole_catalog_seen


def test_a_table_that_does_not_exist_is_an_error() -> None:
    transaction = Transaction(database(2))
    for use in (transaction.table, transaction.drop_table):
        with pytest.raises(UndefinedTable, match=r'^relation "nobody" does not exist$') as caught:
            use("nobody")
        assert caught.value.table == "nobody"
    assert not transaction.changes_anything


def test_a_created_table_can_be_used_at_once() -> None:
    snapshot = database(2)
    transaction = Transaction(snapshot)
    table = new_table(transaction)
    transaction.define(table.key, table)
    assert transaction.table("new") == table
    transaction.insert(table, (5,))
    assert transaction.rows(table) == [(5,)]
    assert "new" not in snapshot.catalog.tables
    after = commit(transaction)
    assert after.catalog.tables["new"] == table
    assert tree_entries(after, table.id) == {(5,): (5,)}


def test_a_dropped_table_takes_its_rows_and_indexes_along() -> None:
    transaction = Transaction(database_with((1, "ada@x", None, None)))
    transaction.drop_table("people")
    assert transaction.find_definition("people") is None
    assert transaction.catalog_changes.dropped == (PEOPLE.id, EMAIL.id, PLACE.id)
    after = commit(transaction)
    assert set(after.catalog.tables) == {"plain"}
    assert [tree_entries(after, tree) for tree in transaction.catalog_changes.dropped] == [
        {},
        {},
        {},
    ]


def test_a_table_made_anew_has_other_trees() -> None:
    snapshot = database_with((1, "old"), table=PLAIN)
    transaction = Transaction(snapshot)
    transaction.drop_table("plain")
    table = new_table(transaction, "plain")
    transaction.define(table.key, table)
    assert table.id > snapshot.catalog.trees_used
    transaction.insert(table, (1,))
    after = commit(transaction)
    assert after.catalog.tables["plain"] == table
    assert tree_entries(after, PLAIN.id) == {}
    assert tree_entries(after, table.id) == {(1,): (1,)}
    assert tree_entries(snapshot, PLAIN.id) == {(1,): (1, "old")}


def test_a_table_that_was_created_and_dropped_leaves_nothing_but_its_number() -> None:
    snapshot = database(2)
    transaction = Transaction(snapshot)
    table = new_table(transaction)
    transaction.define(table.key, table)
    transaction.insert(table, (1,))
    transaction.drop_table("new")
    after = commit(transaction)
    assert after.catalog.tables == snapshot.catalog.tables
    assert after.catalog.trees_used >= table.id
    assert tree_entries(after, table.id) == {}


def test_a_replaced_definition_keeps_the_rows() -> None:
    transaction = Transaction(database_with((1, "ada@x", None, None)))
    transaction.define("people", PEOPLE.without_index("people_place"))
    assert [index.name for index in transaction.table("people").indexes] == ["people_email_key"]
    after = commit(transaction)
    assert len(tree_entries(after, PEOPLE.id)) == 1
    assert after.catalog.tables["people"] == PEOPLE.without_index("people_place")


def test_tree_numbers_are_handed_out_once_and_depend_on_the_whole_catalog() -> None:
    snapshot = database(2)
    transaction = Transaction(snapshot)
    numbers = [transaction.next_tree() for _ in range(3)]
    first = snapshot.catalog.trees_used + 1
    assert numbers == [first, first + 1, first + 2]
    assert transaction.whole_catalog_seen
    assert transaction.changes_catalog
    assert Transaction(commit(transaction)).next_tree() == first + 3
    assert snapshot.catalog.trees_used == first - 1


def test_any_kind_of_definition_takes_a_name_and_is_seen_under_it() -> None:
    transaction = Transaction(database(2))
    mood = enumeration_of("mood", ("sad", "glad"))
    transaction.define("mood", mood)
    assert transaction.find_definition("mood") == mood
    with pytest.raises(UndefinedTable):
        transaction.table("mood")
    after = commit(transaction)
    assert after.catalog.find("mood") == mood
    assert Transaction(after).find_definition("mood") == mood

"""How a sequence goes on from its state, which is a row like any other."""

from __future__ import annotations

from itertools import chain

import pytest

from qserver.engine.sequence_states import (
    ROW_IDS,
    definition_now,
    following,
    numbers_after,
    reserve,
    state_of,
    write_back,
)
from qserver.errors import SequenceLimitExceeded, UndefinedTable
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.relations import Sequence

UP = Sequence(-1, "up")
DOWN = Sequence(-2, "down", start=3, increment=-2, minimum=-2, maximum=5)
ROUND = Sequence(-3, "round", start=2, increment=2, minimum=1, maximum=5, cycle=True)


def after(sequence: Sequence, value: int, called: bool, count: int) -> list[int]:
    return list(chain(*numbers_after(sequence, (value, called), count)))


def test_numbers_follow_a_state_that_is_called_and_begin_with_one_that_is_not() -> None:
    assert after(UP, 7, True, 3) == [8, 9, 10]
    assert after(UP, 7, False, 3) == [7, 8, 9]
    assert after(DOWN, 3, False, 9) == [3, 1, -1]
    assert after(ROUND, 4, True, 7) == [1, 3, 5, 1, 3, 5, 1]


def test_a_sequence_that_has_come_to_its_end_has_no_next_number() -> None:
    with pytest.raises(SequenceLimitExceeded, match="reached maximum value"):
        numbers_after(UP, (UP.maximum, True), 1)
    assert after(UP, UP.maximum, False, 5) == [UP.maximum]


def test_what_follows_the_last_value_depends_on_cycle() -> None:
    assert following(DOWN, -1) is None
    assert following(ROUND, 4) == 1
    back = Sequence(-1, "s", start=1, increment=-1, minimum=1, maximum=3, cycle=True)
    assert following(back, 1) == 3


def test_a_reservation_is_undone_only_if_it_was_the_last_word() -> None:
    transaction = Transaction(empty_snapshot(2))
    assert reserve(transaction, UP, 10).runs == [range(1, 11)]
    write_back(transaction, UP, 10, (4, True))
    assert state_of(transaction, UP) == (4, True)
    write_back(transaction, UP, 10, (2, True))
    assert state_of(transaction, UP) == (4, True)


def test_row_ids_go_on_from_a_row_with_their_last_number_alone() -> None:
    transaction = Transaction(empty_snapshot(2))
    transaction.put_entry(SEQUENCES_TREE, (0,), (65536,))
    assert state_of(transaction, ROW_IDS) == (65536, True)


def test_a_sequence_is_found_by_its_own_number_whatever_it_is_called() -> None:
    before = Sequence(7, "s")
    other, renamed = Sequence(8, "s"), Sequence(7, "t", increment=5, state=9)
    catalog = Catalog().changed({"s": other, "t": renamed}, 9)
    assert definition_now(catalog, before) == renamed
    assert definition_now(catalog, UP) is UP
    with pytest.raises(UndefinedTable, match='relation "s" does not exist'):
        definition_now(catalog.changed({"t": None}, 9), before)


def test_a_definition_of_an_older_release_has_its_first_state() -> None:
    plain = Sequence(7, "s").to_plain()
    del plain["state"]
    assert Sequence.from_plain(plain).state == 7

"""Hash tables number integers as a dict would, in pieces; tables of joins are filled in steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qserver.sql.vectors.hash_tables import VALUES_AT_ONCE, HashTable
from qserver.sql.vectors.join_tables import JoinTable
from qserver.values.vectors import Vector
from tests.steps import taken

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(st.lists(st.lists(INTEGERS, max_size=20), max_size=5), st.lists(INTEGERS, max_size=20))
def test_values_have_the_number_of_the_first_that_is_equal(
    pieces: list[list[int]], asked: list[int]
) -> None:
    every = [value for piece in pieces for value in piece]
    table = HashTable(len(every))
    numbers = [number for piece in pieces for number in table.add(array(piece)).tolist()]
    assert [every[number] for number in numbers] == every
    known = dict(zip(every, numbers, strict=True))
    assert [known[value] for value in every] == numbers, "equal values have one number"
    assert table.places(array(asked)).tolist() == [known.get(each, table.most) for each in asked]


@given(st.lists(INTEGERS, unique=True, max_size=30), st.integers(0, 100))
def test_a_table_that_has_grown_has_the_same_numbers(values: list[int], more: int) -> None:
    table = HashTable(len(values))
    table.add(array(values))
    _, grown = taken(table.grown(len(values) + more))
    assert grown.places(array(values)).tolist() == list(range(len(values)))
    assert grown.most == len(values) + more


def test_many_keys_of_a_wide_range_are_added_in_short_steps() -> None:
    count = 5 * VALUES_AT_ONCE
    keys = np.random.default_rng(7).permutation(count) * 1_000_003
    table = JoinTable([Vector(keys, None, 0, int(keys.max()))], count)
    assert len(list(table.filled())) > 5
    found = table.places([Vector(keys[:100] + 1, None, 1, 1)], 100)
    assert (found == table.count).all()
    assert table.row_of is not None
    places = table.places([Vector(keys[:100], None, 0, 0)], 100)
    assert table.row_of[places].tolist() == list(range(100))

"""Keys compare natively in SQL order."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import cmp_to_key
from math import inf, nan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.values.arrays import dimensions, flat
from qserver.values.enumeration import Label
from qserver.values.keys import (
    NAN_KEY,
    NULL_KEY,
    TOP,
    Descending,
    canonical,
    key_element,
    make_key,
)
from qserver.values.records import Record
from tests.values.ordering import compare
from tests.values.strategies import (
    SOME_DATE,
    SOME_TIMESTAMP,
    SOME_TIMESTAMPTZ,
    any_value,
    stored,
    types,
)

ORDINARY: list[Any] = [
    5,
    -1.5,
    inf,
    True,
    "x",
    "\U0010ffff",
    b"\xff",
    Decimal(1),
    Decimal("Infinity"),
    SOME_DATE,
    SOME_TIMESTAMP,
    SOME_TIMESTAMPTZ,
    time(23, 59),
    UUID(int=2**128 - 1),
    Label("happy", 2.0),
    (1, NULL_KEY),
    Descending(1),
    Descending(NULL_KEY),
]


@pytest.mark.parametrize("value", ORDINARY, ids=repr)
@pytest.mark.parametrize("above", [NAN_KEY, NULL_KEY, TOP], ids=repr)
def test_nan_null_and_top_are_above_every_ordinary_value(value: Any, above: Any) -> None:
    assert value < above and value <= above and above > value and above >= value
    assert not (value > above or value >= above or above < value or above <= value)
    assert value != above and above != value
    assert (value, 9) < (above, 0)


def test_nan_null_and_top_are_ordered_among_themselves() -> None:
    assert NAN_KEY < NULL_KEY < TOP
    assert TOP > NULL_KEY > NAN_KEY
    assert NULL_KEY <= NULL_KEY and NULL_KEY >= NULL_KEY
    assert not NULL_KEY < NULL_KEY and not NULL_KEY > NULL_KEY
    assert len({NAN_KEY, NULL_KEY, TOP, NULL_KEY}) == 3


def test_above_stays_the_singleton_through_copies() -> None:
    assert copy.deepcopy((NULL_KEY, 1))[0] is NULL_KEY
    assert pickle.loads(pickle.dumps(NAN_KEY)) is NAN_KEY


def test_descending_reverses_and_puts_nulls_first() -> None:
    values = [3, None, 1, 2]
    ordered = sorted(values, key=lambda value: key_element(value, descending=True))
    assert ordered == [None, 3, 2, 1]
    assert Descending(2) <= Descending(2) and Descending(2) >= Descending(2)
    assert Descending(2) > Descending(3)
    assert Descending(2) == Descending(2) != Descending(3)
    assert hash(Descending(2)) == hash(Descending(2))
    assert repr(Descending("a")) == "Descending('a')"


def sql_order(left: Any, right: Any) -> int:
    """The order that ORDER BY has in PostgreSQL: NaN above numbers, NULL above all."""

    def rank(value: Any) -> int:
        return 2 if value is None else 1 if value != value else 0

    if rank(left) or rank(right):
        return rank(left) - rank(right)
    if isinstance(left, tuple):
        return array_order(left, right)
    if isinstance(left, time) and left.tzinfo is not None:
        left, right = (west_time(left), west_time(right))
    return int(left > right) - int(left < right)


def array_order(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    """Element by element, then the shorter one first, then the one of fewer dimensions."""
    for one, other in zip(flat(left), flat(right), strict=False):
        result = sql_order(one, other)
        if result:
            return result
    shapes = [(len(flat(each)), len(dimensions(each)), dimensions(each)) for each in (left, right)]
    return int(shapes[0] > shapes[1]) - int(shapes[0] < shapes[1])


def west_time(value: time) -> tuple[datetime, timedelta]:
    """A time with zone sorts by its point in UTC, then from east to west."""
    offset = value.utcoffset()
    assert offset is not None
    moment = datetime.combine(SOME_DATE, value.replace(tzinfo=None)) - offset
    return moment, -offset


def columns_order(descending: list[bool]) -> Callable[[Any, Any], int]:
    def order(left: Any, right: Any) -> int:
        for down, one, other in zip(descending, left, right, strict=True):
            result = sql_order(one, other)
            if result:
                return -result if down else result
        return 0

    return order


@given(st.data())
def test_keys_sort_as_postgresql_sorts_rows(data: st.DataObject) -> None:
    column_types = data.draw(st.lists(types, min_size=1, max_size=3))
    descending = [data.draw(st.booleans()) for _ in column_types]
    row = st.tuples(*(st.one_of(st.none(), stored(each)) for each in column_types))
    rows = data.draw(st.lists(row, max_size=12))

    key_of = make_key(range(len(column_types)), careful=True, descending=descending)
    expected = sorted(rows, key=cmp_to_key(columns_order(descending)))
    assert repr(sorted(rows, key=key_of)) == repr(expected)


@given(types.flatmap(lambda each: st.tuples(stored(each), stored(each))))
def test_equal_values_have_equal_elements_and_equal_hashes(pair: tuple[Any, Any]) -> None:
    left, right = map(canonical, pair)
    assert (left == right) == (sql_order(*pair) == 0)
    if left == right:
        assert hash(left) == hash(right)


@given(any_value)
def test_canonical_is_idempotent_unless_it_makes_a_tuple(value: Any) -> None:
    once = canonical(value)
    assert isinstance(once, tuple) or canonical(once) is once or repr(canonical(once)) == repr(once)


def test_canonical_joins_what_sql_holds_equal() -> None:
    assert str(canonical(Decimal("1.00"))) == str(canonical(Decimal("1.0"))) == "1"
    assert str(canonical(Decimal("-0.00"))) == "0"
    assert repr(canonical(-0.0)) == "0.0"
    assert canonical(nan) is canonical(Decimal("NaN")) is NAN_KEY


def test_a_record_is_keyed_by_its_elements_and_an_array_of_records_has_one_dimension() -> None:
    record = Record((1, None, Decimal("1.0")))
    assert canonical(record) == (1, NULL_KEY, Decimal(1))
    assert canonical((record,)) == ((canonical(record),), (1, 1))
    assert compare(record, Record((1, None, Decimal("1.00")))) == 0
    assert compare(record, Record((1, 5, Decimal(1)))) == 1
    assert repr(record) == "Record(1, None, Decimal('1.0'))"


def test_canonical_never_rounds_a_long_decimal() -> None:
    digits = "1234567890" * 20
    assert canonical(Decimal(f"{digits}.{digits}0")) == Decimal(f"{digits}.{digits}")
    assert canonical(Decimal(f"{digits}.{digits}0")) < canonical(Decimal(f"{digits}.{digits}1"))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30), st.integers(0, 3))
def test_up_to_the_top_lie_exactly_the_keys_with_the_prefix(
    keys: list[tuple[int, int]], first: int
) -> None:
    low, high = (first,), (first, TOP)
    assert [key for key in keys if low <= key < high] == [key for key in keys if key[0] == first]


def test_nulls_and_descending_elements_lie_below_the_top() -> None:
    for element in (NULL_KEY, NAN_KEY, Descending(NULL_KEY), Descending(3)):
        assert (1,) <= (1, element) < (1, TOP)
    assert (1, TOP) < (2, NULL_KEY)


@pytest.mark.parametrize("positions", [(0,), (1,), (2, 0), (0, 1, 2)])
def test_make_key_picks_the_columns_in_order(positions: tuple[int, ...]) -> None:
    row = (7, "x", True)
    expected = tuple(row[at] for at in positions)
    assert make_key(positions)(row) == expected
    assert make_key(positions, careful=True)(row) == expected
    downward = make_key(positions, descending=[True] * len(positions))
    assert downward(row) == tuple(Descending(value) for value in expected)


def test_a_careful_key_replaces_only_what_python_cannot_order() -> None:
    key_of = make_key((0, 1, 2, 3), careful=True)
    assert key_of((1, None, nan, Decimal("2.50"))) == (1, NULL_KEY, NAN_KEY, Decimal("2.5"))
    assert make_key((1,), careful=True)((1, None)) == (NULL_KEY,)

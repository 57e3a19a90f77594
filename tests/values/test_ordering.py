"""The comparison that other tests take for right: it is PostgreSQL's, and that of keys."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import DatatypeMismatch, NumericValueOutOfRange
from qserver.values.keys import key_element
from tests.values.ordering import compare
from tests.values.strategies import SOME_DATE, SOME_TIMESTAMP, SOME_TIMESTAMPTZ, stored, types

NAN = Decimal("NaN")
MIDNIGHT = datetime(2024, 2, 29)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 2, -1),
        (2, 1, 1),
        (1, 1, 0),
        (1, 1.0, 0),
        (1, Decimal("1.00"), 0),
        (0.0, -0.0, 0),
        (0.1, Decimal("0.1"), 0),
        (0.3, Decimal("0.30000000000000001"), 0),
        (2**53 + 1, 2.0**53, 0),
        (2**53 + 1, Decimal(2**53), 1),
        (nan, nan, 0),
        (nan, inf, 1),
        (nan, 10**18, 1),
        (-(10**18), nan, -1),
        (NAN, NAN, 0),
        (NAN, Decimal("Infinity"), 1),
        (NAN, nan, 0),
        (NAN, inf, 1),
        (Decimal("Infinity"), inf, 0),
        (Decimal("-Infinity"), -(10**18), -1),
        ("a", "b", -1),
        ("Z", "a", -1),
        ("\uffff", "\U00010000", -1),
        (False, True, -1),
        (SOME_DATE, MIDNIGHT, 0),
        (SOME_DATE, SOME_TIMESTAMP, -1),
        (SOME_TIMESTAMP, SOME_TIMESTAMPTZ, 0),
        (date(2024, 3, 1), SOME_TIMESTAMPTZ, 1),
    ],
)
def test_values_compare_as_in_postgresql(left: Any, right: Any, expected: int) -> None:
    assert compare(left, right) == expected
    assert compare(right, left) == -expected


def test_null_compares_to_nothing() -> None:
    assert compare(None, 1) is compare(1, None) is compare(None, None) is None


def test_values_without_a_common_type_do_not_compare() -> None:
    with pytest.raises(DatatypeMismatch, match="cannot compare integer with text"):
        compare(1, "1")
    with pytest.raises(DatatypeMismatch, match="cannot compare boolean with integer"):
        compare(True, 1)


def test_a_numeric_that_no_double_can_hold_does_not_compare_with_one() -> None:
    with pytest.raises(NumericValueOutOfRange):
        compare(Decimal("1e400"), 1.0)


@given(types.flatmap(lambda each: st.tuples(stored(each), stored(each))))
def test_comparison_agrees_with_the_order_of_keys(pair: tuple[Any, Any]) -> None:
    left, right = map(key_element, pair)
    assert compare(*pair) == int(left > right) - int(left < right)

"""Comparison and logic with NULL, as SQL has them.

`compare` is for values whose types are known only now; compiled statements compare natively and
come here where that would be wrong. Its order is that of `keys`:

    numbers by value, NaN equal to itself and above all; text by code point; false < true;
    a date is its midnight; a timestamp without zone is in UTC; NULL compares to nothing,
    but within an array it equals itself and is above all

An integer or Decimal meets a float as a double, as in PostgreSQL, so 0.1 and 0.1::float8 are equal
and 2^53 + 1 equals 2^53::float8. Two exact numbers meet exactly.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from qserver.errors import DatatypeMismatch
from qserver.values.encoding import encode
from qserver.values.floats import double_from_exact
from qserver.values.keys import Row, canonical, key_element
from qserver.values.records import Record
from qserver.values.types import type_of_value

_NUMBERS = frozenset({int, float, Decimal})
_DATETIMES = frozenset({date, datetime})
_BY_KEY = frozenset({tuple, Record})


def compare(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None if either is NULL."""
    if left is None or right is None:
        return None
    left_kind, right_kind = type(left), type(right)
    if left_kind is not right_kind:
        left, right = _meet(left, right)
    elif left_kind is datetime:
        left, right = _with_zone(left), _with_zone(right)
    elif left_kind in _BY_KEY:
        left, right = canonical(left), canonical(right)
    if left != left or right != right:  # only NaN differs from itself
        return int(left != left) - int(right != right)
    return int(left > right) - int(left < right)


def equal(left: Any, right: Any) -> bool | None:
    """SQL's `=`."""
    order = compare(left, right)
    return None if order is None else order == 0


def is_distinct(left: Any, right: Any) -> bool:
    """SQL's IS DISTINCT FROM: NULL is a value like others, equal to itself."""
    if left is None or right is None:
        return left is not right
    return compare(left, right) != 0


def order_key(value: Any, descending: bool = False, nulls_first: bool | None = None) -> Any:
    """What to sort by for ORDER BY. Left out, NULLs come last, or first when descending."""
    if nulls_first is None or nulls_first == descending:
        return key_element(value, descending)
    if value is None:
        return (0 if nulls_first else 1,)
    return (1 if nulls_first else 0, key_element(value, descending))


def same_row(left: Row | None, right: Row | None) -> bool:
    """Are two rows, or their absence, the same in every detail that a reader could see?

    Stricter than `==`, which holds 1.0 and 1.00, or 1 and true, for equal, and NaN for different.
    """
    return left is right or encode(left) == encode(right)


def _meet(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values of different Python types as two that compare natively."""
    kinds = {type(left), type(right)}
    if kinds <= _NUMBERS:
        return (_as_double(left), _as_double(right)) if float in kinds else (left, right)
    if kinds <= _DATETIMES:
        return _with_zone(left), _with_zone(right)
    raise DatatypeMismatch(
        f"cannot compare {type_of_value(left)} with {type_of_value(right)}",
    )


def _as_double(value: Any) -> float:
    if type(value) is Decimal and not value.is_finite():
        return float(value)
    return value if type(value) is float else double_from_exact(value)


def _with_zone(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)

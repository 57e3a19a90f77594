"""width_bucket: the number of the equally wide bucket of a value; 0 below, n + 1 above."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal
from math import isinf, isnan
from typing import Any, Final

from qserver.errors import (
    ArraySubscriptError,
    InvalidArgumentForWidthBucket,
    NullValueNotAllowed,
    NumericValueOutOfRange,
)
from qserver.functions.numbers.numeric_math import EXACT, division_scale, quotient
from qserver.functions.registry import Function
from qserver.values.keys import canonical
from qserver.values.types import ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, DOUBLE, INTEGER, NUMERIC

_INTEGER_LARGEST: Final = 2**31 - 1


def _problem(message: str) -> InvalidArgumentForWidthBucket:
    return InvalidArgumentForWidthBucket(message)


def bucket_of_float(value: float, low: float, high: float, count: int) -> int:
    if count <= 0:
        raise _problem("count must be greater than zero")
    if isnan(value) or isnan(low) or isnan(high):
        raise _problem("operand, lower bound, and upper bound cannot be NaN")
    if isinf(low) or isinf(high):
        raise _problem("lower and upper bounds must be finite")
    if low == high:
        raise _problem("lower bound cannot equal upper bound")
    if low < high:
        if value < low:
            return 0
        if value >= high:
            return _above(count)
        return _inside(value, low, high, count)
    if value > low:
        return 0
    if value <= high:
        return _above(count)
    return _inside(-value, -low, -high, count)


def _inside(value: float, low: float, high: float, count: int) -> int:
    if isinf(high - low):  # the bounds are that far apart; their halves are not
        value, low, high = value / 2.0, low / 2.0, high / 2.0
    scaled = count * (value - low)
    if isinf(scaled):
        return int(count * ((value - low) / (high - low)) + 1.0)
    return int(scaled / (high - low) + 1.0)


def _above(count: int) -> int:
    if count == _INTEGER_LARGEST:
        raise NumericValueOutOfRange("integer out of range")
    return count + 1


def bucket_of_numeric(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    if count <= 0:
        raise _problem("count must be greater than zero")
    if value.is_nan() or low.is_nan() or high.is_nan():
        raise _problem("operand, lower bound, and upper bound cannot be NaN")
    if low.is_infinite() or high.is_infinite():
        raise _problem("lower and upper bounds must be finite")
    if low == high:
        raise _problem("lower bound cannot equal upper bound")
    if low > high:
        value, low, high = value.copy_negate(), low.copy_negate(), high.copy_negate()
    if value < low:
        return 0
    if value >= high:
        return _above(count)
    distance = EXACT.multiply(EXACT.subtract(value, low), Decimal(count))
    width = EXACT.subtract(high, low)
    return int(quotient(distance, width, division_scale(distance, width))) + 1


def bucket_between(value: Any, bounds: tuple[Any, ...]) -> int:
    """Count the sorted lower bounds that are not above the value."""
    if bounds and isinstance(bounds[0], tuple):
        raise ArraySubscriptError("thresholds must be one-dimensional array")
    if None in bounds:
        raise NullValueNotAllowed("thresholds array must not contain NULLs")
    return bisect_right(bounds, canonical(value), key=canonical)


FUNCTIONS: Final = (
    Function("width_bucket", (DOUBLE, DOUBLE, DOUBLE, INTEGER), INTEGER, bucket_of_float),
    Function("width_bucket", (NUMERIC, NUMERIC, NUMERIC, INTEGER), INTEGER, bucket_of_numeric),
    Function("width_bucket", (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), INTEGER, bucket_between),
)

"""Integers of 16, 32 and 64 bits: an exact result, or `out of range`.

Python's integers are unbounded, so a result is computed first and then checked. The templates do
that without a call; they call a function only for an overflow, a division by zero or a negative
dividend.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NoReturn

from qserver.errors import DivisionByZero, NumericValueOutOfRange
from qserver.values.types import INTEGER_BITS, SqlType

Operation = Callable[..., int]


def bounds(sql_type: SqlType) -> tuple[int, int]:
    bits = INTEGER_BITS[sql_type.kind]
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def overflow_name(sql_type: SqlType) -> str:
    """Return the name of `overflow_of` in templates; a name means one object in all templates."""
    return f"{sql_type.kind.name.lower()}_overflow"


@cache
def overflow_of(sql_type: SqlType) -> Callable[[], NoReturn]:
    """Return the function that a template calls when a result does not fit."""
    message = f"{sql_type} out of range"

    def overflow() -> NoReturn:
        raise NumericValueOutOfRange(message)

    return overflow


@cache
def fitting(sql_type: SqlType) -> Callable[[int], int]:
    """Return the function that passes values that fit."""
    low, high = bounds(sql_type)
    overflow = overflow_of(sql_type)
    return lambda value: value if low <= value <= high else overflow()


def division_by_zero() -> NoReturn:
    raise DivisionByZero("division by zero")


def quotient(left: int, right: int) -> int:
    """Divide and truncate."""
    if right == 0:
        division_by_zero()
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def divider_name(sql_type: SqlType) -> str:
    return f"{sql_type.kind.name.lower()}_divide"


@cache
def divider(sql_type: SqlType) -> Callable[[int, int], int]:
    """Return the division of a type: only the smallest number divided by -1 does not fit."""
    fit = fitting(sql_type)
    return lambda left, right: fit(quotient(left, right))


def remainder(left: int, right: int) -> int:
    """Return the remainder, with the sign of the dividend."""
    if right == 0:
        division_by_zero()
    result = abs(left) % abs(right)
    return result if left >= 0 else -result


def shift_left(sql_type: SqlType) -> Operation:
    """Shift left: high bits are lost; the count wraps around, as in processors."""
    bits = INTEGER_BITS[sql_type.kind]
    wrap = max(bits, 32) - 1  # smallint is shifted as integer and truncated
    half, whole = 1 << bits - 1, 1 << bits

    def shift(value: int, count: int) -> int:
        return (((value << (count & wrap)) + half) % whole) - half

    return shift


def shift_right(sql_type: SqlType) -> Operation:
    wrap = max(INTEGER_BITS[sql_type.kind], 32) - 1
    return lambda value, count: value >> (count & wrap)

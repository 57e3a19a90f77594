"""Integers of 16, 32 and 64 bits: an exact result, or `out of range`.

Python's integers have no bounds, so a result is computed first and then looked at. The templates do
that without a call; only an overflow, a division by zero or a negative dividend leaves them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NoReturn

from qserver.errors import DivisionByZero, NumericValueOutOfRange
from qserver.values.types import INTEGER_BITS, SqlType

Operation = Callable[..., int]


def bounds(sql_type: SqlType) -> tuple[int, int]:
    """The smallest and the largest value."""
    bits = INTEGER_BITS[sql_type.kind]
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def overflow_name(sql_type: SqlType) -> str:
    """What templates call `overflow_of`; a name means one object in all templates."""
    return f"{sql_type.kind.name.lower()}_overflow"


@cache
def overflow_of(sql_type: SqlType) -> Callable[[], NoReturn]:
    """The function that a template calls when a result does not fit."""
    message = f"{sql_type} out of range"

    def overflow() -> NoReturn:
        raise NumericValueOutOfRange(message)

    return overflow


@cache
def fitting(sql_type: SqlType) -> Callable[[int], int]:
    """The function that lets through what fits."""
    low, high = bounds(sql_type)
    overflow = overflow_of(sql_type)
    return lambda value: value if low <= value <= high else overflow()


def division_by_zero() -> NoReturn:
    raise DivisionByZero("division by zero")


def quotient(left: int, right: int) -> int:
    """Cut toward zero."""
    if right == 0:
        division_by_zero()
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def divider_name(sql_type: SqlType) -> str:
    return f"{sql_type.kind.name.lower()}_divide"


@cache
def divider(sql_type: SqlType) -> Callable[[int, int], int]:
    """The quotient, if it fits: only the smallest number divided by -1 does not."""
    fit = fitting(sql_type)
    return lambda left, right: fit(quotient(left, right))


def remainder(left: int, right: int) -> int:
    """With the sign of the dividend."""
    if right == 0:
        division_by_zero()
    result = abs(left) % abs(right)
    return result if left >= 0 else -result


def shift_left(sql_type: SqlType) -> Operation:
    """Bits that leave at the top are lost; the count wraps around, as processors do it."""
    bits = INTEGER_BITS[sql_type.kind]
    wrap = max(bits, 32) - 1  # smallint is shifted as integer and cut afterwards
    half, whole = 1 << bits - 1, 1 << bits

    def shift(value: int, count: int) -> int:
        return (((value << (count & wrap)) + half) % whole) - half

    return shift


def shift_right(sql_type: SqlType) -> Operation:
    wrap = max(INTEGER_BITS[sql_type.kind], 32) - 1
    return lambda value, count: value >> (count & wrap)

"""REAL and DOUBLE PRECISION: IEEE arithmetic with errors for overflow and underflow.

    overflow     infinite, although no operand was    → 22003
    underflow    zero, although no factor was         → 22003
    NaN          stays NaN; equal to itself and above everything

REAL is computed in 64 bits and rounded once, which gives the same results as 32 bits.
"""

from __future__ import annotations

from math import cbrt, inf, isinf, isnan, nan, sqrt
from typing import Final, NoReturn

from qserver.errors import DivisionByZero, InvalidArgumentForPower, NumericValueOutOfRange
from qserver.values.floats import round_to_real

LARGEST: Final = 1.7976931348623157e308


def overflow() -> NoReturn:
    raise NumericValueOutOfRange("value out of range: overflow")


def underflow() -> NoReturn:
    raise NumericValueOutOfRange("value out of range: underflow")


def checked_sum(result: float, left: float, right: float) -> float:
    """Return the result of an addition or subtraction; refuse infinity of finite operands."""
    if isinf(result) and not (isinf(left) or isinf(right)):
        overflow()
    return result


def checked_product(result: float, left: float, right: float) -> float:
    if isinf(result) and not (isinf(left) or isinf(right)):
        overflow()
    if result == 0.0 and left != 0.0 and right != 0.0:
        underflow()
    return result


def add(left: float, right: float) -> float:
    return checked_sum(left + right, left, right)


def subtract(left: float, right: float) -> float:
    return checked_sum(left - right, left, right)


def multiply(left: float, right: float) -> float:
    return checked_product(left * right, left, right)


def divide(left: float, right: float) -> float:
    if right == 0.0 and left == left:
        raise DivisionByZero("division by zero")
    if left != left or right != right:
        return nan
    result = left / right
    if isinf(result) and not isinf(left):
        overflow()
    if result == 0.0 and left != 0.0 and not isinf(right):
        underflow()
    return result


def real(operation: str, left: float, right: float) -> float:
    result = _OPERATIONS[operation](left, right)
    rounded = round_to_real(result)
    if isinf(rounded) and not isinf(result):
        overflow()
    if rounded == 0.0 and result != 0.0:
        underflow()
    return rounded


_OPERATIONS = {"+": add, "-": subtract, "*": multiply, "/": divide}


def power(base: float, exponent: float) -> float:
    """Raise to a power, as PostgreSQL and POSIX do: NaN ^ 0 is 1, 1 ^ NaN is 1."""
    if isnan(base):
        return 1.0 if exponent == 0.0 else nan
    if isnan(exponent):
        return 1.0 if base == 1.0 else nan
    if base == 0.0 and exponent < 0.0:
        raise InvalidArgumentForPower("zero raised to a negative power is undefined")
    if base < 0.0 and exponent != inf and exponent != -inf and exponent % 1.0 != 0.0:
        raise InvalidArgumentForPower(
            "a negative number raised to a non-integer power yields a complex result"
        )
    try:
        result = float(base**exponent)
    except OverflowError:
        overflow()
    if isinf(base) or isinf(exponent):
        return result
    if isinf(result):
        overflow()
    if result == 0.0 and base != 0.0:
        underflow()
    return result


def square_root(value: float) -> float:
    if value < 0.0:
        raise InvalidArgumentForPower("cannot take square root of a negative number")
    return sqrt(value)


def cube_root(value: float) -> float:
    return cbrt(value)

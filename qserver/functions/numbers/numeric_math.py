"""NUMERIC arithmetic: digit for digit as PostgreSQL.

    12345.67  =  1 | 2345 . 6700        weight 1, first group 1
      0.0042  =         0 . 0042        weight -1, first group 42

Sums, differences and products are exact. A quotient gets enough digits after the point for at least
16 significant ones, never fewer than either operand has. PostgreSQL counts in its own groups of
four digits, so this module follows that count exactly.

`EXACT` is the context for templates. It has room for every NUMERIC, and past the largest it raises
`decimal.Overflow`, which the caller of compiled code turns into 22003 by `overflow_error`. Values
have one NaN, no negative zero and no positive exponent, as everywhere.
"""

from __future__ import annotations

from decimal import MIN_EMIN, ROUND_05UP, ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, Overflow
from functools import lru_cache
from typing import Final

from qserver.errors import DivisionByZero, NumericValueOutOfRange
from qserver.limits import NUMERIC_DIGITS_MAX, NUMERIC_INTEGER_DIGITS_MAX
from qserver.values.numerics import NOT_A_NUMBER

EXACT: Final = Context(
    prec=NUMERIC_DIGITS_MAX,
    rounding=ROUND_HALF_UP,
    Emax=NUMERIC_INTEGER_DIGITS_MAX - 1,
    Emin=MIN_EMIN,
    traps=[Overflow],
)
SIGNIFICANT_DIGITS_MIN: Final = 16
SCALE_MAX: Final = 1000
"""The most digits after the point that a function chooses by itself."""

GROUP: Final = 4
ZERO: Final = Decimal(0)
ONE: Final = Decimal(1)

exact_add = EXACT.add
exact_subtract = EXACT.subtract
exact_multiply = EXACT.multiply
exact_minus = EXACT.minus


def overflow_error() -> NumericValueOutOfRange:
    return NumericValueOutOfRange("value overflows numeric format")


def add(left: Decimal, right: Decimal) -> Decimal:
    try:
        return exact_add(left, right)
    except Overflow:
        raise overflow_error() from None


def subtract(left: Decimal, right: Decimal) -> Decimal:
    try:
        return exact_subtract(left, right)
    except Overflow:
        raise overflow_error() from None


def multiply(left: Decimal, right: Decimal) -> Decimal:
    try:
        result = exact_multiply(left, right)
    except Overflow:
        raise overflow_error() from None
    return result if result else result.copy_abs()


def divide(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return _divide_special(left, right)
    if not right:
        raise DivisionByZero("division by zero")
    return quotient(left, right, division_scale(left, right))


def _divide_special(left: Decimal, right: Decimal) -> Decimal:
    if left.is_nan() or right.is_nan():
        return NOT_A_NUMBER
    if left.is_infinite():
        if right.is_infinite():
            return NOT_A_NUMBER
        if not right:
            raise DivisionByZero("division by zero")
        return left if right > 0 else left.copy_negate()
    return ZERO


def quotient(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Divide and round once to `scale` digits after the point; both finite, right not 0."""
    digits = left.adjusted() - right.adjusted() + scale + 3 if left else 1
    # ROUND_05UP leaves a last digit that makes a second rounding correct.
    rough = _rough_division(max(digits, 1)).divide(left, right)
    return rounded(rough, scale)


def whole_quotient(left: Decimal, right: Decimal, digits: int) -> Decimal:
    """Return the truncated quotient, which has at most this many digits."""
    rough = Context(prec=digits + 1, rounding=ROUND_DOWN, traps=[]).divide(left, right)
    return rough.quantize(ONE, rounding=ROUND_DOWN, context=EXACT)


@lru_cache(maxsize=512)
def _rough_division(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_05UP, traps=[])


def rounded(value: Decimal, scale: int) -> Decimal:
    """Round a finite value to `scale` digits after the point, at least 0; halves away from zero."""
    result = value.quantize(unit_of(scale), ROUND_HALF_UP, EXACT)
    if result.is_nan():  # more digits than any NUMERIC has
        raise overflow_error()
    return result if result else result.copy_abs()


@lru_cache(maxsize=2048)
def unit_of(scale: int) -> Decimal:
    """Return the unit of the last digit of a scale: 0.01 for 2."""
    return Decimal((0, (1,), -scale))


def scale_of(value: Decimal) -> int:
    """Return the digits after the point of a finite value."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "a finite number has an exponent"
    return -exponent


def weight_of(value: Decimal) -> int:
    """Return the power of 10000 of the first nonzero group of digits; 0 for zero."""
    return value.adjusted() // GROUP if value else 0


def first_group(value: Decimal) -> int:
    """Return the first nonzero group of four digits as a number; 0 for zero."""
    return abs(int(value.scaleb(-GROUP * (value.adjusted() // GROUP), EXACT))) if value else 0


def division_scale(left: Decimal, right: Decimal) -> int:
    """Return the digits after the point of a quotient."""
    left_weight, left_group, left_scale = _measured(left)
    right_weight, right_group, right_scale = _measured(right)
    weight = left_weight - right_weight
    if left_group <= right_group:
        weight -= 1
    wanted = SIGNIFICANT_DIGITS_MIN - weight * GROUP
    return min(max(wanted, left_scale, right_scale, 0), SCALE_MAX)


def _measured(value: Decimal) -> tuple[int, int, int]:
    """Return weight, first group and scale; from the text if possible, which is fastest."""
    whole, _, fraction = str(value).lstrip("-").partition(".")
    if whole == "0" or "E" in whole or "E" in fraction:
        return weight_of(value), first_group(value), scale_of(value)
    size = len(whole) - 1
    return size // GROUP, int(whole[: size % GROUP + 1]), len(fraction)


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """Return the remainder, with the dividend's sign and as many digits as either operand has."""
    if left.is_nan() or right.is_nan():
        return NOT_A_NUMBER
    if left.is_infinite():
        if not right:
            raise DivisionByZero("division by zero")
        return NOT_A_NUMBER
    if right.is_infinite():
        return left
    if not right:
        raise DivisionByZero("division by zero")
    result = _REMAINDER.remainder(left, right)
    return result if result else result.copy_abs()


# The remainder needs the whole quotient, which may be far longer than any NUMERIC.
_REMAINDER = Context(prec=2 * NUMERIC_DIGITS_MAX, traps=[])

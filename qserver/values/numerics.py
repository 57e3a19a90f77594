"""NUMERIC: Decimals as PostgreSQL keeps and rounds them.

A stored NUMERIC has one kind of NaN, no negative zero and no positive exponent (its scale is the
number of digits after the point, at least 0), and at most 131072 digits before the point and 16383
after it. Halves round away from zero, which `decimal` calls HALF_UP.

Never use the thread's decimal context on such values: it rounds to 28 digits.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from functools import cache
from typing import Final

from qserver.errors import NumericValueOutOfRange
from qserver.limits import (
    NUMERIC_DIGITS_MAX,
    NUMERIC_FRACTION_DIGITS_MAX,
    NUMERIC_INTEGER_DIGITS_MAX,
)

EXACT: Final = Context(
    prec=NUMERIC_DIGITS_MAX + 1,  # one more for a carry
    rounding=ROUND_HALF_UP,
    Emax=MAX_EMAX,
    Emin=MIN_EMIN,
    traps=[],
)

NOT_A_NUMBER: Final = Decimal("NaN")
_UNIT = Decimal(1)


def plain_numeric(value: Decimal) -> Decimal:
    """The Decimal that NUMERIC without precision stores."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):  # NaN or infinite
        return NOT_A_NUMBER if value.is_nan() else value
    if exponent < -NUMERIC_FRACTION_DIGITS_MAX or (
        value and value.adjusted() >= NUMERIC_INTEGER_DIGITS_MAX
    ):
        raise NumericValueOutOfRange("value overflows numeric format")
    if not value:
        return Decimal((0, (0,), min(exponent, 0)))
    return EXACT.quantize(value, _UNIT) if exponent > 0 else value


def fit_numeric(value: Decimal, precision: int, scale: int) -> Decimal:
    if not value.is_finite():
        if value.is_nan():
            return NOT_A_NUMBER
        raise _field_overflow(precision, scale, "cannot hold an infinite value.")
    whole_digits = precision - scale
    if value and value.adjusted() > whole_digits:  # before rounding, which would need all digits
        raise _too_large(precision, scale)
    rounded = EXACT.quantize(value, _unit(scale))
    if rounded and rounded.adjusted() >= whole_digits:
        raise _too_large(precision, scale)
    if scale < 0:
        rounded = EXACT.quantize(rounded, _UNIT)
    return rounded if rounded else rounded.copy_abs()


def round_to_integer(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_HALF_UP, context=EXACT))


@cache
def _unit(scale: int) -> Decimal:
    """One in the last of so many places behind the point."""
    return Decimal((0, (1,), -scale))


def _too_large(precision: int, scale: int) -> NumericValueOutOfRange:
    bound = f"10^{precision - scale}" if precision != scale else "1"
    problem = f"must round to an absolute value less than {bound}."
    return _field_overflow(precision, scale, problem)


def _field_overflow(precision: int, scale: int, problem: str) -> NumericValueOutOfRange:
    detail = f"A field with precision {precision}, scale {scale} {problem}"
    return NumericValueOutOfRange("numeric field overflow", detail=detail)

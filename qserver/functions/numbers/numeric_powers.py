"""Powers, roots, exponentials and logarithms of NUMERIC, with PostgreSQL's number of digits.

PostgreSQL first estimates the size of the result, by its first digits and floats, and then shows
enough digits after the point for 16 significant ones. The estimates can be off by one, so this
module follows them exactly; the digits themselves are computed with some to spare and rounded once.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, ROUND_DOWN, Context, Decimal
from functools import lru_cache
from math import log, log10
from typing import Final

from qserver.errors import (
    DivisionByZero,
    InvalidArgumentForLogarithm,
    InvalidArgumentForPower,
)
from qserver.functions.numbers.long_numbers import long_exponential, long_logarithm, long_root
from qserver.functions.numbers.numeric_math import (
    EXACT,
    GROUP,
    ONE,
    SCALE_MAX,
    SIGNIFICANT_DIGITS_MIN,
    ZERO,
    first_group,
    overflow_error,
    quotient,
    rounded,
    scale_of,
    unit_of,
    weight_of,
)
from qserver.limits import NUMERIC_DIGITS_MAX
from qserver.values.numerics import NOT_A_NUMBER

INFINITY: Final = Decimal("Infinity")

_SPARE_DIGITS = 10
_LOG10_OF_E = 0.434294481903252
_EXPONENT_LARGEST = 6000
"""e to this power is past every NUMERIC by PostgreSQL's definition."""

LONG_DIGITS: Final = 200
LONG_ROOT_DIGITS: Final = 1000
"""`long_numbers` computes results of more digits."""

_WHOLE = Context(prec=2 * NUMERIC_DIGITS_MAX, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_WEIGHT_MAX: Final = 32768 * GROUP
"""The largest power of ten of a NUMERIC in PostgreSQL's format."""

_POINT_NINE, _ONE_POINT_ONE = Decimal("0.9"), Decimal("1.1")


def _scale(wanted: int, *at_least: int) -> int:
    return min(max(wanted, 0, *at_least), SCALE_MAX)


@lru_cache(maxsize=256)
def _context(digits: int) -> Context:
    return Context(prec=max(digits, 1), rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


# --- roots and exponentials ----------------------------------------------------------------------


def square_root(value: Decimal) -> Decimal:
    if value.is_nan():
        return NOT_A_NUMBER
    if value < 0:
        raise InvalidArgumentForPower("cannot take square root of a negative number")
    if value.is_infinite():
        return value
    return root_with_scale(value, _scale(root_scale(value), scale_of(value)))


def root_scale(value: Decimal) -> int:
    half = (weight_of(value) + 1) * GROUP
    return SIGNIFICANT_DIGITS_MIN - (half // 2 - 1)


def root_with_scale(value: Decimal, scale: int) -> Decimal:
    """Return the root of a finite value, at least 0, rounded to `scale` digits after the point."""
    digits = max(value.adjusted() // 2, 0) + scale + 4
    if digits > LONG_ROOT_DIGITS and value:
        root = long_root(value, digits + _SPARE_DIGITS)
        # Half of the last digit is exact only if its square is the number.
        half = root.quantize(unit_of(scale + 1), context=_context(2 * digits + _SPARE_DIGITS))
        exact = _context(2 * digits + 2 * scale + _SPARE_DIGITS).multiply(half, half) == value
        return rounded(half if exact else root, scale)
    # `sqrt` always rounds to even, so it gets enough digits to make the second rounding correct.
    context = _context(2 * digits + _SPARE_DIGITS)
    return rounded(context.sqrt(value), scale)


def exponential(value: Decimal) -> Decimal:
    if not value.is_finite():
        if value.is_nan():
            return NOT_A_NUMBER
        return value if value > 0 else ZERO
    estimate = min(max(float(value) * _LOG10_OF_E, -2000.0), 2000.0)
    scale = _scale(SIGNIFICANT_DIGITS_MIN - int(estimate), scale_of(value))
    return exponential_with_scale(value, scale)


def exponential_with_scale(value: Decimal, scale: int) -> Decimal:
    if abs(float(value)) >= _EXPONENT_LARGEST:
        if value > 0:
            raise overflow_error()
        return rounded(ZERO, scale)
    whole_digits = max(int(float(value) * _LOG10_OF_E) + 1, 0)
    digits = whole_digits + scale + _SPARE_DIGITS
    if digits > LONG_DIGITS:
        return rounded(long_exponential(value, digits), scale)
    return rounded(_context(digits).exp(value), scale)


# --- logarithms ----------------------------------------------------------------------------------


def natural_logarithm(value: Decimal) -> Decimal:
    special = _logarithm_of_special(value)
    if special is not None:
        return special
    scale = _scale(SIGNIFICANT_DIGITS_MIN - _logarithm_weight(value), scale_of(value))
    return rounded(_logarithm(value, scale), scale)


def logarithm(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return NOT_A_NUMBER
    if base.is_infinite() or value.is_infinite():
        _check_logarithm(min(base, value))
    _check_logarithm(base)
    _check_logarithm(value)
    if base.is_infinite():
        return NOT_A_NUMBER if value.is_infinite() else ZERO
    if value.is_infinite():
        return INFINITY
    base_weight, value_weight = _logarithm_weight(base), _logarithm_weight(value)
    wanted = SIGNIFICANT_DIGITS_MIN - (value_weight - base_weight)
    scale = _scale(wanted, scale_of(base), scale_of(value))
    digits = scale + abs(value_weight) + abs(base_weight) + _SPARE_DIGITS
    divisor = _logarithm(base, digits)
    if not divisor:
        raise DivisionByZero("division by zero")
    return quotient(_logarithm(value, digits), divisor, scale)


def decimal_logarithm(value: Decimal) -> Decimal:
    return logarithm(_TEN, value)


_TEN = Decimal(10)


def _logarithm_of_special(value: Decimal) -> Decimal | None:
    if value.is_nan():
        return NOT_A_NUMBER
    _check_logarithm(value)
    return value if value.is_infinite() else None


def _check_logarithm(value: Decimal) -> None:
    if value < 0:
        raise InvalidArgumentForLogarithm("cannot take logarithm of a negative number")
    if not value:
        raise InvalidArgumentForLogarithm("cannot take logarithm of zero")


def _logarithm(value: Decimal, scale: int) -> Decimal:
    """Return the logarithm with `scale` correct digits after the point, and some to spare."""
    digits = scale + 8 + _SPARE_DIGITS
    return long_logarithm(value, digits) if digits > LONG_DIGITS else _context(digits).ln(value)


def _logarithm_weight(value: Decimal) -> int:
    """Estimate the power of ten of the first digit of a positive number's logarithm."""
    if _POINT_NINE <= value <= _ONE_POINT_ONE:
        difference = EXACT.subtract(value, ONE)
        if not difference:
            return 0
        return weight_of(difference) * GROUP + int(log10(first_group(difference)))
    weight = weight_of(value) * GROUP
    digits = first_group(value)
    if _groups(value) > 1:
        weight -= GROUP
        digits = int(value.scaleb(-weight, EXACT))
    return int(log10(abs(log(digits) + weight * 2.302585092994046)))


def _groups(value: Decimal) -> int:
    """Return the number of groups of four digits in PostgreSQL's format of a positive number."""
    _, digits, exponent = value.normalize(EXACT).as_tuple()
    assert isinstance(exponent, int), "the number is finite"
    return weight_of(value) - exponent // GROUP + 1 if digits else 0


# --- powers --------------------------------------------------------------------------------------


def power(base: Decimal, exponent: Decimal) -> Decimal:
    if not (base.is_finite() and exponent.is_finite()):
        return _power_of_special(base, exponent)
    _check_power(base, exponent)
    if is_integral(exponent) and abs(exponent) < 2**31:
        return integer_power(base, int(exponent), scale_of(exponent))
    if not base:
        return rounded(ZERO, SIGNIFICANT_DIGITS_MIN)
    negative = base < 0 and is_odd(exponent)
    result = _real_power(base.copy_abs(), exponent)
    return EXACT.minus(result) if negative else result


def _real_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return e to the power of exponent × logarithm, for a positive base."""
    weight = _logarithm_weight(base)
    product = float(EXACT.multiply(rounded(_logarithm(base, 30), max(8 - weight, 0)), exponent))
    if abs(product) > 2000 * 3.01:
        if product > 0:
            raise overflow_error()
        return rounded(ZERO, SCALE_MAX)
    estimate = int(product * _LOG10_OF_E)
    scale = _scale(SIGNIFICANT_DIGITS_MIN - estimate, scale_of(base), scale_of(exponent))
    digits = max(scale + estimate - weight, 0) + 8 + max(exponent.adjusted(), 0)
    precise = EXACT.multiply(_logarithm(base, digits + abs(weight)), exponent)
    return exponential_with_scale(precise, scale)


def integer_power(base: Decimal, exponent: int, exponent_scale: int = 0) -> Decimal:
    estimate = exponent * _log10(base) if base else 0.0
    if estimate > _WEIGHT_MAX:
        raise overflow_error()
    if estimate + 1 < -SCALE_MAX:
        return rounded(ZERO, SCALE_MAX)
    scale = _scale(SIGNIFICANT_DIGITS_MIN - int(estimate), scale_of(base), exponent_scale)
    if exponent == 0:
        return rounded(ONE, scale)
    if not base:
        return rounded(ZERO, scale)
    digits = max(1 + scale + int(estimate), 1) + int(log(abs(exponent))) + 8
    result = _context(digits + _SPARE_DIGITS).power(base, exponent)
    return rounded(result, scale)


def _log10(value: Decimal) -> float:
    """Estimate from the first four groups of digits."""
    kept = min(_groups(value.copy_abs()), 4)
    power_of_ten = (weight_of(value) - kept + 1) * GROUP
    return log10(int(value.copy_abs().scaleb(-power_of_ten, EXACT))) + power_of_ten


def is_integral(value: Decimal) -> bool:
    """Tell whether all digits after the point are zero; true for infinity."""
    if not value.is_finite():
        return not value.is_nan()
    return value == value.to_integral_value(rounding=ROUND_DOWN, context=EXACT)


def is_odd(value: Decimal) -> bool:
    return value.is_finite() and is_integral(value) and bool(_WHOLE.remainder(value, 2))


def _check_power(base: Decimal, exponent: Decimal) -> None:
    if not base and exponent < 0:
        raise InvalidArgumentForPower("zero raised to a negative power is undefined")
    if base < 0 and not is_integral(exponent):
        raise InvalidArgumentForPower(
            "a negative number raised to a non-integer power yields a complex result"
        )


def _power_of_special(base: Decimal, exponent: Decimal) -> Decimal:
    """Follow POSIX's `pow` if one side is NaN or infinite."""
    if base.is_nan():
        return ONE if exponent == 0 else NOT_A_NUMBER
    if exponent.is_nan():
        return ONE if base == 1 else NOT_A_NUMBER
    _check_power(base, exponent)
    if base == 1 or exponent == 0:
        return ONE
    if not base:
        return ZERO
    if exponent.is_infinite():
        if base == -1:
            return ONE
        return INFINITY if (abs(base) > 1) == (exponent > 0) else ZERO
    if exponent < 0:
        return ZERO
    return base if base > 0 or is_odd(exponent) else INFINITY

"""Functions of numbers: rounding, roots, logarithms, divisors.

Integers have their own versions only where PostgreSQL has them (abs, mod, gcd, lcm); round(1) is
round(double precision), the preferred type of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from math import copysign, isinf
from typing import Any, Final

from qserver.errors import InvalidArgumentForLogarithm, NumericValueOutOfRange
from qserver.functions.costs import Cost, factorial_cost, linear, squared
from qserver.functions.numbers import float_math, integer_math, numeric_math, numeric_powers
from qserver.functions.numbers.numeric_costs import (
    exponential_cost,
    logarithm_cost,
    power_cost,
    root_cost,
)
from qserver.functions.numbers.numeric_math import (
    EXACT,
    ONE,
    ZERO,
    overflow_error,
    rounded,
    scale_of,
    unit_of,
)
from qserver.functions.registry import Function
from qserver.limits import NUMERIC_FRACTION_DIGITS_MAX, NUMERIC_INTEGER_DIGITS_MAX
from qserver.values.numerics import NOT_A_NUMBER
from qserver.values.types import BIGINT, DOUBLE, INTEGER, NUMERIC, REAL, SMALLINT, SqlType

_HALF_OF_ALL: Final = Decimal((0, (5,), NUMERIC_INTEGER_DIGITS_MAX - 1))
"""From here on, rounding to the highest possible digit carries into one more digit."""

_FACTORIAL_LARGEST: Final = 32177
_FACTORS_FEW: Final = 64


# --- rounding ------------------------------------------------------------------------------------


def round_numeric(value: Decimal, digits: int = 0) -> Decimal:
    """Round halves away from zero; negative digits are before the point."""
    if not value.is_finite():
        return value
    digits = min(digits, NUMERIC_FRACTION_DIGITS_MAX)
    if digits <= -NUMERIC_INTEGER_DIGITS_MAX:
        if digits == -NUMERIC_INTEGER_DIGITS_MAX and value.copy_abs() >= _HALF_OF_ALL:
            raise overflow_error()
        return ZERO
    result = rounded(value, digits)
    return EXACT.quantize(result, ONE) if digits < 0 else result


def cut_numeric(value: Decimal, digits: int = 0) -> Decimal:
    if not value.is_finite():
        return value
    digits = min(digits, NUMERIC_FRACTION_DIGITS_MAX)
    if digits <= -NUMERIC_INTEGER_DIGITS_MAX:
        return ZERO
    result = value.quantize(unit_of(digits), rounding=ROUND_DOWN, context=EXACT)
    if digits < 0:
        result = EXACT.quantize(result, ONE)
    return result if result else result.copy_abs()


def ceiling_numeric(value: Decimal) -> Decimal:
    return _to_integral(value, ROUND_CEILING)


def floor_numeric(value: Decimal) -> Decimal:
    return _to_integral(value, ROUND_FLOOR)


def _to_integral(value: Decimal, rounding: str) -> Decimal:
    if not value.is_finite():
        return value
    result = value.to_integral_value(rounding=rounding, context=EXACT)
    return result if result else result.copy_abs()


def _on_float(compute: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding function of floats: zero keeps its sign, and large values are whole."""

    def call(value: float) -> float:
        if not -(2.0**52) < value < 2.0**52:
            return value
        return copysign(float(compute(value)), value)

    return call


# --- roots, exponentials, logarithms -------------------------------------------------------------


def exponential(value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        float_math.overflow()
    if result == 0.0 and not isinf(value):
        float_math.underflow()
    return result


def _checked_logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if value == 0.0:
            raise InvalidArgumentForLogarithm("cannot take logarithm of zero")
        if value < 0.0:
            raise InvalidArgumentForLogarithm("cannot take logarithm of a negative number")
        return compute(value)

    return call


# --- signs and divisors --------------------------------------------------------------------------


def sign(value: float) -> float:
    return 1.0 if value > 0.0 else -1.0 if value < 0.0 else 0.0


def sign_numeric(value: Decimal) -> Decimal:
    if value.is_nan():
        return NOT_A_NUMBER
    return Decimal((value > 0) - (value < 0))


def divide_whole(left: Decimal, right: Decimal) -> Decimal:
    """Divide and truncate to an integer."""
    if not (left.is_finite() and right.is_finite()) or not right:
        return numeric_math.divide(left, right)
    size = left.adjusted() - right.adjusted() + 2
    exact = numeric_math.whole_quotient(left, right, max(size, 1))
    return exact if exact else exact.copy_abs()


def _as_integers(left: Decimal, right: Decimal) -> tuple[int, int, int]:
    scale = max(scale_of(left), scale_of(right))
    return int(left.scaleb(scale, EXACT)), int(right.scaleb(scale, EXACT)), scale


def greatest_divisor(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return NOT_A_NUMBER
    first, second, scale = _as_integers(left, right)
    return Decimal(math.gcd(first, second)).scaleb(-scale, EXACT)


def least_multiple(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return NOT_A_NUMBER
    first, second, scale = _as_integers(left, right)
    return numeric_math.add(
        Decimal(math.lcm(first, second)).scaleb(-scale, EXACT), unit_zero(scale)
    )


def unit_zero(scale: int) -> Decimal:
    """Return zero with this many digits after the point."""
    return Decimal((0, (0,), -scale))


def factorial(value: int) -> Decimal:
    if value < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if value > _FACTORIAL_LARGEST:
        raise numeric_math.overflow_error()
    return _product(1, value + 1)


def _product(low: int, high: int) -> Decimal:
    """Return low × … × (high - 1), by halves: products of numbers of similar length are fastest."""
    if high - low < _FACTORS_FEW:
        return Decimal(math.prod(range(low, high)))
    middle = (low + high) // 2
    return EXACT.multiply(_product(low, middle), _product(middle, high))


def least_scale(value: Decimal) -> int | None:
    """Return the number of digits after the point that the value needs."""
    if not value.is_finite():
        return None
    return max(scale_of(value.normalize(EXACT)), 0) if value else 0


def shown_scale(value: Decimal) -> int | None:
    return scale_of(value) if value.is_finite() else None


def trim_scale(value: Decimal) -> Decimal:
    needed = least_scale(value)
    return value if needed is None else rounded(value, needed)


# --- the tables ----------------------------------------------------------------------------------


def _pairs(
    name: str, of_double: Callable[..., Any], of_numeric: Callable[..., Any]
) -> Iterator[Function]:
    yield Function(name, (DOUBLE,), DOUBLE, of_double)
    yield Function(name, (NUMERIC,), NUMERIC, of_numeric)


def _whole_numbers(each: SqlType) -> Iterator[Function]:
    fit = integer_math.fitting(each)
    yield Function("abs", (each,), each, lambda value: fit(abs(value)))
    yield Function(
        "mod",
        (each, each),
        each,
        integer_math.remainder,
        inline="({0} % {1} if {0} >= 0 and {1} > 0 else integer_remainder({0}, {1}))",
        names={"integer_remainder": integer_math.remainder},
    )
    if each != SMALLINT:
        yield Function("gcd", (each, each), each, lambda a, b: fit(math.gcd(a, b)))
        yield Function("lcm", (each, each), each, lambda a, b: fit(math.lcm(a, b)))


def _roundings() -> Iterator[Function]:
    for name in ("ceil", "ceiling"):
        yield from _pairs(name, _on_float(math.ceil), ceiling_numeric)
    yield from _pairs("floor", _on_float(math.floor), floor_numeric)
    yield from _pairs("round", _on_float(round), round_numeric)
    yield from _pairs("trunc", _on_float(math.trunc), cut_numeric)
    yield Function("round", (NUMERIC, INTEGER), NUMERIC, round_numeric)
    yield Function("trunc", (NUMERIC, INTEGER), NUMERIC, cut_numeric)


def _long(name: str, count: int, call: Callable[..., Any], cost: Cost) -> Function:
    """Return a function of numbers that may be expensive whatever their length."""
    return Function(name, (NUMERIC,) * count, NUMERIC, call, cost=cost, explodes=True)


def _powers() -> Iterator[Function]:
    ln, log10 = _checked_logarithm(math.log), _checked_logarithm(math.log10)
    yield Function("sqrt", (DOUBLE,), DOUBLE, float_math.square_root)
    yield _long("sqrt", 1, numeric_powers.square_root, root_cost)
    yield Function("exp", (DOUBLE,), DOUBLE, exponential)
    yield _long("exp", 1, numeric_powers.exponential, exponential_cost)
    yield Function("ln", (DOUBLE,), DOUBLE, ln)
    yield _long("ln", 1, numeric_powers.natural_logarithm, logarithm_cost)
    for name in ("log", "log10"):
        yield Function(name, (DOUBLE,), DOUBLE, log10)
        yield _long(name, 1, numeric_powers.decimal_logarithm, logarithm_cost)
    yield _long("log", 2, numeric_powers.logarithm, logarithm_cost)
    yield Function("cbrt", (DOUBLE,), DOUBLE, float_math.cube_root)
    for name in ("power", "pow"):
        yield Function(name, (DOUBLE, DOUBLE), DOUBLE, float_math.power)
        yield _long(name, 2, numeric_powers.power, power_cost)


FUNCTIONS: Final = (
    *_whole_numbers(SMALLINT),
    *_whole_numbers(INTEGER),
    *_whole_numbers(BIGINT),
    Function("abs", (REAL,), REAL, abs, inline="abs({0})"),
    Function("abs", (DOUBLE,), DOUBLE, abs, inline="abs({0})"),
    Function("abs", (NUMERIC,), NUMERIC, Decimal.copy_abs, inline="{0}.copy_abs()"),
    Function("mod", (NUMERIC, NUMERIC), NUMERIC, numeric_math.remainder, cost=linear(1200)),
    Function("gcd", (NUMERIC, NUMERIC), NUMERIC, greatest_divisor, cost=squared(1)),
    Function("lcm", (NUMERIC, NUMERIC), NUMERIC, least_multiple, cost=squared(1)),
    *_roundings(),
    *_powers(),
    *_pairs("sign", sign, sign_numeric),
    Function("div", (NUMERIC, NUMERIC), NUMERIC, divide_whole, cost=linear(1200)),
    Function("factorial", (BIGINT,), NUMERIC, factorial, cost=factorial_cost, explodes=True),
    Function("scale", (NUMERIC,), INTEGER, shown_scale, gives_null=True),
    Function("min_scale", (NUMERIC,), INTEGER, least_scale, gives_null=True),
    Function("trim_scale", (NUMERIC,), NUMERIC, trim_scale),
)

"""Costs of NUMERIC roots, powers and logarithms, which depend on the digits of their results.

The estimates follow `numeric_powers`, which determines the digits of a result.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from qserver.functions.numbers.numeric_math import SCALE_MAX, scale_of
from qserver.limits import NUMERIC_INTEGER_DIGITS_MAX

_SMALL: Final = 20
_LOG10_OF_E: Final = 0.434294481903252
_EXPONENT_LARGEST: Final = 6000


def root_cost(value: Decimal | None) -> int:
    """sqrt: products of half as many digits as the number has."""
    return _SMALL if value is None else _SMALL + (abs(value.adjusted()) + _scale(value)) * 3 // 4


def exponential_cost(value: Decimal | None) -> int:
    """exp: the square of the digits of the result."""
    if value is None or not value.is_finite() or value.adjusted() > 4:
        return _SMALL
    whole = min(abs(float(value)), _EXPONENT_LARGEST) * _LOG10_OF_E
    return _steps(int(whole) + _scale(value))


def logarithm_cost(*values: Decimal | None) -> int:
    """ln, log: the square of the digits after the point, and a pass over all digits."""
    sizes = [value.__sizeof__() // 100 for value in values if value is not None]
    return sum(_steps(_scale(value)) for value in values if value is not None) + sum(sizes)


def power_cost(base: Decimal | None, exponent: Decimal | None) -> int:
    """^: for whole exponents products of the result's digits, else logarithm and exponential."""
    if base is None or exponent is None or not (base.is_finite() and exponent.is_finite()):
        return _SMALL
    size = base.__sizeof__() + exponent.__sizeof__()
    most = int(10.0 ** min(abs(exponent.adjusted()) + 1, 6))
    digits = min(most * (abs(base.adjusted()) + 1), 2 * NUMERIC_INTEGER_DIGITS_MAX)
    if exponent == exponent.to_integral_value():
        return _SMALL + size // 2 + digits // 8 + _scale(base)
    return 2 * _steps(min(digits, 2606) + max(_scale(base), _scale(exponent))) + size // 2


def _steps(digits: int) -> int:
    return _SMALL + digits * digits // 260


def _scale(value: Decimal) -> int:
    return min(scale_of(value), SCALE_MAX) if value.is_finite() else 0

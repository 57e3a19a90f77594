"""Trigonometry, in radians and in degrees.

In degrees, round angles give round results: sind(30) is 0.5. As in PostgreSQL, each function is
scaled to be exact at 30, 45 and 60 degrees, and respects its symmetries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from math import copysign, inf, isinf, isnan, nan
from typing import Final, NoReturn

from qserver.errors import NumericValueOutOfRange
from qserver.functions.numbers import float_math
from qserver.functions.registry import Function
from qserver.values.types import DOUBLE

RADIANS_PER_DEGREE: Final = 0.0174532925199432957692

_SINE_30: Final = math.sin(30.0 * RADIANS_PER_DEGREE)
_ONE_MINUS_COSINE_60: Final = 1.0 - math.cos(60.0 * RADIANS_PER_DEGREE)
_ARC_SINE_HALF: Final = math.asin(0.5)
_ARC_COSINE_HALF: Final = math.acos(0.5)
_ARC_TANGENT_ONE: Final = math.atan(1.0)

Angle = Callable[[float], float]


def _out_of_range() -> NoReturn:
    raise NumericValueOutOfRange("input is out of range")


# --- radians -------------------------------------------------------------------------------------


def _of_finite(compute: Angle) -> Angle:
    """Pass NaN through and refuse infinity."""

    def call(value: float) -> float:
        if isinf(value):
            _out_of_range()
        return compute(value) if value == value else nan

    return call


def _between_minus_one_and_one(compute: Angle) -> Angle:
    def call(value: float) -> float:
        if isnan(value):
            return nan
        if not -1.0 <= value <= 1.0:
            _out_of_range()
        return compute(value)

    return call


def cotangent(value: float) -> float:
    tangent = math.tan(value)
    return 1.0 / tangent if tangent else copysign(inf, tangent)


def hyperbolic_sine(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return inf if value > 0 else -inf


def hyperbolic_cosine(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return inf


def inverse_hyperbolic_cosine(value: float) -> float:
    if value < 1.0:
        _out_of_range()
    return math.acosh(value)


def inverse_hyperbolic_tangent(value: float) -> float:
    return copysign(inf, value) if abs(value) == 1.0 else math.atanh(value)


def degrees(value: float) -> float:
    return float_math.divide(value, RADIANS_PER_DEGREE)


def radians(value: float) -> float:
    return float_math.multiply(value, RADIANS_PER_DEGREE)


# --- degrees -------------------------------------------------------------------------------------


def _sine_to_30(degree: float) -> float:
    return math.sin(degree * RADIANS_PER_DEGREE) / _SINE_30 / 2.0


def _cosine_to_60(degree: float) -> float:
    return 1.0 - (1.0 - math.cos(degree * RADIANS_PER_DEGREE)) / _ONE_MINUS_COSINE_60 / 2.0


def _sine_to_90(degree: float) -> float:
    return _sine_to_30(degree) if degree <= 30.0 else _cosine_to_60(90.0 - degree)


def _cosine_to_90(degree: float) -> float:
    return _cosine_to_60(degree) if degree <= 60.0 else _sine_to_30(90.0 - degree)


_TANGENT_45: Final = _sine_to_90(45.0) / _cosine_to_90(45.0)
_COTANGENT_45: Final = _cosine_to_90(45.0) / _sine_to_90(45.0)


def _quadrant(degree: float) -> tuple[float, bool, bool, bool]:
    """Return the angle in the first quadrant, and the reflections that lead there."""
    degree = math.fmod(degree, 360.0)
    negative, below, behind = degree < 0.0, False, False
    degree = -degree if negative else degree  # -0 is not negative, and stays
    if degree > 180.0:
        degree, below = 360.0 - degree, True
    if degree > 90.0:
        degree, behind = 180.0 - degree, True
    return degree, negative, below, behind


def sine_of_degrees(degree: float) -> float:
    angle, negative, below, _ = _quadrant(degree)
    result = _sine_to_90(angle)
    return -result if negative != below else result


def cosine_of_degrees(degree: float) -> float:
    angle, _, _, behind = _quadrant(degree)
    result = _cosine_to_90(angle)
    return -result if behind else result


def tangent_of_degrees(degree: float) -> float:
    angle, negative, below, behind = _quadrant(degree)
    sine, cosine = _sine_to_90(angle), _cosine_to_90(angle)
    result = (sine / cosine if cosine else inf) / _TANGENT_45
    return _signed(result, negative != (below != behind))


def cotangent_of_degrees(degree: float) -> float:
    angle, negative, below, behind = _quadrant(degree)
    sine, cosine = _sine_to_90(angle), _cosine_to_90(angle)
    result = (cosine / sine if sine else copysign(inf, sine)) / _COTANGENT_45
    return _signed(result, negative != (below != behind))


def _signed(result: float, negative: bool) -> float:
    if result == 0.0:
        return 0.0  # never -0
    return -result if negative else result


def arc_sine_degrees(value: float) -> float:
    return _arc_sine_to_90(value) if value >= 0.0 else -_arc_sine_to_90(-value)


def arc_cosine_degrees(value: float) -> float:
    if value < 0.0:
        return 90.0 + _arc_sine_to_90(-value)
    if value <= 0.5:
        return 90.0 - math.asin(value) / _ARC_SINE_HALF * 30.0
    return math.acos(value) / _ARC_COSINE_HALF * 60.0


def _arc_sine_to_90(value: float) -> float:
    if value <= 0.5:
        return math.asin(value) / _ARC_SINE_HALF * 30.0
    return 90.0 - math.acos(value) / _ARC_COSINE_HALF * 60.0


def arc_tangent_degrees(value: float) -> float:
    return math.atan(value) / _ARC_TANGENT_ONE * 45.0


def arc_tangent_2_degrees(y: float, x: float) -> float:
    return math.atan2(y, x) / _ARC_TANGENT_ONE * 45.0


# --- the tables ----------------------------------------------------------------------------------

_ONE_ARGUMENT: Final[dict[str, Angle]] = {
    "sin": _of_finite(math.sin),
    "cos": _of_finite(math.cos),
    "tan": _of_finite(math.tan),
    "cot": _of_finite(cotangent),
    "asin": _between_minus_one_and_one(math.asin),
    "acos": _between_minus_one_and_one(math.acos),
    "atan": math.atan,
    "sinh": hyperbolic_sine,
    "cosh": hyperbolic_cosine,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": inverse_hyperbolic_cosine,
    "atanh": _between_minus_one_and_one(inverse_hyperbolic_tangent),
    "sind": _of_finite(sine_of_degrees),
    "cosd": _of_finite(cosine_of_degrees),
    "tand": _of_finite(tangent_of_degrees),
    "cotd": _of_finite(cotangent_of_degrees),
    "asind": _between_minus_one_and_one(arc_sine_degrees),
    "acosd": _between_minus_one_and_one(arc_cosine_degrees),
    "atand": arc_tangent_degrees,
    "erf": math.erf,
    "erfc": math.erfc,
    "degrees": degrees,
    "radians": radians,
}


def _announced() -> Iterator[Function]:
    for name, call in _ONE_ARGUMENT.items():
        yield Function(name, (DOUBLE,), DOUBLE, call)
    yield Function("atan2", (DOUBLE, DOUBLE), DOUBLE, math.atan2)
    yield Function("atan2d", (DOUBLE, DOUBLE), DOUBLE, arc_tangent_2_degrees)
    yield Function("pi", (), DOUBLE, lambda: math.pi)


FUNCTIONS: Final = tuple(_announced())

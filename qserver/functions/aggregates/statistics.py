"""Variance, deviation, correlation and regression.

Integers and NUMERIC are exact: the sums of values and of squares are exact, and divided once at the
end. Floats follow Youngs and Cramer, as in PostgreSQL: sums of squares of deviations are updated
row by row, which does not lose the digits that squares of large values would. The last digit of the
result depends on the order of rows. Equal values may add up to a tiny sum of squares by rounding:
a regression over them is NULL all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from math import isinf, isnan, nan, sqrt
from typing import Any, Final

from qserver.functions.numbers import float_math, numeric_math
from qserver.functions.numbers.numeric_math import (
    division_scale,
    exact_add,
    exact_multiply,
    quotient,
)
from qserver.functions.numbers.numeric_powers import root_with_scale
from qserver.functions.registry import Aggregate
from qserver.values.numerics import NOT_A_NUMBER
from qserver.values.types import BIGINT, DOUBLE, INTEGER, NUMERIC, REAL, SMALLINT

NAMES: Final = {
    "var_pop": (False, False),
    "var_samp": (True, False),
    "variance": (True, False),
    "stddev_pop": (False, True),
    "stddev_samp": (True, True),
    "stddev": (True, True),
}
"""For each name: is it of a sample, and is it a square root."""


# --- exact ---------------------------------------------------------------------------------------


def exact_deviation(
    count: int, total: int | Decimal, squares: int | Decimal, sample: bool, root: bool
) -> Decimal | None:
    """Compute from the number of values, their sum and the sum of their squares."""
    if count <= (1 if sample else 0):
        return None
    first, second = Decimal(total), Decimal(squares)
    if not (first.is_finite() and second.is_finite()):
        return NOT_A_NUMBER
    above = numeric_math.subtract(
        numeric_math.multiply(Decimal(count), second), numeric_math.multiply(first, first)
    )
    if above <= 0:
        return numeric_math.ZERO
    below = Decimal(count * (count - 1 if sample else count))
    scale = division_scale(above, below)
    variance = quotient(above, below, scale)
    return root_with_scale(variance, scale) if root else variance


def _exact(name: str) -> Iterator[Aggregate]:
    sample, root = NAMES[name]
    finish = f"exact_deviation({{s0}}, {{s1}}, {{s2}}, {sample}, {root})"
    for each in (SMALLINT, INTEGER, BIGINT):
        yield Aggregate(
            name,
            (each,),
            NUMERIC,
            ("0", "0", "0"),
            "{s0} += 1; {s1} += {0}; {s2} += {0} * {0}",
            finish,
            {"exact_deviation": exact_deviation},
        )
    yield Aggregate(
        name,
        (NUMERIC,),
        NUMERIC,
        ("0", "numeric_zero", "numeric_zero"),
        "{s0} += 1; {s1} = exact_add({s1}, {0}); {s2} = exact_add({s2}, exact_multiply({0}, {0}))",
        finish,
        {
            "exact_deviation": exact_deviation,
            "exact_add": exact_add,
            "exact_multiply": exact_multiply,
            "numeric_zero": numeric_math.ZERO,
        },
    )


# --- floats --------------------------------------------------------------------------------------


class Moments:
    """Count, sum, and sum of squares of deviations from the mean."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        before, total = self.count, self.total
        self.count = count = before + 1.0
        self.total = total + value
        if before == 0.0:
            if value - value != 0.0:  # infinite or NaN
                self.squares = nan
            return
        deviation = value * count - self.total
        self.squares += deviation * deviation / (count * before)
        if isinf(self.total) or isinf(self.squares):
            if not isinf(total) and not isinf(value):
                float_math.overflow()
            self.squares = nan


def deviation(moments: Moments, sample: bool, root: bool) -> float | None:
    if moments.count <= (1.0 if sample else 0.0):
        return None
    variance = moments.squares / (moments.count - 1.0 if sample else moments.count)
    return sqrt(variance) if root else variance


def _of_floats(name: str) -> Iterator[Aggregate]:
    sample, root = NAMES[name]
    for each in (REAL, DOUBLE):
        yield Aggregate(
            name,
            (each,),
            DOUBLE,
            ("Moments()",),
            "{s0}.add({0})",
            f"float_deviation({{s0}}, {sample}, {root})",
            {"Moments": Moments, "float_deviation": deviation},
            ordered=True,
        )


# --- pairs ---------------------------------------------------------------------------------------


class PairMoments:
    """`Moments` for pairs (y, x), with the sum of products of deviations.

    `x` is the value of all x if they are equal and finite, otherwise NaN; `y` likewise.
    """

    __slots__ = ("count", "sx", "sxx", "sxy", "sy", "syy", "x", "y")

    def __init__(self) -> None:
        self.count = self.sx = self.sy = self.sxx = self.syy = self.sxy = 0.0
        self.x = self.y = nan

    def add(self, y: float, x: float) -> None:
        before, sx, sy = self.count, self.sx, self.sy
        self.count = count = before + 1.0
        self.sx = sx + x
        self.sy = sy + y
        if before == 0.0:
            self.x, self.y = x, y
            if x - x != 0.0:
                self.x = self.sxx = self.sxy = nan
            if y - y != 0.0:
                self.y = self.syy = self.sxy = nan
            return
        if x != self.x:
            self.x = nan
        if y != self.y:
            self.y = nan
        dx, dy = x * count - self.sx, y * count - self.sy
        scale = 1.0 / (count * before)
        self.sxx += dx * dx * scale
        self.syy += dy * dy * scale
        self.sxy += dx * dy * scale
        if any(map(isinf, (self.sx, self.sxx, self.sy, self.syy, self.sxy))):
            self._judge(not (isinf(sx) or isinf(x)), not (isinf(sy) or isinf(y)))

    @property
    def x_is_constant(self) -> bool:
        return self.sxx == 0.0 or not isnan(self.x)

    @property
    def y_is_constant(self) -> bool:
        return self.syy == 0.0 or not isnan(self.y)

    def _judge(self, x_was_finite: bool, y_was_finite: bool) -> None:
        """Set sums to NaN if a value is infinite; otherwise an infinite sum is an overflow."""
        if (
            (x_was_finite and (isinf(self.sx) or isinf(self.sxx)))
            or (y_was_finite and (isinf(self.sy) or isinf(self.syy)))
            or (x_was_finite and y_was_finite and isinf(self.sxy))
        ):
            float_math.overflow()
        self.sxx = nan if isinf(self.sxx) else self.sxx
        self.syy = nan if isinf(self.syy) else self.syy
        self.sxy = nan if isinf(self.sxy) else self.sxy


def _when_any(compute: Callable[[PairMoments], Any], least: float = 1.0) -> Any:
    return lambda moments: compute(moments) if moments.count >= least else None


def correlation(m: PairMoments) -> float | None:
    if m.x_is_constant or m.y_is_constant:
        return None
    return m.sxy / sqrt(m.sxx * m.syy)


def determination(m: PairMoments) -> float | None:
    if m.x_is_constant:
        return None
    return 1.0 if m.y_is_constant else m.sxy * m.sxy / (m.sxx * m.syy)


def slope(m: PairMoments) -> float | None:
    return None if m.x_is_constant else m.sxy / m.sxx


def intercept(m: PairMoments) -> float | None:
    return None if m.x_is_constant else (m.sy - m.sx * m.sxy / m.sxx) / m.count


_OF_PAIRS: Final[dict[str, Callable[[PairMoments], float | None]]] = {
    "regr_sxx": _when_any(lambda m: m.sxx),
    "regr_syy": _when_any(lambda m: m.syy),
    "regr_sxy": _when_any(lambda m: m.sxy),
    "regr_avgx": _when_any(lambda m: m.sx / m.count),
    "regr_avgy": _when_any(lambda m: m.sy / m.count),
    "regr_r2": _when_any(determination),
    "regr_slope": _when_any(slope),
    "regr_intercept": _when_any(intercept),
    "covar_pop": _when_any(lambda m: m.sxy / m.count),
    "covar_samp": _when_any(lambda m: m.sxy / (m.count - 1.0), 2.0),
    "corr": _when_any(correlation),
}


def _of_pairs() -> Iterator[Aggregate]:
    for name, compute in _OF_PAIRS.items():
        yield Aggregate(
            name,
            (DOUBLE, DOUBLE),
            DOUBLE,
            ("PairMoments()",),
            "{s0}.add({0}, {1})",
            f"{name}_of({{s0}})",
            {"PairMoments": PairMoments, f"{name}_of": compute},
            ordered=True,
        )
    yield Aggregate(
        "regr_count", (DOUBLE, DOUBLE), BIGINT, ("0",), "{s0} += 1", "{s0}", gives_null=False
    )


AGGREGATES: Final = (
    *(aggregate for name in NAMES for aggregate in _exact(name)),
    *(aggregate for name in NAMES for aggregate in _of_floats(name)),
    *_of_pairs(),
)

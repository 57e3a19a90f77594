"""Aggregates whose result depends on the order of rows: array_agg, percentiles, mode.

An ordered-set aggregate, `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)`, has the direct arguments
first and then x: here (0.5, x). The compiler runs its steps in the order of WITHIN GROUP, so the
state ends as the direct argument and the sorted list of values. NULLs in x are skipped as usual; a
NULL fraction skips all rows, and so gives NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, floor
from typing import Any, Final

from qserver.errors import ArraySubscriptError, NullValueNotAllowed, NumericValueOutOfRange
from qserver.functions.costs import refuse_steps
from qserver.functions.datetime.arithmetic import (
    interval_times,
    intervals_difference,
    intervals_sum,
)
from qserver.functions.registry import Aggregate
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.values.interval import Interval
from qserver.values.sizes import ELEMENT_BYTES, size_of
from qserver.values.text_output import text_of_double
from qserver.values.types import (
    ANYARRAY,
    ANYELEMENT,
    ANYNONARRAY,
    DOUBLE,
    INTERVAL,
    SqlType,
    array_of,
)

_DOUBLES: Final = array_of(DOUBLE)

FRACTIONS_MOST: Final = STEPS_AT_ONCE_MAX // 2
"""Percentiles that one call computes at once."""


def _checked(fraction: float) -> float:
    if not 0.0 <= fraction <= 1.0:
        shown = text_of_double(fraction)
        raise NumericValueOutOfRange(f"percentile value {shown} is not between 0 and 1")
    return fraction


def percentile_between(fraction: float, values: Sequence[float]) -> float | None:
    """Return the value at a fraction of the sorted values, interpolated if necessary."""
    if not values:
        return None
    place = _checked(fraction) * (len(values) - 1)
    below, above = values[floor(place)], values[ceil(place)]
    return (
        below if floor(place) == ceil(place) else below + (place - floor(place)) * (above - below)
    )


def interval_between(fraction: float, values: Sequence[Interval]) -> Interval | None:
    """`percentile_between` for intervals."""
    if not values:
        return None
    place = _checked(fraction) * (len(values) - 1)
    below, above = values[floor(place)], values[ceil(place)]
    if floor(place) == ceil(place):
        return below
    part = interval_times(intervals_difference(above, below), place - floor(place))
    return intervals_sum(below, part)


def percentile_of(fraction: float, values: Sequence[Any]) -> Any:
    """Return the first value at or above the fraction of all values."""
    if not values:
        return None
    return values[max(ceil(_checked(fraction) * len(values)), 1) - 1]


def percentiles_between(fractions: Sequence[Any] | None, values: Sequence[float]) -> Any:
    return _each(percentile_between, fractions, values)


def intervals_between(fractions: Sequence[Any] | None, values: Sequence[Interval]) -> Any:
    return _each(interval_between, fractions, values)


def percentiles_of(fractions: Sequence[Any] | None, values: Sequence[Any]) -> Any:
    return _each(percentile_of, fractions, values)


def _each(compute: Any, fractions: Sequence[Any] | None, values: Sequence[Any]) -> Any:
    if fractions is None or not values:
        return None
    count = size_of(fractions) // ELEMENT_BYTES
    if count > FRACTIONS_MOST:
        raise refuse_steps("percentiles", 2 * count)
    return _computed(compute, fractions, values)


def _computed(compute: Any, fractions: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        [
            None
            if fraction is None
            else _computed(compute, fraction, values)
            if isinstance(fraction, tuple)
            else compute(fraction, values)
            for fraction in fractions
        ]
    )


def most_frequent(values: Sequence[Any]) -> Any:
    """The first of those that occur most often, among sorted values."""
    counts = Counter(values)  # which keeps their order
    return max(counts, key=counts.__getitem__, default=None)


def _percentile(name: str, fraction: Any, value: Any, returns: Any, finish: Any) -> Aggregate:
    return Aggregate(
        name,
        (fraction, value),
        returns,
        ("None", "[]"),
        "{s0} = {0}; {s1}.append({1})",
        f"{finish.__name__}({{s0}}, {{s1}})",
        {finish.__name__: finish},
        ordered=True,
        keeps=True,
    )


def _append_array(arrays: list[Any], array: Any) -> None:
    """Append an array as a row of a larger one, which must stay rectangular."""
    if array is None:
        raise NullValueNotAllowed("cannot accumulate null arrays")
    if not array:
        raise ArraySubscriptError("cannot accumulate empty arrays")
    if arrays and _shape(array) != _shape(arrays[0]):
        raise ArraySubscriptError("cannot accumulate arrays of different dimensionality")
    arrays.append(array)


def _shape(array: Any) -> tuple[int, ...]:
    return (len(array), *_shape(array[0])) if isinstance(array, tuple) else ()


def _array(element: SqlType, step: str) -> Aggregate:
    return Aggregate(
        "array_agg",
        (element,),
        ANYARRAY,
        ("[]",),
        step,
        "(tuple({s0}) or None)",
        {"append_array": _append_array} if "append_array" in step else {},
        strict=False,
        ordered=True,
        keeps=True,
    )


AGGREGATES: Final = (
    _array(ANYNONARRAY, "{s0}.append({0})"),
    _array(ANYARRAY, "append_array({s0}, {0})"),
    _percentile("percentile_cont", DOUBLE, DOUBLE, DOUBLE, percentile_between),
    _percentile("percentile_cont", _DOUBLES, DOUBLE, _DOUBLES, percentiles_between),
    _percentile("percentile_cont", DOUBLE, INTERVAL, INTERVAL, interval_between),
    _percentile("percentile_cont", _DOUBLES, INTERVAL, array_of(INTERVAL), intervals_between),
    _percentile("percentile_disc", DOUBLE, ANYELEMENT, ANYELEMENT, percentile_of),
    _percentile("percentile_disc", _DOUBLES, ANYELEMENT, ANYARRAY, percentiles_of),
    Aggregate(
        "mode",
        (ANYELEMENT,),
        ANYELEMENT,
        ("[]",),
        "{s0}.append({0})",
        "most_frequent({s0})",
        {"most_frequent": most_frequent},
        ordered=True,
        keeps=True,
    ),
)

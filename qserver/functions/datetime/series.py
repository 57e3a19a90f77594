"""generate_series over time, and sums and averages of intervals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from qserver.errors import InvalidParameterValue
from qserver.functions.datetime.arithmetic import (
    interval_divided,
    intervals_sum,
    moment_plus,
    timestamp_plus,
)
from qserver.functions.registry import Aggregate, TableFunction
from qserver.values.interval import ZERO, Interval
from qserver.values.types import INTERVAL, TIMESTAMP, TIMESTAMPTZ


def timestamps(start: datetime, stop: datetime, step: Interval) -> Iterator[tuple[datetime]]:
    """Return timestamps from start to stop, both included. The step's length has its direction."""
    if step.span == 0:
        raise InvalidParameterValue("step size cannot equal zero")
    return _timestamps(start, stop, step)


def _timestamps(start: datetime, stop: datetime, step: Interval) -> Iterator[tuple[datetime]]:
    upward = step.span > 0
    value = start
    plus = timestamp_plus if start.tzinfo is None else moment_plus
    while value <= stop if upward else value >= stop:
        yield (value,)
        value = plus(value, step)


def _average(total: Interval, count: int) -> Interval:
    return interval_divided(total, float(count))


TABLE_FUNCTIONS: Final = tuple(
    TableFunction(
        "generate_series",
        (sql_type, sql_type, INTERVAL),
        (("generate_series", sql_type),),
        timestamps,
    )
    for sql_type in (TIMESTAMP, TIMESTAMPTZ)
)

AGGREGATES: Final = (
    Aggregate(
        "sum",
        (INTERVAL,),
        INTERVAL,
        ("None",),
        "{s0} = {0} if {s0} is None else intervals_sum({s0}, {0})",
        "{s0}",
        {"intervals_sum": intervals_sum},
    ),
    Aggregate(
        "avg",
        (INTERVAL,),
        INTERVAL,
        ("no_time", "0"),
        "{s0} = intervals_sum({s0}, {0}); {s1} += 1",
        "(None if {s1} == 0 else average_interval({s0}, {s1}))",
        {"intervals_sum": intervals_sum, "no_time": ZERO, "average_interval": _average},
    ),
)

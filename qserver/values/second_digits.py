"""Rounds times to the digits of a second that a type has, and intervals to their fields.

TIMESTAMP(0), TIME(3), INTERVAL DAY TO SECOND(2): halves round away from zero, where a timestamp's
zero is the year 2000. Fields that an INTERVAL type lacks are dropped, not rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any, Final

from qserver.errors import DatetimeFieldOverflow
from qserver.limits import SECOND_DIGITS_MAX
from qserver.values.interval import (
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_HOUR,
    MICROSECONDS_PER_MINUTE,
    MONTHS_PER_YEAR,
    Interval,
)
from qserver.values.types import Kind, SqlType
from qserver.values.zoned_time import ZonedTime, in_zone

_ZERO: Final = datetime(2000, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)


def second_rounder(sql_type: SqlType) -> Callable[[Any], Any] | None:
    """The function that fits values to a date or time type; None if it changes nothing."""
    digits = SECOND_DIGITS_MAX if sql_type.precision is None else sql_type.precision
    unit = 10 ** (SECOND_DIGITS_MAX - digits)
    if sql_type.kind is Kind.INTERVAL:
        return _interval_rounder(sql_type.fields, unit)
    if unit == 1:
        return None
    if sql_type.kind in (Kind.TIME, Kind.TIMETZ):
        return lambda value: round_time(value, unit)
    return lambda value: round_timestamp(value, unit)


def round_timestamp(value: datetime, unit: int) -> datetime:
    """Round to a multiple of `unit` microseconds."""
    since = (value.replace(tzinfo=None) - _ZERO) // _MICROSECOND
    try:
        return value + timedelta(microseconds=_rounded(since, unit) - since)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def round_time(value: time, unit: int) -> time:
    """The same for a time of day; raises at 24:00."""
    microseconds = _rounded(microseconds_of(value), unit)
    if microseconds >= MICROSECONDS_PER_DAY:
        raise DatetimeFieldOverflow("time out of range")
    return time_of(microseconds, value)


def microseconds_of(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def time_of(microseconds: int, like: time | None = None) -> time:
    """The time that many microseconds after midnight, with the zone of `like`."""
    seconds, microsecond = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    value = time(hour, minute, second, microsecond)
    return in_zone(value, like.tzinfo) if type(like) is ZonedTime else value


def _rounded(microseconds: int, unit: int) -> int:
    size = (abs(microseconds) + unit // 2) // unit * unit
    return size if microseconds >= 0 else -size


def _interval_rounder(fields: str | None, unit: int) -> Callable[[Any], Any] | None:
    if fields is None and unit == 1:
        return None
    last = "second" if fields is None else fields.split()[-1]

    def fit(value: Interval) -> Interval:
        months, days, microseconds = value.parts
        if last == "year":
            months = _cut(months, MONTHS_PER_YEAR)
        if last in ("year", "month"):
            days = 0
        if last in ("year", "month", "day"):
            microseconds = 0
        elif last == "hour":
            microseconds = _cut(microseconds, MICROSECONDS_PER_HOUR)
        elif last == "minute":
            microseconds = _cut(microseconds, MICROSECONDS_PER_MINUTE)
        else:
            microseconds = _rounded(microseconds, unit)
        return Interval(months, days, microseconds)

    return fit


def _cut(number: int, unit: int) -> int:
    """Truncate toward zero to a multiple of the unit."""
    size = abs(number) // unit * unit
    return size if number >= 0 else -size

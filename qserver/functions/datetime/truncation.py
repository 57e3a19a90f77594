"""Truncates times: date_trunc to a unit, date_bin to a multiple of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Final

from qserver.errors import DatetimeFieldOverflow, FeatureNotSupported
from qserver.functions.datetime.arithmetic import out_of_range
from qserver.functions.datetime.fields import toward_zero, unrecognized, unsupported
from qserver.functions.registry import Function
from qserver.values.interval import (
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_HOUR,
    MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND,
    Interval,
)
from qserver.values.time_units import unit_named
from qserver.values.types import INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, SqlType
from qserver.values.zones import SESSION_ZONE, to_local, to_utc, zone_named

_TRUNCATED: Final[dict[str, Callable[[datetime], datetime]]] = {
    "microseconds": lambda value: value,
    "milliseconds": lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000),
    "second": lambda value: value.replace(microsecond=0),
    "minute": lambda value: value.replace(second=0, microsecond=0),
    "hour": lambda value: value.replace(minute=0, second=0, microsecond=0),
    "day": lambda value: _midnight(value),
    "week": lambda value: _midnight(value) - timedelta(days=value.weekday()),
    "month": lambda value: _midnight(value).replace(day=1),
    "quarter": lambda value: _first_of(value, value.year, (value.month - 1) // 3 * 3 + 1),
    "year": lambda value: _first_of(value, value.year),
    "decade": lambda value: _first_of(value, value.year // 10 * 10),
    "century": lambda value: _first_of(value, (value.year + 99) // 100 * 100 - 99),
    "millennium": lambda value: _first_of(value, (value.year + 999) // 1000 * 1000 - 999),
}


def _midnight(value: datetime) -> datetime:
    return value.replace(hour=0, minute=0, second=0, microsecond=0)


def _first_of(value: datetime, year: int, month: int = 1) -> datetime:
    return _midnight(value).replace(year=year, month=month, day=1)


def _truncate(sql_type: SqlType, word: str, value: datetime) -> datetime:
    cut = _TRUNCATED.get(word)
    if cut is None:
        cut = _TRUNCATED.get(unit_named(word.lower()) or "")
    if cut is None:
        if unit_named(word.lower()) is None:
            raise unrecognized(word, sql_type)
        raise unsupported(word, sql_type)
    try:
        return cut(value)
    except (ValueError, OverflowError):
        raise out_of_range("timestamp") from None


def _truncate_in_zone(word: str, value: datetime, zone: str) -> datetime:
    return _cut_in(word, value, zone_named(zone))


def _cut_in(word: str, value: datetime, where: tzinfo) -> datetime:
    local = to_local(value, where)
    cut = _truncate(TIMESTAMPTZ, word, local)
    if unit_named(word.lower()) in _TIME_UNITS:
        return value - (local - cut)  # also correct in an hour that occurs twice
    return to_utc(cut, where)


def _truncate_moment(word: str, value: datetime) -> datetime:
    """Truncate by the clocks of the session's zone."""
    where = SESSION_ZONE.get()
    return _truncate(TIMESTAMPTZ, word, value) if where is None else _cut_in(word, value, where)


def _truncate_interval(word: str, value: Interval) -> Interval:
    unit = unit_named(word.lower())
    if unit is None:
        raise unrecognized(word, INTERVAL)
    if unit in _TIME_UNITS:
        size = _TIME_UNITS[unit]
        cut = toward_zero(value.microseconds, size) * size
        return Interval(value.months, value.days, cut)
    if unit == "day":
        return Interval(value.months, value.days)
    if unit in _MONTH_UNITS:
        size = _MONTH_UNITS[unit]
        return Interval(toward_zero(value.months, size) * size)
    detail = "Months usually have fractional weeks." if unit == "week" else None
    raise unsupported(word, INTERVAL, detail)


_TIME_UNITS: Final = {
    "microseconds": 1,
    "milliseconds": 1000,
    "second": MICROSECONDS_PER_SECOND,
    "minute": MICROSECONDS_PER_MINUTE,
    "hour": MICROSECONDS_PER_HOUR,
}
_MONTH_UNITS: Final = {
    "month": 1,
    "quarter": 3,
    "year": 12,
    "decade": 120,
    "century": 1200,
    "millennium": 12_000,
}


def _bin(stride: Interval, value: datetime, origin: datetime) -> datetime:
    """Return the start of the bin, counted from the origin, that contains the value."""
    if stride.months:
        raise FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    size = stride.days * MICROSECONDS_PER_DAY + stride.microseconds
    if size <= 0:
        raise DatetimeFieldOverflow("stride must be greater than zero")
    try:
        away = (value - origin) // timedelta(microseconds=1)
        return origin + timedelta(microseconds=away // size * size)
    except OverflowError:
        raise out_of_range("timestamp") from None


# --- the table -----------------------------------------------------------------------------------


def _announced() -> Iterator[Function]:
    for sql_type in (TIMESTAMP, TIMESTAMPTZ):
        yield Function("date_bin", (INTERVAL, sql_type, sql_type), sql_type, _bin)
    yield Function("date_trunc", (TEXT, TIMESTAMP), TIMESTAMP, partial(_truncate, TIMESTAMP))
    yield Function("date_trunc", (TEXT, TIMESTAMPTZ), TIMESTAMPTZ, _truncate_moment)
    yield Function("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, _truncate_in_zone)
    yield Function("date_trunc", (TEXT, INTERVAL), INTERVAL, _truncate_interval)


FUNCTIONS: Final = tuple(_announced())

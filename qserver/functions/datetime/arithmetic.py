"""+ - * / on dates, times and intervals, for every pair that PostgreSQL has.

    date + integer → date           date - date → integer            date + time → timestamp
    date + interval → timestamp     timestamp - timestamp → interval (days and time, no months)
    timestamp + interval: months first, then days, then time; January 31 + 1 month is the last of
    February
    time + interval → time: only the interval's time counts, around the clock
    interval * double: fractions flow down, with PostgreSQL's rounding, in doubles as there

The session's zone matters where months or days are added to a point in time: a day may have 23 or
25 hours there.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from math import isnan
from typing import Any, Final

from qserver.errors import DatetimeFieldOverflow, DivisionByZero, QserverError
from qserver.functions.registry import Function
from qserver.values.interval import (
    DAYS_PER_MONTH,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    MONTHS_PER_YEAR,
    PART_MAX,
    PART_MIN,
    TIME_MAX,
    TIME_MIN,
    Interval,
)
from qserver.values.second_digits import microseconds_of, time_of
from qserver.values.types import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    SqlType,
)
from qserver.values.zones import SESSION_ZONE, offset_of, to_local, to_utc

_SECONDS_PER_DAY: Final = 86_400
_MICROSECOND: Final = timedelta(microseconds=1)


def out_of_range(what: str) -> QserverError:
    return DatetimeFieldOverflow(f"{what} out of range")


# --- dates ---------------------------------------------------------------------------------------


def date_plus_days(value: date, days: int) -> date:
    try:
        return value + timedelta(days=days)
    except OverflowError:
        raise out_of_range("date") from None


def date_minus_days(value: date, days: int) -> date:
    return date_plus_days(value, -days)


def days_between(left: date, right: date) -> int:
    return left.toordinal() - right.toordinal()


def date_plus_time(value: date, moment: time) -> datetime:
    return datetime.combine(value, moment)


def date_plus_timetz(value: date, moment: time) -> datetime:
    local = datetime.combine(value, moment.replace(tzinfo=UTC))
    try:
        return local - offset_of(moment)
    except OverflowError:
        raise out_of_range("timestamp") from None


def date_plus_interval(value: date, span: Interval) -> datetime:
    return timestamp_plus(datetime(value.year, value.month, value.day), span)


def date_minus_interval(value: date, span: Interval) -> datetime:
    return timestamp_plus(datetime(value.year, value.month, value.day), negated(span))


# --- timestamps ----------------------------------------------------------------------------------


def timestamp_plus(value: datetime, span: Interval) -> datetime:
    """Add months, then days, then time; the same with and without zone."""
    try:
        if span.months:
            value = plus_months(value, span.months)
            if not span.days and not span.microseconds:
                return value
        return value + timedelta(days=span.days, microseconds=span.microseconds)
    except (OverflowError, ValueError):
        raise out_of_range("timestamp") from None


def moment_plus(value: datetime, span: Interval) -> datetime:
    """Add to a point in time: months and days by the calendar of the session's zone."""
    return moment_plus_in(SESSION_ZONE.get(), value, span)


def moment_plus_in(zone: tzinfo | None, value: datetime, span: Interval) -> datetime:
    """Add by the calendar of a zone; None is UTC."""
    if zone is None or not (span.months or span.days):
        return timestamp_plus(value, span)
    local = timestamp_plus(to_local(value, zone), Interval(span.months, span.days, 0))
    return timestamp_plus(to_utc(local, zone), Interval(0, 0, span.microseconds))


def moment_minus(value: datetime, span: Interval) -> datetime:
    return moment_plus(value, negated(span))


def timestamp_minus(value: datetime, span: Interval) -> datetime:
    return timestamp_plus(value, negated(span))


def plus_months(value: datetime, months: int) -> datetime:
    """Return the same day of another month, or its last day."""
    years, month = divmod(value.year * MONTHS_PER_YEAR + value.month - 1 + months, MONTHS_PER_YEAR)
    day = value.day
    if day > 28:
        day = min(day, monthrange(years, month + 1)[1])
    return value.replace(year=years, month=month + 1, day=day)


def timestamps_between(left: datetime, right: datetime) -> Interval:
    """Return days and time, both of one sign."""
    microseconds = (left - right) // _MICROSECOND
    days, rest = divmod(abs(microseconds), MICROSECONDS_PER_DAY)
    return Interval(0, days, rest) if microseconds >= 0 else Interval(0, -days, -rest)


# --- times of day --------------------------------------------------------------------------------


def time_plus(value: time, span: Interval) -> time:
    """Add modulo 24 hours; the zone stays."""
    return time_of((microseconds_of(value) + span.microseconds) % MICROSECONDS_PER_DAY, value)


def time_minus(value: time, span: Interval) -> time:
    return time_of((microseconds_of(value) - span.microseconds) % MICROSECONDS_PER_DAY, value)


def times_between(left: time, right: time) -> Interval:
    return Interval(0, 0, microseconds_of(left) - microseconds_of(right))


# --- intervals -----------------------------------------------------------------------------------


def negated(span: Interval) -> Interval:
    return Interval(-span.months, -span.days, -span.microseconds)


def intervals_sum(left: Interval, right: Interval) -> Interval:
    return Interval(
        left.months + right.months,
        left.days + right.days,
        left.microseconds + right.microseconds,
    )


def intervals_difference(left: Interval, right: Interval) -> Interval:
    return Interval(
        left.months - right.months,
        left.days - right.days,
        left.microseconds - right.microseconds,
    )


def interval_times(span: Interval, factor: float) -> Interval:
    """Multiply each part; fractions flow down to days and time."""
    return _cascaded(span.months * factor, span.days * factor, span.microseconds * factor)


def interval_divided(span: Interval, divisor: float) -> Interval:
    """Divide each part; fractions flow down."""
    if divisor == 0.0:
        raise DivisionByZero("division by zero")
    return _cascaded(span.months / divisor, span.days / divisor, span.microseconds / divisor)


def _cascaded(months: float, days: float, microseconds: float) -> Interval:
    whole_months = _whole(months, PART_MIN, PART_MAX)
    whole_days = _whole(days, PART_MIN, PART_MAX)
    month_days = _to_microsecond((months - whole_months) * DAYS_PER_MONTH)
    seconds = _to_microsecond((days - whole_days + month_days - int(month_days)) * _SECONDS_PER_DAY)
    if abs(seconds) >= _SECONDS_PER_DAY:
        whole_days += int(seconds / _SECONDS_PER_DAY)
        seconds -= int(seconds / _SECONDS_PER_DAY) * _SECONDS_PER_DAY
    rest = microseconds + seconds * MICROSECONDS_PER_SECOND
    if isnan(rest) or not TIME_MIN <= rest <= TIME_MAX:
        raise out_of_range("interval")
    return Interval(whole_months, whole_days + int(month_days), round(rest))


def _whole(number: float, low: int, high: int) -> int:
    if isnan(number) or not low <= number <= high:
        raise out_of_range("interval")
    return int(number)


def _to_microsecond(number: float) -> float:
    return round(number * 1_000_000) / 1_000_000


# --- the table -----------------------------------------------------------------------------------


def _swapped(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: call(right, left)


_PAIRS: Final[tuple[tuple[str, SqlType, SqlType, SqlType, Callable[[Any, Any], Any]], ...]] = (
    ("+", DATE, INTEGER, DATE, date_plus_days),
    ("+", DATE, INTERVAL, TIMESTAMP, date_plus_interval),
    ("+", DATE, TIME, TIMESTAMP, date_plus_time),
    ("+", DATE, TIMETZ, TIMESTAMPTZ, date_plus_timetz),
    ("+", TIMESTAMP, INTERVAL, TIMESTAMP, timestamp_plus),
    ("+", TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, moment_plus),
    ("+", TIME, INTERVAL, TIME, time_plus),
    ("+", TIMETZ, INTERVAL, TIMETZ, time_plus),
    ("+", INTERVAL, INTERVAL, INTERVAL, intervals_sum),
    ("-", DATE, INTEGER, DATE, date_minus_days),
    ("-", DATE, INTERVAL, TIMESTAMP, date_minus_interval),
    ("-", DATE, DATE, INTEGER, days_between),
    ("-", TIMESTAMP, INTERVAL, TIMESTAMP, timestamp_minus),
    ("-", TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, moment_minus),
    ("-", TIMESTAMP, TIMESTAMP, INTERVAL, timestamps_between),
    ("-", TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL, timestamps_between),
    ("-", TIME, INTERVAL, TIME, time_minus),
    ("-", TIMETZ, INTERVAL, TIMETZ, time_minus),
    ("-", TIME, TIME, INTERVAL, times_between),
    ("-", INTERVAL, INTERVAL, INTERVAL, intervals_difference),
    ("*", INTERVAL, DOUBLE, INTERVAL, interval_times),
    ("/", INTERVAL, DOUBLE, INTERVAL, interval_divided),
)
_INLINE: Final[dict[Callable[[Any, Any], Any], str]] = {
    days_between: "({0}.toordinal() - {1}.toordinal())"
}


def _announced() -> Iterator[Function]:
    for symbol, left, right, returns, call in _PAIRS:
        yield Function(
            symbol, (left, right), returns, call, inline=_INLINE.get(call), symbol=symbol
        )
        if left != right and symbol in "+*":
            yield Function(symbol, (right, left), returns, _swapped(call), symbol=symbol)
    yield Function("-", (INTERVAL,), INTERVAL, negated, symbol="-")


OPERATORS: Final = tuple(_announced())

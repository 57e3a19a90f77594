"""Construction and differences of dates, times and intervals: make_date, age, justify_days …

`age` counts years, months and days by the calendar; `-` counts days.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final

from qserver.errors import DatetimeFieldOverflow, InvalidParameterValue
from qserver.functions.datetime.arithmetic import (
    date_plus_time,
    moment_minus,
    moment_plus,
    moment_plus_in,
    negated,
    out_of_range,
    time_plus,
    timestamp_plus,
)
from qserver.functions.registry import Function
from qserver.values.casts import cast_function
from qserver.values.datetime_input import timestamptz_from_text
from qserver.values.interval import (
    DAYS_PER_MONTH,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_HOUR,
    MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND,
    MONTHS_PER_YEAR,
    Interval,
)
from qserver.values.keys import canonical
from qserver.values.second_digits import time_of
from qserver.values.text_output import text_of_double
from qserver.values.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    SqlType,
)
from qserver.values.zones import session_local, session_moment, to_utc, zone_named

if TYPE_CHECKING:
    from qserver.functions.context import Context

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


# --- age -----------------------------------------------------------------------------------------


def age(later: datetime, earlier: datetime) -> Interval:
    """Return years, months, days and time by the calendar; negative if `later` is earlier."""
    if later < earlier:
        parts = _calendar_difference(earlier, later, borrowed_from=later)
        return Interval(-parts.months, -parts.days, -parts.microseconds)
    return _calendar_difference(later, earlier, borrowed_from=earlier)


def _calendar_difference(late: datetime, early: datetime, borrowed_from: datetime) -> Interval:
    months = (late.year - early.year) * MONTHS_PER_YEAR + late.month - early.month
    days = late.day - early.day
    microseconds = _in_day(late) - _in_day(early)
    if microseconds < 0:
        microseconds += MICROSECONDS_PER_DAY
        days -= 1
    while days < 0:
        days += monthrange(borrowed_from.year, borrowed_from.month)[1]
        months -= 1
    return Interval(months, days, microseconds)


def _in_day(value: datetime) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * MICROSECONDS_PER_SECOND + value.microsecond


def _age_of_timestamp(context: Context, value: datetime) -> Interval:
    return age(_today(context), value)


def _age_of_timestamptz(context: Context, value: datetime) -> Interval:
    return age(_today(context), session_local(value))


def _age_between(later: datetime, earlier: datetime) -> Interval:
    """Return the age by the calendar of the session's zone."""
    return age(session_local(later), session_local(earlier))


def _today(context: Context) -> datetime:
    return session_local(context.now).replace(hour=0, minute=0, second=0, microsecond=0)


# --- justify -------------------------------------------------------------------------------------


def justify_hours(span: Interval) -> Interval:
    """Convert each 24 hours to a day."""
    days, microseconds = _carried(span.days, span.microseconds, MICROSECONDS_PER_DAY)
    days, microseconds = _of_one_sign(days, microseconds, MICROSECONDS_PER_DAY)
    return Interval(span.months, days, microseconds)


def justify_days(span: Interval) -> Interval:
    """Convert each 30 days to a month."""
    months, days = _carried(span.months, span.days, DAYS_PER_MONTH)
    months, days = _of_one_sign(months, days, DAYS_PER_MONTH)
    return Interval(months, days, span.microseconds)


def justify_interval(span: Interval) -> Interval:
    """Convert both, and give all parts one sign."""
    days, microseconds = _carried(span.days, span.microseconds, MICROSECONDS_PER_DAY)
    months, days = _carried(span.months, days, DAYS_PER_MONTH)
    if months > 0 and (days < 0 or (days == 0 and microseconds < 0)):
        months, days = months - 1, days + DAYS_PER_MONTH
    elif months < 0 and (days > 0 or (days == 0 and microseconds > 0)):
        months, days = months + 1, days - DAYS_PER_MONTH
    days, microseconds = _of_one_sign(days, microseconds, MICROSECONDS_PER_DAY)
    return Interval(months, days, microseconds)


def _carried(large: int, small: int, size: int) -> tuple[int, int]:
    whole = abs(small) // size
    whole = whole if small >= 0 else -whole
    return large + whole, small - whole * size


def _of_one_sign(large: int, small: int, size: int) -> tuple[int, int]:
    if large > 0 and small < 0:
        return large - 1, small + size
    if large < 0 and small > 0:
        return large + 1, small - size
    return large, small


# --- make ----------------------------------------------------------------------------------------


def make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        message = f"date field value out of range: {year}-{month:02d}-{day:02d}"
        raise DatetimeFieldOverflow(message) from None


def make_time(hour: int, minute: int, second: float) -> time:
    microseconds = _time_of_day(hour, minute, second)
    if microseconds >= MICROSECONDS_PER_DAY:
        raise _bad_time(hour, minute, second)
    return time_of(microseconds)


def _time_of_day(hour: int, minute: int, second: float) -> int:
    """Return microseconds, up to those of 24:00; a second may be 60."""
    if not (0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60):  # fails for NaN, too
        raise _bad_time(hour, minute, second)
    result = hour * MICROSECONDS_PER_HOUR + minute * MICROSECONDS_PER_MINUTE
    result += round(second * MICROSECONDS_PER_SECOND)
    if result > MICROSECONDS_PER_DAY:
        raise _bad_time(hour, minute, second)
    return result


def _bad_time(hour: int, minute: int, second: float) -> DatetimeFieldOverflow:
    shown = "NaN" if isnan(second) else f"{second:02g}"
    return DatetimeFieldOverflow(f"time field value out of range: {hour}:{minute:02d}:{shown}")


def make_timestamp(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> datetime:
    midnight = date_plus_time(make_date(year, month, day), time())
    passed = timedelta(microseconds=_time_of_day(hour, minute, second))
    try:
        return midnight + passed
    except OverflowError:
        raise out_of_range("timestamp") from None


def make_timestamptz(*parts: Any) -> datetime:
    return session_moment(make_timestamp(*parts))


def make_timestamptz_in(*arguments: Any) -> datetime:
    """Take a zone by name, or an offset whose sign means east, unlike in AT TIME ZONE."""
    *parts, zone = arguments
    local = make_timestamp(*parts)
    if zone[:1] in ("+", "-"):
        try:
            return timestamptz_from_text(f"{local.isoformat(' ')}{zone}")
        except DatetimeFieldOverflow:
            raise
        except Exception:
            message = f'invalid input syntax for type numeric time zone: "{zone}"'
            raise InvalidParameterValue(
                message, hint='Numeric time zones must have "-" or "+" as first character.'
            ) from None
    return to_utc(local, zone_named(zone))


def make_interval(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: float = 0.0,
) -> Interval:
    fraction = seconds * MICROSECONDS_PER_SECOND
    if not isfinite(fraction):
        raise out_of_range("interval")
    microseconds = hours * MICROSECONDS_PER_HOUR + minutes * MICROSECONDS_PER_MINUTE
    microseconds += round(fraction)
    return Interval(years * MONTHS_PER_YEAR + months, weeks * 7 + days, microseconds)


def date_add(value: datetime, span: Interval, zone: str) -> datetime:
    """Add by the calendar of a zone."""
    return moment_plus_in(zone_named(zone), value, span)


def date_subtract(value: datetime, span: Interval, zone: str) -> datetime:
    return date_add(value, negated(span), zone)


def timestamp_of_epoch(seconds: float) -> datetime:
    if isnan(seconds):
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    try:
        return _EPOCH + timedelta(microseconds=round(seconds * 1_000_000))
    except OverflowError:
        message = f'timestamp out of range: "{text_of_double(seconds)}"'
        raise DatetimeFieldOverflow(message) from None


# --- OVERLAPS ------------------------------------------------------------------------------------


def overlaps(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
    """Tell whether two periods share a moment. Each is half open; a moment counts as a period.

    With NULLs the answer is true or false if the known ends decide, else NULL.
    """
    first, second = _period(start, end), _period(other_start, other_end)
    if first is None or second is None:
        return None
    (start, end), (other_start, other_end) = first, second
    if start == other_start:
        return None if end is None or other_end is None else True
    if start > other_start:
        (start, end), (other_start, other_end) = (other_start, other_end), (start, end)
    if end is None:
        return None
    return True if other_start < end else None if other_end is None else False


def _period(start: Any, end: Any) -> tuple[Any, Any] | None:
    """Order the ends, a missing one last; None if both are missing."""
    start, end = canonical(start), canonical(end)
    if start is None:
        start, end = end, None
    if start is None:
        return None
    return (end, start) if end is not None and end < start else (start, end)


def _overlaps_with(
    plus: Callable[[Any, Interval], Any], first: bool, second: bool
) -> Callable[..., bool | None]:
    """Return `overlaps` for periods whose end is given as a length."""

    def end_of(start: Any, end: Any, is_length: bool) -> Any:
        if not is_length:
            return end
        return None if start is None or end is None else plus(start, end)

    def call(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
        return overlaps(
            start,
            end_of(start, end, first),
            other_start,
            end_of(other_start, other_end, second),
        )

    return call


# --- the tables ----------------------------------------------------------------------------------

_INTERVAL_PARTS: Final = (*(INTEGER,) * 6, DOUBLE)
_TIMESTAMP_PARTS: Final = (*(INTEGER,) * 5, DOUBLE)


def _announced() -> Iterator[Function]:
    for sql_type, of_now in ((TIMESTAMP, _age_of_timestamp), (TIMESTAMPTZ, _age_of_timestamptz)):
        between = age if sql_type == TIMESTAMP else _age_between
        yield Function("age", (sql_type, sql_type), INTERVAL, between)
        yield Function("age", (sql_type,), INTERVAL, of_now, needs_context=True)
    for name, call in (
        ("justify_hours", justify_hours),
        ("justify_days", justify_days),
        ("justify_interval", justify_interval),
    ):
        yield Function(name, (INTERVAL,), INTERVAL, call)
    yield Function("make_date", (INTEGER,) * 3, DATE, make_date)
    yield Function("make_time", (INTEGER, INTEGER, DOUBLE), TIME, make_time)
    yield Function("make_timestamp", _TIMESTAMP_PARTS, TIMESTAMP, make_timestamp)
    yield Function("make_timestamptz", _TIMESTAMP_PARTS, TIMESTAMPTZ, make_timestamptz)
    with_zone = (*_TIMESTAMP_PARTS, TEXT)
    yield Function("make_timestamptz", with_zone, TIMESTAMPTZ, make_timestamptz_in)
    for count in range(len(_INTERVAL_PARTS) + 1):
        yield Function("make_interval", _INTERVAL_PARTS[:count], INTERVAL, make_interval)
    for name, plus, plus_in in (
        ("date_add", moment_plus, date_add),
        ("date_subtract", moment_minus, date_subtract),
    ):
        yield Function(name, (TIMESTAMPTZ, INTERVAL), TIMESTAMPTZ, plus)
        yield Function(name, (TIMESTAMPTZ, INTERVAL, TEXT), TIMESTAMPTZ, plus_in)
    yield Function("to_timestamp", (DOUBLE,), TIMESTAMPTZ, timestamp_of_epoch)
    for sql_type in (DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL):
        yield Function("isfinite", (sql_type,), BOOLEAN, lambda value: True)
    yield Function("date", (TIMESTAMP,), DATE, datetime.date)
    yield Function("date", (TIMESTAMPTZ,), DATE, cast_function(TIMESTAMPTZ, DATE))
    yield Function("timestamp", (DATE, TIME), TIMESTAMP, date_plus_time)


def _periods() -> Iterator[Function]:
    optional = partial(Function, "overlaps", returns=BOOLEAN, strict=False, gives_null=True)
    kinds: tuple[tuple[SqlType, Any], ...] = (
        (TIMESTAMP, timestamp_plus),
        (TIMESTAMPTZ, moment_plus),
        (TIME, time_plus),
    )
    for sql_type, plus in kinds:
        for first in (False, True):
            for second in (False, True):
                ends = (INTERVAL if first else sql_type, INTERVAL if second else sql_type)
                yield optional(
                    parameters=(sql_type, ends[0], sql_type, ends[1]),
                    call=_overlaps_with(plus, first, second),
                )
    yield optional(parameters=(TIMETZ,) * 4, call=overlaps)


FUNCTIONS: Final = (*_announced(), *_periods())

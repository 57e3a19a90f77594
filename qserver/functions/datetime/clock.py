"""The current time and time zones: now(), CURRENT_DATE, AT TIME ZONE.

The time comes with the execution and is one value per transaction. So is clock_timestamp(), unlike
in PostgreSQL: a retried transaction must give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final

from qserver.errors import InvalidParameterValue
from qserver.functions.registry import Function
from qserver.values.interval import Interval
from qserver.values.interval_text import text_of_interval
from qserver.values.second_digits import round_time, round_timestamp
from qserver.values.types import (
    DATE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
)
from qserver.values.zoned_time import ZonedTime, in_zone
from qserver.values.zones import (
    offset_of,
    on_session_clock,
    session_local,
    session_offset,
    to_local,
    to_utc,
    zone_named,
    zone_word,
)

if TYPE_CHECKING:
    from qserver.functions.context import Context

_DIGITS_MAX: Final = 6
_DAY_MICROSECONDS: Final = 86_400_000_000


def _now(context: Context) -> datetime:
    return context.now


def _today(context: Context) -> date:
    return on_session_clock(context.now).date()


def _time_of_day(context: Context) -> str:
    now = on_session_clock(context.now)
    return now.strftime("%a %b %d %H:%M:%S.%f %Y ") + zone_word(now)


def _unit(digits: int) -> int:
    if digits < 0:
        raise InvalidParameterValue(f"TIMESTAMP({digits}) precision must not be negative")
    return int(10 ** (_DIGITS_MAX - min(digits, _DIGITS_MAX)))


def _now_rounded(context: Context, digits: int) -> datetime:
    return round_timestamp(context.now, _unit(digits))


def _local_now(context: Context) -> datetime:
    return session_local(context.now)


def _local_now_rounded(context: Context, digits: int) -> datetime:
    return session_local(_now_rounded(context, digits))


def _time_now(context: Context) -> ZonedTime:
    return in_zone(on_session_clock(context.now).time(), session_offset(context.now))


def _time_now_rounded(context: Context, digits: int) -> time:
    return round_time(_time_now(context), _unit(digits))


def _local_time_now(context: Context) -> time:
    return on_session_clock(context.now).time()


def _local_time_now_rounded(context: Context, digits: int) -> time:
    return round_time(_local_time_now(context), _unit(digits))


# --- AT TIME ZONE --------------------------------------------------------------------------------


def _zone_of_interval(offset: Interval) -> tzinfo:
    if offset.months or offset.days:
        shown = text_of_interval(offset)
        raise InvalidParameterValue(f'interval time zone "{shown}" must not include months or days')
    if abs(offset.microseconds) >= _DAY_MICROSECONDS:
        shown = text_of_interval(offset)
        raise InvalidParameterValue(f'interval time zone "{shown}" must be shorter than a day')
    return timezone(timedelta(microseconds=offset.microseconds // 1_000_000 * 1_000_000))


def _local_in_zone(zone: str, moment: datetime) -> datetime:
    return to_local(moment, zone_named(zone))


def _moment_of_local(zone: str, local: datetime) -> datetime:
    return to_utc(local, zone_named(zone))


def _local_at_offset(offset: Interval, moment: datetime) -> datetime:
    return to_local(moment, _zone_of_interval(offset))


def _moment_at_offset(offset: Interval, local: datetime) -> datetime:
    return to_utc(local, _zone_of_interval(offset))


def _time_in_zone(context: Context, zone: str, value: ZonedTime) -> ZonedTime:
    """Move a time to a zone with today's offset: a zone's offset depends on the day."""
    return _moved(value, context.now.astimezone(zone_named(zone)).utcoffset())


def _time_at_offset(offset: Interval, value: ZonedTime) -> ZonedTime:
    return _moved(value, _zone_of_interval(offset).utcoffset(None))


def _moved(value: ZonedTime, offset: timedelta | None) -> ZonedTime:
    assert offset is not None, "every zone has an offset"
    day = datetime.combine(date(2000, 1, 2), value.without_zone())
    return in_zone((day - offset_of(value) + offset).time(), timezone(offset))


# --- the table -----------------------------------------------------------------------------------


def _announced() -> Iterator[Function]:
    for name in (
        *("now", "current_timestamp", "transaction_timestamp", "statement_timestamp"),
        "clock_timestamp",
    ):
        yield Function(name, (), TIMESTAMPTZ, _now, needs_context=True)
    yield Function("timeofday", (), TEXT, _time_of_day, needs_context=True)
    yield Function("current_date", (), DATE, _today, needs_context=True)
    for name, returns, call, rounded in (
        ("current_timestamp", TIMESTAMPTZ, None, _now_rounded),
        ("localtimestamp", TIMESTAMP, _local_now, _local_now_rounded),
        ("current_time", TIMETZ, _time_now, _time_now_rounded),
        ("localtime", TIME, _local_time_now, _local_time_now_rounded),
    ):
        if call is not None:
            yield Function(name, (), returns, call, needs_context=True)
        yield Function(name, (INTEGER,), returns, rounded, needs_context=True)
    yield Function("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP, _local_in_zone)
    yield Function("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ, _moment_of_local)
    yield Function("timezone", (TEXT, TIMETZ), TIMETZ, _time_in_zone, needs_context=True)
    yield Function("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP, _local_at_offset)
    yield Function("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ, _moment_at_offset)
    yield Function("timezone", (INTERVAL, TIMETZ), TIMETZ, _time_at_offset)


FUNCTIONS: Final = tuple(_announced())

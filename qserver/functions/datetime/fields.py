"""Fields of dates, times and intervals: EXTRACT and date_part.

A field has many names (`year`, `years`, `yr`); a table per type has its readers. EXTRACT returns a
NUMERIC whose scale is the field's precision (seconds have six digits), date_part the same as a
double. A field that a type lacks is another error than a word that is no field at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from qserver.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    QserverError,
)
from qserver.functions.numbers import numeric_math
from qserver.functions.registry import Function
from qserver.values.interval import (
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_HOUR,
    MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND,
    Interval,
)
from qserver.values.interval_text import split_months
from qserver.values.numerics import EXACT
from qserver.values.second_digits import microseconds_of
from qserver.values.time_units import field_named
from qserver.values.types import (
    DATE,
    DOUBLE,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    SqlType,
)
from qserver.values.zones import offset_of, on_session_clock

Read = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_JULIAN_OF_ORDINAL: Final = 1_721_425
_MICROSECOND: Final = timedelta(microseconds=1)

# The same few integers recur: a cached Decimal is faster than a new one.
_whole: Callable[[int], Decimal] = lru_cache(maxsize=20_000)(Decimal)


def unrecognized(word: str, sql_type: SqlType) -> QserverError:
    return InvalidParameterValue(f'unit "{word.lower()}" not recognized for type {sql_type}')


def unsupported(word: str, sql_type: SqlType, detail: str | None = None) -> QserverError:
    message = f'unit "{word.lower()}" not supported for type {sql_type}'
    return FeatureNotSupported(message, detail=detail)


# --- readers -------------------------------------------------------------------------------------


def _shifted(microseconds: int, digits: int) -> Decimal:
    """Return microseconds as a NUMERIC with this many digits after the point."""
    return EXACT.scaleb(Decimal(microseconds), Decimal(-digits))


def _seconds(microseconds: int) -> Decimal:
    return _shifted(microseconds, 6)


def _second_fields(in_minute: Callable[[Any], int]) -> dict[str, Read]:
    return {
        "second": lambda value: _seconds(in_minute(value)),
        "milliseconds": lambda value: _shifted(in_minute(value), 3),
        "microseconds": lambda value: _whole(in_minute(value)),
    }


def _microseconds_in_minute(value: datetime | time) -> int:
    return value.second * MICROSECONDS_PER_SECOND + value.microsecond


_OF_DATE: Final[dict[str, Read]] = {
    "year": lambda value: _whole(value.year),
    "month": lambda value: _whole(value.month),
    "day": lambda value: _whole(value.day),
    "quarter": lambda value: _whole((value.month + 2) // 3),
    "week": lambda value: _whole(value.isocalendar().week),
    "decade": lambda value: _whole(value.year // 10),
    "century": lambda value: _whole((value.year + 99) // 100),
    "millennium": lambda value: _whole((value.year + 999) // 1000),
    "isoyear": lambda value: _whole(value.isocalendar().year),
    "dow": lambda value: _whole(value.isoweekday() % 7),
    "isodow": lambda value: _whole(value.isoweekday()),
    "doy": lambda value: _whole(value.timetuple().tm_yday),
    "julian": lambda value: _whole(value.toordinal() + _JULIAN_OF_ORDINAL),
    "epoch": lambda value: Decimal((value.toordinal() - _EPOCH_ORDINAL) * 86_400),
}
_OF_CLOCK: Final[dict[str, Read]] = {
    "hour": lambda value: _whole(value.hour),
    "minute": lambda value: _whole(value.minute),
    **_second_fields(_microseconds_in_minute),
}
_OF_TIMESTAMP: Final[dict[str, Read]] = {
    **_OF_DATE,
    **_OF_CLOCK,
    "julian": lambda value: _julian(value),
    "epoch": lambda value: _seconds(_since_epoch(value)),
}
_OF_TIMESTAMPTZ: Final[dict[str, Read]] = {
    **_OF_TIMESTAMP,
    "timezone": lambda value: _whole(_offset_seconds(value)),
    "timezone_hour": lambda value: _whole(toward_zero(_offset_seconds(value), 3600)),
    "timezone_minute": lambda value: _whole(_rest(toward_zero(_offset_seconds(value), 60), 60)),
}
_OF_TIME: Final[dict[str, Read]] = {
    **_OF_CLOCK,
    "epoch": lambda value: _seconds(microseconds_of(value)),
}
_OF_TIMETZ: Final[dict[str, Read]] = {
    **_OF_CLOCK,
    "timezone": lambda value: _whole(_offset_seconds(value)),
    "timezone_hour": lambda value: _whole(toward_zero(_offset_seconds(value), 3600)),
    "timezone_minute": lambda value: _whole(_rest(toward_zero(_offset_seconds(value), 60), 60)),
    "epoch": lambda value: _seconds(
        microseconds_of(value) - _offset_seconds(value) * MICROSECONDS_PER_SECOND
    ),
}
_OF_INTERVAL: Final[dict[str, Read]] = {
    "year": lambda value: _whole(split_months(value.months)[0]),
    "month": lambda value: _whole(split_months(value.months)[1]),
    "day": lambda value: _whole(value.days),
    "hour": lambda value: Decimal(toward_zero(value.microseconds, MICROSECONDS_PER_HOUR)),
    "minute": lambda value: _whole(
        toward_zero(_rest(value.microseconds, MICROSECONDS_PER_HOUR), MICROSECONDS_PER_MINUTE)
    ),
    **_second_fields(lambda value: _rest(value.microseconds, MICROSECONDS_PER_MINUTE)),
    "quarter": lambda value: _whole(toward_zero(split_months(value.months)[1], 3) + 1),
    "decade": lambda value: _whole(toward_zero(split_months(value.months)[0], 10)),
    "century": lambda value: _whole(toward_zero(split_months(value.months)[0], 100)),
    "millennium": lambda value: _whole(toward_zero(split_months(value.months)[0], 1000)),
    "epoch": lambda value: _seconds(_interval_epoch(value)),
}


def _since_epoch(value: datetime) -> int:
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND


def _julian(value: datetime) -> Decimal:
    day = Decimal(value.toordinal() + _JULIAN_OF_ORDINAL)
    passed = Decimal(microseconds_of(value.time()))
    part = numeric_math.divide(passed, Decimal(MICROSECONDS_PER_DAY))
    return EXACT.add(day, part)


def _interval_epoch(value: Interval) -> int:
    """Return the length: a year has 365.25 days here, and each remaining month 30."""
    years, months = split_months(value.months)
    quarter_days = 1461 * years + 120 * months + 4 * value.days
    return quarter_days * (MICROSECONDS_PER_DAY // 4) + value.microseconds


def _offset_seconds(value: time | datetime) -> int:
    return int(offset_of(value).total_seconds())


def _of_moment(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Read a point in time by the clocks of the session's zone."""
    return lambda word, value: read(word, on_session_clock(value))


def toward_zero(number: int, unit: int) -> int:
    """Divide and truncate."""
    return number // unit if number >= 0 else -(-number // unit)


def _rest(number: int, unit: int) -> int:
    return number % unit if number >= 0 else -(-number % unit)


# --- EXTRACT and date_part -----------------------------------------------------------------------


def _extractor(sql_type: SqlType, fields: dict[str, Read]) -> Callable[[str, Any], Any]:
    def extract(word: str, value: Any) -> Any:
        read = fields.get(word)
        if read is None:
            read = fields[_known_field(word, sql_type, fields)]
        return read(value)

    return extract


def _known_field(word: str, sql_type: SqlType, fields: dict[str, Read]) -> str:
    field = field_named(word)
    if field in fields:
        return field
    if field is None and word.lower() not in ("now", "today", "tomorrow", "yesterday"):
        raise unrecognized(word, sql_type)
    raise unsupported(word, sql_type)


def _part(
    sql_type: SqlType, fields: dict[str, Read], doubles: dict[str, Read]
) -> Callable[[str, Any], float]:
    """date_part: EXTRACT as a double, except where PostgreSQL sums in doubles."""

    def part(word: str, value: Any) -> float:
        field = word if word in fields else _known_field(word, sql_type, fields)
        in_doubles = doubles.get(field)
        return float(fields[field](value)) if in_doubles is None else in_doubles(value)

    return part


def _part_of_date(word: str, value: date) -> float:
    """Read a date as a timestamp, as PostgreSQL does: its hours are 0."""
    return _PART_OF_TIMESTAMP(word, datetime(value.year, value.month, value.day))


def _interval_epoch_in_doubles(value: Interval) -> float:
    years, months = split_months(value.months)
    # In PostgreSQL's order: sums of doubles depend on it.
    result = value.microseconds / 1_000_000.0
    result += 365.25 * 86_400 * years
    result += 30.0 * 86_400 * months
    return result + 86_400.0 * value.days


def _julian_in_doubles(value: datetime) -> float:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second + value.microsecond / 1_000_000.0
    return value.toordinal() + _JULIAN_OF_ORDINAL + seconds / 86_400.0


def _seconds_in_doubles(microseconds: int) -> float:
    second = toward_zero(microseconds, MICROSECONDS_PER_SECOND)
    return second + (microseconds - second * MICROSECONDS_PER_SECOND) / 1_000_000.0


def _milliseconds_in_doubles(microseconds: int) -> float:
    second = toward_zero(microseconds, MICROSECONDS_PER_SECOND)
    return second * 1000.0 + (microseconds - second * MICROSECONDS_PER_SECOND) / 1000.0


_DOUBLES_OF_CLOCK: Final[dict[str, Read]] = {
    "second": lambda value: _seconds_in_doubles(_microseconds_in_minute(value)),
    "milliseconds": lambda value: _milliseconds_in_doubles(_microseconds_in_minute(value)),
}
_DOUBLES_OF_TIMESTAMP: Final[dict[str, Read]] = {
    **_DOUBLES_OF_CLOCK,
    "epoch": lambda value: _since_epoch(value) / 1_000_000.0,
    "julian": _julian_in_doubles,
}
_DOUBLES_OF_INTERVAL: Final[dict[str, Read]] = {
    "second": lambda value: _seconds_in_doubles(_rest(value.microseconds, MICROSECONDS_PER_MINUTE)),
    "milliseconds": lambda value: _milliseconds_in_doubles(
        _rest(value.microseconds, MICROSECONDS_PER_MINUTE)
    ),
    "epoch": _interval_epoch_in_doubles,
}
_PART_OF_TIMESTAMP: Final = _part(TIMESTAMP, _OF_TIMESTAMP, _DOUBLES_OF_TIMESTAMP)


# --- the tables ----------------------------------------------------------------------------------

_FIELDS_BY_TYPE: Final[tuple[tuple[SqlType, dict[str, Read], Callable[[str, Any], float]], ...]] = (
    (DATE, _OF_DATE, _part_of_date),
    (TIMESTAMP, _OF_TIMESTAMP, _PART_OF_TIMESTAMP),
    (TIMESTAMPTZ, _OF_TIMESTAMPTZ, _part(TIMESTAMPTZ, _OF_TIMESTAMPTZ, _DOUBLES_OF_TIMESTAMP)),
    (TIME, _OF_TIME, _part(TIME, _OF_TIME, _DOUBLES_OF_CLOCK)),
    (TIMETZ, _OF_TIMETZ, _part(TIMETZ, _OF_TIMETZ, _DOUBLES_OF_CLOCK)),
    (INTERVAL, _OF_INTERVAL, _part(INTERVAL, _OF_INTERVAL, _DOUBLES_OF_INTERVAL)),
)


def _announced() -> Iterator[Function]:
    for sql_type, fields, part in _FIELDS_BY_TYPE:
        extract = _extractor(sql_type, fields)
        if sql_type == TIMESTAMPTZ:
            extract, part = _of_moment(extract), _of_moment(part)
        yield Function("extract", (TEXT, sql_type), NUMERIC, extract)
        yield Function("date_part", (TEXT, sql_type), DOUBLE, part)


FUNCTIONS: Final = tuple(_announced())

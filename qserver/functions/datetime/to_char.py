"""to_char for timestamps and intervals.

A pattern is compiled once. One of the usual fields becomes a template that is filled with what each
timestamp has; every other is printed field by field.

Unlike in PostgreSQL, fields that need a calendar (J, the ISO week and its year) are refused for
intervals, where PostgreSQL prints meaningless numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from qserver.errors import InvalidDatetimeFormat
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.datetime.iso_weeks import (
    iso_day_of_year,
    iso_week,
    iso_year,
    julian_day,
)
from qserver.functions.datetime.patterns import (
    DAYS,
    MONTHS,
    ROMAN_MONTHS,
    Field,
    full_name,
    in_case_of,
    parts_of,
)
from qserver.functions.datetime.templates import template_of
from qserver.functions.registry import Function
from qserver.values.interval import Interval
from qserver.values.interval_text import split_months
from qserver.values.types import INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ
from qserver.values.zones import on_session_clock, zone_word

_JULIAN_OF_ORDINAL: Final = 1_721_425

PATTERNS_KEPT: Final = 256

QUICK_LENGTH_MAX: Final = 64
"""A longer pattern takes more than one step."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """The values of fields: of a timestamp, or of an interval, whose parts may be negative."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    microsecond: int
    day_of_year: int
    date: date | None  # None for an interval
    zone: str = ""
    offset: int = 0
    """Seconds east of Greenwich."""


def _moment_of_timestamp(value: datetime) -> _Moment:
    return _Moment(
        *(value.year, value.month, value.day, value.hour, value.minute, value.second),
        value.microsecond,
        value.timetuple().tm_yday,
        value.date(),
        "" if value.tzinfo is None else zone_word(value),
        int((value.utcoffset() or timedelta()).total_seconds()),
    )


def _moment_of_interval(value: Interval) -> _Moment:
    years, months = split_months(value.months)
    sign = -1 if value.microseconds < 0 else 1
    seconds, microsecond = divmod(abs(value.microseconds), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return _Moment(
        *(years, months, value.days, sign * hour, sign * minute, sign * second),
        sign * microsecond,
        value.months * 30 + value.days,
        None,
    )


def timestamp_to_char(value: datetime, pattern: str) -> str | None:
    return timestamp_printer(pattern)(value)


@lru_cache(maxsize=PATTERNS_KEPT)
def timestamp_printer(pattern: str) -> Callable[[datetime], str | None]:
    """Return the function that prints timestamps by a pattern."""
    printed = template_of(parts_of(pattern)) if pattern else None
    if printed is not None:
        return printed
    return lambda value: _shown(_moment_of_timestamp(value), pattern)


@lru_cache(maxsize=PATTERNS_KEPT)
def pattern_length(pattern: str) -> int:
    """Return the length that the cost of a call depends on: nothing for a short template."""
    is_quick = len(pattern) <= QUICK_LENGTH_MAX and template_of(parts_of(pattern)) is not None
    return 0 if is_quick else BYTES_SMALL


def moment_to_char(value: datetime, pattern: str) -> str | None:
    """Print a point in time by the clocks of the session's zone."""
    return timestamp_to_char(on_session_clock(value), pattern)


def interval_to_char(value: Interval, pattern: str) -> str | None:
    return _shown(_moment_of_interval(value), pattern)


def _shown(moment: _Moment, pattern: str) -> str | None:
    if not pattern:
        return None
    return "".join(
        [
            _FIELDS[part.name](moment, part) if isinstance(part, Field) else part.character
            for part in parts_of(pattern)
        ]
    )


# --- numbers -------------------------------------------------------------------------------------


def _number(field: Field, number: int, width: int) -> str:
    """Pad with zeros to the width, not counting a sign; add st, nd … if the field says so."""
    text = str(number) if field.fill else f"{number:0{width + (number < 0)}d}"
    return text + _ordinal(field, text)


def _signed(field: Field, number: int, width: int) -> str:
    """`_number` with the sign as part of the width."""
    text = str(number) if field.fill else f"{number:0{width}d}"
    return text + _ordinal(field, text)


def _week(day: int) -> int:
    return (day - 1) // 7 + 1 if day > 0 else 1 - (1 - day) // 7


def _ordinal(field: Field, text: str) -> str:
    if not field.ordinal:
        return ""
    teens = len(text) > 1 and text[-2] == "1"
    ending = "th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return in_case_of(field.ordinal, ending)


def _digits(read: Callable[[_Moment], int], width: int) -> Callable[[_Moment, Field], str]:
    return lambda moment, field: _number(field, read(moment), width)


def _fraction(digits: int) -> Callable[[_Moment, Field], str]:
    def show(moment: _Moment, field: Field) -> str:
        size = abs(moment.microsecond) // 10 ** (6 - digits)
        number = -size if moment.microsecond < 0 else size
        text = f"{number:0{digits}d}"
        return text + _ordinal(field, text)

    return show


def _twelve_hours(moment: _Moment) -> int:
    size = abs(moment.hour) % 12 or 12
    return -size if moment.hour < 0 and abs(moment.hour) % 12 else size


def _century(moment: _Moment, field: Field) -> str:
    if moment.date is None:
        size = abs(moment.year) // 100
        century = size if moment.year >= 0 else -size
    else:
        century = (moment.year - 1) // 100 + 1
    return _number(field, century, 2 if abs(century) <= 99 else 1)


def _year_with_comma(moment: _Moment, field: Field) -> str:
    thousands = abs(moment.year) // 1000 * (1 if moment.year >= 0 else -1)
    text = f"{thousands},{moment.year - thousands * 1000:03d}"
    return text + _ordinal(field, text)


def _last_digits(digits: int) -> Callable[[_Moment, Field], str]:
    def show(moment: _Moment, field: Field) -> str:
        year = moment.year
        rest = abs(year) % 10**digits * (1 if year >= 0 else -1)
        return _number(field, rest, digits)

    return show


# --- names and days ------------------------------------------------------------------------------


def _calendar(moment: _Moment) -> date:
    if moment.date is None:
        raise InvalidDatetimeFormat(
            "invalid format specification for an interval value",
            hint="Intervals are not tied to specific calendar dates.",
        )
    return moment.date


def _month(moment: _Moment, field: Field) -> str:
    return full_name(field, MONTHS[_calendar(moment).month - 1])


def _short_month(moment: _Moment, field: Field) -> str:
    return in_case_of(field.word, MONTHS[_calendar(moment).month - 1][:3])


def _day(moment: _Moment, field: Field) -> str:
    return full_name(field, DAYS[_calendar(moment).isoweekday() % 7])


def _short_day(moment: _Moment, field: Field) -> str:
    return in_case_of(field.word, DAYS[_calendar(moment).isoweekday() % 7][:3])


def _roman_month(moment: _Moment, field: Field) -> str:
    if not moment.month and not moment.year:
        return ""
    number = moment.month or (12 if moment.year >= 0 else 1)
    text = in_case_of(field.word, ROMAN_MONTHS[number - 1 if number > 0 else number])
    return text if field.fill else text.ljust(4)


def _quarter(moment: _Moment, field: Field) -> str:
    if not moment.month:
        return ""
    size = (abs(moment.month - 1)) // 3
    return _number(field, (size if moment.month > 0 else -size) + 1, 1)


def _iso_last_digits(digits: int) -> Callable[[_Moment, Field], str]:
    """Return the last digits of the ISO year; its width goes by the sign of the year itself."""

    def show(moment: _Moment, field: Field) -> str:
        year = iso_year(moment.year, moment.month, moment.day)
        rest = abs(year) % 10**digits * (1 if year >= 0 else -1)
        return _signed(field, rest, digits + (moment.year < 0))

    return show


def _iso_year(moment: _Moment, field: Field) -> str:
    year = iso_year(moment.year, moment.month, moment.day)
    return _signed(field, year, 4 + (moment.year < 0))


def _of_day(read: Callable[[int, int, int], int], width: int) -> Callable[[_Moment, Field], str]:
    return lambda moment, field: _signed(field, read(moment.year, moment.month, moment.day), width)


def _half_of_day(dots: str) -> Callable[[_Moment, Field], str]:
    def show(moment: _Moment, field: Field) -> str:
        half = "P" if abs(moment.hour) % 24 >= 12 and moment.hour >= 0 else "A"
        return in_case_of(field.word, f"{half}{dots}M{dots}")

    return show


def _zone(moment: _Moment, field: Field) -> str:
    _calendar(moment)
    return in_case_of(field.word, moment.zone)


def _zone_hours(moment: _Moment, field: Field) -> str:
    _calendar(moment)
    return f"{'-' if moment.offset < 0 else '+'}{abs(moment.offset) // 3600:02d}"


def _zone_minutes(moment: _Moment, field: Field) -> str:
    _calendar(moment)
    return f"{abs(moment.offset) // 60 % 60:02d}"


def _offset(moment: _Moment, field: Field) -> str:
    _calendar(moment)
    hours, minutes = abs(moment.offset) // 3600, abs(moment.offset) // 60 % 60
    text = f"{'-' if moment.offset < 0 else '+'}{hours:0{1 if field.fill else 2}d}"
    return f"{text}:{minutes:02d}" if minutes else text


def _era(text: str) -> Callable[[_Moment, Field], str]:
    def show(moment: _Moment, field: Field) -> str:
        _calendar(moment)
        return in_case_of(field.word, text)

    return show


_FIELDS: Final[dict[str, Callable[[_Moment, Field], str]]] = {
    **dict.fromkeys(("A.D.", "B.C."), _era("A.D.")),
    **dict.fromkeys(("AD", "BC"), _era("AD")),
    **dict.fromkeys(("A.M.", "P.M."), _half_of_day(".")),
    **dict.fromkeys(("AM", "PM"), _half_of_day("")),
    "CC": _century,
    "DAY": _day,
    "DY": _short_day,
    "DDD": lambda moment, field: _signed(field, moment.day_of_year, 3),
    "DD": lambda moment, field: _signed(field, moment.day, 2),
    "D": _digits(lambda moment: _calendar(moment).isoweekday() % 7 + 1, 1),
    **{f"FF{count}": _fraction(count) for count in range(1, 7)},
    "FX": lambda moment, field: "",
    "HH24": _digits(lambda moment: moment.hour, 2),
    **dict.fromkeys(("HH", "HH12"), _digits(_twelve_hours, 2)),
    "IDDD": _of_day(iso_day_of_year, 3),
    "ID": _digits(lambda moment: _calendar(moment).isoweekday(), 1),
    "IW": _of_day(iso_week, 2),
    "IYYY": _iso_year,
    "IYY": _iso_last_digits(3),
    "IY": _iso_last_digits(2),
    "I": _iso_last_digits(1),
    "J": _of_day(julian_day, 1),
    "MI": _digits(lambda moment: moment.minute, 2),
    "MM": _digits(lambda moment: moment.month, 2),
    "MONTH": _month,
    "MON": _short_month,
    "MS": _fraction(3),
    "OF": _offset,
    "Q": _quarter,
    "RM": _roman_month,
    **dict.fromkeys(
        ("SSSS", "SSSSS"),
        _digits(lambda moment: (moment.hour * 60 + moment.minute) * 60 + moment.second, 1),
    ),
    "SS": _digits(lambda moment: moment.second, 2),
    "TZ": _zone,
    "TZH": _zone_hours,
    "TZM": _zone_minutes,
    "US": _fraction(6),
    "WW": lambda moment, field: _signed(field, _week(moment.day_of_year), 2),
    "W": lambda moment, field: _signed(field, _week(moment.day), 1),
    "Y,YYY": _year_with_comma,
    "YYYY": _digits(lambda moment: moment.year, 4),
    "YYY": _last_digits(3),
    "YY": _last_digits(2),
    "Y": _last_digits(1),
}

_CALLS: Final[tuple[tuple[Any, Callable[..., Any]], ...]] = (
    (TIMESTAMP, timestamp_to_char),
    (TIMESTAMPTZ, moment_to_char),
    (INTERVAL, interval_to_char),
)
FUNCTIONS: Final = tuple(
    Function(
        "to_char",
        (sql_type, TEXT),
        TEXT,
        call,
        gives_null=True,
        inline=f"{call.__name__}({{0}}, {{1}})",
        names={call.__name__: call, "pattern_length": pattern_length},
        length=None if sql_type == INTERVAL else "pattern_length({1})",
    )
    for sql_type, call in _CALLS
)

"""Reads and prints intervals as PostgreSQL does.

    1 year 2 mons -3 days 04:05:06.7    1-2    3 4:05    1.5 h    2 weeks ago    P1Y2M3DT4H    P1-2

The reader cuts the text into fields and reads them from the right, because a unit follows its
number. A number without a unit counts seconds, or the unit of the type (INTERVAL '3' MONTH), or
days if a time of day follows. Fractions flow down, never up: of a year into months, of a month into
days and time, of a day into time. A text that fails this way is tried as ISO 8601.

Fractions are doubles, as in PostgreSQL, so that the last digit is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from qserver.errors import IntervalFieldOverflow, InvalidDatetimeFormat, QserverError
from qserver.values.interval import (
    DAYS_PER_MONTH,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_HOUR,
    MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND,
    MONTHS_PER_YEAR,
    PART_MAX,
    PART_MIN,
    TIME_MAX,
    TIME_MIN,
    Interval,
)
from qserver.values.time_units import unit_named

_TEXT_LENGTH_MAX: Final = 255
_FIELDS_MAX: Final = 25

_FIELD: Final = re.compile(
    r"""(?P<blank>\s+)
      | (?P<time>[0-9]+:[0-9:.]*)
      | (?P<number>[0-9]++(?![-/.])|\.[0-9]*)
      | (?P<date>[0-9]++(?P<mark>[-/.])(?:[0-9]++(?:(?P=mark)(?:[0-9]|(?P=mark))*)?
            |(?:[0-9a-z]|(?P=mark))*))
      | (?P<word>[a-z]++(?![-/.+0-9])|(?:dec|mon|[dhmsy])(?=[+0-9]))
      | (?P<other>[a-z]+[-/.+0-9][-+/_.:a-z0-9]*)
      | (?P<signed>[+-]\s*[0-9][-0-9:.]*)
      | (?P<special>[+-]\s*[a-z]+)
      | (?P<punctuation>[!-*,/:-@\[-`{-~])""",
    re.VERBOSE | re.ASCII,
)
_SIMPLE: Final = re.compile(r" ?([+-]?[0-9]{1,6}) ?([a-z]{3,7}) ?", re.ASCII)
_NUMBER: Final = re.compile(r"([+-]?[0-9]*)(?:(\.[0-9]*)|-([0-9]*))?", re.ASCII)
_TIME: Final = re.compile(r"([0-9]+):([0-9]*)(?::([0-9]*))?(\.[0-9]*)?", re.ASCII)
_ISO_NUMBER: Final = re.compile(
    r"-?(?:(?P<whole>[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII
)
_ISO_NUMBER_MAX: Final = 1e15

_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_TIMES: Final = {
    "microseconds": 1,
    "milliseconds": 1000,
    "second": MICROSECONDS_PER_SECOND,
    "minute": MICROSECONDS_PER_MINUTE,
    "hour": MICROSECONDS_PER_HOUR,
}
_COUNTED: Final = frozenset({*_YEARS, "month", "week", "day", *_TIMES})
_TIME_OF_DAY: Final = frozenset({"hour", "minute", "second", "milliseconds", "microseconds"})


class _BadFormat(Exception):
    pass


class _Overflow(Exception):
    pass


def interval_from_text(text: str) -> Interval:
    return read_interval(text, None)


def interval_reader(fields: str | None) -> Callable[[str], Interval]:
    """The reader for INTERVAL with fields: `1` is a year for INTERVAL YEAR."""
    return lambda text: read_interval(text, fields)


def read_interval(text: str, fields: str | None) -> Interval:
    """Reads an interval for a type with fields."""
    match = _SIMPLE.fullmatch(text)
    if match is not None and (unit := unit_named(match[2])) in _COUNTED:
        assert unit is not None
        parts = _Parts()  # the most common form by far, which cannot fail
        parts.add(int(match[1]), 0.0, unit)
        return parts.interval()
    try:
        try:
            return _from_fields(text, fields)
        except _BadFormat:
            return _from_iso(text)
    except _BadFormat:
        raise InvalidDatetimeFormat(f'invalid input syntax for type interval: "{text}"') from None
    except _Overflow:
        raise _out_of_range(text) from None


def _out_of_range(text: str) -> QserverError:
    return IntervalFieldOverflow(f'interval field value out of range: "{text}"')


class _Parts:
    """An interval while it is read."""

    def __init__(self) -> None:
        self.years = 0
        self.months = 0
        self.days = 0
        self.microseconds = 0

    def interval(self) -> Interval:
        return Interval(self.years * MONTHS_PER_YEAR + self.months, self.days, self.microseconds)

    def negate(self) -> None:
        if PART_MIN in (self.years, self.months, self.days) or self.microseconds == TIME_MIN:
            raise _Overflow
        self.years, self.months, self.days = -self.years, -self.months, -self.days
        self.microseconds = -self.microseconds

    def add(self, whole: int, fraction: float, unit: str) -> None:
        """Add a number of units; the fraction flows down."""
        if unit in _TIMES:
            self._add_time(whole * _TIMES[unit])
            self._add_time_fraction(fraction, _TIMES[unit])
        elif unit == "day":
            self._add_days(whole)
            self._add_time_fraction(fraction, MICROSECONDS_PER_DAY)
        elif unit == "week":
            _in_range(whole)
            self._add_days(whole * 7)
            self._add_day_fraction(fraction, 7)
        elif unit == "month":
            self.months = _in_range(self.months + _in_range(whole))
            self._add_day_fraction(fraction, DAYS_PER_MONTH)
        elif unit not in _YEARS:  # quarter, timezone: units that no interval has
            raise _BadFormat
        else:
            size = _YEARS[unit]
            self.years = _in_range(self.years + _in_range(_in_range(whole) * size))
            self.months = _in_range(self.months + round(fraction * size * MONTHS_PER_YEAR))

    def _add_days(self, days: int) -> None:
        self.days = _in_range(self.days + _in_range(days))

    def _add_day_fraction(self, fraction: float, days: int) -> None:
        fraction *= days
        self._add_days(int(fraction))
        self._add_time_fraction(fraction - int(fraction), MICROSECONDS_PER_DAY)

    def _add_time(self, microseconds: int) -> None:
        self.microseconds += microseconds
        if not TIME_MIN <= self.microseconds <= TIME_MAX:
            raise _Overflow

    def _add_time_fraction(self, fraction: float, size: int) -> None:
        fraction *= size
        whole = int(fraction)
        rest = fraction - whole
        self._add_time(whole + (1 if rest > 0.5 else -1 if rest < -0.5 else 0))


def _in_range(part: int) -> int:
    if PART_MIN <= part <= PART_MAX:
        return part
    raise _Overflow


def _in_range_of_64_bits(number: int) -> int:
    if TIME_MIN <= number <= TIME_MAX:
        return number
    raise _Overflow


# --- the usual form ------------------------------------------------------------------------------


def _from_fields(text: str, fields: str | None) -> Interval:
    parts = _Parts()
    seen: set[str] = set()
    unit: str | None = None
    ago = False
    for kind, field in reversed(_cut(text)):
        if kind == "time" or (kind == "signed" and _is_time(field)):
            new = _TIME_OF_DAY
            _take_time(parts, field, fields)
            unit = "day"
        elif kind in ("number", "signed", "date"):
            unit = unit or _unit_of(fields)
            unit, new = _take_number(parts, field, unit)
            if unit == "hour":
                unit = "day"
        elif kind in ("word", "special"):
            ago = ago or field == "ago"
            unit = field if field == "ago" else unit_named(field)
            if unit is None:
                raise _BadFormat
            continue
        else:
            raise _BadFormat
        if not seen.isdisjoint(new):
            raise _BadFormat
        seen |= new
    if not seen:
        raise _BadFormat
    if ago:
        parts.negate()
    return parts.interval()


def _cut(text: str) -> list[tuple[str, str]]:
    if len(text) > _TEXT_LENGTH_MAX:
        raise _BadFormat
    found = []
    text = text.lower()
    at = 0
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None:
            raise _BadFormat
        at = match.end()
        kind = match.lastgroup or ""
        kind = "date" if kind == "mark" else kind
        if kind not in ("blank", "punctuation"):
            found.append((kind, "".join(match[0].split())))
    if len(found) > _FIELDS_MAX:
        raise _BadFormat
    return found


def _unit_of(fields: str | None) -> str:
    return "second" if fields is None else fields.split()[-1]


def _is_time(field: str) -> bool:
    """Is a signed field a time? A field that only looks like one is read as a number, and fails."""
    match = _TIME.fullmatch(field[1:]) if ":" in field else None
    if match is None:
        return False
    minutes_and_seconds = match[3] is None and match[4] is not None
    minute, second = (match[1], match[2]) if minutes_and_seconds else (match[2], match[3])
    return int(minute or 0) < 60 and int(second or 0) <= 60


def _take_time(parts: _Parts, field: str, fields: str | None) -> None:
    negative, field = field[0] == "-", field.lstrip("+-")
    match = _TIME.fullmatch(field)
    if match is None:
        raise _BadFormat
    hour, minute, fraction = int(match[1]), int(match[2] or 0), float(f"{match[4] or '.'}0")
    if match[3] is not None:
        second = int(match[3] or 0)
    elif match[4] is not None or fields == "minute to second":
        hour, minute, second = 0, _in_range(hour), minute
    else:
        second = 0
    if _in_range_of_64_bits(hour) < 0 or minute > 59 or second > 60:
        raise _Overflow
    parts.microseconds = 0
    parts._add_time(round(fraction * MICROSECONDS_PER_SECOND))
    for count, size in (
        (hour, MICROSECONDS_PER_HOUR),
        (minute, MICROSECONDS_PER_MINUTE),
        (second, MICROSECONDS_PER_SECOND),
    ):
        parts._add_time(count * size)
    if negative:
        parts.microseconds = -parts.microseconds


def _take_number(parts: _Parts, field: str, unit: str) -> tuple[str, frozenset[str]]:
    match = _NUMBER.fullmatch(field)
    if match is None:
        beginning = _NUMBER.match(field)
        assert beginning is not None
        if int(beginning[3] or 0) >= MONTHS_PER_YEAR:  # too many months come before the rest
            raise _Overflow
        raise _BadFormat
    negative = field.startswith("-")
    whole = _in_range_of_64_bits(int(match[1])) if match[1] not in ("", "+", "-") else 0
    fraction = float(f"{match[2]}0") if match[2] else 0.0
    if match[3] is not None:  # years-months
        months = int(match[3] or 0)
        if months >= MONTHS_PER_YEAR:
            raise _Overflow
        whole = _in_range_of_64_bits(whole * MONTHS_PER_YEAR + (-months if negative else months))
        unit = "month"
    parts.add(whole, -fraction if negative else fraction, unit)
    if unit == "second" and fraction:
        return unit, frozenset({"second", "milliseconds", "microseconds"})
    return unit, frozenset({unit})


# --- ISO 8601 ------------------------------------------------------------------------------------


def _from_iso(text: str) -> Interval:
    if len(text) < 2 or text[0] != "P":
        raise _BadFormat
    parts = _Parts()
    days, separator, times = text[1:].partition("T")
    _read_iso_part(parts, days, "YMWD", ("year", "month", "week", "day"), "-")
    if separator:
        _read_iso_part(parts, times, "HMS", ("hour", "minute", "second"), ":")
    return parts.interval()


def _read_iso_part(
    parts: _Parts, text: str, letters: str, units: tuple[str, ...], mark: str
) -> None:
    """`1Y2M3D`, or the alternative `0001-02-03` or `00010203`; parts may be omitted."""
    at = 0
    while at < len(text):
        first = at == 0
        match = _iso_number(text, at)
        at = match.end()
        letter = text[at : at + 1]
        if letter and letter in letters:
            parts.add(*_iso_value(match), units[letters.index(letter)])
            at += 1
            continue
        if not first:
            raise _BadFormat
        digits = 8 if mark == "-" else 6
        if not letter and len(match["whole"] or "") == digits:
            return _add_digits(parts, match, tuple(unit for unit in units if unit != "week"))
        return _read_iso_marked(parts, text, tuple(u for u in units if u != "week"), mark)
    return None


def _read_iso_marked(parts: _Parts, text: str, units: tuple[str, ...], mark: str) -> None:
    at = 0
    for unit in units:
        match = _iso_number(text, at)
        parts.add(*_iso_value(match), unit)
        at = match.end()
        if at == len(text):
            return
        if text[at] != mark:
            raise _BadFormat
        at += 1
    raise _BadFormat


def _add_digits(parts: _Parts, match: re.Match[str], units: tuple[str, ...]) -> None:
    number, fraction = _iso_value(match)
    largest, middle, smallest = units
    parts.add(number // 10000, 0.0, largest)
    parts.add(number // 100 % 100, 0.0, middle)
    parts.add(number % 100, fraction if smallest == "day" else 0.0, smallest)
    if smallest == "second":
        parts.add(0, fraction, "microseconds")


def _iso_number(text: str, at: int) -> re.Match[str]:
    match = _ISO_NUMBER.match(text, at)
    if match is None:
        raise _BadFormat
    return match


def _iso_value(match: re.Match[str]) -> tuple[int, float]:
    """Whole and fraction; the fraction keeps its rounding error as the rest of a double."""
    number = float(match[0])
    if abs(number) > _ISO_NUMBER_MAX:
        raise _Overflow
    return int(number), number - int(number)


# --- output --------------------------------------------------------------------------------------


def text_of_interval(value: Interval) -> str:
    """`1 year 2 mons -3 days +04:05:06.7`: after a negative part a positive one shows its sign."""
    words = []
    before_negative = False
    years, months = split_months(value.months)
    for count, unit in ((years, "year"), (months, "mon"), (value.days, "day")):
        if count:
            sign = "+" if before_negative and count > 0 else ""
            words.append(f"{sign}{count} {unit}{'' if count == 1 else 's'}")
            before_negative = count < 0
    if value.microseconds or not words:
        sign = "-" if value.microseconds < 0 else "+" if before_negative else ""
        words.append(sign + text_of_time(abs(value.microseconds)))
    return " ".join(words)


def iso_text_of_interval(value: Interval) -> str:
    """`P1Y2M-3DT4H5M6.7S`, as ISO 8601 writes a length of time."""
    years, months = split_months(value.months)
    date = _iso_parts((years, "Y"), (months, "M"), (value.days, "D"))
    sign = "-" if value.microseconds < 0 else ""
    seconds, fraction = divmod(abs(value.microseconds), MICROSECONDS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    time = "".join(f"{sign}{count}{unit}" for count, unit in ((hours, "H"), (minute, "M")) if count)
    if second or fraction:
        digits = f".{fraction:06d}".rstrip("0") if fraction else ""
        time += f"{sign}{second}{digits}S"
    if not date and not time:
        return "PT0S"
    return f"P{date}T{time}" if time else f"P{date}"


def _iso_parts(*parts: tuple[int, str]) -> str:
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def text_of_time(microseconds: int) -> str:
    """Hours, minutes and seconds of a nonnegative length, with the digits it has."""
    seconds, fraction = divmod(microseconds, MICROSECONDS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def split_months(months: int) -> tuple[int, int]:
    """Years and months, both with the sign of the whole."""
    years, rest = divmod(abs(months), MONTHS_PER_YEAR)
    return (years, rest) if months >= 0 else (-years, -rest)

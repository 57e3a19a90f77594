"""Reads dates and times as PostgreSQL does, in the style ISO, MDY and the zone of the session.

    2024-01-02    2024/1/2    20240102    240102    1/2/2024    Jan 2, 2024    2-Jan-2024
    J2460312    2024.002    2024-002    (a Julian day, the day of a year)
    03:04    03:    03:04:05.678    3:04 PM    030405    T03:04:05    24:00
    Z    UTC    +02    -0330    +05:30:10    EST    Europe/Berlin    UTC+3

The reader cuts the text into tokens, and each token fills the fields that it can, in PostgreSQL's
order: a number of three digits or more is a year, then come month, day and year. Almost every text
is ISO, so one pattern tries that first; all other texts, and errors, take the slow path.

Different from PostgreSQL: years are 1 to 9999, so there is no BC and no `infinity`; a TIME ends
before 24:00; `now` and `today` exist only as functions.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final

from qserver.errors import (
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidDatetimeFormat,
    InvalidParameterValue,
    InvalidTimeZoneDisplacement,
    QserverError,
)
from qserver.limits import YEAR_MAX, YEAR_MIN
from qserver.values.zoned_time import ZonedTime, in_zone
from qserver.values.zones import (
    OFFSET_OF_ABBREVIATION,
    WINTER,
    find_zone,
    posix_zone,
    session_moment,
    session_offset,
    to_utc,
)

TEXT_LENGTH_MAX: Final = 150
"""A longer text is not a date; this also bounds the numbers in it."""

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(?:Z|\+00)?)?",
    re.ASCII,
)

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_MONTHS = {name: at for at, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTHS |= {name[:3]: at for name, at in _MONTHS.items()} | {"sept": 9}

_WEEKDAYS = "sunday sun monday mon tuesday tue tues wednesday wed weds thursday thu thur thurs"
_IGNORED = frozenset((*_WEEKDAYS.split(), "friday", "fri", "saturday", "sat", "at", "on"))
_UNITS = (
    "ad allballs am bc d dow doy dst epoch h infinity isodow isoyear j jd julian m mm now pm s t"
    " today tomorrow y yesterday"
)
_NO_ZONES = "|".join(sorted((*_MONTHS, *_IGNORED, *_UNITS.split())))
"""Words that begin no zone, even if a number follows at once."""

_TOKEN = re.compile(
    rf"""(?P<blank>[\s,]+)
      | (?P<time>\d+:\d*(?::\d*)?(?:\.\d*)?)
      | (?P<date>(?:\d+|[a-z]+)(?P<mark>[-/.])(?:\d+|[a-z]+)(?P=mark)\d+)
      | (?P<ordinal>\d{{3,}}[-/]\d{{3}}(?![\d/.-]))
      | (?P<number>\d+(?:\.\d*)?)
      | (?P<offset>[+-]\d+(?::\d+){{0,2}})
      | (?P<zone>(?:[a-z]+[-/.]|(?!(?:{_NO_ZONES})[+\d])[a-z]+[+\d])[-+/_.:a-z0-9]*)
      | (?P<word>[a-z]+)""",
    re.VERBOSE | re.ASCII,
)

_OFFSET_HOURS_MAX = 15
_JULIAN_OF_ORDINAL = 1_721_425


def date_from_text(text: str) -> date:
    """Reads a date; drops a time of day after it."""
    if len(text) == 10 and text[4] == "-" == text[7]:
        with suppress(ValueError):
            return date.fromisoformat(text)
    value = _from_iso(text)
    return value.date() if value is not None else _Reading(text, "date").whole_date()


def timestamp_from_text(text: str) -> datetime:
    """Reads a local date and time; drops a zone after it."""
    value = _from_iso(text)
    return value if value is not None else _Reading(text, "timestamp").local_time()


def timestamptz_from_text(text: str) -> datetime:
    """Reads a point in time, in UTC; a text without a zone is in that of the session."""
    value = _from_iso(text)
    if value is not None:
        is_utc = text.endswith(("Z", "+00"))
        return value.replace(tzinfo=UTC) if is_utc else session_moment(value)
    return _Reading(text, "timestamp with time zone").point_in_time()


def time_from_text(text: str) -> time:
    """Reads a time of day; drops a date before it and a zone after it."""
    reading = _Reading(text, "time", time_only=True)
    value = reading.time_of_day()
    reading.offset_of_time()  # which a region has only on a certain day
    return value


def timetz_from_text(text: str) -> ZonedTime:
    """The time of day with its offset; a zone whose offset changes needs a date to have one."""
    reading = _Reading(text, "time with time zone", time_only=True)
    return in_zone(reading.time_of_day(), reading.offset_of_time())


def _from_iso(text: str) -> datetime | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups("0")[:6])
    microsecond = int((match[7] or "0").ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, microsecond)
    except ValueError:  # 24:00, a second 60, or an error that the slow path explains
        return None


class _Reading:
    """Reads one date or time; fields are None until a token fills them."""

    def __init__(self, text: str, type_name: str, time_only: bool = False) -> None:
        self.text = text
        self.type_name = type_name
        self.time_only = time_only
        self.year: int | None = None
        self.month: int | None = None
        self.day: int | None = None
        self.short_year = False
        self.named_month = False
        self.before_christ = False
        self.is_julian = False
        self.time: timedelta | None = None
        self.offset: timedelta | None = None
        self.zone: tzinfo | None = None
        self._read_tokens()

    # --- results ---------------------------------------------------------------------------------

    def whole_date(self) -> date:
        if self.year is None or self.month is None or self.day is None:
            if self.month is not None and not 1 <= self.month <= 12:
                raise self._bad_month_or_day()
            raise self._bad_syntax()
        year = self.year
        if self.short_year and not self.before_christ:
            year += 2000 if year < 70 else 1900
        if year < YEAR_MIN:
            raise self._bad_field()
        if not 1 <= self.month <= 12 or not 1 <= self.day <= 31:
            raise self._bad_month_or_day()
        if self.before_christ or year > YEAR_MAX:
            raise self._out_of_range()
        try:
            return date(year, self.month, self.day)
        except ValueError:
            raise self._bad_field() from None

    def local_time(self) -> datetime:
        midnight = datetime.combine(self.whole_date(), datetime.min.time())
        try:
            return midnight + (self.time or timedelta())
        except OverflowError:
            raise self._out_of_range() from None

    def point_in_time(self) -> datetime:
        local = self.local_time()
        if self.zone is not None:
            return to_utc(local, self.zone)
        if self.offset is None:
            return session_moment(local)
        try:
            return (local - self.offset).replace(tzinfo=UTC)
        except OverflowError:
            raise self._out_of_range() from None

    def time_of_day(self) -> time:
        if self.time is None:
            raise self._bad_syntax()
        if self.time >= timedelta(days=1):
            raise self._bad_field()
        if self._has_date():
            self.whole_date()
        return (datetime.min + self.time).time()

    def offset_of_time(self) -> tzinfo:
        if self.zone is not None and not self._has_date():
            fixed = self.zone.utcoffset(None)
            if fixed is None:
                raise self._bad_syntax()
            return timezone(fixed)
        if self.zone is not None:
            return timezone(self.local_time() - self.point_in_time().replace(tzinfo=None))
        if self.offset is not None:
            return timezone(self.offset)
        return session_offset(self.point_in_time() if self._has_date() else WINTER)

    # --- tokens ----------------------------------------------------------------------------------

    def _read_tokens(self) -> None:
        text = self.text.lower()
        if len(text) > TEXT_LENGTH_MAX:
            raise self._bad_syntax()
        if not self.time_only and self._is_special(text.strip()):
            return
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._bad_syntax()
            self._take(match)
            at = match.end()

    def _is_special(self, word: str) -> bool:
        if word in ("infinity", "-infinity"):
            raise self._out_of_range()
        if word in ("now", "today", "tomorrow", "yesterday"):
            hint = "Use now() or current_date."
            raise FeatureNotSupported(f'"{word}" is not supported as a date or time', hint=hint)
        if word == "epoch":
            self.year, self.month, self.day = 1970, 1, 1
        return word == "epoch"

    def _take(self, match: re.Match[str]) -> None:
        token = match[0]
        if match["time"]:
            self._take_time(token)
        elif match["date"]:
            self._take_date(token.split(match["mark"]))
        elif match["ordinal"]:
            year, day = re.split("[-/]", token)
            if not 1 <= int(day) <= 366:
                raise self._bad_syntax()
            self._take_date([year, day])
        elif match["number"]:
            self._take_number(token)
        elif match["offset"]:
            self._take_offset(token)
        elif match["zone"]:
            self._take_zone(token)
        elif match["word"]:
            self._take_word(token)

    def _take_date(self, parts: list[str]) -> None:
        if self.year is not None or self.month is not None or self.time is not None:
            raise self._bad_syntax()
        for part in parts:
            if part.isalpha():
                self._take_month(part)
        for part in parts:
            if part.isdigit():
                self._take_date_part(part)

    def _take_number(self, token: str) -> None:
        digits, _, fraction = token.partition(".")
        if self.is_julian and not self._has_date() and not fraction:
            self._take_ordinal(int(digits) - _JULIAN_OF_ORDINAL)
        elif self.time_only and (self._has_date() or self.time is not None):
            raise self._bad_syntax()  # beside a time of day, a date has marks in it
        elif (self._has_date() or self.time_only) and self.time is None:
            if len(digits) not in (4, 6):
                raise self._bad_syntax()
            pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
            self._take_time(":".join(pairs) + (f".{fraction}" if fraction else ""))
        elif len(digits) == 4 and len(fraction) == 3 and self.year is self.month is None:
            self._take_day_of_year(int(digits), int(fraction))
        elif "." in token:
            raise self._bad_syntax()
        elif len(digits) >= 6 and self.year is self.month is self.day is None:
            self.year, self.short_year = int(digits[:-4]), len(digits) == 6
            self.month, self.day = int(digits[-4:-2]), int(digits[-2:])
        else:
            self._take_date_part(digits)

    def _take_ordinal(self, ordinal: int) -> None:
        """Set the date by its number: a Julian day, or the day of a year."""
        try:
            day = date.fromordinal(ordinal)
        except (ValueError, OverflowError):
            raise self._out_of_range() from None
        self.year, self.month, self.day = day.year, day.month, day.day

    def _take_day_of_year(self, year: int, day: int) -> None:
        if year < YEAR_MIN:
            raise self._bad_field()
        if not 1 <= day <= 366:
            raise self._bad_syntax()
        self._take_ordinal(date(year, 1, 1).toordinal() + day - 1)

    def _take_date_part(self, digits: str) -> None:
        """Take one number of a date; its length and the known fields decide its meaning."""
        number, long = int(digits), len(digits) >= 3
        if self._is_day_of_year(digits):
            assert self.year is not None
            self._take_day_of_year(self.year, number)
        elif self.month is None and self.year is None and not long:
            self.month = number
        elif self.year is None and (long or self.day is not None):
            self.year, self.short_year = number, len(digits) <= 2
        elif self.month is None:
            self.month = number
        elif self.day is None:
            self.day = number
        else:
            raise self._bad_syntax()

    def _is_day_of_year(self, digits: str) -> bool:
        """Tell whether a number of three digits behind a year is the day of that year."""
        alone = self.month is None and self.day is None and not self.short_year
        return len(digits) == 3 and self.year is not None and alone and 1 <= int(digits) <= 366

    def _take_month(self, word: str) -> None:
        if word not in _MONTHS or self.named_month:
            raise self._bad_syntax()
        if self.month is not None and self.day is None:
            self.day = self.month  # `8 Jan`: the number was the day
        self.month, self.named_month = _MONTHS[word], True

    def _take_word(self, word: str) -> None:
        if word in _MONTHS:
            self._take_month(word)
        elif word in ("am", "pm"):
            self._take_half_of_day(word)
        elif word in ("ad", "bc"):
            self.before_christ = word == "bc"
        elif word in OFFSET_OF_ABBREVIATION and self.offset is None and self.zone is None:
            self.offset = OFFSET_OF_ABBREVIATION[word]
        elif word in ("j", "jd", "julian") and not self._has_date():
            self.is_julian = True
        elif word == "allballs" and self.time is None:
            self.time, self.offset = timedelta(), timedelta()
        elif word not in _IGNORED and not self._is_time_mark(word):
            raise self._bad_syntax()

    def _is_time_mark(self, word: str) -> bool:
        return word == "t" and self._has_date() is not self.time_only and self.time is None

    def _take_zone(self, name: str) -> None:
        if not (self._has_date() or self.time_only):
            raise self._bad_syntax()
        zone = find_zone(name) or posix_zone(name)
        if zone is None:
            raise InvalidParameterValue(f'time zone "{name}" not recognized')
        if self.offset is not None or self.zone is not None:
            raise self._bad_syntax()
        self.zone = zone

    # --- time of day and zone --------------------------------------------------------------------

    def _take_time(self, token: str) -> None:
        if self.time is not None:
            raise self._bad_syntax()
        whole, _, fraction = token.partition(".")
        numbers = [int(part or "0") for part in whole.split(":")]
        if len(numbers) == 2:  # hours and minutes; with a fraction, minutes and seconds
            numbers = [0, *numbers] if fraction else [*numbers, 0]
        hour, minute, second = numbers
        microsecond = round(float(f"0.{fraction}") * 1_000_000) if fraction else 0
        if hour > 24 or minute > 59 or second > 60:
            raise self._bad_field()
        if hour == 24 and (minute or second or microsecond):
            raise self._bad_field()
        self.time = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=microsecond)

    def _take_half_of_day(self, word: str) -> None:
        if self.time is None:
            raise self._bad_syntax()
        noon, hour = timedelta(hours=12), timedelta(hours=1)
        if self.time >= noon + hour:
            raise self._bad_field()
        if self.time >= noon:
            self.time -= noon
        if word == "pm":
            self.time += noon

    def _take_offset(self, token: str) -> None:
        if self.offset is not None or not (self.time is not None or self._has_date()):
            raise self._bad_syntax()
        parts = [int(part) for part in token[1:].split(":")]
        if len(parts) == 1 and len(token) > 3:
            parts = list(divmod(parts[0], 100))
        hour, minute, second = (*parts, 0, 0)[:3]
        if hour > _OFFSET_HOURS_MAX or minute > 59 or second > 59:
            raise InvalidTimeZoneDisplacement(f'time zone displacement out of range: "{self.text}"')
        size = timedelta(hours=hour, minutes=minute, seconds=second)
        self.offset = -size if token[0] == "-" else size

    # --- errors ----------------------------------------------------------------------------------

    def _has_date(self) -> bool:
        return self.year is not None and self.month is not None and self.day is not None

    def _bad_syntax(self) -> QserverError:
        return InvalidDatetimeFormat(
            f'invalid input syntax for type {self.type_name}: "{self.text}"'
        )

    def _bad_month_or_day(self) -> QserverError:
        return self._bad_field(hint='Perhaps you need a different "datestyle" setting.')

    def _bad_field(self, hint: str | None = None) -> QserverError:
        message = f'date/time field value out of range: "{self.text}"'
        return DatetimeFieldOverflow(message, hint=hint)

    def _out_of_range(self) -> QserverError:
        name = "date" if self.type_name == "date" else "timestamp"
        return DatetimeFieldOverflow(f'{name} out of range: "{self.text}"')

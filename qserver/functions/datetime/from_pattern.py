"""to_date and to_timestamp: parses a text by a format pattern.

Each field of the pattern takes its part of the text (`Scanner`), then `Found` combines the parts.
As in PostgreSQL, blanks and punctuation match each other, text after the last field is ignored, and
a text that ends early leaves the remaining fields at their defaults. A date without a year would be
in the year 0, which does not exist here: that is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from qserver.errors import (
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidDatetimeFormat,
    InvalidTimeZoneDisplacement,
    QserverError,
)
from qserver.functions.datetime.arithmetic import out_of_range
from qserver.functions.datetime.patterns import (
    DAYS,
    MONTHS,
    ROMAN_MONTHS,
    Field,
    Part,
    is_separator,
    parts_of,
)
from qserver.functions.registry import Function
from qserver.values.digits import clipped_integer
from qserver.values.types import DATE, TEXT, TIMESTAMPTZ
from qserver.values.zones import SESSION_ZONE, session_moment

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+", re.ASCII)
_YEAR_WITH_COMMA: Final = re.compile(r"\s*([+-]?[0-9]+),([0-9]{1,3})", re.ASCII)
_JULIAN_OF_ORDINAL: Final = 1_721_425
_INT_MAX: Final = 2**31 - 1

# Widths of fields; by default the number of their letters.
_WIDTHS: Final = {"HH": 2, "HH12": 2, "HH24": 2, "MS": 3, "IDDD": 3, "ID": 1, "US": 6, "TZM": 2}
_ISO_FIELDS: Final = frozenset({"IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"})
_GREGORIAN_FIELDS: Final = frozenset(
    {"CC", "DAY", "DDD", "DD", "DY", "D", "J", "MM", "MONTH", "MON", "Q", "RM", "WW", "W"}
    | {"Y,YYY", "YYYY", "YYY", "YY", "Y"}
)
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("A.M.", "P.M."), ("a.m.", "p.m.")),
    **dict.fromkeys(("AM", "PM"), ("am", "pm")),
    **dict.fromkeys(("A.D.", "B.C."), ("a.d.", "b.c.")),
    **dict.fromkeys(("AD", "BC"), ("ad", "bc")),
    "MONTH": MONTHS,
    "MON": tuple(name[:3] for name in MONTHS),
    "DAY": DAYS,
    "DY": tuple(name[:3] for name in DAYS),
    "RM": tuple(reversed(ROMAN_MONTHS)),  # so that V does not match VIII
}


def to_date(text: str, pattern: str) -> date:
    found = _scanned(text, pattern)
    result = found.timestamp().date()
    found.offset()  # not part of a date, but may be invalid
    return result


def to_timestamp(text: str, pattern: str) -> datetime:
    found = _scanned(text, pattern)
    if SESSION_ZONE.get() is not None and not found.zone_sign:
        return session_moment(found.timestamp())
    try:
        return found.timestamp().replace(tzinfo=UTC) - found.offset()
    except OverflowError:
        raise out_of_range("timestamp") from None


def _scanned(text: str, pattern: str) -> Found:
    return Scanner(text, parts_of(pattern)).scan()


class Scanner:
    """Walks along the pattern and the text."""

    def __init__(self, text: str, parts: tuple[Part, ...]) -> None:
        self.text = text
        self.parts = parts
        self.at = 0
        self.exact = False  # FX: do not skip blanks
        self.skipped = 0  # characters of the text that the pattern does not account for
        self.found = Found(text)

    def scan(self) -> Found:
        for number, part in enumerate(self.parts):
            if self.at >= len(self.text):
                break
            is_field = isinstance(part, Field)
            if not self.exact and (is_field or number == 0) and _name_of(part) != "FX":
                self._skip_blanks()
            if isinstance(part, Field):
                self._take(part, number)
                if not self.exact:
                    self.skipped = 0
                    self._skip_blanks()
            elif part.kind in ("quoted", "text"):
                self._pass_text()
            else:
                self._pass_separator()
        return self.found

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
            self.skipped += 1

    def _pass_separator(self) -> None:
        if self.exact:
            self.at += 1
            return
        self.skipped -= 1
        character = self.text[self.at : self.at + 1]
        if not character:
            return  # the rest of the text was blank
        if character.isspace() or is_separator(character):
            self.at += 1
            self.skipped += 1

    def _pass_text(self) -> None:
        if self.exact or self.skipped <= 0:
            self.at += 1
        else:
            self.skipped -= 1

    # --- fields -----------------------------------------------------------------------------------

    def _take(self, field: Field, number: int) -> None:
        name = field.name
        if name == "FX":
            self.exact = True
            return
        self.found.set_mode(name)
        if name in ("TZ", "OF"):
            raise FeatureNotSupported(
                f'formatting field "{field.word}" is only supported in to_char'
            )
        if name in _WORDS:
            self.found.set_word(field, self._word(field))
        elif name == "Y,YYY":
            self._take_year_with_comma(field)
        elif name == "TZH":
            self._take_zone_hours(field, number)
        else:
            value, length = self._integer(field, number, self._width(field))
            self.found.set_number(field, value, length)
        if field.ordinal:
            self.at += 2

    def _width(self, field: Field) -> int:
        name = field.name
        return int(name[2]) if name.startswith("FF") else _WIDTHS.get(name, len(name))

    def _word(self, field: Field) -> int:
        rest = self.text[self.at :].lower()
        for number, word in enumerate(_WORDS[field.name]):
            if rest.startswith(word.lower()):
                self.at += len(word)
                return number
        given = self.text[self.at :].split()[0] if self.text[self.at :].split() else ""
        raise InvalidDatetimeFormat(
            f'invalid value "{given}" for "{field.word}"',
            detail="The given value did not match any of the allowed values for this field.",
        )

    def _take_year_with_comma(self, field: Field) -> None:
        match = _YEAR_WITH_COMMA.match(self.text, self.at)
        if match is None:
            raise InvalidDatetimeFormat('invalid input string for "Y,YYY"')
        self.at = match.end()
        self.found.set_number(field, clipped_integer(match[1]) * 1000 + int(match[2]), 4)

    def _take_zone_hours(self, field: Field, number: int) -> None:
        character = self.text[self.at : self.at + 1]
        if character in ("+", "-", " "):
            self.found.zone_sign = -1 if character == "-" else 1
            self.at += 1
        else:  # a minus may have been skipped as a separator
            behind_minus = self.skipped > 0 and self.text[self.at - 1] == "-"
            self.found.zone_sign = -1 if behind_minus else 1
        value, length = self._integer(field, number, 2)
        self.found.set_number(field, value, length)

    def _integer(self, field: Field, number: int, width: int) -> tuple[int, int]:
        """Return a number and the number of its characters.

        If more digits may follow, it takes exactly the field's width; otherwise all digits.
        """
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        copy = self.text[self.at : self.at + width]
        if field.fill or self._no_digits_follow(field, number):
            match = _INTEGER.match(self.text, start)
        else:
            match = self._fixed_width(field, copy, width)
        if match is None:
            raise InvalidDatetimeFormat(
                f'invalid value "{copy}" for "{field.word}"', detail="Value must be an integer."
            )
        self.at = match.end() if match.string is self.text else self.at + match.end()
        value = clipped_integer(match[0])
        if not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise DatetimeFieldOverflow(
                f'value for "{field.word}" in source string is out of range',
                detail=f"Value must be in the range {-_INT_MAX - 1} to {_INT_MAX}.",
            )
        return value, self.at - start

    def _fixed_width(self, field: Field, copy: str, width: int) -> re.Match[str] | None:
        hint = 'If your source string is not fixed-width, try using the "FM" modifier.'
        if len(copy) < width:
            raise InvalidDatetimeFormat(
                f'source string too short for "{field.word}" formatting field',
                detail=f"Field requires {width} characters, but only {len(copy)} remain.",
                hint=hint,
            )
        match = _INTEGER.match(copy)
        if match is not None and match.end() < width:
            raise InvalidDatetimeFormat(
                f'invalid value "{copy}" for "{field.word}"',
                detail=f"Field requires {width} characters, but only {match.end()}"
                " could be parsed.",
                hint=hint,
            )
        return match

    def _no_digits_follow(self, field: Field, number: int) -> bool:
        if field.ordinal or number + 1 == len(self.parts):
            return True
        following = self.parts[number + 1]
        if isinstance(following, Field):
            return not following.is_digits
        return not (following.character.isascii() and following.character.isdigit())


def _name_of(part: Part) -> str:
    return part.name if isinstance(part, Field) else ""


class Found:
    """The values of the fields. A missing number is 0, and 0 counts as missing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.mode: str | None = None
        self.numbers: dict[str, int] = {}
        self.twelve_hours = False
        self.year_digits = 4
        self.zone_sign = 0

    def __getattr__(self, name: str) -> int:
        return self.numbers.get(name, 0)

    def set_mode(self, name: str) -> None:
        mode = "iso" if name in _ISO_FIELDS else "gregorian" if name in _GREGORIAN_FIELDS else None
        if mode is None:
            return
        if self.mode not in (None, mode):
            raise InvalidDatetimeFormat(
                "invalid combination of date conventions",
                hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
            )
        self.mode = mode

    def set_word(self, field: Field, number: int) -> None:
        name = field.name
        if name in ("A.M.", "P.M.", "AM", "PM"):
            self.twelve_hours = True
            self._set(field, "afternoon", number)
        elif name in ("A.D.", "B.C.", "AD", "BC"):
            self._set(field, "before_christ", number)
        elif name in ("MONTH", "MON"):
            self._set(field, "month", number + 1)
        elif name == "RM":
            self._set(field, "month", 12 - number)
        else:
            self._set(field, "weekday", number + 1)

    def set_number(self, field: Field, value: int, length: int) -> None:
        name = field.name
        if name in ("HH", "HH12"):
            self.twelve_hours = True
        if name == "MS":
            value *= 10 ** max(3 - length, 0)
        elif name == "US" or name.startswith("FF"):
            value *= 10 ** max(6 - length, 0)
        elif name == "ID":
            value = value + 1 if value < 7 else 1
        elif name in _YEAR_DIGITS:
            self.year_digits = _YEAR_DIGITS[name]
            if self.year_digits < 4 and length < 4:
                value = _near_2020(value)
        elif name == "TZM":
            self.zone_sign = self.zone_sign or 1
        target = _TARGETS.get(name)
        if target is not None:
            self._set(field, target, value)

    def _set(self, field: Field, target: str, value: int) -> None:
        if self.numbers.get(target, 0) not in (0, value):
            raise InvalidDatetimeFormat(
                f'conflicting values for "{field.word}" field in formatting string',
                detail="This value contradicts a previous setting for the same field type.",
            )
        self.numbers[target] = value

    # --- assembly ---------------------------------------------------------------------------------

    def timestamp(self) -> datetime:
        hour, minute, second = self._time()
        day = self._date()
        microsecond = self.millisecond * 1000 + self.microsecond
        try:
            return datetime(day.year, day.month, day.day, hour, minute, second, microsecond)
        except ValueError:
            raise self._out_of_range() from None

    def time(self) -> time:
        hour, minute, second = self._time()
        try:
            return time(hour, minute, second, self.millisecond * 1000 + self.microsecond)
        except ValueError:
            raise self._out_of_range() from None

    def offset(self) -> timedelta:
        if not (0 <= self.zone_hour <= 15 and 0 <= self.zone_minute <= 59):
            message = f'time zone displacement out of range: "{self.text}"'
            raise InvalidTimeZoneDisplacement(message)
        return self.zone_sign * timedelta(hours=self.zone_hour, minutes=self.zone_minute)

    def _time(self) -> tuple[int, int, int]:
        minutes, second = divmod(self.second_of_day, 60)
        hour, minute = divmod(minutes, 60)
        hour, minute, second = self.hour or hour, self.minute or minute, self.second or second
        if self.twelve_hours:
            if not 1 <= hour <= 12:
                raise InvalidDatetimeFormat(
                    f'hour "{hour}" is invalid for the 12-hour clock',
                    hint="Use the 24-hour clock, or give an hour between 1 and 12.",
                )
            hour = hour % 12 + (12 if self.afternoon else 0)
        return hour, minute, second

    def _year(self) -> int:
        century = -self.century if self.before_christ else self.century
        if not self.year:
            return (century - 1) * 100 + 1 if century > 0 else century * 100 + bool(century)
        if century and self.year_digits <= 2:
            rest = self.year % 100
            if century >= 0:
                return (century - 1) * 100 + rest if rest else century * 100
            return (century + 1) * 100 - rest + 1 if rest else century * 100 + 1
        year = -self.year if self.before_christ else self.year
        return year + 1 if year < 0 else year

    def _date(self) -> date:
        try:
            return self._calendar_date()
        except (ValueError, OverflowError):
            raise self._out_of_range() from None

    def _calendar_date(self) -> date:
        year, month, day = self._year(), 1, 1
        if self.julian:
            known = date.fromordinal(self.julian - _JULIAN_OF_ORDINAL)
            year, month, day = known.year, known.month, known.day
        day_of_year = self.day_of_year
        if self.week and self.mode == "iso":
            known = date.fromisocalendar(year, 1, 1) + timedelta(weeks=self.week - 1)
            # Weekdays count from Sunday as 1 here, and ISO weeks end with Sunday.
            known += timedelta(days=(self.weekday + 5) % 7 if self.weekday else 0)
            year, month, day = known.year, known.month, known.day
        elif self.week:
            day_of_year = (self.week - 1) * 7 + 1
        day = (self.week_of_month - 1) * 7 + 1 if self.week_of_month else self.day or day
        month = self.month or month
        if day_of_year and (month <= 1 or day <= 1):
            return self._by_day_of_year(year, month, day, day_of_year)
        return date(year, month, day)

    def _by_day_of_year(self, year: int, month: int, day: int, day_of_year: int) -> date:
        if not year and not self.before_christ:
            raise InvalidDatetimeFormat("cannot calculate day of year without year information")
        if self.mode == "iso":
            return date.fromisocalendar(year, 1, 1) + timedelta(days=day_of_year - 1)
        known = date(year, 1, 1) + timedelta(days=day_of_year - 1)
        if known.year != year:
            raise self._out_of_range()
        return date(year, known.month if month <= 1 else month, known.day if day <= 1 else day)

    def _out_of_range(self) -> QserverError:
        return DatetimeFieldOverflow(f'date/time field value out of range: "{self.text}"')


_YEAR_DIGITS: Final = {
    "Y,YYY": 4,
    "YYYY": 4,
    "IYYY": 4,
    "YYY": 3,
    "IYY": 3,
    "YY": 2,
    "IY": 2,
    "Y": 1,
    "I": 1,
}
_TARGETS: Final = {
    **dict.fromkeys(("HH", "HH12", "HH24"), "hour"),
    **dict.fromkeys(("SSSS", "SSSSS"), "second_of_day"),
    **dict.fromkeys(("US", *(f"FF{count}" for count in range(1, 7))), "microsecond"),
    **dict.fromkeys(("DDD", "IDDD"), "day_of_year"),
    **dict.fromkeys(("D", "ID"), "weekday"),
    **dict.fromkeys(("WW", "IW"), "week"),
    **dict.fromkeys(_YEAR_DIGITS, "year"),
    "MI": "minute",
    "SS": "second",
    "MS": "millisecond",
    "MM": "month",
    "DD": "day",
    "CC": "century",
    "W": "week_of_month",
    "J": "julian",
    "TZH": "zone_hour",
    "TZM": "zone_minute",
}


def _near_2020(year: int) -> int:
    """Complete a year of fewer than four digits to one near 2020."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


_CALLS: Final[tuple[tuple[str, Any, Callable[..., Any]], ...]] = (
    ("to_date", DATE, to_date),
    ("to_timestamp", TIMESTAMPTZ, to_timestamp),
)
FUNCTIONS: Final = tuple(
    Function(name, (TEXT, TEXT), returns, call) for name, returns, call in _CALLS
)

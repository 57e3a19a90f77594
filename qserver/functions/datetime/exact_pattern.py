"""Dates and times of SQL/JSON paths: by a pattern that must match exactly, or in an ISO format.

Unlike in to_timestamp, separators match only themselves, nothing may be left over, and the fields
of the pattern decide the type: date, time, timetz, timestamp or timestamptz.
"""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from typing import Any, Final, TypeAlias

from qserver.errors import InvalidDatetimeFormat, QserverError
from qserver.functions.datetime.from_pattern import Found, Scanner
from qserver.functions.datetime.patterns import Field, Part, Text, parts_of
from qserver.values.zoned_time import ZonedTime, in_zone

Moment: TypeAlias = date | datetime | time | ZonedTime

_SEPARATORS: Final = frozenset("-./,':; ")
_TIMED: Final = frozenset(
    {"A.M.", "AM", "P.M.", "PM", "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "SSSS", "SSSSS"}
    | {f"FF{digits}" for digits in range(1, 7)}
)
_ZONED: Final = frozenset({"TZ", "OF", "TZH", "TZM"})


def exact_parts(pattern: str) -> tuple[Part, ...]:
    """Return the parts of a pattern, which may have few separators."""
    parts = parts_of(pattern)
    for part in parts:
        if isinstance(part, Text) and part.kind != "quoted" and part.character not in _SEPARATORS:
            raise InvalidDatetimeFormat(f'invalid datetime format separator: "{part.character}"')
    return parts


def moment_of(text: str, parts: tuple[Part, ...]) -> Moment:
    """Return what a text is by the parts of a pattern."""
    names = {part.name for part in parts if isinstance(part, Field)} - {"FX"}
    found = _ExactScanner(text, parts).scan() if parts else Found(text)
    is_timed, is_zoned = bool(names & _TIMED), bool(names & _ZONED)
    if names - _TIMED - _ZONED:
        return _dated(found, is_timed, is_zoned)
    if not is_timed:
        raise InvalidDatetimeFormat("datetime format is not dated and not timed")
    return in_zone(found.time(), timezone(found.offset())) if is_zoned else found.time()


def _dated(found: Found, is_timed: bool, is_zoned: bool) -> Moment:
    if not is_timed:
        if is_zoned:
            raise InvalidDatetimeFormat("datetime format is zoned but not timed")
        return found.timestamp().date()
    moment = found.timestamp()
    return moment.replace(tzinfo=timezone(found.offset())) if is_zoned else moment


def iso_moment_of(text: str) -> Moment | None:
    """Return the date or time that a text is in one of the ISO formats; None if in none."""
    for pattern in _iso_patterns(text):
        try:
            return moment_of(text, exact_parts(pattern))
        except QserverError:
            continue
    return None


def _iso_patterns(text: str) -> list[str]:
    """Return the ISO formats that the text may be in, by its marks."""
    head, colon, _ = text.partition(":")
    day = "yyyy-mm-dd" if "-" in head or not colon else ""
    if not colon:
        return [day]
    joint = ('"T"' if "T" in head else " ") if day else ""
    seconds = "SS.US" if "." in text else "SS"
    return [f"{day}{joint}HH24:MI:{seconds}{zone}" for zone in ("TZH:TZM", "TZH", "")]


class _ExactScanner(Scanner):
    """Matches each character of the pattern that is in no field."""

    def __init__(self, text: str, parts: tuple[Part, ...]) -> None:
        super().__init__(text, parts)
        self.exact = True
        self.passed = 0

    def scan(self) -> Found:
        found = super().scan()
        if self.passed < len(self.parts):
            raise InvalidDatetimeFormat("input string is too short for datetime format")
        if self.text[self.at :].strip():
            raise InvalidDatetimeFormat(
                "trailing characters remain in input string after datetime format"
            )
        return found

    def _take(self, field: Field, number: int) -> None:
        self.passed = number + 1
        super()._take(field, number)

    def _pass_separator(self) -> None:
        self._pass_same("separator")

    def _pass_text(self) -> None:
        self._pass_same("character")

    def _pass_same(self, kind: str) -> None:
        part: Any = self.parts[self.passed]
        if self.text[self.at] != part.character:
            raise InvalidDatetimeFormat(f'unmatched format {kind} "{part.character}"')
        self.at += 1
        self.passed += 1

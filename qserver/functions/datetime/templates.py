"""Templates of to_char: what most patterns come to for a timestamp.

    YYYY-MM-DD HH24:MI   →   "%04d-%02d-%02d %02d:%02d"  with year, month, day, hour, minute

Fields with endings (1st), of the ISO year, of zones and eras have no template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, TypeAlias

from qserver.functions.datetime.patterns import (
    DAYS,
    MONTHS,
    Field,
    Part,
    Text,
    full_name,
    in_case_of,
)

Getter: TypeAlias = Callable[[datetime], Any]
Printed: TypeAlias = Callable[[datetime], str]

_ATTRIBUTES: Final = {
    "YYYY": ("year", 4),
    "MM": ("month", 2),
    "DD": ("day", 2),
    "HH24": ("hour", 2),
    "MI": ("minute", 2),
    "SS": ("second", 2),
}
"""Fields that are attributes, and their width."""

_NUMBERS: Final[dict[str, tuple[Getter, int]]] = {
    "YYY": (lambda value: value.year % 1000, 3),
    "YY": (lambda value: value.year % 100, 2),
    "Y": (lambda value: value.year % 10, 1),
    "Q": (lambda value: (value.month + 2) // 3, 1),
    "D": (lambda value: value.isoweekday() % 7 + 1, 1),
    "ID": (lambda value: value.isoweekday(), 1),
    **dict.fromkeys(("HH", "HH12"), (lambda value: (value.hour + 11) % 12 + 1, 2)),
    "DDD": (lambda value: value.timetuple().tm_yday, 3),
    **dict.fromkeys(
        ("SSSS", "SSSSS"), (lambda value: (value.hour * 60 + value.minute) * 60 + value.second, 1)
    ),
}


def template_of(parts: Sequence[Part]) -> Printed | None:
    """Return the function that fills the template of a pattern, None if it has none."""
    template: list[str] = []
    getters: list[Getter] = []
    attributes: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            template.append(part.character.replace("%", "%%"))
            continue
        found = _of_field(part)
        if found is None:
            return None
        text, getter, attribute = found
        template.append(text)
        getters.append(getter)
        attributes += [attribute] if attribute else []
    whole = "".join(template)
    if len(attributes) == len(getters) > 1:
        values = attrgetter(*attributes)
        return lambda value: whole % values(value)
    return lambda value: whole % tuple([get(value) for get in getters])


def _of_field(field: Field) -> tuple[str, Getter, str] | None:
    """Return a field's part of the template, what it is filled with, and the attribute that is."""
    name = field.name
    if field.ordinal:
        return None
    if name in _ATTRIBUTES:
        attribute, width = _ATTRIBUTES[name]
        return _digits(field, width), attrgetter(attribute), attribute
    if name in _NUMBERS:
        getter, width = _NUMBERS[name]
        return _digits(field, width), getter, ""
    if name in ("MS", "US") or (name[:2] == "FF" and name[2:].isdigit()):
        digits = {"MS": 3, "US": 6}.get(name) or int(name[2:])
        part = 10 ** (6 - digits)
        return f"%0{digits}d", lambda value: value.microsecond // part, ""
    return _of_word(field, name)


def _of_word(field: Field, name: str) -> tuple[str, Getter, str] | None:
    is_short = name in ("MON", "DY")
    if name in ("MONTH", "MON"):
        months = [_named(field, each, is_short) for each in MONTHS]
        return "%s", lambda value: months[value.month - 1], ""
    if name in ("DAY", "DY"):
        days = [_named(field, each, is_short) for each in DAYS]
        return "%s", lambda value: days[value.isoweekday() % 7], ""
    if name in ("AM", "PM", "A.M.", "P.M."):
        dot = "." * ("." in name)
        halves = [in_case_of(field.word, f"{half}{dot}M{dot}") for half in "AP"]
        return "%s", lambda value: halves[value.hour // 12], ""
    return None


def _named(field: Field, name: str, is_short: bool) -> str:
    return in_case_of(field.word, name[:3]) if is_short else full_name(field, name)


def _digits(field: Field, width: int) -> str:
    return "%d" if field.fill else f"%0{width}d"

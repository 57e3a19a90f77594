"""The names of units of time, and their abbreviations.

    year   y, yr, yrs, years …

EXTRACT, date_part, date_trunc and the input of intervals share them. Only the first ten letters of
a name count, as in PostgreSQL.
"""

from __future__ import annotations

from typing import Final

_LETTERS_MAX: Final = 10

_SPELLINGS: Final = {
    "century": "c cent centuries century",
    "day": "d day days",
    "decade": "dec decade decades decs",
    "hour": "h hour hours hr hrs",
    "minute": "m min mins minute minutes",
    "microseconds": "microsecon us usec usecond useconds usecs",
    "millennium": "mil millennia millennium mils",
    "milliseconds": "millisecon ms msec msecond mseconds msecs",
    "month": "mon mons month months",
    "quarter": "qtr quarter",
    "second": "s sec second seconds secs",
    "timezone": "timezone",
    "timezone_hour": "timezone_h",
    "timezone_minute": "timezone_m",
    "week": "w week weeks",
    "year": "y year years yr yrs",
}
_UNITS: Final = {name: unit for unit, names in _SPELLINGS.items() for name in names.split()}

# Fields of a point in time that an interval lacks.
_FIELDS: Final = {
    "dow": "dow",
    "doy": "doy",
    "epoch": "epoch",
    "isodow": "isodow",
    "isoyear": "isoyear",
    "j": "julian",
    "jd": "julian",
    "julian": "julian",
}


def unit_named(word: str) -> str | None:
    """The unit for a word in lower case, by its full singular name."""
    return _UNITS.get(word[:_LETTERS_MAX])


def field_named(word: str) -> str | None:
    """The unit or field for a word in any case, as EXTRACT takes it."""
    short = word.lower()[:_LETTERS_MAX]
    return _UNITS.get(short) or _FIELDS.get(short)

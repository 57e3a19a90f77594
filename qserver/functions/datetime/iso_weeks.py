"""ISO weeks of any year, month and day, as PostgreSQL computes them for to_char.

The fields of an interval are taken for those of a date, though they need not be one: month 0 and
day -5 count back from where they stand. Days are counted as Julian days.
"""

from __future__ import annotations

from qserver.functions.datetime.fields import toward_zero


def julian_day(year: int, month: int, day: int) -> int:
    year, month = (year + 4800, month + 1) if month > 2 else (year + 4799, month + 13)
    century = toward_zero(year, 100)
    julian = year * 365 - 32167 + toward_zero(year, 4) - century + toward_zero(century, 4)
    return julian + toward_zero(7834 * month, 256) + day


def iso_year(year: int, month: int, day: int) -> int:
    return _year_and_start(year, julian_day(year, month, day))[0]


def iso_week(year: int, month: int, day: int) -> int:
    number = julian_day(year, month, day)
    return toward_zero(number - _year_and_start(year, number)[1], 7) + 1


def iso_day_of_year(year: int, month: int, day: int) -> int:
    number = julian_day(year, month, day)
    return number - _year_and_start(year, number)[1] + 1


def _year_and_start(year: int, number: int) -> tuple[int, int]:
    """Return the ISO year of a day, by its number, and the day on which that year begins."""
    start = _first_monday(year)
    if number < start:
        year -= 1
        start = _first_monday(year)
    if toward_zero(number - start, 7) + 1 >= 52 and number >= _first_monday(year + 1):
        return year + 1, _first_monday(year + 1)
    return year, start


def _first_monday(year: int) -> int:
    """Return the Monday of the week that January 4 is in."""
    fourth = julian_day(year, 1, 4)
    return fourth - fourth % 7

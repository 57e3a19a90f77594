"""Intervals are read and printed as PostgreSQL 15 does it; the table was compared with one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.values.interval import Interval
from qserver.values.interval_text import interval_from_text, read_interval, text_of_interval
from tests.values.strategies import intervals

TEXTS = [
    ("1 day", "1 day"),
    ("1 year 2 mons -3 days +04:05:06.7", "1 year 2 mons -3 days +04:05:06.7"),
    ("-1 year -2 mons +3 days -04:05:06.7", "-1 years -2 mons +3 days -04:05:06.7"),
    ("1-2", "1 year 2 mons"),
    ("-1-2", "-1 years -2 mons"),
    ("3 4:05", "3 days 04:05:00"),
    ("3 4:05:06.789", "3 days 04:05:06.789"),
    ("+02:03", "02:03:00"),
    ("-02:03:04", "-02:03:04"),
    ("1.5 h", "01:30:00"),
    ("1.5 years", "1 year 6 mons"),
    ("1.3 months", "1 mon 9 days"),
    ("0.6 weeks", "4 days 04:48:00"),
    ("2 weeks ago", "-14 days"),
    ("@ 1 minute 2 secs", "00:01:02"),
    ("1 mon 2 ago", 'error 22007: invalid input syntax for type interval: "1 mon 2 ago"'),
    ("5", "00:00:05"),
    ("5.25", "00:00:05.25"),
    (".5 s", "00:00:00.5"),
    ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
    ("P1-2-3T4:5:6", "1 year 2 mons 3 days 04:05:06"),
    ("P00010203T040506", "1 year 2 mons 3 days 04:05:06"),
    ("PT-5M", "-00:05:00"),
    ("P1.5Y", "1 year 6 mons"),
    ("P", 'error 22007: invalid input syntax for type interval: "P"'),
    ("1 century 2 decades 3 mil", "3120 years"),
    (
        "4 microseconds 5 ms 6us",
        'error 22007: invalid input syntax for type interval: "4 microseconds 5 ms 6us"',
    ),
    ("12:34.5", "00:12:34.5"),
    ("1:2:60", "01:03:00"),
    ("3 days 2", "3 days 00:00:02"),
    ("1h2m3s", "01:02:03"),
    ("h3", "00:00:03"),
    ("100. hours", "100:00:00"),
    ("1 foo", 'error 22007: invalid input syntax for type interval: "1 foo"'),
    ("day", 'error 22007: invalid input syntax for type interval: "day"'),
    ("1 day 2 days", 'error 22007: invalid input syntax for type interval: "1 day 2 days"'),
    ("1 quarter", 'error 22007: invalid input syntax for type interval: "1 quarter"'),
    ("12:99", 'error 22015: interval field value out of range: "12:99"'),
    ("2147483648 days", 'error 22015: interval field value out of range: "2147483648 days"'),
    ("178956971 years", "error 22008: interval out of range"),
    ("9223372036854775807 us", "2562047788:00:54.775807"),
    (
        "9223372036854775808 us",
        'error 22015: interval field value out of range: "9223372036854775808 us"',
    ),
    ("", 'error 22007: invalid input syntax for type interval: ""'),
    ("  ", 'error 22007: invalid input syntax for type interval: "  "'),
    ("1 day foo 2", 'error 22007: invalid input syntax for type interval: "1 day foo 2"'),
    ("Pxx", 'error 22007: invalid input syntax for type interval: "Pxx"'),
    ("P1Y2", 'error 22007: invalid input syntax for type interval: "P1Y2"'),
    ("1 timezone", 'error 22007: invalid input syntax for type interval: "1 timezone"'),
    ("1 Month 2 HOURS", "1 mon 02:00:00"),
    ("1-13", 'error 22015: interval field value out of range: "1-13"'),
    ("2024-12-27", 'error 22015: interval field value out of range: "2024-12-27"'),
    ("2024-11-27", 'error 22007: invalid input syntax for type interval: "2024-11-27"'),
    ("4-", "4 years"),
]

# A text, the fields of its type, and what it comes to before the type cuts it.
WITH_FIELDS = [
    ("1", "year", "1 year"),
    ("3", "month", "3 mons"),
    ("90", "day", "90 days"),
    ("5", "hour", "05:00:00"),
    ("5", "day to minute", "00:05:00"),
    ("1-2", "year to month", "1 year 2 mons"),
    ("1:30", "minute to second", "00:01:30"),
    ("1:30", "hour to minute", "01:30:00"),
    ("2 1:30", "day to second", "2 days 01:30:00"),
    ("1 day", "year", "1 day"),
]


def shown(text: str) -> str:
    try:
        return text_of_interval(interval_from_text(text))
    except QserverError as error:
        return f"error {error.code}: {error.message}"


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_text_is_an_interval_or_an_error(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(("text", "fields", "expected"), WITH_FIELDS)
def test_fields_say_what_a_number_without_a_unit_counts(
    text: str, fields: str, expected: str
) -> None:
    assert text_of_interval(read_interval(text, fields)) == expected


@given(intervals)
def test_every_interval_survives_its_text(value: Interval) -> None:
    assert interval_from_text(text_of_interval(value)).parts == value.parts


@given(st.text("0123456789 .:-+PTYMDhmsday@", max_size=12))
def test_any_text_is_an_interval_or_a_clear_error(text: str) -> None:
    result = shown(text)
    assert (
        result.startswith(("error 22007", "error 22015", "error 22008")) or shown(result) == result
    )

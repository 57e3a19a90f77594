"""age, justify_…, make_… and OVERLAPS answer as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
)
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]

AGES: list[Case] = [
    ("age", [(TIMESTAMP, "2001-04-10"), (TIMESTAMP, "1957-06-13")], "43 years 9 mons 27 days"),
    ("age", [(TIMESTAMP, "1957-06-13"), (TIMESTAMP, "2001-04-10")], "-43 years -9 mons -27 days"),
    ("age", [(TIMESTAMP, "2020-03-31"), (TIMESTAMP, "2020-02-29")], "1 mon 2 days"),
    (
        "age",
        [(TIMESTAMP, "2020-02-29 10:00"), (TIMESTAMP, "2020-03-31 11:00:00.5")],
        "-1 mons -2 days -01:00:00.5",
    ),
    ("age", [(TIMESTAMPTZ, "2020-03-01"), (TIMESTAMPTZ, "2019-12-31 23:59")], "2 mons 00:01:00"),
    ("age", [(TIMESTAMP, "2020-01-01"), (TIMESTAMP, "2020-01-01")], "00:00:00"),
]

JUSTIFIED: list[Case] = [
    ("justify_days", [(INTERVAL, "35 days")], "1 mon 5 days"),
    ("justify_days", [(INTERVAL, "-27 hours")], "-27:00:00"),
    ("justify_days", [(INTERVAL, "1 mon -1 hour")], "1 mon -01:00:00"),
    ("justify_days", [(INTERVAL, "-1 mon 40 days 50 hours")], "10 days 50:00:00"),
    ("justify_days", [(INTERVAL, "29 days 24:00")], "29 days 24:00:00"),
    ("justify_days", [(INTERVAL, "1 day -25 hours")], "1 day -25:00:00"),
    ("justify_hours", [(INTERVAL, "35 days")], "35 days"),
    ("justify_hours", [(INTERVAL, "-27 hours")], "-1 days -03:00:00"),
    ("justify_hours", [(INTERVAL, "1 mon -1 hour")], "1 mon -01:00:00"),
    ("justify_hours", [(INTERVAL, "-1 mon 40 days 50 hours")], "-1 mons +42 days 02:00:00"),
    ("justify_hours", [(INTERVAL, "29 days 24:00")], "30 days"),
    ("justify_hours", [(INTERVAL, "1 day -25 hours")], "-01:00:00"),
    ("justify_interval", [(INTERVAL, "35 days")], "1 mon 5 days"),
    ("justify_interval", [(INTERVAL, "-27 hours")], "-1 days -03:00:00"),
    ("justify_interval", [(INTERVAL, "1 mon -1 hour")], "29 days 23:00:00"),
    ("justify_interval", [(INTERVAL, "-1 mon 40 days 50 hours")], "12 days 02:00:00"),
    ("justify_interval", [(INTERVAL, "29 days 24:00")], "1 mon"),
    ("justify_interval", [(INTERVAL, "1 day -25 hours")], "-01:00:00"),
]

MADE: list[Case] = [
    ("make_date", [(INTEGER, "2020"), (INTEGER, "2"), (INTEGER, "29")], "2020-02-29"),
    (
        "make_date",
        [(INTEGER, "2021"), (INTEGER, "2"), (INTEGER, "29")],
        "error 22008: date field value out of range: 2021-02-29",
    ),
    (
        "make_date",
        [(INTEGER, "2020"), (INTEGER, "13"), (INTEGER, "1")],
        "error 22008: date field value out of range: 2020-13-01",
    ),
    ("make_time", [(INTEGER, "8"), (INTEGER, "15"), (DOUBLE, "23.5")], "08:15:23.5"),
    (
        "make_time",
        [(INTEGER, "25"), (INTEGER, "0"), (DOUBLE, "0")],
        "error 22008: time field value out of range: 25:00:00",
    ),
    (
        "make_time",
        [(INTEGER, "8"), (INTEGER, "15"), (DOUBLE, "nan")],
        "error 22008: time field value out of range: 8:15:NaN",
    ),
    (
        "make_timestamp",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "23.5"),
        ],
        "2013-07-15 08:15:23.5",
    ),
    (
        "make_timestamp",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "24"),
            (INTEGER, "0"),
            (DOUBLE, "0"),
        ],
        "2013-07-16 00:00:00",
    ),
    (
        "make_timestamp",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "31"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "61"),
        ],
        "error 22008: time field value out of range: 8:15:61",
    ),
    (
        "make_timestamptz",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "23.5"),
        ],
        "2013-07-15 08:15:23.5+00",
    ),
    (
        "make_timestamptz",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "23.5"),
            (TEXT, "Europe/Berlin"),
        ],
        "2013-07-15 06:15:23.5+00",
    ),
    (
        "make_timestamptz",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "23.5"),
            (TEXT, "+2"),
        ],
        "2013-07-15 06:15:23.5+00",
    ),
    (
        "make_timestamptz",
        [
            (INTEGER, "2013"),
            (INTEGER, "7"),
            (INTEGER, "15"),
            (INTEGER, "8"),
            (INTEGER, "15"),
            (DOUBLE, "23.5"),
            (TEXT, "foo"),
        ],
        'error 22023: time zone "foo" not recognized',
    ),
    ("make_interval", [], "00:00:00"),
    ("make_interval", [(INTEGER, "1"), (INTEGER, "2")], "1 year 2 mons"),
    (
        "make_interval",
        [
            (INTEGER, "1"),
            (INTEGER, "2"),
            (INTEGER, "3"),
            (INTEGER, "4"),
            (INTEGER, "5"),
            (INTEGER, "6"),
            (DOUBLE, "7.5"),
        ],
        "1 year 2 mons 25 days 05:06:07.5",
    ),
    ("to_timestamp", [(DOUBLE, "1577836800.5")], "2020-01-01 00:00:00.5+00"),
    ("to_timestamp", [(DOUBLE, "nan")], "error 22008: timestamp cannot be NaN"),
    ("isfinite", [(DATE, "2020-01-01")], "true"),
    ("date", [(TIMESTAMP, "2020-01-01 10:00")], "2020-01-01"),
]

PERIODS: list[Case] = [
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-02-16"),
            (TIMESTAMP, "2001-12-21"),
            (TIMESTAMP, "2001-10-30"),
            (TIMESTAMP, "2002-10-30"),
        ],
        "true",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-02-16"),
            (INTERVAL, "100 days"),
            (TIMESTAMP, "2001-10-30"),
            (TIMESTAMP, "2002-10-30"),
        ],
        "false",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-02-16"),
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2002-10-30"),
        ],
        "false",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2001-03-01"),
        ],
        "true",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-03-02"),
            (TIMESTAMP, "2001-03-01"),
            (TIMESTAMP, "2001-03-01"),
            (INTERVAL, "1 day"),
        ],
        "true",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, None),
            (TIMESTAMP, "2001-12-21"),
            (TIMESTAMP, "2001-10-30"),
            (TIMESTAMP, "2002-10-30"),
        ],
        "true",
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, "2001-01-01"),
            (TIMESTAMP, None),
            (TIMESTAMP, "2001-10-30"),
            (TIMESTAMP, "2002-10-30"),
        ],
        None,
    ),
    (
        "overlaps",
        [
            (TIMESTAMP, None),
            (TIMESTAMP, None),
            (TIMESTAMP, "2001-10-30"),
            (TIMESTAMP, "2002-10-30"),
        ],
        None,
    ),
    ("overlaps", [(TIME, "10:00"), (TIME, "12:00"), (TIME, "11:00"), (INTERVAL, "1 hour")], "true"),
    (
        "overlaps",
        [(TIMETZ, "10:00+00"), (TIMETZ, "12:00+00"), (TIMETZ, "13:00+02"), (TIMETZ, "14:00+02")],
        "true",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), AGES)
def test_age_counts_by_the_calendar(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), JUSTIFIED)
def test_justify_moves_whole_units_up(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), MADE)
def test_made_from_numbers(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), PERIODS)
def test_overlaps_knows_half_open_periods_and_nulls(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected

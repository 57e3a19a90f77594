"""Dates, times and intervals add and subtract as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
)
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]

SUMS: list[Case] = [
    ("+", [(DATE, "2020-01-31"), (INTERVAL, "1 month")], "2020-02-29 00:00:00"),
    ("+", [(INTERVAL, "1 month"), (DATE, "2020-01-31")], "2020-02-29 00:00:00"),
    ("-", [(DATE, "1998-12-01"), (INTERVAL, "90 days")], "1998-09-02 00:00:00"),
    ("+", [(DATE, "2020-02-29"), (INTERVAL, "1 year")], "2021-02-28 00:00:00"),
    ("+", [(DATE, "2020-02-29"), (INTERVAL, "-1 year -1 day")], "2019-02-27 00:00:00"),
    ("+", [(DATE, "2020-02-28"), (INTEGER, "2")], "2020-03-01"),
    ("+", [(INTEGER, "-1"), (DATE, "2020-01-01")], "2019-12-31"),
    ("-", [(DATE, "2020-03-01"), (INTEGER, "1")], "2020-02-29"),
    ("-", [(DATE, "2020-03-01"), (DATE, "2020-02-01")], "29"),
    ("-", [(DATE, "2020-02-01"), (DATE, "2020-03-01")], "-29"),
    ("+", [(DATE, "2020-02-28"), (TIME, "10:20:30.5")], "2020-02-28 10:20:30.5"),
    ("+", [(TIME, "10:20"), (DATE, "2020-02-28")], "2020-02-28 10:20:00"),
    ("+", [(DATE, "2020-01-01"), (TIMETZ, "23:00+02")], "2020-01-01 21:00:00+00"),
    (
        "+",
        [(TIMESTAMP, "2020-01-31 10:00"), (INTERVAL, "1 mon 1 day 23:00")],
        "2020-03-02 09:00:00",
    ),
    ("-", [(TIMESTAMP, "2020-03-31 10:00"), (INTERVAL, "1 mon")], "2020-02-29 10:00:00"),
    ("+", [(TIMESTAMPTZ, "2020-12-31 23:00+00"), (INTERVAL, "1 hour")], "2021-01-01 00:00:00+00"),
    ("-", [(TIMESTAMPTZ, "2020-03-29 01:00+00"), (INTERVAL, "1 day")], "2020-03-28 01:00:00+00"),
    ("-", [(TIMESTAMP, "2020-03-01"), (TIMESTAMP, "2020-01-01 12:00")], "59 days 12:00:00"),
    ("-", [(TIMESTAMP, "2020-01-01 12:00"), (TIMESTAMP, "2020-03-01")], "-59 days -12:00:00"),
    (
        "-",
        [(TIMESTAMPTZ, "2020-03-01 12:00+02"), (TIMESTAMPTZ, "2020-03-01 12:00+00")],
        "-02:00:00",
    ),
    ("+", [(TIME, "23:00"), (INTERVAL, "2 hours")], "01:00:00"),
    ("-", [(TIME, "01:00"), (INTERVAL, "26 hours")], "23:00:00"),
    ("-", [(TIME, "23:00"), (TIME, "01:00:00.5")], "21:59:59.5"),
    ("+", [(TIMETZ, "23:00+02"), (INTERVAL, "2 hours")], "01:00:00+02"),
    ("+", [(TIME, "10:00"), (INTERVAL, "1 day")], "10:00:00"),
    ("+", [(INTERVAL, "1 mon"), (INTERVAL, "-1 day 02:00")], "1 mon -1 days +02:00:00"),
    ("-", [(INTERVAL, "1 mon"), (INTERVAL, "-1 day 02:00")], "1 mon 1 day -02:00:00"),
    ("-", [(INTERVAL, "1 mon -2 days 03:00")], "-1 mons +2 days -03:00:00"),
    ("+", [(TIMESTAMP, None), (INTERVAL, "1 day")], None),
    (
        "+",
        [(DATE, "2020-01-01"), (UNKNOWN, "1")],
        "error 42725: operator is not unique: date + unknown",
    ),
    ("-", [(DATE, "2020-01-02"), (UNKNOWN, "2020-01-01")], "1"),
]

PRODUCTS: list[Case] = [
    ("*", [(INTERVAL, "1 mon 2 days 03:00"), (DOUBLE, "1.5")], "1 mon 18 days 04:30:00"),
    ("*", [(DOUBLE, "2"), (INTERVAL, "1 day")], "2 days"),
    ("*", [(INTERVAL, "1 year"), (DOUBLE, "0.1")], "1 mon 6 days"),
    ("*", [(INTERVAL, "1 day"), (DOUBLE, "0.3333")], "07:59:57.12"),
    ("*", [(INTERVAL, "-1 mon 3 days"), (DOUBLE, "-2.5")], "2 mons 8 days -12:00:00"),
    ("*", [(INTERVAL, "1 mon"), (INTEGER, "3")], "3 mons"),
    ("/", [(INTERVAL, "1 mon"), (DOUBLE, "4")], "7 days 12:00:00"),
    ("/", [(INTERVAL, "1 year 3 days"), (DOUBLE, "7")], "1 mon 21 days 20:34:17.105829"),
    ("/", [(INTERVAL, "1 day"), (INTEGER, "3")], "08:00:00"),
    ("/", [(INTERVAL, "10:00"), (DOUBLE, "-4")], "-02:30:00"),
    ("/", [(INTERVAL, "1 day"), (DOUBLE, "0")], "error 22012: division by zero"),
    ("*", [(INTERVAL, "1 day"), (DOUBLE, "nan")], "error 22008: interval out of range"),
    ("*", [(INTERVAL, "178000000 years"), (DOUBLE, "10")], "error 22008: interval out of range"),
    ("*", [(INTERVAL, "1 day"), (UNKNOWN, "2")], "2 days"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), SUMS)
def test_sums_and_differences(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), PRODUCTS)
def test_an_interval_times_or_divided_by_a_number(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


def test_the_calendar_ends_where_that_of_python_ends() -> None:
    assert called("+", (DATE, "9999-12-31"), (INTEGER, "1")) == "error 22008: date out of range"
    assert called("-", (DATE, "0001-01-01"), (INTERVAL, "1 mon")) == (
        "error 22008: timestamp out of range"
    )
    assert called("+", (TIMESTAMP, "9999-12-31"), (INTERVAL, "1 day")) == (
        "error 22008: timestamp out of range"
    )

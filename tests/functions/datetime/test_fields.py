"""EXTRACT, date_part, date_trunc and date_bin answer as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import DATE, INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]

EXTRACTED: list[Case] = [
    ("extract", [(TEXT, "year"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "2020"),
    ("extract", [(TEXT, "month"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "7"),
    ("extract", [(TEXT, "day"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "5"),
    ("extract", [(TEXT, "hour"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "3"),
    ("extract", [(TEXT, "minute"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "4"),
    ("extract", [(TEXT, "second"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "5.678901"),
    ("extract", [(TEXT, "milliseconds"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "5678.901"),
    ("extract", [(TEXT, "microseconds"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "5678901"),
    ("extract", [(TEXT, "quarter"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "3"),
    ("extract", [(TEXT, "week"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "27"),
    ("extract", [(TEXT, "decade"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "202"),
    ("extract", [(TEXT, "century"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "21"),
    ("extract", [(TEXT, "millennium"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "3"),
    ("extract", [(TEXT, "isoyear"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "2020"),
    ("extract", [(TEXT, "dow"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "0"),
    ("extract", [(TEXT, "isodow"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "7"),
    ("extract", [(TEXT, "doy"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "187"),
    (
        "extract",
        [(TEXT, "julian"), (TIMESTAMP, "2020-07-05 03:04:05.678901")],
        "2459036.12784350579861111111",
    ),
    ("extract", [(TEXT, "epoch"), (TIMESTAMP, "2020-07-05 03:04:05.678901")], "1593918245.678901"),
    (
        "extract",
        [(TEXT, "timezone"), (TIMESTAMP, "2020-07-05 03:04:05.678901")],
        'error 0A000: unit "timezone" not supported for type timestamp without time zone',
    ),
    (
        "extract",
        [(TEXT, "foo"), (TIMESTAMP, "2020-07-05 03:04:05.678901")],
        'error 22023: unit "foo" not recognized for type timestamp without time zone',
    ),
    ("extract", [(TEXT, "year"), (DATE, "2021-01-02")], "2021"),
    ("extract", [(TEXT, "isoyear"), (DATE, "2021-01-02")], "2020"),
    ("extract", [(TEXT, "week"), (DATE, "2021-01-02")], "53"),
    ("extract", [(TEXT, "epoch"), (DATE, "2021-01-02")], "1609545600"),
    ("extract", [(TEXT, "julian"), (DATE, "2021-01-02")], "2459217"),
    (
        "extract",
        [(TEXT, "hour"), (DATE, "2021-01-02")],
        'error 0A000: unit "hour" not supported for type date',
    ),
    (
        "extract",
        [(TEXT, "foo"), (DATE, "2021-01-02")],
        'error 22023: unit "foo" not recognized for type date',
    ),
    ("extract", [(TEXT, "year"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "-1"),
    ("extract", [(TEXT, "month"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "-2"),
    ("extract", [(TEXT, "day"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "3"),
    ("extract", [(TEXT, "hour"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "100"),
    ("extract", [(TEXT, "minute"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "30"),
    ("extract", [(TEXT, "second"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "40.500000"),
    ("extract", [(TEXT, "quarter"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "1"),
    ("extract", [(TEXT, "decade"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")], "0"),
    (
        "extract",
        [(TEXT, "epoch"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")],
        "-36120559.500000",
    ),
    (
        "extract",
        [(TEXT, "week"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")],
        'error 0A000: unit "week" not supported for type interval',
    ),
    (
        "extract",
        [(TEXT, "dow"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")],
        'error 0A000: unit "dow" not supported for type interval',
    ),
    (
        "extract",
        [(TEXT, "foo"), (INTERVAL, "-1 year -2 mons +3 days 100:30:40.5")],
        'error 22023: unit "foo" not recognized for type interval',
    ),
    ("extract", [(TEXT, "hour"), (TIMETZ, "10:00:01.5-03:30")], "10"),
    ("extract", [(TEXT, "second"), (TIMETZ, "10:00:01.5-03:30")], "1.500000"),
    ("extract", [(TEXT, "timezone"), (TIMETZ, "10:00:01.5-03:30")], "-12600"),
    ("extract", [(TEXT, "timezone_hour"), (TIMETZ, "10:00:01.5-03:30")], "-3"),
    ("extract", [(TEXT, "timezone_minute"), (TIMETZ, "10:00:01.5-03:30")], "-30"),
    ("extract", [(TEXT, "epoch"), (TIMETZ, "10:00:01.5-03:30")], "48601.500000"),
    (
        "extract",
        [(TEXT, "day"), (TIMETZ, "10:00:01.5-03:30")],
        'error 0A000: unit "day" not supported for type time with time zone',
    ),
    ("extract", [(TEXT, "hour"), (TIMESTAMPTZ, "2020-01-01 12:00+03")], "9"),
    ("extract", [(TEXT, "timezone"), (TIMESTAMPTZ, "2020-01-01 12:00+03")], "0"),
    ("extract", [(TEXT, "epoch"), (TIMESTAMPTZ, "2020-01-01 12:00+03")], "1577869200.000000"),
    ("extract", [(TEXT, "epoch"), (TIME, "10:00:01.5")], "36001.500000"),
    ("extract", [(TEXT, "year"), (DATE, "2000-12-31")], "2000"),
    ("extract", [(TEXT, "century"), (DATE, "2000-12-31")], "20"),
    ("extract", [(TEXT, "century"), (DATE, "2001-01-01")], "21"),
]

PARTS: list[Case] = [
    ("date_part", [(TEXT, "YEARS"), (DATE, "2020-01-02")], "2020"),
    ("date_part", [(TEXT, "hour"), (DATE, "2020-01-02")], "0"),
    ("date_part", [(TEXT, "m"), (TIMESTAMP, "2020-01-02 03:04:05.678901")], "4"),
    ("date_part", [(TEXT, "mon"), (TIMESTAMP, "2020-01-02 03:04:05.678901")], "1"),
    ("date_part", [(TEXT, "second"), (TIME, "18:50:03.659204")], "3.659204"),
    ("date_part", [(TEXT, "milliseconds"), (TIME, "18:50:03.659204")], "3659.2039999999997"),
    (
        "date_part",
        [(TEXT, "epoch"), (INTERVAL, "1 year 2 mons 3 days 04:05:06.789")],
        "37015506.789000005",
    ),
    (
        "date_part",
        [(TEXT, "julian"), (TIMESTAMP, "2020-01-02 03:04:05.678901")],
        "2458851.1278435057",
    ),
    (
        "date_part",
        [(TEXT, "epoch"), (TIMESTAMP, "1707-07-28 14:19:54.432835")],
        "-8281474805.567165",
    ),
    (
        "date_part",
        [(TEXT, "yearssss"), (TIMESTAMP, "2020-01-02")],
        'error 22023: unit "yearssss" not recognized for type timestamp without time zone',
    ),
    (
        "date_part",
        [(TEXT, "timezone"), (TIME, "10:00")],
        'error 0A000: unit "timezone" not supported for type time without time zone',
    ),
]

TRUNCATED: list[Case] = [
    (
        "date_trunc",
        [(TEXT, "microseconds"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 03:04:05.678901",
    ),
    (
        "date_trunc",
        [(TEXT, "milliseconds"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 03:04:05.678",
    ),
    (
        "date_trunc",
        [(TEXT, "second"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 03:04:05",
    ),
    (
        "date_trunc",
        [(TEXT, "minute"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 03:04:00",
    ),
    (
        "date_trunc",
        [(TEXT, "hour"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 03:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "day"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-15 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "week"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-12 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "month"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-08-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "quarter"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-07-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "year"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2019-01-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "decade"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2010-01-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "century"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2001-01-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "millennium"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        "2001-01-01 00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "dow"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        'error 22023: unit "dow" not recognized for type timestamp without time zone',
    ),
    (
        "date_trunc",
        [(TEXT, "foo"), (TIMESTAMP, "2019-08-15 03:04:05.678901")],
        'error 22023: unit "foo" not recognized for type timestamp without time zone',
    ),
    (
        "date_trunc",
        [(TEXT, "milliseconds"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons 17 days 30:04:05.678",
    ),
    (
        "date_trunc",
        [(TEXT, "second"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons 17 days 30:04:05",
    ),
    (
        "date_trunc",
        [(TEXT, "minute"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons 17 days 30:04:00",
    ),
    (
        "date_trunc",
        [(TEXT, "hour"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons 17 days 30:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "day"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons 17 days",
    ),
    (
        "date_trunc",
        [(TEXT, "week"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        'error 0A000: unit "week" not supported for type interval',
    ),
    (
        "date_trunc",
        [(TEXT, "month"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 5 mons",
    ),
    (
        "date_trunc",
        [(TEXT, "quarter"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years 3 mons",
    ),
    (
        "date_trunc",
        [(TEXT, "year"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "125 years",
    ),
    (
        "date_trunc",
        [(TEXT, "decade"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "120 years",
    ),
    (
        "date_trunc",
        [(TEXT, "century"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "100 years",
    ),
    (
        "date_trunc",
        [(TEXT, "millennium"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        "00:00:00",
    ),
    (
        "date_trunc",
        [(TEXT, "dow"), (INTERVAL, "125 years 5 mons 17 days 30:04:05.678901")],
        'error 22023: unit "dow" not recognized for type interval',
    ),
    (
        "date_trunc",
        [(TEXT, "day"), (TIMESTAMPTZ, "2020-07-02 03:04:05+00"), (TEXT, "America/New_York")],
        "2020-07-01 04:00:00+00",
    ),
    (
        "date_trunc",
        [(TEXT, "hour"), (TIMESTAMPTZ, "2020-07-02 03:04:05+00"), (TEXT, "Asia/Kolkata")],
        "2020-07-02 02:30:00+00",
    ),
    (
        "date_trunc",
        [(TEXT, "day"), (TIMESTAMPTZ, "2020-07-02 03:04:05+00")],
        "2020-07-02 00:00:00+00",
    ),
    ("date_trunc", [(TEXT, "month"), (DATE, "2020-07-02")], "2020-07-01 00:00:00+00"),
    (
        "date_trunc",
        [(TEXT, "day"), (TIMESTAMPTZ, "2020-07-02 03:04:05+00"), (TEXT, "Nowhere")],
        'error 22023: time zone "Nowhere" not recognized',
    ),
]

BINNED: list[Case] = [
    (
        "date_bin",
        [(INTERVAL, "15 minutes"), (TIMESTAMP, "2020-02-11 15:44:17"), (TIMESTAMP, "2001-01-01")],
        "2020-02-11 15:30:00",
    ),
    (
        "date_bin",
        [
            (INTERVAL, "15 minutes"),
            (TIMESTAMP, "2020-02-11 15:44:17"),
            (TIMESTAMP, "2021-01-01 00:01"),
        ],
        "2020-02-11 15:31:00",
    ),
    (
        "date_bin",
        [(INTERVAL, "15 minutes"), (TIMESTAMP, "2020-02-11 15:45:00"), (TIMESTAMP, "2021-01-01")],
        "2020-02-11 15:45:00",
    ),
    (
        "date_bin",
        [(INTERVAL, "1 month"), (TIMESTAMP, "2020-02-11"), (TIMESTAMP, "2001-01-01")],
        "error 0A000: timestamps cannot be binned into intervals containing months or years",
    ),
    (
        "date_bin",
        [(INTERVAL, "-1 day"), (TIMESTAMP, "2020-02-11"), (TIMESTAMP, "2001-01-01")],
        "error 22008: stride must be greater than zero",
    ),
    (
        "date_bin",
        [
            (INTERVAL, "1 day"),
            (TIMESTAMPTZ, "2020-02-11 10:00+00"),
            (TIMESTAMPTZ, "2001-01-01 06:00+00"),
        ],
        "2020-02-11 06:00:00+00",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), EXTRACTED)
def test_extract_gives_a_numeric(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), PARTS)
def test_date_part_gives_a_double(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), TRUNCATED)
def test_date_trunc_cuts_to_the_unit(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), BINNED)
def test_date_bin_counts_from_the_origin(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


def test_a_decade_before_the_first_year_does_not_exist() -> None:
    assert called("date_trunc", (TEXT, "decade"), (TIMESTAMP, "0005-01-02")) == (
        "error 22008: timestamp out of range"
    )

"""to_date and to_timestamp read as generously as PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import TEXT
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]

DATES: list[Case] = [
    ("to_date", [(TEXT, "2020-07-05"), (TEXT, "YYYY-MM-DD")], "2020-07-05"),
    ("to_date", [(TEXT, "20200705"), (TEXT, "YYYYMMDD")], "2020-07-05"),
    ("to_date", [(TEXT, "05 Dec 2000"), (TEXT, "DD Mon YYYY")], "2000-12-05"),
    ("to_date", [(TEXT, "5 DECEMBER 2000"), (TEXT, "DD Month YYYY")], "2000-12-05"),
    ("to_date", [(TEXT, "7/5/2020"), (TEXT, "MM/DD/YYYY")], "2020-07-05"),
    ("to_date", [(TEXT, "05.07.20"), (TEXT, "DD.MM.YY")], "2020-07-05"),
    ("to_date", [(TEXT, "05.07.85"), (TEXT, "DD.MM.YY")], "1985-07-05"),
    ("to_date", [(TEXT, "2020-187"), (TEXT, "YYYY-DDD")], "2020-07-05"),
    ("to_date", [(TEXT, "2020-27-7"), (TEXT, "IYYY-IW-ID")], "2020-07-05"),
    ("to_date", [(TEXT, "2020-190"), (TEXT, "IYYY-IDDD")], "2020-07-06"),
    ("to_date", [(TEXT, "2020-27"), (TEXT, "YYYY-WW")], "2020-07-01"),
    ("to_date", [(TEXT, "2020-03-2"), (TEXT, "YYYY-MM-W")], "2020-03-08"),
    ("to_date", [(TEXT, "2459036"), (TEXT, "J")], "2020-07-05"),
    ("to_date", [(TEXT, "21 20 07"), (TEXT, "CC YY MM")], "2020-07-01"),
    ("to_date", [(TEXT, "2,020-07-05"), (TEXT, "Y,YYY-MM-DD")], "2020-07-05"),
    ("to_date", [(TEXT, "2020 VII 05"), (TEXT, "YYYY RM DD")], "2020-07-05"),
    ("to_date", [(TEXT, "Sunday, 05 Jul 2020"), (TEXT, "Day, DD Mon YYYY")], "2020-07-05"),
    ("to_date", [(TEXT, "05th July 2020"), (TEXT, "DDth Month YYYY")], "2020-07-05"),
    ("to_date", [(TEXT, "2020 / 07 / 05"), (TEXT, "YYYY-MM-DD")], "2020-07-05"),
    ("to_date", [(TEXT, "2020-07-05 and more"), (TEXT, "YYYY-MM-DD")], "2020-07-05"),
    (
        "to_date",
        [(TEXT, "2020-13-05"), (TEXT, "YYYY-MM-DD")],
        'error 22008: date/time field value out of range: "2020-13-05"',
    ),
    (
        "to_date",
        [(TEXT, "2020-02-30"), (TEXT, "YYYY-MM-DD")],
        'error 22008: date/time field value out of range: "2020-02-30"',
    ),
    ("to_date", [(TEXT, "2020-xx"), (TEXT, "YYYY-MM")], 'error 22007: invalid value "xx" for "MM"'),
    ("to_date", [(TEXT, "2020Jul"), (TEXT, "YYYYMon")], "2020-07-01"),
    (
        "to_date",
        [(TEXT, "2020Foo"), (TEXT, "YYYYMon")],
        'error 22007: invalid value "Foo" for "Mon"',
    ),
    (
        "to_date",
        [(TEXT, "2020-07"), (TEXT, "IYYY-MM")],
        "error 22007: invalid combination of date conventions",
    ),
    (
        "to_date",
        [(TEXT, "202"), (TEXT, "YYYYMM")],
        'error 22007: source string too short for "YYYY" formatting field',
    ),
    (
        "to_date",
        [(TEXT, "2020-07 2021"), (TEXT, "YYYY-MM YYYY")],
        'error 22007: conflicting values for "YYYY" field in formatting string',
    ),
    (
        "to_date",
        [(TEXT, "99999999999-01"), (TEXT, "YYYY-MM")],
        'error 22008: value for "YYYY" in source string is out of range',
    ),
    ("to_date", [(TEXT, "2020-07-05"), (TEXT, "YYYY-MM-DD TZ")], "2020-07-05"),
]

TIMESTAMPS: list[Case] = [
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14:15"), (TEXT, "YYYY-MM-DD HH24:MI:SS")],
        "2020-07-05 13:14:15+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 01:14:15 PM"), (TEXT, "YYYY-MM-DD HH:MI:SS AM")],
        "2020-07-05 13:14:15+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 12:14 a.m."), (TEXT, "YYYY-MM-DD HH12:MI P.M.")],
        "2020-07-05 00:14:00+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14"), (TEXT, "YYYY-MM-DD HH12:MI")],
        'error 22007: hour "13" is invalid for the 12-hour clock',
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05T13:14:15.25"), (TEXT, 'YYYY-MM-DD"T"HH24:MI:SS.US')],
        "2020-07-05 13:14:15.25+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "20200705131415"), (TEXT, "YYYYMMDDHH24MISS")],
        "2020-07-05 13:14:15+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14:15.025"), (TEXT, "YYYY-MM-DD HH24:MI:SS.MS")],
        "2020-07-05 13:14:15.025+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14:15.5"), (TEXT, "YYYY-MM-DD HH24:MI:SS.FF2")],
        "2020-07-05 13:14:15.5+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 47655"), (TEXT, "YYYY-MM-DD SSSS")],
        "2020-07-05 13:14:15+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14 +02:30"), (TEXT, "YYYY-MM-DD HH24:MI TZH:TZM")],
        "2020-07-05 10:44:00+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14-03"), (TEXT, "YYYY-MM-DD HH24:MI TZH")],
        "2020-07-05 10:14:00+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 25:00"), (TEXT, "YYYY-MM-DD HH24:MI")],
        'error 22008: date/time field value out of range: "2020-07-05 25:00"',
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05  13"), (TEXT, "FXYYYY-MM-DD HH24")],
        "2020-07-05 13:00:00+00",
    ),
    (
        "to_timestamp",
        [(TEXT, "2020-07-05 13:14 +99"), (TEXT, "YYYY-MM-DD HH24:MI TZH")],
        'error 22009: time zone displacement out of range: "2020-07-05 13:14 +99"',
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), DATES)
def test_a_date_by_its_pattern(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), TIMESTAMPS)
def test_a_timestamp_by_its_pattern(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


def test_a_date_without_a_year_is_none() -> None:
    assert called("to_date", (TEXT, "05 Dec"), (TEXT, "DD Mon")) == (
        'error 22008: date/time field value out of range: "05 Dec"'
    )

"""to_char prints timestamps and intervals as PostgreSQL 15 does."""

from __future__ import annotations

import pytest

from qserver.values.types import INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]

TIMESTAMPS: list[Case] = [
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "YYYY-MM-DD HH24:MI:SS")],
        "2020-07-05 03:04:05",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "HH12:MI:SS AM")],
        "03:04:05 AM",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "Day, DD Month YYYY")],
        "Sunday   , 05 July      2020",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "FMDay, FMDD FMMonth YYYY")],
        "Sunday, 5 July 2020",
    ),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "Dy dy DY")], "Sun sun SUN"),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "MON Mon mon")], "JUL Jul jul"),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "Y,YYY YYY YY Y")],
        "2,020 020 20 0",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "IYYY-IW-ID IDDD IYY IY I")],
        "2020-27-7 189 020 20 0",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "DDD D J Q WW W CC")],
        "187 1 2459036 3 27 1 21",
    ),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "RM rm FMRM")], "VII  vii  VII"),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "MS US FF1 FF3 FF6")],
        "678 678901 6 678 678901",
    ),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "SSSS SSSSS")], "11045 11045"),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "DDth DDTH FMDDth")],
        "05th 05TH 5th",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "A.M. p.m. B.C. ad")],
        "A.M. a.m. A.D. ad",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "TZ tz OF TZH:TZM")],
        "  +00 +00:00",
    ),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, '"Year:" YYYY "a\\"b" \\"')],
        'Year: 2020 a"b "',
    ),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "TMMonth FXHH24")], "July 03"),
    (
        "to_char",
        [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "no keyword x")],
        "no ke01or1 x",
    ),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "HH24MISS")], "030405"),
    ("to_char", [(TIMESTAMP, "2020-07-05 03:04:05.678901"), (TEXT, "")], None),
    (
        "to_char",
        [(TIMESTAMPTZ, "2020-12-31 23:59:59+00"), (TEXT, "TZ OF TZH HH24")],
        "UTC +00 +00 23",
    ),
    ("to_char", [(TIMESTAMP, "0044-03-15"), (TEXT, "YYYY FMYYYY CC Y,YYY")], "0044 44 01 0,044"),
    (
        "to_char",
        [(TIMESTAMP, "2020-01-11 00:00"), (TEXT, "FMDDth HH HH12 hh24th")],
        "11th 12 12 00th",
    ),
]

INTERVALS: list[Case] = [
    (
        "to_char",
        [(INTERVAL, "-1 year -2 mons +3 days 100:30:40.5"), (TEXT, "YYYY MM DD HH24:MI:SS")],
        "-0001 -02 03 100:30:40",
    ),
    (
        "to_char",
        [(INTERVAL, "-1 year -2 mons +3 days 100:30:40.5"), (TEXT, "HH12 SSSS MS US")],
        "04 361840 500 500000",
    ),
    (
        "to_char",
        [(INTERVAL, "-1 year -2 mons +3 days 100:30:40.5"), (TEXT, "Y,YYY Q CC")],
        "0,-01 0 00",
    ),
    (
        "to_char",
        [(INTERVAL, "-1 year -2 mons +3 days 100:30:40.5"), (TEXT, "Month")],
        "error 22007: invalid format specification for an interval value",
    ),
    (
        "to_char",
        [(INTERVAL, "-1 year -2 mons +3 days 100:30:40.5"), (TEXT, "DDD WW W FMYYYY")],
        "-417 -58 1 -1",
    ),
    ("to_char", [(INTERVAL, "15 hours 2 minutes 12 seconds"), (TEXT, "HH24:MI:SS")], "15:02:12"),
    ("to_char", [(INTERVAL, "-03:04:05"), (TEXT, "HH24:MI:SS")], "-03:-04:-05"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), TIMESTAMPS)
def test_a_timestamp_by_its_pattern(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), INTERVALS)
def test_an_interval_by_its_pattern(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected

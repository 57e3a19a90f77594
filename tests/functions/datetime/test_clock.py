"""The clock is the execution's, and AT TIME ZONE answers as PostgreSQL 15 does."""

from __future__ import annotations

import pytest

from qserver.values.types import INTEGER, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, TIMETZ, SqlType
from tests.functions.typed_calls import called, rows_of

THE_TIME = [
    ("now", "2024-02-29 13:14:15.678901+00"),
    ("current_timestamp", "2024-02-29 13:14:15.678901+00"),
    ("transaction_timestamp", "2024-02-29 13:14:15.678901+00"),
    ("statement_timestamp", "2024-02-29 13:14:15.678901+00"),
    ("clock_timestamp", "2024-02-29 13:14:15.678901+00"),
    ("localtimestamp", "2024-02-29 13:14:15.678901"),
    ("current_date", "2024-02-29"),
    ("current_time", "13:14:15.678901+00"),
    ("localtime", "13:14:15.678901"),
    ("timeofday", "Thu Feb 29 13:14:15.678901 2024 UTC"),
]


@pytest.mark.parametrize(("name", "expected"), THE_TIME)
def test_the_time_is_that_of_the_execution(name: str, expected: str) -> None:
    assert called(name) == expected


def test_the_time_can_be_rounded() -> None:
    assert called("current_timestamp", (INTEGER, "2")) == "2024-02-29 13:14:15.68+00"
    assert called("localtimestamp", (INTEGER, "0")) == "2024-02-29 13:14:16"
    assert called("current_time", (INTEGER, "9")) == "13:14:15.678901+00"
    assert called("localtime", (INTEGER, "1")) == "13:14:15.7"
    assert called("localtime", (INTEGER, "-1")) == (
        "error 22023: TIMESTAMP(-1) precision must not be negative"
    )


def test_an_age_is_counted_from_today() -> None:
    assert called("age", (TIMESTAMP, "2023-12-31 10:00")) == "1 mon 28 days 14:00:00"
    assert called("age", (TIMESTAMPTZ, "2024-03-01")) == "-1 days"


ZONES = [
    ("Europe/Berlin", TIMESTAMPTZ, "2020-07-01 12:00+00", "2020-07-01 14:00:00"),
    ("europe/berlin", TIMESTAMPTZ, "2020-01-01 12:00+00", "2020-01-01 13:00:00"),
    ("America/New_York", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 16:00:00+00"),
    ("Europe/Berlin", TIMESTAMP, "2020-03-29 02:30", "2020-03-29 01:30:00+00"),
    ("Europe/Berlin", TIMESTAMP, "2020-10-25 02:30", "2020-10-25 01:30:00+00"),
    ("EDT", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 16:00:00+00"),
    ("EST5EDT", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 16:00:00+00"),
    ("utc", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 12:00:00+00"),
    ("+03", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 15:00:00+00"),
    ("UTC+3", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 15:00:00+00"),
    ("<+03>-3", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 09:00:00+00"),
    ("-03:30:10", TIMESTAMP, "2020-07-01 12:00", "2020-07-01 08:29:50+00"),
    ("foo", TIMESTAMP, "2020-07-01 12:00", 'error 22023: time zone "foo" not recognized'),
    ("", TIMESTAMP, "2020-07-01 12:00", 'error 22023: time zone "" not recognized'),
    ("+99", TIMESTAMP, "2020-07-01 12:00", 'error 22023: time zone "+99" not recognized'),
    ("America/New_York", TIMETZ, "12:00+00", "07:00:00-05"),
    ("Asia/Kolkata", TIMETZ, "23:00+00", "04:30:00+05:30"),
]


@pytest.mark.parametrize(("zone", "sql_type", "text", "expected"), ZONES)
def test_at_time_zone(zone: str, sql_type: SqlType, text: str, expected: str) -> None:
    assert called("timezone", (TEXT, zone), (sql_type, text)) == expected


def test_a_zone_can_be_an_interval() -> None:
    two_hours = (INTERVAL, "2 hours")
    local = (TIMESTAMP, "2020-07-01 12:00")
    assert called("timezone", two_hours, local) == "2020-07-01 10:00:00+00"
    assert called("timezone", two_hours, (TIMESTAMPTZ, "2020-07-01 12:00+00")) == (
        "2020-07-01 14:00:00"
    )
    assert called("timezone", two_hours, (TIMETZ, "12:00+00")) == "14:00:00+02"
    assert called("timezone", (INTERVAL, "1 day"), local) == (
        'error 22023: interval time zone "1 day" must not include months or days'
    )


def test_a_series_of_timestamps_has_both_ends() -> None:
    def series(start: str, stop: str, step: str) -> list[str | None] | str:
        rows = rows_of("generate_series", (TIMESTAMP, start), (TIMESTAMP, stop), (INTERVAL, step))
        return rows if isinstance(rows, str) else [value for (value,) in rows]

    assert series("2020-01-31", "2020-04-01", "1 month") == [
        "2020-01-31 00:00:00",
        "2020-02-29 00:00:00",
        "2020-03-29 00:00:00",
    ]
    assert series("2020-01-02", "2020-01-01", "-12 hours") == [
        "2020-01-02 00:00:00",
        "2020-01-01 12:00:00",
        "2020-01-01 00:00:00",
    ]
    assert series("2020-01-02", "2020-01-01", "1 day") == []
    assert series("2020-01-02", "2020-01-01", "0") == ("error 22023: step size cannot equal zero")

"""Values print as in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import isfinite, nextafter, ulp
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import lists, none, one_of

from qserver.values.floats import round_to_real
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.records import Record
from qserver.values.text_output import shown, text_of_double, text_of_real
from qserver.values.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    RECORD,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    SqlType,
    array_of,
    char,
    record_of,
    varchar,
)
from tests.values.strategies import doubles, reals


@pytest.mark.parametrize(
    ("sql_type", "value", "expected"),
    [
        (BOOLEAN, True, "t"),
        (BOOLEAN, False, "f"),
        (INTEGER, -5, "-5"),
        (NUMERIC, Decimal("1E-10"), "0.0000000001"),
        (NUMERIC, Decimal("0." + "1" * 60), "0." + "1" * 60),
        (NUMERIC, Decimal("-Infinity"), "-Infinity"),
        (TEXT, "a ", "a "),
        (varchar(3), "a", "a"),
        (char(3), "a", "a  "),
        (DATE, date(99, 1, 8), "0099-01-08"),
        (TIMESTAMP, datetime(2024, 1, 2, 3, 4, 5, 120), "2024-01-02 03:04:05.00012"),
        (TIMESTAMP, datetime(2024, 1, 2, 3, 4, 50), "2024-01-02 03:04:50"),
        (TIMESTAMPTZ, datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02 00:00:00+00"),
        (TIME, time(1, 2, 3, 500_000), "01:02:03.5"),
        (TIMETZ, time(1, 2, tzinfo=timezone(timedelta(hours=-3, minutes=-30))), "01:02:00-03:30"),
        (INTERVAL, Interval(14, -3, 5_000_000), "1 year 2 mons -3 days +00:00:05"),
        (BYTEA, b"\x01\xff", "\\x01ff"),
        (JSONB, Jsonb("[1, 2]"), "[1, 2]"),
        (array_of(BOOLEAN), (True, None), "{t,NULL}"),
        (array_of(RECORD), (Record((1, "a")), None), '{"(1,a)",NULL}'),
        (RECORD, Record((1, None, "", "a b", 'c"\\', (1, 2))), '(1,,"","a b","c""\\\\","{1,2}")'),
        (record_of((("a", BOOLEAN), ("b", char(3)))), (True, "x"), '(t,"x  ")'),
    ],
)
def test_a_client_sees_what_postgresql_shows(sql_type: SqlType, value: Any, expected: str) -> None:
    assert shown(value, sql_type) == expected


@given(doubles)
def test_the_text_of_a_double_reads_back_and_is_short(value: float) -> None:
    text = text_of_double(value)
    assert repr(float(text)) == repr(value)
    assert len(text.split("e")[0].lstrip("-").replace(".", "").strip("0")) <= 17


@given(reals)
def test_the_text_of_a_real_reads_back_and_is_short(value: float) -> None:
    text = text_of_real(value)
    assert repr(round_to_real(float(text))) == repr(value)
    assert value != value or len(text.split("e")[0].lstrip("-").replace(".", "").strip("0")) <= 9


@given(doubles)
def test_the_digits_of_a_double_are_nearer_to_it_than_to_its_neighbours(value: float) -> None:
    """And no fewer digits are: each number of that many digits next to it is farther away."""
    if not isfinite(value) or not value:
        return
    exact, text = Fraction(abs(value)), Fraction(text_of_double(abs(value)))
    below, above = Fraction(nextafter(abs(value), 0.0)), exact + Fraction(ulp(value))
    low, high = (exact + below) / 2, (exact + above) / 2
    assert low <= text <= high
    if abs(value) >= 2.0**53:
        assert low < text < high
        digits = len(str(int(text)).rstrip("0"))
        unit = 10 ** (len(str(int(exact))) - digits + 1)
        floor = int(exact) // unit * unit
        assert not any(low < number < high for number in (floor, floor + unit))


@given(lists(one_of(none(), doubles)))
def test_the_text_of_an_array_of_doubles_is_that_of_each(values: list[float | None]) -> None:
    texts = ["NULL" if value is None else text_of_double(value) for value in values]
    assert shown(tuple(values), array_of(DOUBLE)) == f"{{{','.join(texts)}}}"

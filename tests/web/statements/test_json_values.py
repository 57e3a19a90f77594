"""Values as JSON: every type's values come back from what is written, and nothing else does."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isnan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.values.floats import round_to_real
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.types import DOUBLE, INTERVAL, JSON, NUMERIC, REAL, Kind, SqlType
from qserver.values.zoned_time import in_zone
from qserver.web.statements.json_values import converter, encode_json
from tests.values.strategies import ALL_TYPES, intervals, typed_values

DURATION = re.compile(
    r"P(?=[-\dT])(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?=[-\d])(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d{1,6})?)S)?)?"
)


def written(sql_type: SqlType, value: Any) -> bytes:
    convert = converter(sql_type)
    return encode_json(value if convert is None or value is None else convert(value))


def read_duration(text: str) -> Interval:
    found = DURATION.fullmatch(text)
    assert found, text
    years, months, days, hours, minutes = (int(part or 0) for part in found.groups()[:5])
    seconds = Decimal(found[6] or 0)
    time_of_day = (hours * 3600 + minutes * 60) * 1_000_000 + int(seconds * 1_000_000)
    return Interval(years * 12 + months, days, time_of_day)


def read_instant(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text).astimezone(UTC)


READERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.REAL: lambda found: round_to_real(float(found)),
    Kind.DOUBLE: float,
    Kind.NUMERIC: Decimal,
    Kind.DATE: date.fromisoformat,
    Kind.TIME: time.fromisoformat,
    Kind.TIMETZ: lambda found: in_zone(read := time.fromisoformat(found), read.tzinfo),
    Kind.TIMESTAMP: datetime.fromisoformat,
    Kind.TIMESTAMPTZ: read_instant,
    Kind.INTERVAL: read_duration,
    Kind.UUID: UUID,
    Kind.BYTEA: b64decode,
    Kind.CHAR: lambda found: found.rstrip(" "),
}
PYTHON_TYPES: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    **dict.fromkeys((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT), int),
    **dict.fromkeys((Kind.NUMERIC, Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UUID), str),
    **dict.fromkeys((Kind.BYTEA, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.INTERVAL), str),
}


def same(value: Any, found: Any) -> bool:
    if isinstance(value, float | Decimal) and isnan(value):
        return bool(isnan(found))
    return bool(value == found)


@given(typed_values)
def test_what_is_written_is_json_on_one_line_and_reads_as_the_same_value(
    typed: tuple[SqlType, Any],
) -> None:
    sql_type, value = typed
    text = written(sql_type, value)
    assert b"\n" not in text and b"\r" not in text
    found = json.loads(text)
    if sql_type.kind in (Kind.JSON, Kind.JSONB):
        source = value.text if isinstance(value, Jsonb) else value
        assert found == json.loads(source)
    elif sql_type.element is not None:
        assert_same_array(sql_type.element, value, found)
    else:
        assert same(value, READERS.get(sql_type.kind, lambda each: each)(found))


def assert_same_array(element: SqlType, value: Any, found: Any) -> None:
    """Of any dimension; its elements are written as they would be outside of it."""
    if isinstance(value, tuple):
        assert isinstance(found, list) and len(found) == len(value)
        for each, found_each in zip(value, found, strict=True):
            assert_same_array(element, each, found_each)
    elif value is None:
        assert found is None
    else:
        assert json.loads(written(element, value)) == found or value != value


@given(typed_values)
def test_the_type_of_the_column_decides_never_the_value(typed: tuple[SqlType, Any]) -> None:
    sql_type, value = typed
    expected = PYTHON_TYPES.get(sql_type.kind)
    if expected is not None and sql_type.element is None:
        assert type(json.loads(written(sql_type, value))) is expected


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
def test_null_is_null_in_every_type(sql_type: SqlType) -> None:
    assert written(sql_type, None) == b"null"


@given(intervals)
def test_an_interval_is_an_iso_8601_duration_whose_parts_are_kept_apart(value: Interval) -> None:
    found = read_duration(json.loads(written(INTERVAL, value)))
    assert (found.months, found.days, found.microseconds) == (
        value.months,
        value.days,
        value.microseconds,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Interval(), "PT0S"),
        (Interval(14, 3, 14_706_700_000), "P1Y2M3DT4H5M6.7S"),
        (Interval(-14), "P-1Y-2M"),
        (Interval(0, 0, -1), "PT-0.000001S"),
        (Interval(0, 1, -3_600_000_000), "P1DT-1H"),
        (Interval(0, 0, 60_000_000), "PT1M"),
    ],
)
def test_intervals_by_example(value: Interval, expected: str) -> None:
    assert json.loads(written(INTERVAL, value)) == expected


@pytest.mark.parametrize("sql_type", [REAL, DOUBLE])
def test_what_json_has_no_number_for_is_a_text(sql_type: SqlType) -> None:
    assert written(sql_type, float("nan")) == b'"NaN"'
    assert written(sql_type, float("inf")) == b'"Infinity"'
    assert written(sql_type, float("-inf")) == b'"-Infinity"'


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_numeric_is_a_text_with_every_digit_and_no_exponent(value: Decimal) -> None:
    text = json.loads(written(NUMERIC, value))
    assert Decimal(text) == value and "e" not in text.lower()


def test_a_real_has_no_more_digits_than_32_bits_hold() -> None:
    assert written(REAL, round_to_real(0.1)) == b"0.1"


def test_json_of_several_lines_is_put_on_one_with_its_digits_kept() -> None:
    assert written(JSON, '{\n  "a": 1.50,\r\n  "b": 1e400\n}') == b'{"a":1.50,"b":1e400}'

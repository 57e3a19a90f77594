"""Values are admitted to columns exactly, or refused with PostgreSQL's words."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given

from qserver.errors import (
    ArraySubscriptError,
    CharacterNotInRepertoire,
    DatatypeMismatch,
    DatetimeFieldOverflow,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    QserverError,
    StringDataRightTruncation,
)
from qserver.values.enumeration import Label
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID_TYPE,
    VARCHAR,
    SqlType,
    array_of,
    char,
    interval,
    numeric,
    type_of_value,
    varchar,
    with_second_digits,
)
from qserver.values.zoned_time import ZonedTime
from tests.values.making import admit
from tests.values.strategies import (
    ALL_TYPES,
    MOOD,
    SOME_DATE,
    SOME_TIMESTAMP,
    SOME_TIMESTAMPTZ,
    typed_values,
)

AFTER_MIDNIGHT = datetime(2020, 1, 1, 0, 0, 1)


@given(typed_values)
def test_admission_is_idempotent(typed: tuple[SqlType, Any]) -> None:
    sql_type, value = typed
    assert repr(admit(sql_type, value)) == repr(value)


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
def test_null_is_admitted_to_every_type(sql_type: SqlType) -> None:
    assert admit(sql_type, None) is None


@pytest.mark.parametrize(
    ("sql_type", "value", "stored"),
    [
        (INTEGER, -(2**31), -(2**31)),
        (DOUBLE, 1, 1.0),
        (DOUBLE, Decimal("0.1"), 0.1),
        (DOUBLE, Decimal("-Infinity"), -inf),
        (REAL, 0.1, 0.10000000149011612),
        (REAL, nan, nan),
        (REAL, inf, inf),
        (REAL, 16777217, 16777216.0),
        (REAL, Decimal("16777217.0000000001"), 16777218.0),
        (NUMERIC, 5, Decimal(5)),
        (NUMERIC, Decimal("1E+3"), Decimal(1000)),
        (NUMERIC, Decimal("-0.00"), Decimal("0.00")),
        (NUMERIC, Decimal("-sNaN5"), Decimal("NaN")),
        (numeric(5, 2), 5, Decimal("5.00")),
        (numeric(5, 2), Decimal("1.005"), Decimal("1.01")),
        (numeric(5, 2), Decimal("-1.005"), Decimal("-1.01")),
        (numeric(5, 2), Decimal("-0.001"), Decimal("0.00")),
        (numeric(5, 2), Decimal("NaN"), Decimal("NaN")),
        (numeric(3, -2), 12345, Decimal(12300)),
        (numeric(2, 4), Decimal("0.001"), Decimal("0.0010")),
        (TEXT, "a\U0001f600", "a\U0001f600"),
        (varchar(3), "abc  ", "abc"),
        (varchar(3), "a  ", "a  "),
        (VARCHAR, "a" * 9999, "a" * 9999),
        (char(3), "a", "a"),
        (char(3), "a  ", "a"),
        (char(3), "abc   ", "abc"),
        (TIMESTAMP, SOME_TIMESTAMP.replace(fold=1), SOME_TIMESTAMP),
        (
            TIMESTAMPTZ,
            datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            datetime(2023, 12, 31, 23, tzinfo=UTC),
        ),
        (with_second_digits(TIMESTAMP, 0), datetime(2020, 1, 1, 0, 0, 0, 500_000), AFTER_MIDNIGHT),
        (with_second_digits(TIME, 1), time(1, 2, 3, 450_000), time(1, 2, 3, 500_000)),
        (interval("month"), Interval(14, 3, 5), Interval(14)),
        (INTERVAL, Interval(14, 3, 5), Interval(14, 3, 5)),
        (JSON, ' {"a" : 1} ', ' {"a" : 1} '),
        (MOOD, "ok", Label("ok", 1.0)),
        (MOOD, Label("ok", 9.0), Label("ok", 1.0)),
        (array_of(numeric(3, 1)), ((1, None),), ((Decimal("1.0"), None),)),
        (array_of(MOOD), ("sad",), (Label("sad", 0.0),)),
    ],
)
def test_what_is_stored_is_what_postgresql_stores(
    sql_type: SqlType, value: Any, stored: Any
) -> None:
    assert repr(admit(sql_type, value)) == repr(stored)


def refusal(sql_type: SqlType, value: Any) -> QserverError:
    with pytest.raises(QserverError) as caught:
        admit(sql_type, value)
    return caught.value


OUT_OF_RANGE = NumericValueOutOfRange
BAD_BYTES = 'invalid byte sequence for encoding "UTF8": '
TOO_LONG = "value too long for type "
NOT_RECTANGULAR = "multidimensional arrays must have sub-arrays with matching dimensions"
LATEST = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))


@pytest.mark.parametrize(
    ("sql_type", "value", "error_class", "message"),
    [
        (SMALLINT, 2**15, OUT_OF_RANGE, "smallint out of range"),
        (INTEGER, 2**31, OUT_OF_RANGE, "integer out of range"),
        (BIGINT, -(2**63) - 1, OUT_OF_RANGE, "bigint out of range"),
        (REAL, 1e39, OUT_OF_RANGE, "value out of range: overflow"),
        (REAL, 1e-60, OUT_OF_RANGE, "value out of range: underflow"),
        (REAL, 10**39, OUT_OF_RANGE, f'"{10**39}" is out of range for type real'),
        (DOUBLE, 10**400, OUT_OF_RANGE, f'"{10**400}" is out of range for type double precision'),
        (NUMERIC, Decimal("1e131072"), OUT_OF_RANGE, "value overflows numeric format"),
        (NUMERIC, Decimal("1e-16384"), OUT_OF_RANGE, "value overflows numeric format"),
        (NUMERIC, Decimal("1e999999999"), OUT_OF_RANGE, "value overflows numeric format"),
        (TEXT, "a\0", CharacterNotInRepertoire, f"{BAD_BYTES}0x00"),
        (TEXT, "ä\ud800", CharacterNotInRepertoire, f"{BAD_BYTES}0xed 0xa0 0x80"),
        (varchar(3), "abcd", StringDataRightTruncation, f"{TOO_LONG}character varying(3)"),
        (varchar(3), "abc d", StringDataRightTruncation, f"{TOO_LONG}character varying(3)"),
        (char(3), "abcd", StringDataRightTruncation, f"{TOO_LONG}character(3)"),
        (TIMESTAMPTZ, LATEST, DatetimeFieldOverflow, "timestamp out of range"),
        (with_second_digits(TIME, 0), time.max, DatetimeFieldOverflow, "time out of range"),
        (JSON, "{", InvalidTextRepresentation, "invalid input syntax for type json"),
        (MOOD, "x", InvalidTextRepresentation, 'invalid input value for enum mood: "x"'),
        (array_of(SMALLINT), (2**15,), OUT_OF_RANGE, "smallint out of range"),
        (array_of(INTEGER), ((1,), (2, 3)), ArraySubscriptError, NOT_RECTANGULAR),
    ],
)
def test_what_does_not_fit_is_refused_in_the_words_of_postgresql(
    sql_type: SqlType, value: Any, error_class: type[QserverError], message: str
) -> None:
    error = refusal(sql_type, value)
    assert type(error) is error_class
    assert error.message == message


@pytest.mark.parametrize(
    ("precision", "scale", "value", "problem"),
    [
        (5, 2, "999.995", "must round to an absolute value less than 10^3."),
        (2, 2, "12.5", "must round to an absolute value less than 1."),
        (3, -2, "99999", "must round to an absolute value less than 10^5."),
        (2, 4, "0.00999", "must round to an absolute value less than 10^-2."),
        (5, 2, "1e999999999", "must round to an absolute value less than 10^3."),
        (3, 1, "Infinity", "cannot hold an infinite value."),
    ],
)
def test_a_numeric_overflow_explains_the_bound(
    precision: int, scale: int, value: str, problem: str
) -> None:
    error = refusal(numeric(precision, scale), Decimal(value))
    assert error.message == "numeric field overflow"
    assert error.detail == f"A field with precision {precision}, scale {scale} {problem}"


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [
        (BOOLEAN, 1),
        (INTEGER, True),
        (INTEGER, 1.0),
        (INTEGER, "1"),
        (DOUBLE, "1"),
        (DOUBLE, False),
        (REAL, True),
        (NUMERIC, 1.5),
        (NUMERIC, True),
        (TEXT, 1),
        (TEXT, b"x"),
        (varchar(3), SOME_DATE),
        (DATE, SOME_TIMESTAMP),
        (DATE, "2024-01-01"),
        (TIMESTAMP, SOME_DATE),
        (TIMESTAMP, SOME_TIMESTAMPTZ),
        (TIMESTAMPTZ, SOME_TIMESTAMP),
        (TIMESTAMPTZ, 0),
        (TIME, time(1, tzinfo=UTC)),
        (TIMETZ, time(1)),
        (INTERVAL, timedelta(days=1)),
        (UUID_TYPE, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (BYTEA, "x"),
        (JSON, Jsonb("1")),
        (JSONB, "1"),
        (MOOD, 1),
        (array_of(INTEGER), [1]),
        (array_of(INTEGER), ("1",)),
    ],
)
def test_a_value_of_another_type_is_no_value_of_this_one(sql_type: SqlType, value: Any) -> None:
    assert type(refusal(sql_type, value)) is DatatypeMismatch


def test_types_print_as_postgresql_prints_them() -> None:
    assert [str(each) for each in ALL_TYPES] == [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "numeric(10,2)",
        "numeric(3,-2)",
        "text",
        "character varying",
        "character varying(5)",
        "character(5)",
        "date",
        "timestamp without time zone",
        "timestamp with time zone",
        "timestamp(2) without time zone",
        "time without time zone",
        "time with time zone",
        "interval",
        "interval day to second(3)",
        "uuid",
        "bytea",
        "json",
        "jsonb",
        "mood",
        "integer[]",
        "numeric[]",
        "double precision[]",
        "text[]",
        "jsonb[]",
        "mood[]",
    ]


def test_a_python_value_has_a_type_of_its_own() -> None:
    assert [type_of_value(value) for value in (True, 1, 2**31, 2**63, 1.0, Decimal(1), "x")] == [
        BOOLEAN,
        INTEGER,
        BIGINT,
        NUMERIC,
        DOUBLE,
        NUMERIC,
        TEXT,
    ]
    assert type_of_value(SOME_DATE) is DATE
    assert type_of_value(SOME_TIMESTAMP) is TIMESTAMP
    assert type_of_value(SOME_TIMESTAMPTZ) is TIMESTAMPTZ
    assert type_of_value(time(1)) is TIME and type_of_value(ZonedTime(1, tzinfo=UTC)) is TIMETZ
    assert type_of_value(((None, 1),)) == array_of(INTEGER)
    assert type_of_value(Jsonb("1")) is JSONB and type_of_value(b"") is BYTEA


def test_parameters_of_types_are_checked() -> None:
    with pytest.raises(InvalidParameterValue, match="NUMERIC precision 1001 must be between 1 and"):
        numeric(1001, 0)
    with pytest.raises(InvalidParameterValue, match="NUMERIC scale 1001 must be between -1000 and"):
        numeric(5, 1001)
    with pytest.raises(InvalidParameterValue, match="length for type varchar must be at least 1"):
        varchar(0)
    with pytest.raises(InvalidParameterValue, match="length for type char cannot exceed 10485760"):
        char(10485761)
    with pytest.raises(
        InvalidParameterValue, match=r"TIME\(-1\) WITH TIME ZONE precision must not"
    ):
        with_second_digits(TIMETZ, -1)
    assert with_second_digits(TIME, 9).precision == 6


def test_a_bare_type_has_no_parameters() -> None:
    assert numeric(5, 2).bare == NUMERIC and varchar(3).bare == VARCHAR
    assert with_second_digits(TIME, 3).bare == TIME and interval("year").bare == INTERVAL
    assert array_of(numeric(5, 2)).bare == array_of(NUMERIC)
    assert MOOD.bare is MOOD and array_of(array_of(TEXT)) == array_of(TEXT)


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
def test_a_type_survives_its_plain_form(sql_type: SqlType) -> None:
    assert SqlType.from_plain(sql_type.to_plain()) == sql_type

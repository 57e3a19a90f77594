"""Casts give the results and errors that PostgreSQL 15 gives.

The tables below were compared with a PostgreSQL 15 server in the zone UTC.
"""

from __future__ import annotations

from decimal import Decimal
from math import nan
from typing import Any

import pytest
from hypothesis import given

from qserver.errors import CannotCoerce, QserverError, StringDataRightTruncation
from qserver.values.casts import Context, assignment_function, cast_function, context_of, unchanged
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    char,
    numeric,
    varchar,
)
from tests.values.making import cast
from tests.values.strategies import ALL_TYPES, typed_values

# A text, the type it is cast to, and the text that comes back.
THROUGH_TEXT = [
    ("t", BOOLEAN, "true"),
    (" YES\n", BOOLEAN, "true"),
    ("tr", BOOLEAN, "true"),
    ("on", BOOLEAN, "true"),
    ("1", BOOLEAN, "true"),
    ("of", BOOLEAN, "false"),
    ("N", BOOLEAN, "false"),
    ("0", BOOLEAN, "false"),
    ("fal", BOOLEAN, "false"),
    (" -00012 ", SMALLINT, "-12"),
    ("+5", INTEGER, "5"),
    ("-2147483648", INTEGER, "-2147483648"),
    ("9223372036854775807", BIGINT, "9223372036854775807"),
    ("0.1", REAL, "0.1"),
    ("16777217", REAL, "1.6777216e+07"),
    ("67108904", REAL, "6.7108904e+07"),
    ("2947617.75", REAL, "2.9476178e+06"),
    ("1e-45", REAL, "1e-45"),
    ("123456", REAL, "123456"),
    ("1234567", REAL, "1.234567e+06"),
    ("1e20", DOUBLE, "1e+20"),
    ("0.1", DOUBLE, "0.1"),
    (" -.5 ", DOUBLE, "-0.5"),
    ("5.", DOUBLE, "5"),
    ("-0", DOUBLE, "-0"),
    ("123456789012345", DOUBLE, "123456789012345"),
    ("1234567890123456", DOUBLE, "1.234567890123456e+15"),
    ("0.0001", DOUBLE, "0.0001"),
    ("0.00001", DOUBLE, "1e-05"),
    ("9007199254740993", DOUBLE, "9.007199254740992e+15"),
    ("36893488147419103232", DOUBLE, "3.6893488147419103e+19"),
    ("2e-308", DOUBLE, "2e-308"),
    ("5e-324", DOUBLE, "5e-324"),
    ("inf", DOUBLE, "Infinity"),
    ("-Infinity", DOUBLE, "-Infinity"),
    (" NaN ", REAL, "NaN"),
    ("1.50", NUMERIC, "1.50"),
    ("-0.00", NUMERIC, "0.00"),
    ("1e5", NUMERIC, "100000"),
    ("1.50e1", NUMERIC, "15.0"),
    ("1e-3", NUMERIC, "0.001"),
    (".5", NUMERIC, "0.5"),
    ("+inf", NUMERIC, "Infinity"),
    ("nan", NUMERIC, "NaN"),
    ("1.005", numeric(5, 2), "1.01"),
    ("12345", numeric(3, -2), "12300"),
    ("abcdef", varchar(3), "abc"),
    ("a  ", varchar(3), "a  "),
    ("a  ", char(3), "a"),
    ("abcdef", char(3), "abc"),
]

# A text, the type it is read as, the type that is cast to, and the text that comes back.
THROUGH_TYPES = [
    ("2.5", DOUBLE, INTEGER, "2"),
    ("3.5", DOUBLE, INTEGER, "4"),
    ("-2.5", REAL, SMALLINT, "-2"),
    ("2.5", NUMERIC, INTEGER, "3"),
    ("-2.5", NUMERIC, INTEGER, "-3"),
    ("0.4999999999999999999999", NUMERIC, BIGINT, "0"),
    ("0.1", REAL, DOUBLE, "0.10000000149011612"),
    ("0.1", REAL, NUMERIC, "0.1"),
    ("123456789", REAL, NUMERIC, "123457000"),
    ("0.1", DOUBLE, NUMERIC, "0.1"),
    ("0.12345678901234567", DOUBLE, NUMERIC, "0.123456789012346"),
    ("1e20", DOUBLE, NUMERIC, "100000000000000000000"),
    ("inf", DOUBLE, NUMERIC, "Infinity"),
    ("0.1", NUMERIC, DOUBLE, "0.1"),
    ("16777217", INTEGER, REAL, "1.6777216e+07"),
    ("1152921573326323713", BIGINT, REAL, "1.1529216e+18"),
    ("9007199254740993", BIGINT, DOUBLE, "9.007199254740992e+15"),
    ("7", INTEGER, numeric(5, 2), "7.00"),
    ("1.25", numeric(5, 2), numeric(5, 1), "1.3"),
    ("1.25", numeric(5, 2), NUMERIC, "1.25"),
    ("2", INTEGER, BOOLEAN, "true"),
    ("0", INTEGER, BOOLEAN, "false"),
    ("yes", BOOLEAN, INTEGER, "1"),
    ("12345", INTEGER, varchar(3), "123"),
    ("12345", INTEGER, char(3), "123"),
    ("true", BOOLEAN, char(1), "t"),
    ("12 ", char(5), INTEGER, "12"),
    ("2024-02-29", DATE, TIMESTAMP, "2024-02-29 00:00:00"),
    ("2024-02-29", DATE, TIMESTAMPTZ, "2024-02-29 00:00:00+00"),
    ("2024-02-29 23:59:59.5", TIMESTAMP, DATE, "2024-02-29"),
    ("2024-02-29 23:59:59.5", TIMESTAMP, TIMESTAMPTZ, "2024-02-29 23:59:59.5+00"),
    ("2024-02-29 23:59:59.5-02", TIMESTAMPTZ, TIMESTAMP, "2024-03-01 01:59:59.5"),
    ("2024-02-29 23:59:59.5-02", TIMESTAMPTZ, DATE, "2024-03-01"),
]

# A text, the type it is read as, the type that is cast to, and the error.
ERRORS = [
    ("abc", TEXT, INTEGER, "22P02", 'invalid input syntax for type integer: "abc"'),
    ("", TEXT, BIGINT, "22P02", 'invalid input syntax for type bigint: ""'),
    ("1e5", TEXT, SMALLINT, "22P02", 'invalid input syntax for type smallint: "1e5"'),
    ("1_000", TEXT, INTEGER, "22P02", 'invalid input syntax for type integer: "1_000"'),
    ("١", TEXT, INTEGER, "22P02", 'invalid input syntax for type integer: "١"'),
    ("1 2", TEXT, INTEGER, "22P02", 'invalid input syntax for type integer: "1 2"'),
    ("99999999999", TEXT, INTEGER, "22003", 'value "99999999999" is out of range for type integer'),
    ("9" * 5000, TEXT, BIGINT, "22003", f'value "{"9" * 5000}" is out of range for type bigint'),
    ("1e", TEXT, DOUBLE, "22P02", 'invalid input syntax for type double precision: "1e"'),
    (" 1e400 ", TEXT, DOUBLE, "22003", '"1e400" is out of range for type double precision'),
    ("1e-400", TEXT, DOUBLE, "22003", '"1e-400" is out of range for type double precision'),
    ("1e99999999999", TEXT, REAL, "22003", '"1e99999999999" is out of range for type real'),
    (" 1e40", TEXT, REAL, "22003", '" 1e40" is out of range for type real'),
    ("x", TEXT, NUMERIC, "22P02", 'invalid input syntax for type numeric: "x"'),
    ("-nan", TEXT, NUMERIC, "22P02", 'invalid input syntax for type numeric: "-nan"'),
    ("1e200000", TEXT, NUMERIC, "22003", "value overflows numeric format"),
    ("1e99999999999", TEXT, NUMERIC, "22003", "value overflows numeric format"),
    ("o", TEXT, BOOLEAN, "22P02", 'invalid input syntax for type boolean: "o"'),
    ("", TEXT, BOOLEAN, "22P02", 'invalid input syntax for type boolean: ""'),
    ("x", char(3), INTEGER, "22P02", 'invalid input syntax for type integer: "x  "'),
    ("nan", DOUBLE, INTEGER, "22003", "integer out of range"),
    ("1e10", DOUBLE, INTEGER, "22003", "integer out of range"),
    ("nan", NUMERIC, INTEGER, "0A000", "cannot convert NaN to integer"),
    ("-inf", NUMERIC, BIGINT, "0A000", "cannot convert infinity to bigint"),
    ("1e1000", NUMERIC, BIGINT, "22003", "bigint out of range"),
    ("40000", INTEGER, SMALLINT, "22003", "smallint out of range"),
    ("1e300", DOUBLE, REAL, "22003", "value out of range: overflow"),
    ("1e-300", DOUBLE, REAL, "22003", "value out of range: underflow"),
    ("1000", INTEGER, numeric(5, 2), "22003", "numeric field overflow"),
    ("5", BIGINT, BOOLEAN, "42846", "cannot cast type bigint to boolean"),
    ("2024-01-01", DATE, INTEGER, "42846", "cannot cast type date to integer"),
    ("t", BOOLEAN, numeric(3, 1), "42846", "cannot cast type boolean to numeric"),
]


@pytest.mark.parametrize(("text", "target", "expected"), THROUGH_TEXT)
def test_text_becomes_a_value_and_its_text(text: str, target: SqlType, expected: str) -> None:
    assert cast(cast(text, TEXT, target), target, TEXT) == expected


@pytest.mark.parametrize(("text", "source", "target", "expected"), THROUGH_TYPES)
def test_values_become_values_of_other_types(
    text: str, source: SqlType, target: SqlType, expected: str
) -> None:
    assert cast(cast(cast(text, TEXT, source), source, target), target, TEXT) == expected


@pytest.mark.parametrize(("text", "source", "target", "code", "message"), ERRORS)
def test_bad_casts_fail_in_the_words_of_postgresql(
    text: str, source: SqlType, target: SqlType, code: str, message: str
) -> None:
    value = cast(text, TEXT, source)
    with pytest.raises(QserverError) as caught:
        cast(value, source, target)
    assert (caught.value.code, caught.value.message) == (code, message)


@given(typed_values)
def test_every_value_survives_its_text(typed: tuple[SqlType, Any]) -> None:
    sql_type, value = typed
    assert repr(cast(cast(value, sql_type, TEXT), TEXT, sql_type)) == repr(value)


@given(typed_values)
def test_a_cast_gives_a_value_of_the_target_or_an_error(typed: tuple[SqlType, Any]) -> None:
    source, value = typed
    for target in ALL_TYPES:
        try:
            result = cast(value, source, target)
        except QserverError:
            continue
        assert repr(assignment_function(target, target)(result)) == repr(result)


def test_null_stays_null_but_an_impossible_cast_stays_impossible() -> None:
    assert cast(None, INTEGER, TEXT) is None
    with pytest.raises(CannotCoerce):
        cast(None, INTEGER, DATE)


def test_an_assignment_does_not_cut_text() -> None:
    assert cast_function(TEXT, varchar(3))("abcd") == "abc"
    with pytest.raises(StringDataRightTruncation):
        assignment_function(TEXT, varchar(3))("abcd")
    with pytest.raises(StringDataRightTruncation):
        assignment_function(INTEGER, char(3))(1234)
    assert assignment_function(TEXT, char(3))("abc  ") == "abc"
    assert assignment_function(NUMERIC, numeric(5, 2))(Decimal("1.005")) == Decimal("1.01")


def test_an_assignment_does_not_read_text() -> None:
    with pytest.raises(CannotCoerce, match="cannot cast type text to integer"):
        assignment_function(TEXT, INTEGER)
    with pytest.raises(CannotCoerce, match="cannot cast type boolean to integer"):
        assignment_function(BOOLEAN, INTEGER)
    assert assignment_function(DOUBLE, INTEGER)(2.5) == 2


def test_what_needs_no_cast_is_unchanged() -> None:
    assert cast_function(INTEGER, INTEGER) is unchanged
    assert cast_function(SMALLINT, BIGINT) is unchanged
    assert cast_function(REAL, DOUBLE) is unchanged
    assert cast_function(varchar(3), TEXT) is unchanged
    assert cast_function(varchar(3), varchar(3)) is unchanged
    assert cast_function(numeric(5, 2), NUMERIC) is unchanged
    assert repr(cast(nan, DOUBLE, DOUBLE)) == "nan"


def test_contexts_are_those_of_postgresql() -> None:
    implicit = Context.IMPLICIT
    assert context_of(Kind.SMALLINT, Kind.DOUBLE) is implicit
    assert context_of(Kind.BIGINT, Kind.NUMERIC) is implicit
    assert context_of(Kind.NUMERIC, Kind.REAL) is implicit
    assert context_of(Kind.DATE, Kind.TIMESTAMPTZ) is implicit
    assert context_of(Kind.TIMESTAMP, Kind.TIMESTAMPTZ) is implicit
    assert context_of(Kind.CHAR, Kind.TEXT) is implicit
    for source, target in (
        (Kind.DOUBLE, Kind.REAL),
        (Kind.REAL, Kind.NUMERIC),
        (Kind.NUMERIC, Kind.INTEGER),
        (Kind.BIGINT, Kind.INTEGER),
        (Kind.TIMESTAMPTZ, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.DATE),
        (Kind.DATE, Kind.TEXT),
    ):
        assert context_of(source, target) is Context.ASSIGNMENT
    assert context_of(Kind.TEXT, Kind.DATE) is Context.EXPLICIT
    assert context_of(Kind.INTEGER, Kind.BOOLEAN) is Context.EXPLICIT
    assert context_of(Kind.SMALLINT, Kind.BOOLEAN) is None
    assert context_of(VARCHAR.kind, VARCHAR.kind) is implicit

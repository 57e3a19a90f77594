"""Casts from and to times, intervals, UUIDs, bytes, JSON, enums and arrays are PostgreSQL 15's.

The table was compared with a PostgreSQL 15 server in the zone UTC.
"""

from __future__ import annotations

import pytest

from qserver.errors import CannotCoerce, QserverError
from qserver.values.casts import (
    Context,
    assignment_function,
    cast_function,
    context_between,
    context_of,
    unchanged,
)
from qserver.values.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    JSONPATH,
    NUMERIC,
    RECORD,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    UUID_TYPE,
    VOID,
    Kind,
    SqlType,
    array_of,
    char,
    interval,
    varchar,
    with_second_digits,
)
from tests.values.making import cast, enum_type
from tests.values.strategies import MOOD

# A text, the type it is read as, the type that is cast to, and the text or error that comes back.
CASTS: list[tuple[str, SqlType, SqlType, str]] = [
    ("04:05:06.789", TIME, INTERVAL, "04:05:06.789"),
    ("04:05:06.789", TIME, TIMETZ, "04:05:06.789+00"),
    ("04:05:06.789", TIME, with_second_digits(TIME, 2), "04:05:06.79"),
    (
        "04:05:06",
        TIME,
        TIMESTAMP,
        "error 42846: cannot cast type time without time zone to timestamp without time zone",
    ),
    ("04:05:06+02", TIMETZ, TIME, "04:05:06"),
    ("27:30", INTERVAL, TIME, "03:30:00"),
    ("-1 day -01:00", INTERVAL, TIME, "23:00:00"),
    ("2020-02-29 12:34:56.789", TIMESTAMP, TIME, "12:34:56.789"),
    (
        "2020-02-29 12:34:56.789",
        TIMESTAMP,
        TIMETZ,
        "error 42846: cannot cast type timestamp without time zone to time with time zone",
    ),
    ("2020-02-29 12:34:56.789+03", TIMESTAMPTZ, TIMETZ, "09:34:56.789+00"),
    ("2020-02-29 12:34:56.789+03", TIMESTAMPTZ, TIME, "09:34:56.789"),
    ("2020-12-31 23:59:59.5", TIMESTAMP, with_second_digits(TIMESTAMP, 0), "2021-01-01 00:00:00"),
    ("1990-01-01 00:00:00.5", TIMESTAMP, with_second_digits(TIMESTAMP, 0), "1990-01-01 00:00:00"),
    ("-25 months", INTERVAL, interval("year"), "-2 years"),
    ("1 mon 2 days 3:04:05.55", INTERVAL, interval("day to second", 1), "1 mon 2 days 03:04:05.6"),
    ("-1 day -01:59", INTERVAL, interval("hour"), "-1 days -01:00:00"),
    ("A0EEBC999C0B4EF8BB6D6BB9BD380A11", UUID_TYPE, TEXT, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("x", TEXT, UUID_TYPE, 'error 22P02: invalid input syntax for type uuid: "x"'),
    ("a", BYTEA, TEXT, "\\x61"),
    ("a", BYTEA, UUID_TYPE, "error 42846: cannot cast type bytea to uuid"),
    ("abc", BYTEA, varchar(2), "\\x"),
    ('{"b" : 1, "a":[true]}', JSON, JSONB, '{"a": [true], "b": 1}'),
    ('{"b" : 1, "a":[true]}', JSON, TEXT, '{"b" : 1, "a":[true]}'),
    ('{"b" : 1}', JSONB, JSON, '{"b": 1}'),
    ("$.a[ 1,last]", TEXT, JSONPATH, '$."a"[1,last]'),
    ('$."a"', JSONPATH, TEXT, '$."a"'),
    ("$.", TEXT, JSONPATH, "error 42601: syntax error at end of jsonpath input"),
    ("1", JSONB, JSONPATH, "error 42846: cannot cast type jsonb to jsonpath"),
    ("12.5", JSONB, INTEGER, "13"),
    ("12.5", JSONB, NUMERIC, "12.5"),
    ("12.5", JSONB, DOUBLE, "12.5"),
    ("99999", JSONB, SMALLINT, "error 22003: smallint out of range"),
    ("true", JSONB, BOOLEAN, "true"),
    ("1", JSONB, BOOLEAN, "error 22023: cannot cast jsonb numeric to type boolean"),
    ('"1"', JSONB, INTEGER, "error 22023: cannot cast jsonb string to type integer"),
    ("null", JSONB, INTEGER, "error 22023: cannot cast jsonb null to type integer"),
    ("[1]", JSONB, INTEGER, "error 22023: cannot cast jsonb array to type integer"),
    ("{}", JSONB, NUMERIC, "error 22023: cannot cast jsonb object to type numeric"),
    ('"a"', JSON, INTEGER, "error 42846: cannot cast type json to integer"),
    ('"x"', JSONB, TEXT, '"x"'),
    ("{", TEXT, JSONB, "error 22P02: invalid input syntax for type json"),
    ("ok", MOOD, TEXT, "ok"),
    ("ok", MOOD, varchar(2), "ok"),
    ("happy", MOOD, varchar(2), "ha"),
    ("sad", char(8), MOOD, 'error 22P02: invalid input value for enum mood: "sad     "'),
    ("ok", TEXT, MOOD, "ok"),
    ("Ok", TEXT, MOOD, 'error 22P02: invalid input value for enum mood: "Ok"'),
    ("ok", MOOD, INTEGER, "error 42846: cannot cast type mood to integer"),
    ("{1,NULL,3}", array_of(INTEGER), array_of(TEXT), "{1,NULL,3}"),
    ("{1,NULL}", array_of(TEXT), array_of(INTEGER), "{1,NULL}"),
    (
        "{1,x}",
        array_of(TEXT),
        array_of(INTEGER),
        'error 22P02: invalid input syntax for type integer: "x"',
    ),
    ("{abc,{d}", TEXT, array_of(TEXT), 'error 22P02: malformed array literal: "{abc,{d}"'),
    ("{abc,d}", array_of(TEXT), array_of(varchar(2)), "{ab,d}"),
    ("{{1,2},{3,4}}", array_of(INTEGER), TEXT, "{{1,2},{3,4}}"),
    ("{sad,ok}", array_of(TEXT), array_of(MOOD), "{sad,ok}"),
    ("{sad,ok}", array_of(MOOD), array_of(TEXT), "{sad,ok}"),
    ("{1,0}", array_of(INTEGER), array_of(BOOLEAN), "{t,f}"),
    ("{1}", array_of(INTEGER), INTEGER, "error 42846: cannot cast type integer[] to integer"),
    ("1", INTEGER, array_of(INTEGER), "error 42846: cannot cast type integer to integer[]"),
    ("{t}", array_of(BOOLEAN), array_of(MOOD), "error 42846: cannot cast type boolean[] to mood[]"),
    ("1 day", INTERVAL, INTEGER, "error 42846: cannot cast type interval to integer"),
    ("1 day", INTERVAL, DATE, "error 42846: cannot cast type interval to date"),
    ("10:00", TIME, DATE, "error 42846: cannot cast type time without time zone to date"),
    ("1", INTEGER, INTERVAL, "error 42846: cannot cast type integer to interval"),
    ("10:00", TIME, BOOLEAN, "error 42846: cannot cast type time without time zone to boolean"),
]


@pytest.mark.parametrize(("text", "source", "target", "expected"), CASTS)
def test_a_cast_gives_what_postgresql_gives(
    text: str, source: SqlType, target: SqlType, expected: str
) -> None:
    try:
        result = cast(cast(cast(text, TEXT, source), source, target), target, TEXT)
    except QserverError as error:
        result = f"error {error.code}: {error.message}"
    assert result == expected


def test_an_untyped_literal_becomes_anything_and_reads_fields() -> None:
    assert cast("3", UNKNOWN, interval("month")).parts == (3, 0, 0)
    assert cast("{1,2}", UNKNOWN, array_of(INTEGER)) == (1, 2)
    assert cast("x", UNKNOWN, TEXT) == "x"
    assert context_of(Kind.UNKNOWN, Kind.JSONB) is Context.IMPLICIT


def test_contexts_of_the_further_types_are_those_of_postgresql() -> None:
    implicit, assigned, explicit = Context.IMPLICIT, Context.ASSIGNMENT, Context.EXPLICIT
    assert context_of(Kind.TIME, Kind.INTERVAL) is context_of(Kind.TIME, Kind.TIMETZ) is implicit
    assert context_of(Kind.INTERVAL, Kind.TIME) is assigned
    assert context_of(Kind.JSON, Kind.JSONB) is context_of(Kind.JSONB, Kind.JSON) is assigned
    assert context_of(Kind.JSONB, Kind.INTEGER) is explicit
    assert context_of(Kind.UUID, Kind.TEXT) is assigned
    assert context_of(Kind.TEXT, Kind.UUID) is explicit
    assert context_of(Kind.UUID, Kind.BYTEA) is None
    assert context_of(Kind.RECORD, Kind.TEXT) is assigned
    assert context_of(Kind.TEXT, Kind.RECORD) is context_of(Kind.VOID, Kind.TEXT) is None


def test_arrays_go_by_their_elements_and_enums_by_their_name() -> None:
    numbers, texts = array_of(INTEGER), array_of(TEXT)
    assert context_between(numbers, array_of(NUMERIC)) is Context.IMPLICIT
    assert context_between(numbers, texts) is Context.ASSIGNMENT
    assert context_between(texts, numbers) is Context.EXPLICIT
    assert context_between(numbers, array_of(DATE)) is None
    assert context_between(MOOD, enum_type("size", "small")) is None
    assert cast_function(numbers, numbers) is unchanged
    with pytest.raises(CannotCoerce, match=r"cannot cast type integer\[\] to date\[\]"):
        cast_function(numbers, array_of(DATE))
    with pytest.raises(CannotCoerce, match="cannot cast type mood to size"):
        cast_function(MOOD, enum_type("size", "small"))


def test_a_record_becomes_text_and_nothing_else() -> None:
    assert cast((1, "a b"), RECORD, TEXT) == '(1,"a b")'
    with pytest.raises(CannotCoerce):
        cast_function(RECORD, INTEGER)
    with pytest.raises(CannotCoerce):
        cast_function(TEXT, VOID)


def test_an_assignment_of_an_array_cuts_no_element() -> None:
    short = array_of(varchar(2))
    assert cast_function(array_of(TEXT), short)(("abc", None)) == ("ab", None)
    with pytest.raises(QserverError, match="value too long for type character varying"):
        assignment_function(array_of(TEXT), short)(("abc",))

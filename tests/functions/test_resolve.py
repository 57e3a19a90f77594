"""Which function a call means, what its arguments are cast to, and what is said when none fits."""

from __future__ import annotations

import pytest

from qserver.errors import (
    AmbiguousFunction,
    CannotCoerce,
    DatatypeMismatch,
    QserverError,
    UndefinedFunction,
)
from qserver.functions.resolve import (
    common_type,
    is_aggregate,
    is_function,
    is_ordered_set_aggregate,
    is_table_function,
    is_window_function,
    resolve_aggregate,
    resolve_function,
    resolve_operator,
    resolve_table_function,
)
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID_TYPE,
    VARCHAR,
    SqlType,
    array_of,
    char,
    numeric,
    varchar,
)
from tests.values.making import enum_type

MOOD = enum_type("mood", "sad", "happy")


def types(given: tuple[SqlType, ...]) -> str:
    return ", ".join(map(str, given))


def operator(left: SqlType | None, symbol: str, right: SqlType) -> str:
    try:
        resolved = resolve_operator(symbol, left, right)
    except QserverError as error:
        return f"{error.code} {error.message}"
    return f"({types(resolved.parameters)}) → {resolved.returns}"


def function(name: str, *arguments: SqlType) -> str:
    try:
        resolved = resolve_function(name, arguments)
    except QserverError as error:
        return f"{error.code} {error.message}"
    return f"({types(resolved.parameters)}) → {resolved.returns}"


@pytest.mark.parametrize(
    ("left", "symbol", "right", "expected"),
    [
        (INTEGER, "+", INTEGER, "(integer, integer) → integer"),
        (INTEGER, "+", BIGINT, "(integer, bigint) → bigint"),
        (SMALLINT, "%", BIGINT, "(bigint, bigint) → bigint"),
        (INTEGER, "+", NUMERIC, "(numeric, numeric) → numeric"),
        (numeric(10, 2), "*", numeric(5, 1), "(numeric, numeric) → numeric"),
        (INTEGER, "/", REAL, "(double precision, real) → double precision"),
        (REAL, "*", REAL, "(real, real) → real"),
        (INTEGER, "^", INTEGER, "(double precision, double precision) → double precision"),
        (INTEGER, "+", UNKNOWN, "(integer, integer) → integer"),
        (UNKNOWN, "=", DATE, "(date, date) → boolean"),
        (UNKNOWN, "||", UNKNOWN, "(text, text) → text"),
        (INTEGER, "||", UNKNOWN, "(integer, text) → text"),
        (varchar(5), "||", char(3), "(text, text) → text"),
        (VARCHAR, "=", TEXT, "(text, text) → boolean"),
        (char(3), "=", VARCHAR, "(character, character) → boolean"),
        (char(3), "=", TEXT, "(text, text) → boolean"),
        (DATE, "<", TIMESTAMPTZ, "(timestamp with time zone, timestamp with time zone) → boolean"),
        (DATE, "+", INTEGER, "(date, integer) → date"),
        (UNKNOWN, "like", UNKNOWN, "(text, text) → boolean"),
        (INTEGER, "!=", BIGINT, "(integer, bigint) → boolean"),
        (MOOD, "=", UNKNOWN, "(mood, mood) → boolean"),
        (array_of(INTEGER), "=", UNKNOWN, "(integer[], integer[]) → boolean"),
        (None, "-", INTEGER, "(integer) → integer"),
        (None, "-", numeric(3, 1), "(numeric) → numeric"),
        (
            array_of(DATE),
            "||",
            TIMESTAMP,
            "(timestamp without time zone[], timestamp without time zone)"
            " → timestamp without time zone[]",
        ),
        (
            TIME,
            "||",
            array_of(DATE),
            "42883 operator does not exist: time without time zone || date[]",
        ),
        (INTEGER, "+", TEXT, "42883 operator does not exist: integer + text"),
        (INTEGER, "=", TEXT, "42883 operator does not exist: integer = text"),
        (varchar(5), "+", INTEGER, "42883 operator does not exist: character varying + integer"),
        (None, "-", TEXT, "42883 operator does not exist: - text"),
        (BOOLEAN, "=", INTEGER, "42883 operator does not exist: boolean = integer"),
        (INTEGER, "<=>", INTEGER, "42883 operator does not exist: integer <=> integer"),
        (UNKNOWN, "+", UNKNOWN, "42725 operator is not unique: unknown + unknown"),
        (None, "-", UNKNOWN, "42725 operator is not unique: - unknown"),
    ],
)
def test_an_operator_resolves_as_in_postgresql(
    left: SqlType | None, symbol: str, right: SqlType, expected: str
) -> None:
    assert operator(left, symbol, right) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("lower", (UNKNOWN,), "(text) → text"),
        ("lower", (varchar(3),), "(text) → text"),
        ("round", (INTEGER,), "(double precision) → double precision"),
        ("round", (numeric(10, 4),), "(numeric) → numeric"),
        ("round", (INTEGER, INTEGER), "(numeric, integer) → numeric"),
        ("abs", (SMALLINT,), "(smallint) → smallint"),
        ("abs", (UNKNOWN,), "(double precision) → double precision"),
        ("sqrt", (NUMERIC,), "(numeric) → numeric"),
        ("mod", (INTEGER, BIGINT), "(bigint, bigint) → bigint"),
        ("power", (INTEGER, NUMERIC), "(numeric, numeric) → numeric"),
        ("length", (char(4),), "(character) → integer"),
        ("substring", (UNKNOWN, INTEGER), "(text, integer) → text"),
        ("regexp_replace", (TEXT, UNKNOWN, UNKNOWN, UNKNOWN), "(text, text, text, text) → text"),
        ("concat", (INTEGER, UNKNOWN, char(3)), "(integer, text, character(3)) → text"),
        ("greatest", (INTEGER, numeric(3, 1), UNKNOWN), "(numeric, numeric, numeric) → numeric"),
        ("int4", (UNKNOWN,), "(integer) → integer"),
        ("text", (BOOLEAN,), "(boolean) → text"),
        ("float8", (NUMERIC,), "(numeric) → double precision"),
        ("lower", (INTEGER,), "42883 function lower(integer) does not exist"),
        ("lower", (), "42883 function lower() does not exist"),
        (
            "nonsense",
            (INTEGER, UNKNOWN),
            "42883 function nonsense(integer, unknown) does not exist",
        ),
        ("left", (varchar(3), TEXT), "42883 function left(character varying, text) does not exist"),
        ("greatest", (INTEGER, TEXT), "42804 GREATEST types integer and text cannot be matched"),
        (
            "greatest",
            (JSON, JSON),
            "42883 could not identify a comparison function for type json",
        ),
        (
            "quote_literal",
            (array_of(INTEGER),),
            "(integer[]) → text",
        ),
    ],
)
def test_a_function_resolves_as_in_postgresql(
    name: str, arguments: tuple[SqlType, ...], expected: str
) -> None:
    assert function(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("count", (), "() → bigint"),
        ("count", (varchar(3),), "(character varying) → bigint"),
        ("sum", (INTEGER,), "(integer) → bigint"),
        ("sum", (BIGINT,), "(bigint) → numeric"),
        ("sum", (numeric(10, 2),), "(numeric) → numeric"),
        ("sum", (REAL,), "(real) → real"),
        ("avg", (SMALLINT,), "(smallint) → numeric"),
        ("avg", (REAL,), "(real) → double precision"),
        ("max", (varchar(9),), "(text) → text"),
        ("min", (char(9),), "(character) → character"),
        ("max", (MOOD,), "(mood) → mood"),
        ("stddev", (INTEGER,), "(integer) → numeric"),
        ("array_agg", (INTEGER,), "(integer) → integer[]"),
        ("string_agg", (VARCHAR, UNKNOWN), "(text, text) → text"),
        (
            "percentile_cont",
            (NUMERIC, INTEGER),
            "(double precision, double precision) → double precision",
        ),
        ("percentile_disc", (DOUBLE, DATE), "(double precision, date) → date"),
        ("mode", (TEXT,), "(text) → text"),
    ],
)
def test_an_aggregate_resolves_as_in_postgresql(
    name: str, arguments: tuple[SqlType, ...], expected: str
) -> None:
    resolved = resolve_aggregate(name, arguments)
    assert f"({types(resolved.parameters)}) → {resolved.returns}" == expected


@pytest.mark.parametrize(
    ("name", "arguments"), [("sum", (TEXT,)), ("max", (BOOLEAN,)), ("bool_and", (INTEGER,))]
)
def test_an_aggregate_that_does_not_fit_is_refused(
    name: str, arguments: tuple[SqlType, ...]
) -> None:
    with pytest.raises(UndefinedFunction, match="does not exist"):
        resolve_aggregate(name, arguments)


def test_a_table_function_resolves_with_the_types_of_its_columns() -> None:
    resolved = resolve_table_function("generate_series", (INTEGER, BIGINT))
    assert resolved.parameters == (BIGINT, BIGINT)
    assert resolved.function.columns == (("generate_series", BIGINT),)


def test_the_same_question_gets_the_same_object() -> None:
    assert resolve_operator("+", INTEGER, INTEGER).function is (
        resolve_operator("+", INTEGER, UNKNOWN).function
    )
    assert resolve_operator("=", numeric(3, 1), NUMERIC).function is (
        resolve_operator("=", NUMERIC, INTEGER).function
    )
    assert (
        resolve_operator("=", MOOD, MOOD).function is resolve_operator("=", MOOD, UNKNOWN).function
    )
    assert resolve_function("concat", (TEXT, INTEGER)).function is (
        resolve_function("concat", (TEXT, INTEGER)).function
    )
    assert resolve_aggregate("max", (varchar(3),)).aggregate is (
        resolve_aggregate("max", (TEXT,)).aggregate
    )


def test_hints_are_those_of_postgresql() -> None:
    with pytest.raises(UndefinedFunction) as undefined:
        resolve_operator("+", INTEGER, TEXT)
    assert undefined.value.hint == (
        "No operator matches the given name and argument types. "
        "You might need to add explicit type casts."
    )
    with pytest.raises(UndefinedFunction) as prefix:
        resolve_operator("-", None, TEXT)
    assert prefix.value.hint == (
        "No operator matches the given name and argument type. "
        "You might need to add an explicit type cast."
    )
    with pytest.raises(AmbiguousFunction) as ambiguous:
        resolve_operator("+", UNKNOWN, UNKNOWN)
    assert ambiguous.value.hint == (
        "Could not choose a best candidate operator. You might need to add explicit type casts."
    )


def test_a_placeholder_needs_one_type_that_is_known() -> None:
    with pytest.raises(DatatypeMismatch, match="could not determine polymorphic type"):
        resolve_aggregate("mode", (UNKNOWN,))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((INTEGER, NUMERIC), NUMERIC),
        ((NUMERIC, DOUBLE, INTEGER), DOUBLE),
        ((REAL, NUMERIC), REAL),
        ((UNKNOWN, INTEGER), INTEGER),
        ((UNKNOWN, UNKNOWN), TEXT),
        ((DATE, TIMESTAMP), TIMESTAMP),
        ((varchar(3), varchar(3)), varchar(3)),
        ((varchar(3), varchar(5)), VARCHAR),
        ((varchar(3), UNKNOWN), VARCHAR),
        ((numeric(5, 2), numeric(5, 2)), numeric(5, 2)),
        ((numeric(5, 2), INTEGER), NUMERIC),
        ((VARCHAR, TEXT), VARCHAR),
        ((TEXT, VARCHAR), TEXT),
        ((UUID_TYPE, UNKNOWN), UUID_TYPE),
        ((array_of(INTEGER), array_of(INTEGER)), array_of(INTEGER)),
    ],
)
def test_the_common_type_is_that_of_postgresql(
    given: tuple[SqlType, ...], expected: SqlType
) -> None:
    assert common_type(given, "CASE") == expected


def test_types_without_a_common_one_are_named_in_the_error() -> None:
    with pytest.raises(DatatypeMismatch, match=r"^CASE types integer and text cannot be matched$"):
        common_type((INTEGER, TEXT), "CASE")
    with pytest.raises(DatatypeMismatch, match=r"^UNION types numeric and boolean cannot be"):
        common_type((INTEGER, numeric(3, 1), BOOLEAN), "UNION")
    with pytest.raises(CannotCoerce, match=r"^VALUES could not convert type uuid to json"):
        common_type((JSON, UUID_TYPE), "VALUES")


def test_names_tell_what_they_are() -> None:
    assert is_aggregate("sum") and not is_aggregate("lower")
    assert is_function("lower") and is_function("greatest") and not is_function("sum")
    assert is_window_function("row_number") and not is_window_function("sum")
    assert is_table_function("generate_series") and not is_table_function("lower")
    assert is_ordered_set_aggregate("mode") and not is_ordered_set_aggregate("sum")
    assert resolve_operator("-", TIMESTAMP, TIMESTAMP).returns == INTERVAL

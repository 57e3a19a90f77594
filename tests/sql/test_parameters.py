"""Parameters: what JSON can say becomes a value of the type that is wanted, or an error."""

from __future__ import annotations

from base64 import b64encode
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from qserver.errors import (
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    ProgramLimitExceeded,
    ProtocolViolation,
    QserverError,
    SqlSyntaxError,
    StringDataRightTruncation,
)
from qserver.limits import JSON_DEPTH_MAX
from qserver.sql.parameters import Given, converter, parameter_list, type_of_value
from qserver.values.jsonb import Jsonb
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    JSONB,
    NUMERIC,
    SMALLINT,
    TEXT,
    SqlType,
    array_of,
    numeric,
    varchar,
)
from tests.sql.databases import opened_sql


@pytest.mark.parametrize(
    ("sql_type", "given", "expected"),
    [
        (INTEGER, 5, 5),
        (INTEGER, "5", 5),
        (BIGINT, 2**40, 2**40),
        (BOOLEAN, True, True),
        (BOOLEAN, "yes", True),
        (DOUBLE, 1, 1.0),
        (DOUBLE, "1.5", 1.5),
        (NUMERIC, 0.1, Decimal("0.1")),
        (NUMERIC, "0.10", Decimal("0.10")),
        (numeric(4, 1), 12, Decimal("12.0")),
        (TEXT, "it's", "it's"),
        (TEXT, 5, "5"),
        (TEXT, True, "true"),
        (DATE, "2024-02-29", date(2024, 2, 29)),
        (DATE, date(2024, 2, 29), date(2024, 2, 29)),
        (array_of(INTEGER), [1, None, "3"], (1, None, 3)),
        (array_of(INTEGER), [[1], [2]], ((1,), (2,))),
        (array_of(INTEGER), "{1,2}", (1, 2)),
        (JSON, {"a": [1]}, '{"a":[1]}'),
        (JSON, '{"a":1}', '{"a":1}'),
    ],
)
def test_what_fits_becomes_a_value_of_the_type(
    sql_type: SqlType, given: Any, expected: Any
) -> None:
    found = converter(sql_type)(given)
    assert (found, type(found)) == (expected, type(expected))


def test_json_values_become_jsonb() -> None:
    assert isinstance(converter(JSONB)({"a": 1}), Jsonb)
    assert converter(JSONB)({"a": 1}) == converter(JSONB)('{"a" : 1}')


@pytest.mark.parametrize(
    ("sql_type", "given", "error"),
    [
        (INTEGER, "five", InvalidTextRepresentation),
        (INTEGER, 1.5, InvalidTextRepresentation),
        (INTEGER, True, InvalidTextRepresentation),
        (SMALLINT, 40_000, NumericValueOutOfRange),
        (BOOLEAN, 7, InvalidTextRepresentation),
        (varchar(3), "four", StringDataRightTruncation),
        (DATE, 5, QserverError),
        (array_of(INTEGER), ["x"], InvalidTextRepresentation),
        (JSONB, "{", InvalidTextRepresentation),
    ],
)
def test_what_does_not_fit_is_refused(
    sql_type: SqlType, given: Any, error: type[QserverError]
) -> None:
    with pytest.raises(error):
        converter(sql_type)(given)


def test_slots_hold_literals_by_index_and_parameters_by_name() -> None:
    numbered = parameter_list({1: INTEGER, 2: TEXT})
    assert numbered.slots([10, "x"], [7, None]) == {0: 10, 1: "x", "$1": 7, "$2": None}
    named = parameter_list({"id": INTEGER})
    assert named.slots([], {"id": "7"}) == {":id": 7}


@pytest.mark.parametrize(
    ("types", "given", "message"),
    [
        ({1: TEXT}, None, "the statement has 1 parameter, but 0 were given"),
        ({1: TEXT, 2: TEXT}, ["a"], "the statement has 2 parameters, but 1 was given"),
        ({1: TEXT}, ["a", "b"], "the statement has 1 parameter, but 2 were given"),
        ({1: TEXT}, {"a": 1}, "the statement's parameters have numbers, but names were given"),
        ({"a": TEXT}, {}, "parameter :a was not given"),
        ({"a": TEXT}, {"a": 1, "b": 2}, "the statement has no parameter :b"),
    ],
)
def test_a_wrong_count_is_refused_with_a_clear_word(
    types: dict[int | str, SqlType], given: Given, message: str
) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parameter_list(types).slots([], given)
    assert str(caught.value) == message


@pytest.mark.parametrize("number", ["0", "00", "32767", "99999999999", "9" * 5000])
async def test_a_parameter_with_an_impossible_number_costs_nothing(number: str) -> None:
    async with opened_sql() as database:
        with pytest.raises(SqlSyntaxError, match="there is no parameter") as caught:
            await database.execute(f"SELECT 1, ${number}", [1])
        assert caught.value.position == 11
        assert (await database.execute("SELECT $001 + 1", [1])).rows == [(2,)]


def test_numbers_and_names_do_not_mix() -> None:
    with pytest.raises(ProtocolViolation):
        parameter_list({1: TEXT, "a": TEXT})


# --- bytes, depth, and the types of values -------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"\x00\xff", bytes(range(256))])
def test_bytes_are_given_as_they_are_answered(value: bytes) -> None:
    assert converter(BYTEA)(b64encode(value).decode()) == value
    assert converter(array_of(BYTEA))([b64encode(value).decode(), None]) == (value, None)
    assert converter(BYTEA)(value) == value


@pytest.mark.parametrize("given", ["\\x00ff", "AP8", "not base64", 5, ["AP8="], "\u00e9"])
def test_what_is_not_base64_is_not_taken_for_bytes(given: Any) -> None:
    with pytest.raises(InvalidTextRepresentation):
        converter(BYTEA)(given)


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def test_an_array_has_at_most_six_dimensions_however_deep_the_list_is() -> None:
    assert converter(array_of(INTEGER))(nested(1, 6)) == ((((((1,),),),),),)
    for depth in (7, 500, 5000):
        with pytest.raises(ProgramLimitExceeded):
            converter(array_of(INTEGER))(nested(1, depth))


@pytest.mark.parametrize("sql_type", [JSONB, JSON, TEXT, INTEGER, DATE])
def test_no_depth_of_a_parameter_is_an_internal_error(sql_type: SqlType) -> None:
    for depth in (JSON_DEPTH_MAX + 1, 500, 5000):
        if sql_type is TEXT and depth < 5000:
            continue  # a text may say what it likes
        with pytest.raises(QserverError):
            converter(sql_type)(nested(1, depth))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, BOOLEAN),
        (0, INTEGER),
        (2**31 - 1, INTEGER),
        (-(2**31), INTEGER),
        (2**31, BIGINT),
        (-(2**63), BIGINT),
        (2**63, NUMERIC),
        (1.5, DOUBLE),
        (Decimal("1.5"), DOUBLE),
        (Decimal("1e3"), DOUBLE),
        (Decimal("0.12345678901234567890"), NUMERIC),
        ([1, "a"], JSONB),
        ({"a": 1}, JSONB),
        ("x", None),
        (None, None),
    ],
)
def test_a_value_has_a_type_by_itself(value: Any, expected: SqlType | None) -> None:
    assert type_of_value(value) == expected


@pytest.mark.parametrize(
    ("sql", "given", "types", "rows"),
    [
        ("SELECT ?", [1], ["integer"], [(1,)]),
        ("SELECT ?", [2**40], ["bigint"], [(2**40,)]),
        ("SELECT ?", [Decimal("1.5")], ["double precision"], [(1.5,)]),
        ("SELECT ?", [True], ["boolean"], [(True,)]),
        ("SELECT ?", ["1"], ["text"], [("1",)]),
        ("SELECT ?", [None], ["text"], [(None,)]),
        ("SELECT :a, :b", {"a": 1, "b": "x"}, ["integer", "text"], [(1, "x")]),
        ("SELECT ? + ?", [1, 2], ["integer"], [(3,)]),
        ("SELECT ? < ?", [10, 9], ["boolean"], [(False,)]),
        ("SELECT ? < ?", ["10", "9"], ["boolean"], [(True,)]),
        ("SELECT ? || ?", [1, 2], ["text"], [("12",)]),
        ("SELECT upper(?)", [5], ["text"], [("5",)]),
        ("SELECT coalesce(?, ?)", [None, 5], ["integer"], [(5,)]),
        ("SELECT CASE WHEN true THEN ? END", [5], ["integer"], [(5,)]),
        ("SELECT greatest(?, ?)", [10, 9], ["integer"], [(10,)]),
        ("SELECT ? IN (?, ?)", [10, 9, 10], ["boolean"], [(True,)]),
        ("SELECT ARRAY[?]", [5], ["integer[]"], [((5,),)]),
        ("SELECT max(?)", [5], ["integer"], [(5,)]),
        ("SELECT pg_typeof(?)::text", [5], ["text"], [("integer",)]),
        ("VALUES (?), (?)", [1, Decimal("2.5")], ["double precision"], [(1.0,), (2.5,)]),
        ("SELECT ? UNION ALL SELECT ?", [1, 2], ["integer"], [(1,), (2,)]),
        ("SELECT x + 1 FROM (SELECT ? AS x) AS s", [4], ["integer"], [(5,)]),
        ("SELECT 1 WHERE 5 = ?", ["5"], ["integer"], [(1,)]),
    ],
)
async def test_a_parameter_has_the_type_of_its_value_where_nothing_else_tells(
    sql: str, given: Given, types: list[str], rows: list[tuple[Any, ...]]
) -> None:
    async with opened_sql() as database:
        for _ in range(2):  # the second time by the kept plan
            result = await database.execute(sql, given)
            assert [str(each) for each in result.types] == types
            assert result.rows == rows


async def test_a_plan_is_kept_for_each_type_of_value() -> None:
    async with opened_sql() as database:
        for _ in range(3):
            for value, name in ((1, "integer"), ("a", "text"), (True, "boolean"), (2, "integer")):
                result = await database.execute("SELECT ?", [value])
                assert (result.rows, str(result.types[0])) == ([(value,)], name)
        assert database.statistics().misses == 3
        await database.execute("CREATE TABLE t (a INT, b TEXT)")
        for each in (1, "1", None):
            await database.execute("INSERT INTO t VALUES (?, ?)", [each, each])
        assert (await database.execute("SELECT count(*), min(a) FROM t")).rows == [(3, 1)]


async def test_explain_takes_parameters() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        await database.execute("INSERT INTO t VALUES (1), (2)")
        found = await database.execute("EXPLAIN SELECT * FROM t WHERE id = ?", [1])
        assert found.rows[1:] == [("->  Key Lookup on t  (rows=1)",), ("      Key: id = $1",)]
        analyzed = await database.execute(
            "EXPLAIN (ANALYZE, SUMMARY OFF) DELETE FROM t WHERE id = :id", {"id": 1}
        )
        assert analyzed.rows[-1] == ("Changed rows: 1",)
        with pytest.raises(ProtocolViolation):
            await database.execute("EXPLAIN SELECT ?", [])

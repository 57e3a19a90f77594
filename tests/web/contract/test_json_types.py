"""Section 3's table: what a value of each SQL type looks like in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.contract.servers import Client

TABLE: list[tuple[str, str, str]] = [
    # SQL, name of the type, JSON as it is written
    ("1::smallint", "smallint", "1"),
    ("(-2147483648)::int", "integer", "-2147483648"),
    ("9223372036854775807::bigint", "bigint", "9223372036854775807"),
    ("1::bigint", "bigint", "1"),
    ("1.5::real", "real", "1.5"),
    ("0.1::real", "real", "0.1"),
    ("0.1::double precision", "double precision", "0.1"),
    ("1e300::double precision", "double precision", "1e300"),
    ("2::double precision", "double precision", "2.0"),
    ("'NaN'::double precision", "double precision", '"NaN"'),
    ("'Infinity'::real", "real", '"Infinity"'),
    ("'-Infinity'::double precision", "double precision", '"-Infinity"'),
    ("1.10", "numeric", '"1.10"'),
    ("1::numeric", "numeric", '"1"'),
    ("123456789012345678901234567890.5", "numeric", '"123456789012345678901234567890.5"'),
    ("'NaN'::numeric", "numeric", '"NaN"'),
    ("true", "boolean", "true"),
    ("false", "boolean", "false"),
    ("'é\"\\'::text", "text", '"é\\"\\\\"'),
    ("'x'::varchar(5)", "character varying(5)", '"x"'),
    ("'x'::char(3)", "character(3)", '"x  "'),
    (
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid",
        "uuid",
        '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"',
    ),
    ("'\\x00ff10'::bytea", "bytea", '"AP8Q"'),
    ("''::bytea", "bytea", '""'),
    ("date '2024-02-29'", "date", '"2024-02-29"'),
    ("time '04:05:06.789'", "time without time zone", '"04:05:06.789000"'),
    ("timestamp '2024-02-29 04:05:06'", "timestamp without time zone", '"2024-02-29T04:05:06"'),
    (
        "timestamptz '2024-02-29 04:05:06+02'",
        "timestamp with time zone",
        '"2024-02-29T02:05:06Z"',
    ),
    ("interval '1 year 2 months 3 days 04:05:06.7'", "interval", '"P1Y2M3DT4H5M6.7S"'),
    ("interval '0'", "interval", '"PT0S"'),
    ("interval '-1 day'", "interval", '"P-1D"'),
    ('\'{"a": [1, null, "b"]}\'::json', "json", '{"a":[1,null,"b"]}'),
    ('\'{"b": 1.50, "a": null}\'::jsonb', "jsonb", '{"a":null,"b":1.50}'),
    ("'null'::jsonb", "jsonb", "null"),
    ("'\"text\"'::jsonb", "jsonb", '"text"'),
    ("array[1, null, 3]", "integer[]", "[1,null,3]"),
    ("array[1.50, 2]", "numeric[]", '["1.50","2"]'),
    ("array[[1, 2], [3, 4]]", "integer[]", "[[1,2],[3,4]]"),
    ("array['\\x00'::bytea]", "bytea[]", '["AA=="]'),
    ("'{}'::text[]", "text[]", "[]"),
    ("null::int", "integer", "null"),
    ("null::numeric", "numeric", "null"),
    ("null::jsonb", "jsonb", "null"),
    ("null::int[]", "integer[]", "null"),
]


@pytest.mark.parametrize(("sql", "type_name", "written"), TABLE, ids=[row[0] for row in TABLE])
def test_the_type_of_the_column_decides_how_a_value_is_written(
    admin: Client, sql: str, type_name: str, written: str
) -> None:
    answer = admin.query_response(f"select {sql} as v")
    found = answer.json()
    assert found["success"] is True, found
    assert found["types"] == [type_name]
    expected: Any = json.loads(written)
    assert found["rows"] == [{"v": expected}]
    assert type(found["rows"][0]["v"]) is type(expected)
    arrays = admin.query_response(f"select {sql} as v", format="arrays")
    assert arrays.json()["rows"] == [[expected]]


def test_numbers_are_written_with_every_digit(admin: Client) -> None:
    text = admin.query_response("select 9223372036854775807::bigint as v").text
    assert '"rows":[{"v":9223372036854775807}]' in text
    text = admin.query_response("select '1.50'::jsonb as v").text
    assert '"rows":[{"v":1.50}]' in text

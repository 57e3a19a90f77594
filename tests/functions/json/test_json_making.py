"""JSON and JSONB are made of values as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.errors import InvalidParameterValue
from qserver.functions.json.json_making import json_writer
from qserver.values.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    RECORD,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID_TYPE,
    SqlType,
    array_of,
    record_of,
)
from tests.functions.typed_calls import Argument, aggregated, called

Case = tuple[str, list[Argument], str | None]
INTEGERS = array_of(INTEGER)
TEXTS = array_of(TEXT)

WRITTEN: list[Case] = [
    ("to_json", [(INTEGER, "5")], "5"),
    ("to_jsonb", [(INTEGER, "5")], "5"),
    ("to_json", [(TEXT, 'a"b')], '"a\\"b"'),
    ("to_jsonb", [(TEXT, 'a"b')], '"a\\"b"'),
    ("to_json", [(BOOLEAN, "t")], "true"),
    ("to_jsonb", [(BOOLEAN, "t")], "true"),
    ("to_json", [(NUMERIC, "1.50")], "1.50"),
    ("to_jsonb", [(NUMERIC, "1.50")], "1.50"),
    ("to_json", [(NUMERIC, "NaN")], '"NaN"'),
    ("to_jsonb", [(NUMERIC, "NaN")], '"NaN"'),
    ("to_json", [(DOUBLE, "1e30")], "1e+30"),
    ("to_jsonb", [(DOUBLE, "1e30")], "1000000000000000000000000000000"),
    ("to_json", [(DOUBLE, "-0")], "-0"),
    ("to_jsonb", [(DOUBLE, "-0")], "0"),
    ("to_jsonb", [(array_of(DOUBLE), "{-0,-0.5}")], "[0, -0.5]"),
    ("to_json", [(DOUBLE, "inf")], '"Infinity"'),
    ("to_jsonb", [(DOUBLE, "inf")], '"Infinity"'),
    ("to_json", [(DATE, "2020-01-01")], '"2020-01-01"'),
    ("to_jsonb", [(DATE, "2020-01-01")], '"2020-01-01"'),
    ("to_json", [(TIMESTAMP, "2020-01-01 10:00:00.5")], '"2020-01-01T10:00:00.5"'),
    ("to_jsonb", [(TIMESTAMP, "2020-01-01 10:00:00.5")], '"2020-01-01T10:00:00.5"'),
    ("to_json", [(TIMESTAMPTZ, "2020-01-01 10:00+02")], '"2020-01-01T08:00:00+00:00"'),
    ("to_jsonb", [(TIMESTAMPTZ, "2020-01-01 10:00+02")], '"2020-01-01T08:00:00+00:00"'),
    ("to_json", [(INTERVAL, "1 day")], '"1 day"'),
    ("to_jsonb", [(INTERVAL, "1 day")], '"1 day"'),
    (
        "to_json",
        [(UUID_TYPE, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
        '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"',
    ),
    (
        "to_jsonb",
        [(UUID_TYPE, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
        '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"',
    ),
    ("to_json", [(BYTEA, "\\x01")], '"\\\\x01"'),
    ("to_jsonb", [(BYTEA, "\\x01")], '"\\\\x01"'),
    ("to_json", [(JSON, '{"a" : 1, "a" : 2}')], '{"a" : 1, "a" : 2}'),
    ("to_jsonb", [(JSON, '{"a" : 1, "a" : 2}')], '{"a": 2}'),
    ("to_json", [(JSONB, '{"a" : 1}')], '{"a": 1}'),
    ("to_jsonb", [(JSONB, '{"a" : 1}')], '{"a": 1}'),
    ("to_json", [(INTEGERS, "{1,NULL}")], "[1,null]"),
    ("to_jsonb", [(INTEGERS, "{1,NULL}")], "[1, null]"),
    ("to_json", [(INTEGERS, "{{1,2},{3,4}}")], "[[1,2],[3,4]]"),
    ("to_jsonb", [(INTEGERS, "{{1,2},{3,4}}")], "[[1, 2], [3, 4]]"),
    ("to_json", [(INTEGER, None)], None),
    ("to_jsonb", [(INTEGER, None)], None),
    ("array_to_json", [(INTEGERS, "{{1,2},{3,4}}"), (BOOLEAN, "t")], "[[1,2],\n [3,4]]"),
    ("array_to_json", [(INTEGERS, "{1,2}")], "[1,2]"),
]

BUILT: list[Case] = [
    (
        "json_build_array",
        [(INTEGER, "1"), (UNKNOWN, "a"), (INTEGER, None), (JSONB, '{"a":1}'), (INTEGERS, "{1,2}")],
        '[1, "a", null, {"a": 1}, [1,2]]',
    ),
    (
        "jsonb_build_array",
        [(INTEGER, "1"), (UNKNOWN, "a"), (INTEGER, None), (JSONB, '{"a":1}'), (INTEGERS, "{1,2}")],
        '[1, "a", null, {"a": 1}, [1, 2]]',
    ),
    (
        "json_build_object",
        [
            (UNKNOWN, "b"),
            (INTEGER, "1"),
            (TEXT, "a"),
            (INTEGER, None),
            (INTEGER, "1"),
            (DATE, "2020-01-01"),
            (TEXT, "b"),
            (BOOLEAN, "f"),
        ],
        '{"b" : 1, "a" : null, "1" : "2020-01-01", "b" : false}',
    ),
    (
        "jsonb_build_object",
        [
            (UNKNOWN, "b"),
            (INTEGER, "1"),
            (TEXT, "a"),
            (INTEGER, None),
            (INTEGER, "1"),
            (DATE, "2020-01-01"),
            (TEXT, "b"),
            (BOOLEAN, "f"),
        ],
        '{"1": "2020-01-01", "a": null, "b": false}',
    ),
    ("json_build_object", [], "{}"),
    ("jsonb_build_object", [], "{}"),
    ("json_build_array", [], "[]"),
    ("jsonb_build_array", [], "[]"),
    (
        "jsonb_build_object",
        [(TEXT, "a")],
        "error 22023: argument list must have even number of elements",
    ),
    (
        "jsonb_build_object",
        [(TEXT, None), (INTEGER, "1")],
        "error 22023: argument 1: key must not be null",
    ),
    (
        "json_build_object",
        [(TEXT, "a"), (INTEGER, "1"), (TEXT, None), (INTEGER, "1")],
        "error 22023: argument 3 cannot be null",
    ),
    (
        "json_build_object",
        [(INTEGERS, "{1}"), (INTEGER, "1")],
        "error 22023: key value must be scalar, not array, composite, or json",
    ),
    (
        "json_build_object",
        [(TIMESTAMP, "2020-01-01"), (INTEGER, "1")],
        '{"2020-01-01T00:00:00" : 1}',
    ),
    ("json_object", [(TEXTS, "{a,1,b,NULL}")], '{"a" : "1", "b" : null}'),
    ("jsonb_object", [(TEXTS, "{{b,1},{a,NULL}}")], '{"a": null, "b": "1"}'),
    ("json_object", [(TEXTS, "{a,b,c}")], "error 2202E: array must have even number of elements"),
    ("json_object", [(TEXTS, "{a,b}"), (TEXTS, "{1,2}")], '{"a" : "1", "b" : "2"}'),
    ("json_object", [(TEXTS, "{a,b}"), (TEXTS, "{1}")], "error 2202E: mismatched array dimensions"),
    (
        "json_object",
        [(TEXTS, "{NULL}"), (TEXTS, "{1}")],
        "error 22004: null value not allowed for object key",
    ),
    ("json_object", [(TEXTS, "{{a,b,c}}")], "error 2202E: array must have two columns"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), WRITTEN)
def test_a_value_as_json(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), BUILT)
def test_arrays_and_objects_are_built(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


def test_records_are_objects() -> None:
    named = record_of((("bb", INTEGER), ("a", TEXT)))
    assert json_writer(named)((1, None)) == '{"bb":1,"a":null}'
    assert json_writer(named, canonical=True)((1, "x")) == '{"a": "x", "bb": 1}'
    assert json_writer(named, line="\n ")((1, "x")) == '{"bb":1,\n "a":"x"}'
    assert json_writer(RECORD)((1, "x", None)) == '{"f1":1,"f2":"x","f3":null}'


def test_rows_are_gathered() -> None:
    numbers = (INTEGER, ["2", None, "1"])
    assert aggregated("json_agg", numbers) == aggregated("jsonb_agg", numbers) == "[2, null, 1]"
    assert aggregated("json_agg", (array_of(INTEGER), ["{1,2}", "{3}"])) == "[[1,2], \n [3]]"
    assert aggregated("jsonb_agg", (array_of(INTEGER), ["{1,2}", "{3}"])) == "[[1, 2], [3]]"
    assert aggregated("json_agg", (JSON, ['{"a" : 1}'])) == '[{"a" : 1}]'
    assert aggregated("json_agg", (INTEGER, [])) is None
    keys: tuple[SqlType, list[str | None]] = (TEXT, ["b", "a", "b"])
    assert aggregated("json_object_agg", keys, numbers) == '{ "b" : 2, "a" : null, "b" : 1 }'
    assert aggregated("jsonb_object_agg", keys, numbers) == '{"a": null, "b": 1}'
    with pytest.raises(InvalidParameterValue, match="field name must not be null"):
        aggregated("json_object_agg", (TEXT, [None]), (INTEGER, ["1"]))

"""Reading JSON and JSONB answers as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import INTEGER, JSON, JSONB, TEXT, array_of
from tests.functions.typed_calls import Argument, called, rows_of

Case = tuple[str, list[Argument], str | None]
TEXTS = array_of(TEXT)

PARTS: list[Case] = [
    (
        "->",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a")],
        '[1, {"b": null}]',
    ),
    ("->", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "c")], '"x\\ny"'),
    ("->", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "x")], None),
    ("->", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (INTEGER, "0")], None),
    (
        "->>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a")],
        '[1, {"b": null}]',
    ),
    ("->>", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "c")], "x\ny"),
    ("->>", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "x")], None),
    ("->>", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (INTEGER, "0")], None),
    (
        "->",
        [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a")],
        '[1, {"b": null}]',
    ),
    ("->", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "c")], '"x\\ny"'),
    ("->", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "x")], None),
    ("->", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (INTEGER, "0")], None),
    (
        "->>",
        [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a")],
        '[1, {"b": null}]',
    ),
    ("->>", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "c")], "x\ny"),
    ("->>", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "x")], None),
    ("->>", [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (INTEGER, "0")], None),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "0")], "1"),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "1")], '"x"'),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "2")], "null"),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "-1")], "null"),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "3")], None),
    ("->", [(JSONB, '[1,  "x" , null]'), (INTEGER, "-4")], None),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "0")], "1"),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "1")], "x"),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "2")], None),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "-1")], None),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "3")], None),
    ("->>", [(JSONB, '[1,  "x" , null]'), (INTEGER, "-4")], None),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "0")], "1"),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "1")], '"x"'),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "2")], "null"),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "-1")], "null"),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "3")], None),
    ("->", [(JSON, '[1,  "x" , null]'), (INTEGER, "-4")], None),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "0")], "1"),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "1")], "x"),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "2")], None),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "-1")], None),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "3")], None),
    ("->>", [(JSON, '[1,  "x" , null]'), (INTEGER, "-4")], None),
    ("->", [(JSONB, '"abc"'), (INTEGER, "0")], '"abc"'),
    ("->", [(JSON, '"abc"'), (INTEGER, "0")], None),
    ("->", [(JSONB, '{"a":1}'), (INTEGER, "0")], None),
    ("->", [(JSON, '{"a" : {"b" : [1, 2]}}'), (TEXT, "a")], '{"b" : [1, 2]}'),
    ("->", [(JSON, '{"a":1,"a":2}'), (TEXT, "a")], "2"),
    (
        "->>",
        [(JSON, '{"\\ud800":1,"a":"\\u00e9"}'), (TEXT, "a")],
        "error 22P02: invalid input syntax for type json",
    ),
    (
        "->>",
        [(JSON, '{"a":"\\u0000"}'), (TEXT, "a")],
        "error 22P05: unsupported Unicode escape sequence",
    ),
    (
        "#>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a,1}")],
        '{"b": null}',
    ),
    (
        "#>>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a,1,b}")],
        None,
    ),
    (
        "#>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a,-1}")],
        '{"b": null}',
    ),
    (
        "#>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{}")],
        '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}',
    ),
    ("#>", [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a,x}")], None),
    (
        "#>",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a,NULL}")],
        None,
    ),
    ("#>>", [(JSON, '"x"'), (TEXTS, "{}")], "x"),
    ("#>", [(JSON, '{"a": {"k": 1}, "a": {"k": 2}, "a": [3]}'), (TEXTS, "{a,k}")], "2"),
    ("#>", [(JSON, '[{"a": {"k": 1}, "a": 3}]'), (TEXTS, "{0,a,k}")], "1"),
    ("#>", [(JSON, '{"a": {"k": 1}, "a": 3}'), (TEXTS, "{a}")], "3"),
    ("json_extract_path", [(JSON, '{"a": {"k": []}, "a": 3}'), (TEXT, "a"), (TEXT, "k")], "[]"),
    (
        "#>",
        [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXTS, "{a, 1}")],
        '{"b": null}',
    ),
    (
        "jsonb_extract_path",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a"), (TEXT, "1")],
        '{"b": null}',
    ),
    (
        "jsonb_extract_path_text",
        [(JSONB, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "a"), (TEXT, "0")],
        "1",
    ),
    (
        "json_extract_path",
        [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "é")],
        "1.50",
    ),
    (
        "json_object_field_text",
        [(JSON, '{"a": [1, {"b": null}], "c": "x\\ny", "é": 1.50}'), (TEXT, "c")],
        "x\ny",
    ),
    ("jsonb_array_element", [(JSONB, "[1,2]"), (INTEGER, "1")], "2"),
]

KINDS: list[Case] = [
    ("jsonb_typeof", [(JSONB, "{}")], "object"),
    ("jsonb_typeof", [(JSONB, "[]")], "array"),
    ("jsonb_typeof", [(JSONB, '"a"')], "string"),
    ("jsonb_typeof", [(JSONB, "1")], "number"),
    ("jsonb_typeof", [(JSONB, "true")], "boolean"),
    ("jsonb_typeof", [(JSONB, "false")], "boolean"),
    ("jsonb_typeof", [(JSONB, "null")], "null"),
    ("json_typeof", [(JSON, " {} ")], "object"),
    ("jsonb_array_length", [(JSONB, "[1,[2,3]]")], "2"),
    ("jsonb_array_length", [(JSONB, "{}")], "error 22023: cannot get array length of a non-array"),
    ("json_array_length", [(JSON, "1")], "error 22023: cannot get array length of a scalar"),
    ("json_array_length", [(JSON, " [ ] ")], "0"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), PARTS)
def test_parts_are_found(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), KINDS)
def test_kinds_and_lengths(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


def test_objects_and_arrays_become_rows() -> None:
    document = '{"b": 1, "a": [2, null], "b": "x"}'
    assert rows_of("jsonb_each", (JSONB, document)) == [("a", "[2, null]"), ("b", '"x"')]
    assert rows_of("json_each", (JSON, document)) == [
        ("b", "1"),
        ("a", "[2, null]"),
        ("b", '"x"'),
    ]
    assert rows_of("jsonb_each_text", (JSONB, '{"a": null, "b": "x"}')) == [
        ("a", None),
        ("b", "x"),
    ]
    assert rows_of("json_object_keys", (JSON, document)) == [("b",), ("a",), ("b",)]
    assert rows_of("jsonb_array_elements", (JSONB, '[1, "a", {"b":2}]')) == [
        ("1",),
        ('"a"',),
        ('{"b": 2}',),
    ]
    assert rows_of("json_array_elements_text", (JSON, '["a", null]')) == [("a",), (None,)]
    assert rows_of("jsonb_array_elements", (JSONB, None)) == []


ROW_ERRORS = [
    ("jsonb_each", (JSONB, "[1]"), "cannot call jsonb_each on a non-object"),
    ("json_each", (JSON, "[1]"), "cannot deconstruct an array as an object"),
    ("json_each", (JSON, "1"), "cannot deconstruct a scalar"),
    ("jsonb_object_keys", (JSONB, "[1]"), "cannot call jsonb_object_keys on an array"),
    ("json_object_keys", (JSON, "1"), "cannot call json_object_keys on a scalar"),
    ("jsonb_array_elements", (JSONB, "{}"), "cannot extract elements from an object"),
    ("json_array_elements", (JSON, "1"), "cannot call json_array_elements on a scalar"),
]


@pytest.mark.parametrize(("name", "argument", "message"), ROW_ERRORS)
def test_what_has_no_rows_is_an_error(name: str, argument: Argument, message: str) -> None:
    assert rows_of(name, argument) == f"error 22023: {message}"


def test_a_jsonb_can_be_subscripted() -> None:
    document = (JSONB, '{"a": [1, 2]}')
    assert called("array_subscript", document, (TEXT, "a"), (TEXT, "1")) == "2"
    assert called("array_subscript", document, (TEXT, "x")) is None
    assert called("array_subscript", (JSONB, "[1, 2]"), (INTEGER, "-1")) == "2"

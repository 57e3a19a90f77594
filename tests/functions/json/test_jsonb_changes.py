"""Changing and comparing JSONB answers as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import BOOLEAN, INTEGER, JSON, JSONB, TEXT, array_of
from tests.functions.typed_calls import Argument, called

Case = tuple[str, list[Argument], str | None]
TEXTS = array_of(TEXT)

CONTAINED: list[Case] = [
    ("@>", [(JSONB, '{"a":[1,2,3],"b":{"c":1}}'), (JSONB, '{"a":[3,1]}')], "true"),
    ("@>", [(JSONB, '{"a":[1,2]}'), (JSONB, '{"a":[4]}')], "false"),
    ("@>", [(JSONB, "[1,2]"), (JSONB, "1")], "true"),
    ("@>", [(JSONB, "1"), (JSONB, "[1]")], "false"),
    ("@>", [(JSONB, "1"), (JSONB, "1.0")], "true"),
    ("@>", [(JSONB, "[1,[2,3]]"), (JSONB, "[[3]]")], "true"),
    ("@>", [(JSONB, '{"a":{"b":1,"c":2}}'), (JSONB, '{"a":{"c":2}}')], "true"),
    ("@>", [(JSONB, "[true]"), (JSONB, "[1]")], "false"),
    ("@>", [(JSONB, "{}"), (JSONB, "[]")], "false"),
    ("@>", [(JSONB, '[{"a":1,"b":2}]'), (JSONB, '[{"a":1},{"b":2}]')], "true"),
    ("<@", [(JSONB, '{"a":1}'), (JSONB, '{"a":1,"b":2}')], "true"),
    ("?", [(JSONB, '{"a":1}'), (TEXT, "a")], "true"),
    ("?", [(JSONB, '["a","b"]'), (TEXT, "b")], "true"),
    ("?", [(JSONB, '"a"'), (TEXT, "a")], "true"),
    ("?", [(JSONB, '{"a":{"b":1}}'), (TEXT, "b")], "false"),
    ("?|", [(JSONB, '{"a":1}'), (TEXTS, "{x,a}")], "true"),
    ("?|", [(JSONB, '{"a":1}'), (TEXTS, "{NULL}")], "false"),
    ("?&", [(JSONB, '{"a":1}'), (TEXTS, "{x,a}")], "false"),
    ("?&", [(JSONB, '{"a":1}'), (TEXTS, "{a,NULL}")], "true"),
]

ORDERED: list[Case] = [
    ("=", [(JSONB, "1.0"), (JSONB, "1.00")], "true"),
    ("=", [(JSONB, "[]"), (JSONB, "null")], "false"),
    ("=", [(JSONB, "null"), (JSONB, '"a"')], "false"),
    ("=", [(JSONB, '"a"'), (JSONB, "1")], "false"),
    ("=", [(JSONB, "1"), (JSONB, "false")], "false"),
    ("=", [(JSONB, "true"), (JSONB, "[1]")], "false"),
    ("=", [(JSONB, "[1,2]"), (JSONB, "{}")], "false"),
    ("=", [(JSONB, "[2]"), (JSONB, "[1,1]")], "false"),
    ("=", [(JSONB, '{"a":1}'), (JSONB, '{"b":0}')], "false"),
    ("=", [(JSONB, '{"aa":1}'), (JSONB, '{"b":1}')], "false"),
    ("=", [(JSONB, "[[]]"), (JSONB, "[1]")], "false"),
    ("<", [(JSONB, "1.0"), (JSONB, "1.00")], "false"),
    ("<", [(JSONB, "[]"), (JSONB, "null")], "true"),
    ("<", [(JSONB, "null"), (JSONB, '"a"')], "true"),
    ("<", [(JSONB, '"a"'), (JSONB, "1")], "true"),
    ("<", [(JSONB, "1"), (JSONB, "false")], "true"),
    ("<", [(JSONB, "true"), (JSONB, "[1]")], "true"),
    ("<", [(JSONB, "[1,2]"), (JSONB, "{}")], "true"),
    ("<", [(JSONB, "[2]"), (JSONB, "[1,1]")], "true"),
    ("<", [(JSONB, '{"a":1}'), (JSONB, '{"b":0}')], "true"),
    ("<", [(JSONB, '{"aa":1}'), (JSONB, '{"b":1}')], "true"),
    ("<", [(JSONB, "[[]]"), (JSONB, "[1]")], "false"),
]

JOINED: list[Case] = [
    ("||", [(JSONB, '{"a":1}'), (JSONB, '{"b":2,"a":3}')], '{"a": 3, "b": 2}'),
    ("||", [(JSONB, "[1]"), (JSONB, "2")], "[1, 2]"),
    ("||", [(JSONB, "1"), (JSONB, "2")], "[1, 2]"),
    ("||", [(JSONB, "[1]"), (JSONB, '{"a":1}')], '[1, {"a": 1}]'),
    ("||", [(JSONB, '{"a":1}'), (JSONB, "[1]")], '[{"a": 1}, 1]'),
    ("||", [(JSONB, '{"a":1}'), (JSONB, "2")], '[{"a": 1}, 2]'),
    ("-", [(JSONB, '{"a":1,"b":2}'), (TEXT, "a")], '{"b": 2}'),
    ("-", [(JSONB, '["a","b","a"]'), (TEXT, "a")], '["b"]'),
    ("-", [(JSONB, '["a","b","c"]'), (INTEGER, "1")], '["a", "c"]'),
    ("-", [(JSONB, '["a","b","c"]'), (INTEGER, "-1")], '["a", "b"]'),
    ("-", [(JSONB, "[1]"), (INTEGER, "5")], "[1]"),
    (
        "-",
        [(JSONB, '{"a":1}'), (INTEGER, "1")],
        "error 22023: cannot delete from object using integer index",
    ),
    ("-", [(JSONB, "1"), (INTEGER, "1")], "error 22023: cannot delete from scalar"),
    ("-", [(JSONB, "1"), (TEXT, "a")], "error 22023: cannot delete from scalar"),
    ("-", [(JSONB, '{"a":1,"b":2}'), (TEXTS, "{a,b}")], "{}"),
    ("#-", [(JSONB, '{"a":[1,{"b":2}]}'), (TEXTS, "{a,1,b}")], '{"a": [1, {}]}'),
    ("#-", [(JSONB, '{"a":[1,{"b":2}]}'), (TEXTS, "{a,-1}")], '{"a": [1]}'),
    (
        "#-",
        [(JSONB, '{"a":[1]}'), (TEXTS, "{a,x}")],
        'error 22P02: path element at position 2 is not an integer: "x"',
    ),
    ("#-", [(JSONB, "1"), (TEXTS, "{a}")], "error 22023: cannot delete path in scalar"),
    ("#-", [(JSONB, '{"a":1}'), (TEXTS, "{}")], '{"a": 1}'),
]

SET: list[Case] = [
    ("jsonb_set", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,0}"), (JSONB, "9")], '{"a": [9, 2]}'),
    ("jsonb_set", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,9}"), (JSONB, "9")], '{"a": [1, 2, 9]}'),
    ("jsonb_set", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,-9}"), (JSONB, "9")], '{"a": [9, 1, 2]}'),
    ("jsonb_set", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{b}"), (JSONB, "9")], '{"a": [1, 2], "b": 9}'),
    ("jsonb_set", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{b,c}"), (JSONB, "9")], '{"a": [1, 2]}'),
    (
        "jsonb_set",
        [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,x}"), (JSONB, "9")],
        'error 22P02: path element at position 2 is not an integer: "x"',
    ),
    (
        "jsonb_set",
        [(JSONB, "1"), (TEXTS, "{a}"), (JSONB, "9")],
        "error 22023: cannot set path in scalar",
    ),
    (
        "jsonb_set",
        [(JSONB, '{"a":1}'), (TEXTS, "{a,NULL}"), (JSONB, "9")],
        "error 22004: path element at position 2 is null",
    ),
    ("jsonb_set", [(JSONB, '{"a":1}'), (TEXTS, "{}"), (JSONB, "9")], '{"a": 1}'),
    ("jsonb_set", [(JSONB, "{}"), (TEXTS, "{a}"), (JSONB, "9")], '{"a": 9}'),
    ("jsonb_set", [(JSONB, '{"a":{"b":1}}'), (TEXTS, "{a,b}"), (JSONB, "9")], '{"a": {"b": 9}}'),
    ("jsonb_set", [(JSONB, '{"a":1}'), (TEXTS, "{b}"), (JSONB, "9"), (BOOLEAN, "f")], '{"a": 1}'),
    ("jsonb_set", [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, "9"), (BOOLEAN, "f")], '{"a": 9}'),
    ("jsonb_set", [(JSONB, '{"a":1}'), (TEXTS, None), (JSONB, "9")], None),
    ("jsonb_insert", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,1}"), (JSONB, "9")], '{"a": [1, 9, 2]}'),
    (
        "jsonb_insert",
        [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,1}"), (JSONB, "9"), (BOOLEAN, "t")],
        '{"a": [1, 2, 9]}',
    ),
    ("jsonb_insert", [(JSONB, '{"a":[1,2]}'), (TEXTS, "{a,-1}"), (JSONB, "9")], '{"a": [1, 9, 2]}'),
    (
        "jsonb_insert",
        [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, "9")],
        "error 22023: cannot replace existing key",
    ),
    ("jsonb_insert", [(JSONB, '{"a":1}'), (TEXTS, "{b}"), (JSONB, "9")], '{"a": 1, "b": 9}'),
    ("jsonb_set_lax", [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, None)], '{"a": null}'),
    (
        "jsonb_set_lax",
        [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, None), (BOOLEAN, "t"), (TEXT, "delete_key")],
        "{}",
    ),
    (
        "jsonb_set_lax",
        [
            (JSONB, '{"a":1}'),
            (TEXTS, "{a}"),
            (JSONB, None),
            (BOOLEAN, "t"),
            (TEXT, "return_target"),
        ],
        '{"a": 1}',
    ),
    (
        "jsonb_set_lax",
        [
            (JSONB, '{"a":1}'),
            (TEXTS, "{a}"),
            (JSONB, None),
            (BOOLEAN, "t"),
            (TEXT, "raise_exception"),
        ],
        "error 22004: JSON value must not be null",
    ),
    (
        "jsonb_set_lax",
        [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, "2"), (BOOLEAN, "t"), (TEXT, "x")],
        '{"a": 2}',
    ),
    (
        "jsonb_set_lax",
        [(JSONB, '{"a":1}'), (TEXTS, "{a}"), (JSONB, None), (BOOLEAN, "t"), (TEXT, "x")],
        'error 22023: null_value_treatment must be "delete_key", "return_target", "use_json_null",'
        ' or "raise_exception"',
    ),
]

LOOKS: list[Case] = [
    ("jsonb_strip_nulls", [(JSONB, '{"a":null,"b":[null,{"c":null}]}')], '{"b": [null, {}]}'),
    (
        "json_strip_nulls",
        [(JSON, '{"a" : null, "b" : [null, {"c":null}], "d" : 1e5}')],
        '{"b":[null,{}],"d":1e5}',
    ),
    (
        "jsonb_pretty",
        [(JSONB, '{"a":[1,{"b":2}],"c":{},"d":[]}')],
        '{\n    "a": [\n        1,\n        {\n            "b": 2\n        }\n    ],\n'
        '    "c": {\n    },\n    "d": [\n    ]\n}',
    ),
    ("jsonb_pretty", [(JSONB, '"x"')], '"x"'),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CONTAINED)
def test_containment(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), ORDERED)
def test_order(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), JOINED)
def test_joining_and_deleting(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), SET)
def test_setting_and_inserting(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), LOOKS)
def test_looks(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected

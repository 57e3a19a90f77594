"""Parts of arrays and JSONB are set as PostgreSQL 15 sets them, where arrays begin at 1."""

from __future__ import annotations

import pytest

from qserver.values.types import INTEGER, JSONB, TEXT, array_of
from tests.functions.typed_calls import called

INTEGERS = array_of(INTEGER)
NO_BOUND = "error 0A000: arrays with a lower bound other than 1 do not exist"
WRONG_NUMBER = "error 2202E: wrong number of array subscripts"
OUT_OF_RANGE = "error 2202E: array subscript out of range"
SCALAR = "error 22023: cannot replace existing key"

ELEMENTS: list[tuple[str | None, list[int | None], str]] = [
    ("{1,2,3}", [2], "{1,9,3}"),
    ("{1,2,3}", [5], "{1,2,3,NULL,9}"),
    ("{1,2,3}", [0], NO_BOUND),
    ("{}", [1], "{9}"),
    (None, [1], "{9}"),
    (None, [1, 1], "{{9}}"),
    (None, [2], NO_BOUND),
    ("{1,2}", [None], "error 22004: array subscript in assignment must not be null"),
    ("{{1,2},{3,4}}", [2, 1], "{{1,2},{9,4}}"),
    ("{{1,2},{3,4}}", [2], WRONG_NUMBER),
    ("{{1,2},{3,4}}", [3, 1], OUT_OF_RANGE),
    ("{1,2}", [1, 1], WRONG_NUMBER),
    ("{1}", [2**31 - 1], "error 54000: array size exceeds the maximum allowed (16777216)"),
]

SLICES: list[tuple[str | None, str | None, list[int | None], str | None]] = [
    ("{1,2,3}", "{7,8}", [1, 2], "{7,8,3}"),
    ("{1,2,3}", "{7,8,9,10}", [2, 5], "{1,7,8,9,10}"),
    ("{1,2,3}", "{7}", [1, 2], "error 2202E: source array too small"),
    ("{1,2,3}", "{7,8,9}", [1, 2], "{7,8,3}"),
    ("{1,2,3}", "{7,8}", [5, 6], "{1,2,3,NULL,7,8}"),
    ("{}", "{7,8}", [1, 2], "{7,8}"),
    (None, "{7,8}", [1, 2], "{7,8}"),
    (None, None, [1, 2], None),
    ("{1,2,3}", "{7,8}", [2, None], "{1,7,8}"),
    ("{1,2,3}", "{7,8}", [None, 2], "{7,8,3}"),
    ("{}", "{7,8}", [None, 2], "error 2202E: array slice subscript must provide both boundaries"),
    ("{}", "{7,8}", [2, 3], NO_BOUND),
    ("{1,2,3}", "{}", [3, 2], "error 2202E: upper bound cannot be less than lower bound"),
    ("{1,2,3}", None, [1, 2], "{1,2,3}"),
    ("{1,2,3}", "{{7,8}}", [1, 2], "{7,8,3}"),
    ("{{1,2},{3,4}}", "{{7,8}}", [1, 1, 1, 2], "{{7,8},{3,4}}"),
    ("{{1,2},{3,4}}", "{{7,8}}", [1, 1], "{{7,8},{3,4}}"),
    ("{{1,2},{3,4}}", "{7,8}", [1, 2, 2, 2], "{{1,7},{3,8}}"),
    ("{{1,2},{3,4}}", "{1,2,3,4,5,6}", [1, 3, 1, 2], OUT_OF_RANGE),
    ("{1}", "{1}", [1, 1, 1, 1], WRONG_NUMBER),
]

JSONBS: list[tuple[str | None, list[str | None], str]] = [
    ('{"a": 1}', ["a"], '{"a": 2}'),
    ('{"a": 1}', ["b"], '{"a": 1, "b": 2}'),
    ('{"a": 1}', ["b", "c"], '{"a": 1, "b": {"c": 2}}'),
    ('{"a": 1}', ["a", "c"], SCALAR),
    ("1", ["a"], SCALAR),
    (None, ["a"], '{"a": 2}'),
    (None, ["0"], "[2]"),
    (None, ["a", "2"], '{"a": [null, null, 2]}'),
    ("[1]", ["3"], "[1, null, null, 2]"),
    ("[1, 2]", ["-1"], "[1, 2]"),
    ("[1, 2]", ["-5"], "error 22023: path element at position 1 is out of range: -5"),
    ("[1]", ["x"], 'error 22P02: path element at position 1 is not an integer: "x"'),
    ("{}", ["0"], '{"0": 2}'),
    ('{"a": []}', ["a", "1", "b"], '{"a": [null, {"b": 2}]}'),
    ('{"a": 1}', [None], "error 22004: jsonb subscript in assignment must not be null"),
]


@pytest.mark.parametrize(("array", "places", "expected"), ELEMENTS)
def test_an_element_is_set(array: str | None, places: list[int | None], expected: str) -> None:
    subscripts = [(INTEGER, None if at is None else str(at)) for at in places]
    assert called("array_assign", (INTEGERS, array), (INTEGER, "9"), *subscripts) == expected


@pytest.mark.parametrize(("array", "source", "bounds", "expected"), SLICES)
def test_a_slice_is_set(
    array: str | None, source: str | None, bounds: list[int | None], expected: str | None
) -> None:
    subscripts = [(INTEGER, None if at is None else str(at)) for at in bounds]
    found = called("array_assign_slice", (INTEGERS, array), (INTEGERS, source), *subscripts)
    assert found == expected


@pytest.mark.parametrize(("value", "path", "expected"), JSONBS)
def test_a_member_is_set(value: str | None, path: list[str | None], expected: str) -> None:
    steps = [(TEXT, step) for step in path]
    assert called("jsonb_assign", (JSONB, value), (JSONB, "2"), *steps) == expected


def test_null_becomes_json_null() -> None:
    assert called("jsonb_assign", (JSONB, "{}"), (JSONB, None), (TEXT, "a")) == '{"a": null}'

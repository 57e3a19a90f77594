"""JSON is kept, JSONB is made canonical, and both refuse what PostgreSQL 15 refuses."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidTextRepresentation, QserverError, StatementTooComplex
from qserver.limits import JSON_DEPTH_MAX
from qserver.values.json_input import json_from_text, jsonb_from_text, structure_from_text
from qserver.values.json_parts import elements, kind_of, member, members, scalar_text
from qserver.values.jsonb import Jsonb, jsonb_of, order_key
from tests.values.strategies import jsonbs, structures

CANONICAL = [
    ('{"b":1.50,"aa":2,"b":3}', '{"b": 3, "aa": 2}'),
    ('{"zz":1,"ä":2,"b":3}', '{"b": 3, "zz": 1, "ä": 2}'),
    (" [1e5 ,1E-3, -0, 0.10] ", "[100000, 0.001, 0, 0.10]"),
    ('"x\\u00e9\\n\\/"', '"xé\\n/"'),
    ('"\\ud83d\\ude00"', '"\U0001f600"'),
    ('"\\u001f\\u007f"', '"\\u001f\x7f"'),
    ("null", "null"),
    ("{ }", "{}"),
    ("12345678901234567890.10", "12345678901234567890.10"),
    ("9" * 5000, "9" * 5000),
    ('"\\\\u0000"', '"\\\\u0000"'),
]

WRONG = [
    ("", "The input string ended unexpectedly."),
    ("{", "The input string ended unexpectedly."),
    ("[1,", "The input string ended unexpectedly."),
    ("[1,]", 'Expected JSON value, but found "]".'),
    ("[1 2]", 'Expected "," or "]", but found "2".'),
    ("1 2", 'Expected end of input, but found "2".'),
    ('{"a" 1}', 'Expected ":", but found "1".'),
    ('{"a":1 "b"}', 'Expected "," or "}", but found ""b"".'),
    ('{"a":1,}', 'Expected string, but found "}".'),
    ("{1:2}", 'Expected string or "}", but found "1".'),
    ("01", 'Token "01" is invalid.'),
    ("-", 'Token "-" is invalid.'),
    ("1.", 'Token "1." is invalid.'),
    ("tru", 'Token "tru" is invalid.'),
    ("nan", 'Token "nan" is invalid.'),
    ("'a'", 'Token "\'" is invalid.'),
    ('"abc', 'Token ""abc" is invalid.'),
    ('"a\tb"', "Character with value 0x09 must be escaped."),
    ('"a\\q"', 'Escape sequence "\\q" is invalid.'),
    ('"\\u00"', '"\\u" must be followed by four hexadecimal digits.'),
]

# What only JSONB refuses, because it looks into strings and numbers.
WRONG_AS_JSONB = [
    ('"\\ud800"', "22P02", "Unicode low surrogate must follow a high surrogate."),
    ('"\\udc00"', "22P02", "Unicode low surrogate must follow a high surrogate."),
    ('"\\ud800x\\udc00"', "22P02", "Unicode low surrogate must follow a high surrogate."),
    ('"\\ud800\\ud800"', "22P02", "Unicode high surrogate must not follow a high surrogate."),
    ('["\\u0000"]', "22P05", "\\u0000 cannot be converted to text."),
    ("1e200000", "22003", None),
]

IN_ORDER = (
    *("[]", "null", '""', '"a"', '"b"', "-1", "1", "1.5", "false", "true", "[null]", "[1]"),
    *("[[]]", "[1, 1]", "{}", '{"a": 1}', '{"a": 2}', '{"b": 0}', '{"a": 1, "b": 1}'),
)


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_a_jsonb_is_canonical(text: str, expected: str) -> None:
    assert jsonb_from_text(text).text == expected
    assert json_from_text(text) == text


@pytest.mark.parametrize(("text", "detail"), WRONG)
def test_what_is_no_json_is_refused_with_the_reason(text: str, detail: str) -> None:
    for read in (json_from_text, jsonb_from_text):
        with pytest.raises(InvalidTextRepresentation) as caught:
            read(text)
        assert caught.value.message == "invalid input syntax for type json"
        assert caught.value.detail == detail


@pytest.mark.parametrize(("text", "code", "detail"), WRONG_AS_JSONB)
def test_jsonb_refuses_what_it_could_not_hold(text: str, code: str, detail: str | None) -> None:
    assert json_from_text(text) == text
    with pytest.raises(QserverError) as caught:
        jsonb_from_text(text)
    assert (caught.value.code, caught.value.detail) == (code, detail)


def test_depth_has_a_limit() -> None:
    deepest = "[" * JSON_DEPTH_MAX + "]" * JSON_DEPTH_MAX
    assert jsonb_from_text(deepest).text == deepest
    assert hash(jsonb_from_text(deepest)) == hash(jsonb_from_text(deepest))
    with pytest.raises(StatementTooComplex):
        json_from_text(f"[{deepest}]")
    with pytest.raises(StatementTooComplex):
        jsonb_from_text("[" * 100_000)
    assert json_from_text('"' + "[" * 1000 + '"')


@given(structures)
def test_a_structure_survives(structure: Any) -> None:
    value = jsonb_of(structure)
    assert order_key(value.value) == order_key(structure_from_text(value.text))
    assert jsonb_of(value.value).text == value.text
    assert jsonb_from_text(value.text).text == value.text


@given(st.text('{}[]",:0123456789truefalsn \\u\n.-e', max_size=12))
def test_json_is_what_python_reads_too(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda word: int(word))
        expected = True
    except ValueError:
        expected = False
    try:
        json_from_text(text)
        accepted = True
    except InvalidTextRepresentation:
        accepted = False
    assert accepted == expected


def test_the_order_is_that_of_postgresql() -> None:
    values = [jsonb_from_text(text) for text in IN_ORDER]
    assert sorted(sorted(values, key=str)) == values
    for lower, higher in pairwise(values):
        assert lower < higher and lower <= higher and higher > lower and higher >= lower
        assert lower != higher


def test_numbers_are_equal_by_value() -> None:
    left, right = jsonb_of([Decimal("1.0"), 100]), jsonb_of([1, Decimal("100.00")])
    assert left == right and hash(left) == hash(right) and left.text != right.text
    assert jsonb_of(True) != jsonb_of(1)
    assert (jsonb_of(1) == 1) is False


@given(jsonbs, jsonbs)
def test_equal_values_hash_alike(left: Jsonb, right: Jsonb) -> None:
    assert (left == right) == (left.order_key() == right.order_key())
    if left == right:
        assert hash(left) == hash(right)


def test_a_jsonb_does_not_change_and_is_copied() -> None:
    value = jsonb_of({"a": 1})
    with pytest.raises(AttributeError):
        value.text = "2"
    with pytest.raises(AttributeError):
        del value.text
    assert copy.deepcopy(value) == value == pickle.loads(pickle.dumps(value))
    assert repr(value) == "Jsonb('{\"a\": 1}')"


# --- parts of a text -----------------------------------------------------------------------------


def test_parts_are_cut_out_as_they_stand() -> None:
    text = ' { "a" : {"b" : [1, 2]} , "c":"x", "a" : 5 } '
    assert member(text, "a") == "5" and member(text, "x") is None
    assert members(text) == [("a", '{"b" : [1, 2]}'), ("c", '"x"'), ("a", "5")]
    assert elements(' [1 , {"x": [2, 3]},"a,b" ] ') == ["1", '{"x": [2, 3]}', '"a,b"']
    assert elements("[ ]") == [] and members("{}") == []


def test_parts_are_found_beside_half_a_surrogate_pair() -> None:
    assert member('{"a": "\\ud800", "b": 1}', "b") == "1"
    assert elements('["\\ud800", 1]') == ['"\\ud800"', "1"]


@given(structures)
def test_parts_of_a_canonical_text_are_canonical(structure: Any) -> None:
    value = jsonb_of(structure)
    if isinstance(structure, dict):
        expected = {key: jsonb_of(part).text for key, part in structure.items()}
        assert dict(members(value.text)) == expected
        assert {key: member(value.text, key) for key in structure} == expected
    elif isinstance(structure, list):
        assert elements(value.text) == [jsonb_of(part).text for part in structure]
    else:
        text = structure if isinstance(structure, str) else value.text
        assert scalar_text(value.text) == (None if structure is None else text)


def test_kinds() -> None:
    texts = (" {}", "[]", '"a"', "-1", "true", "false", "null")
    kinds = ["object", "array", "string", "number", "boolean", "boolean", "null"]
    assert [kind_of(text) for text in texts] == kinds

"""Paths are read and printed as in PostgreSQL 15."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qserver.errors import QserverError, StatementTooComplex
from qserver.limits import JSON_PATH_DEPTH_MAX
from qserver.values.json_path_input import json_path_from_text, read_json_path

PRINTED = [
    ("$", "$"),
    (" strict $ . a", 'strict $."a"'),
    ("LAX $.*.**", "$.*.**"),
    ("$.a.b[*].**{2 to last}", '$."a"."b"[*].**{2 to last}'),
    ("$.**{last}.**{0}.**{last to 3}.**{1 to 1}", "$.**{last}.**{0}.**{last to 3}.**{1}"),
    ("$[ 1, 2 to last, last - 1 ]", "$[1,2 to last,last - 1]"),
    ("$ ? (@.a == 1 || @.b <> 2 && !(@.c > 3))", None),
    ("-$.a + -1 * +2 - (-3)", '((-$."a" + -1 * 2) - -3)'),
    ("1e3.type()", "(1000).type()"),
    ("(1).type().size()", "(1).type().size()"),
    (".5 + 1. + 0.10", "((0.5 + 1) + 0.10)"),
    ("1 + ($.a * 2).abs()", '(1 + ($."a" * 2).abs())'),
    ("!exists($.a)", '!(exists ($."a"))'),
    ("(($.a == 1) is unknown).type()", '(($."a" == 1) is unknown).type()'),
    ('$ like_regex "a\\\\b" flag "qim"', '($ like_regex "a\\\\b" flag "imq")'),
    ("$ ? (@ starts with $x)", '$?(@ starts with $"x")'),
    ('$a."b c".\\u0041\\x42 == "\\v\\/\\"\\ud83d\\ude00"', '($"a"."b c"."AB" == "\\u000b/\\"😀")'),
    ("$.null.true.is.exists.type.size()", '$."null"."true"."is"."exists"."type".size()'),
    ("$.a /* a comment */ .b", '$."a"."b"'),
    ('$.datetime().datetime("HH24:MI")', '$.datetime().datetime("HH24:MI")'),
    ("NULL", None),
]

REFUSED = [
    ("", '22P02: invalid input syntax for type jsonpath: ""'),
    ("strict", "42601: syntax error at end of jsonpath input"),
    ("$.a.1", '42601: syntax error at or near ".1" of jsonpath input'),
    ("$.$a", '42601: syntax error at or near "$a" of jsonpath input'),
    ("$ ? (@.a)", '42601: syntax error at or near ")" of jsonpath input'),
    ("$.a && $.b", '42601: syntax error at or near "&&" of jsonpath input'),
    ("1.type()", '42601: trailing junk after numeric literal at or near "1.t" of jsonpath input'),
    ("1e", '42601: trailing junk after numeric literal at or near "1e" of jsonpath input'),
    ("1e+", '42601: invalid numeric literal at or near "1e+" of jsonpath input'),
    ("@", "42601: @ is not allowed in root expressions"),
    ("$[last] ? (last == 1)", "42601: LAST is allowed only in array subscripts"),
    ('"a', "42601: unterminated quoted string at end of jsonpath input"),
    ('"\\u00"', '42601: invalid Unicode escape sequence at or near "\\u00" of jsonpath input'),
    ('"\\u0000"', "22P05: unsupported Unicode escape sequence"),
    ('"\\ud800"', "22P02: invalid input syntax for type jsonpath"),
    ("$ /* no end", "42601: unexpected end of comment at end of jsonpath input"),
    ('$ like_regex "a" flag "z"', "42601: invalid input syntax for type jsonpath"),
    ('$ like_regex "a" flag "x"', "0A000: XQuery"),
    ("$.**{4294967296}", '22003: value "4294967296" is out of range for type integer'),
    ("$.bigint()", '42601: syntax error at or near "(" of jsonpath input'),
    ("NULL == 1", "42601: syntax error at or near"),
]


@pytest.mark.parametrize(("text", "printed"), [each for each in PRINTED if each[1]])
def test_a_path_prints_as_in_postgresql_and_is_read_again(text: str, printed: str) -> None:
    assert json_path_from_text(text) == printed
    assert json_path_from_text(printed) == printed
    assert read_json_path(printed) == read_json_path(text)


@pytest.mark.parametrize(("text", "error"), REFUSED)
def test_what_is_no_path_is_refused_as_in_postgresql(text: str, error: str) -> None:
    with pytest.raises(QserverError) as raised:
        json_path_from_text(text)
    assert f"{raised.value.code}: {raised.value.message}".startswith(error)


NESTED: dict[str, Callable[[int], str]] = {
    "filters": lambda depth: "$" + " ? (exists(@" * depth + "))" * depth,
    "positions": lambda depth: "$" + "[$" * depth + "[0" + "]" * (depth + 1),
    "steps": lambda depth: "$" + ".a" * depth,
    "signs": lambda depth: "-" * depth + "$",
    "sums": lambda depth: "1" + " + 1" * depth,
    "negations": lambda depth: "!(" * depth + "$ == 1" + ")" * depth,
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_path_that_is_nested_too_deeply_is_refused(kind: str) -> None:
    json_path_from_text(NESTED[kind](JSON_PATH_DEPTH_MAX // 2 - 2))
    for depth in (JSON_PATH_DEPTH_MAX + 1, 5000):
        with pytest.raises(StatementTooComplex):
            json_path_from_text(NESTED[kind](depth))


@pytest.mark.parametrize("operator", ["||", "&&"])
def test_any_number_of_conditions_may_be_in_a_row(operator: str) -> None:
    text = f" {operator} ".join(f"$.a == {number}" for number in range(3000))
    printed = json_path_from_text(text)
    assert printed.startswith("(" * 2999) and json_path_from_text(printed) == printed


def test_parentheses_may_be_nested_at_will() -> None:
    assert json_path_from_text("(" * 5000 + "$" + ")" * 5000) == "$"

"""Regular expressions: two engines that agree, bounded time, and what a pattern may not be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.errors import InvalidParameterValue, InvalidRegularExpression, QserverError
from qserver.sql.functions.regex_automaton import Automaton
from qserver.sql.functions.regex_functions import (
    match_rows,
    regexp_match,
    regexp_replace,
    regexp_split,
    split_to_rows,
)
from qserver.sql.functions.regex_source import python_source
from qserver.sql.functions.regex_syntax import Options, parse
from qserver.sql.functions.regexes import regex, similar_to_escape

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\s", r"\m", r"\M", r"\y", "^", "$", "(a|ab)", "(b|)"]
)
QUANTIFIED = st.tuples(
    st.sampled_from(["a", "b", ".", "[ab]", "(ab)", "(a|b)", "(?:a|ab)"]),
    st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}"]),
).map("".join)
PATTERNS = st.lists(st.one_of(ATOMS, QUANTIFIED), min_size=1, max_size=4).map("".join)
TEXTS = st.text(alphabet="ab \n_", max_size=8)


@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_the_automaton_matches_what_python_matches(pattern: str, text: str) -> None:
    tree = parse(pattern, Options()).tree
    python = re.compile(python_source(tree))
    automaton = Automaton(tree, 0)
    assert automaton.matches(text) == (python.search(text) is not None)
    for start in range(len(text) + 1):
        ends = automaton.ends(text, start, len(text))
        assert (python.match(text, start) is not None) == bool(ends)
        assert all(python.search(text, start) is not None for _ in ends)


@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_groups_lie_within_the_match_and_spell_it(pattern: str, text: str) -> None:
    match = regex(pattern).search(text)
    if match is None:
        return
    whole = match[0]
    assert whole is not None
    for group in match[1:]:
        assert group is None or whole[0] <= group[0] <= group[1] <= whole[1]


@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_what_is_split_is_found_again_between_the_matches(pattern: str, text: str) -> None:
    assert regexp_replace(text, pattern, r"\&", "g") == text
    parts = regexp_split(text, pattern)
    assert [row[0] for row in split_to_rows(text, pattern)] == list(parts)
    assert sum(map(len, parts)) <= len(text)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){12}b", ".*.*.*=.*", "(x+x+)+y", "(a?){50}a{50}b"],
)
def test_no_pattern_takes_more_than_a_look_at_each_character(pattern: str) -> None:
    text = "a" * 3000 + "!"
    assert not regex(pattern).matches(text)
    assert regexp_replace(text, pattern, "", "g") == text
    assert regexp_match(text, pattern) is None


def test_the_longest_alternative_wins_and_groups_follow() -> None:
    assert regexp_match("abcd", "(a|ab)(c|bcd)") == ("a", "bcd")
    assert regexp_replace("foobar", "foo|foobar", "x") == "x"


def test_the_first_repetition_decides_whether_the_match_is_short() -> None:
    assert regexp_match("XY1234Z", "Y*?([0-9]{1,3})") == ("1",)
    assert regexp_match("XY1234Z", "Y*([0-9]{1,3})") == ("123",)


def test_each_match_is_a_row_with_its_groups() -> None:
    assert list(match_rows("a1b2", "([a-z])([0-9])", "g")) == [(("a", "1"),), (("b", "2"),)]
    assert list(match_rows("a1b2", "([a-z])([0-9])")) == [(("a", "1"),)]
    assert list(match_rows("a1b2", "x", "g")) == []


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("a{1", "braces {} not balanced"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("*a", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("^*", "quantifier operand invalid"),
        ("[[:nothing:]]", "invalid character class"),
        ("[b-a]", "invalid character range"),
        ("\\", "invalid escape \\ sequence"),
        (r"(a)\2", "invalid backreference number"),
        ("((a{1,99}){1,99}){1,99}", "regular expression is too complex"),
        ("(" * 500 + ")" * 500, "regular expression is too complex"),
    ],
)
def test_a_bad_pattern_is_named(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidRegularExpression) as error:
        regex(pattern)
    assert error.value.message == f"invalid regular expression: {problem}"


@pytest.mark.parametrize("letters", ["z", "gz", "I"])
def test_an_unknown_option_is_named(letters: str) -> None:
    with pytest.raises(InvalidParameterValue, match="invalid regular expression option"):
        regexp_replace("a", "a", "b", letters)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "%(b|d)%", True),
        ("abc", "(b|c)%", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("aaa", "a+", True),
        ("a\nb", "a_b", True),
    ],
)
def test_similar_to_matches_the_whole_text(text: str, pattern: str, expected: bool) -> None:
    assert regex(similar_to_escape(pattern)).matches(text) == expected


@given(st.text(alphabet=r"ab()[]{}*+?|\^$.-:=12,mMyAZdws", max_size=12), TEXTS)
@settings(deadline=None)
def test_any_pattern_ends_in_an_answer_or_in_an_error_of_ours(pattern: str, text: str) -> None:
    try:
        found = regex(pattern)
    except QserverError as error:
        assert error.code == "2201B"
    else:
        assert found.matches(text) == (found.search(text) is not None)

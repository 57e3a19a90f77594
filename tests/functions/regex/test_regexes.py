"""Regular expressions: two engines that agree, bounded time, and what a pattern may not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.errors import (
    InvalidParameterValue,
    InvalidRegularExpression,
    ProgramLimitExceeded,
    QserverError,
)
from qserver.functions.regex.automaton import Automaton
from qserver.functions.regex.functions import (
    match_rows,
    regexp_count,
    regexp_match,
    regexp_replace,
    regexp_split,
    split_to_rows,
)
from qserver.functions.regex.linear import Linear, NotLinear
from qserver.functions.regex.regexes import regex, similar_to_escape
from qserver.functions.regex.source import agrees_on_length, python_source
from qserver.functions.regex.syntax import RegexOptions, parse
from qserver.limits import REGEX_MATCHES_MAX
from tests.known_work import least_steps
from tests.sampling import sampled

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
    tree = parse(pattern, RegexOptions()).tree
    python = re.compile(python_source(tree))
    automaton = Automaton(tree, 0)
    assert automaton.matches(text) == (python.search(text) is not None)
    for start in range(len(text) + 1):
        ends = automaton.ends(text, start, len(text))
        assert (python.match(text, start) is not None) == bool(ends)
        assert all(python.search(text, start) is not None for _ in ends)


WIDE_TEXTS = st.text(alphabet="abAB \n_é²д漢\u00a0\U0001f600", max_size=10)
WIDE_PATTERNS = st.lists(
    st.one_of(
        ATOMS,
        QUANTIFIED,
        st.sampled_from(
            ["é", "[^é]", "[а-я]+", "漢?", r"\S", r"\W", "[[:alpha:]]", "[[:upper:]]*"]
        ),
        st.sampled_from(["a*?", "(?:ab)+?", "b{1,2}?", r"\ma", r"b\M", r"\m.", "[^a\\n]", "$a"]),
    ),
    min_size=1,
    max_size=4,
).map("".join)


@given(WIDE_PATTERNS, WIDE_TEXTS, st.booleans(), st.booleans())
@settings(deadline=None)
def test_re2_finds_the_places_that_the_automaton_finds(
    pattern: str, text: str, ignore_case: bool, short: bool
) -> None:
    tree = parse(pattern, RegexOptions()).tree
    flags = re.IGNORECASE if ignore_case else 0
    automaton, linear = Automaton(tree, flags), Linear(tree, flags)
    try:
        coded = linear.coded(text)
    except NotLinear:
        return
    assert len(coded) == len(text)
    assert linear.matches(coded) == automaton.matches(text)
    for start in range(len(text) + 1):
        place = linear.search(coded, start)
        if place is not None and short:
            place = place[0], linear.shortest_end(coded, *place)
        assert place == automaton.search(text, start, short)


@given(WIDE_PATTERNS, WIDE_TEXTS)
@settings(deadline=None)
def test_re2_finds_the_matches_that_python_finds_one_after_the_other(
    pattern: str, text: str
) -> None:
    tree = parse(pattern, RegexOptions()).tree
    python, linear = re.compile(python_source(tree)), Linear(tree, 0)
    try:
        coded = linear.coded(text)
    except NotLinear:
        return
    if agrees_on_length(tree):
        expected = [
            tuple(None if place == (-1, -1) else place for place in match.regs)
            for match in python.finditer(text)
        ]
        assert list(linear.find_all(coded, 0, longest=False)) == expected


def test_few_patterns_are_left_to_our_own_automaton() -> None:
    left = []
    for pattern in (r"\mfoo\M", r"\m\w+\M", r"\yfoo\y", "a{1,255}b*", r"\m.", r"(x{255}){4}"):
        try:
            Linear(parse(pattern, RegexOptions()).tree, 0).coded("foo дом")
        except NotLinear:
            left.append(pattern)
    assert left == [r"\m.", r"(x{255}){4}"]


STEPS_MOST = 240
"""Of known work, which one call may take: the loop stands still for a second."""

HOSTILE = (
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+$",
    "(.*a){12}b",
    ".*.*.*=.*",
    "(x+x+)+y",
    "(a?){50}a{50}b",
    "(a|b)*a(a|b){20}c",
    "a|a.*b",
    r"^(a+)+\1b",
    r"(a*)*\1c",
    "(?=(a|ab|b)*c)",
    "(?!(a|aa)+$)b",
    "(?<=aaaa)(a|aa)*b",
    "(a|b)*(b|a)*",
    ".*?b|c",
    r"\m.*\M.*x",
    "[[:upper:]]*[[:lower:]]*[[:upper:]]",
    "a" * 19_000,
    "[ab]" * 2000,
    "(?:ab|ba|a|b){1,200}c",
    "a?" * 25 + "a" * 25 + "b",
    "(a|a)" * 25 + "b",
    "a{0,3}" * 20 + "b{4}",
    "(a|b)*.*" * 20 + "c",
)


@pytest.mark.long
@pytest.mark.parametrize(
    "text", ["ab" * 6, "a" * 40, "ab" * 500, "a" * 1_000_000, "aдb" * 300_000], ids=len
)
@pytest.mark.parametrize("pattern", sampled(HOSTILE, 3))
def test_no_call_takes_long_whatever_the_pattern_and_the_text(pattern: str, text: str) -> None:
    def survived(call: Callable[[], object]) -> None:
        try:
            call()
        except QserverError as error:
            assert error.code in ("54000", "2201B"), error

    for call in (
        lambda: regex(pattern).matches(text),
        lambda: regexp_replace(text, pattern, r"\&", "g"),
        lambda: list(islice(match_rows(text, pattern, "g"), 100)),
    ):
        steps = least_steps(partial(survived, call), STEPS_MOST)
        assert steps < STEPS_MOST


def test_too_many_matches_are_refused_in_one_call_and_given_as_rows() -> None:
    text = "a," * (REGEX_MATCHES_MAX + 1)
    for call in (
        lambda: regexp_split(text, ","),
        lambda: regexp_replace(text, ",", "", "g"),
        lambda: regexp_count(text, ","),
    ):
        with pytest.raises(ProgramLimitExceeded, match="too often for a single call"):
            call()
    assert sum(1 for _ in split_to_rows(text, ",")) == REGEX_MATCHES_MAX + 2
    assert len(regexp_split("a," * 1000, ",")) == 1001


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

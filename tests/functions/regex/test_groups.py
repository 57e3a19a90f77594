"""What a match and its groups are, as PostgreSQL 16 answers."""

from __future__ import annotations

import pytest

from qserver.errors import InvalidRegularExpression, ProgramLimitExceeded
from qserver.functions.regex.regexes import regex

EMPTY = ""

ANSWERS: list[tuple[str, str, list[list[str | None]]]] = [
    # A back reference holds only if its group has matched, in the same repetition.
    ("a", r"(b)|\1", []),
    ("aba", r"^(?:(a)|b\1)+$", []),
    ("aab", r"(a)|(a)\2", [[None, "a"]]),
    ("aab", r"a|(a)\1", [["a"]]),
    ("aaaaaab", r"(a*)(\1b)?", [["aaa", "aaab"], [EMPTY, None]]),
    ("aaaaaa", r"(a+?)\1", [["a"], ["a"], ["a"]]),
    ("aaaaaa", r"(a+)\1{2}", [["aa"]]),
    ("a", r"^(a*)*\1$", []),
    ("Aa", r"(?i)(a)\1", [["A"]]),
    ("aa", r"(\ma)\1", [["a"]]),
    ("xxx", r"(.){0}(\1)", []),
    ("a ba", r".(?:(\M)|\1+){2}?", []),
    # A search that found a false match tries no empty one at the end of the text right behind it.
    ("a", r"$()|^\1", []),
    ("ab", r"$()|^\1", [[EMPTY]]),
    ("a", r".. ()|\1", []),
    ("a", r"()*\1", [[EMPTY], [EMPTY]]),
    # Groups of one repetition are not those of the next; of x+ the last x is as short as it can be.
    ("abab", r"(?:(a)|(b))*", [[None, "b"], [None, None]]),
    ("abab", r"((a)|(b)){2,3}", [["a", "a", None]]),
    ("abb", r"((a)?b){2}", [["b", None]]),
    ("aaaa", r"(a|aa)+", [["a"]]),
    ("aaaa", r"(a|aa)*", [["aa"], [None]]),
    ("c", r"(b*)*", [[EMPTY], [EMPTY]]),
    ("c", r"(b*?)??", [[None], [None]]),
    # Parts without groups are as long as they can be together.
    ("ab", r"a?(?:ab)?(b?)", [[EMPTY], [EMPTY]]),
    ("aab", r"(a|\M){0}(b*?)a", [[None, EMPTY], [None, EMPTY]]),
    # Groups of what is looked at are not kept.
    ("aba", r"(?=(a))a(b)", [["b"]]),
]


@pytest.mark.parametrize(("text", "pattern", "expected"), ANSWERS)
def test_matches_and_groups_are_those_of_postgresql(
    text: str, pattern: str, expected: list[list[str | None]]
) -> None:
    found = [
        [None if place is None else text[slice(*place)] for place in match[1:]]
        for match in regex(pattern).find_all(text)
    ]
    assert found == expected
    assert regex(pattern).matches(text) == bool(expected)


@pytest.mark.parametrize("pattern", [r"(?=(a))\1", r"(a)(?=\1)"])
def test_nothing_refers_into_or_out_of_what_is_looked_at(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression, match="invalid backreference number"):
        regex(pattern)


def test_many_groups_are_refused_before_they_take_long() -> None:
    """The longest match is found without its groups, and each new automaton is paid for."""
    pattern = regex("(a|b)" * 1000)
    assert pattern.matches("ab" * 500)
    with pytest.raises(ProgramLimitExceeded, match="could take too long"):
        pattern.search("ab" * 500)

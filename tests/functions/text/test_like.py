"""LIKE against a matcher that follows its definition character by character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidEscapeSequence
from qserver.functions.text.like import (
    ilike_matcher,
    ilike_matcher_of_all,
    like_escape,
    like_matcher,
    like_matcher_of_all,
)

TEXTS = st.text(alphabet="abAß", max_size=8)
PATTERNS = st.lists(st.sampled_from(["a", "b", "A", "%", "_", "\\%", "\\_", "\\\\"])).map("".join)


def matches(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(text[at:], pattern[1:]) for at in range(len(text) + 1))
    escaped = pattern[0] == "\\"
    wanted, rest = pattern[escaped], pattern[1 + escaped :]
    fits = bool(text) and (wanted == text[0] or (wanted == "_" and not escaped))
    return fits and matches(text[1:], rest)


@given(TEXTS, PATTERNS)
def test_a_pattern_matches_what_its_definition_says(text: str, pattern: str) -> None:
    assert like_matcher(pattern)(text) == matches(text, pattern)


@given(st.lists(TEXTS), PATTERNS)
def test_many_texts_match_as_each_does(texts: list[str], pattern: str) -> None:
    assert like_matcher_of_all(pattern)(texts) == [matches(text, pattern) for text in texts]
    folded = [ilike_matcher(pattern)(text) for text in texts]
    assert ilike_matcher_of_all(pattern)(texts) == folded


@given(TEXTS, PATTERNS)
def test_a_changed_escape_character_changes_nothing_else(text: str, pattern: str) -> None:
    with_hash = pattern.replace("\\", "#")
    assert like_matcher(like_escape(with_hash, "#"))(text) == like_matcher(pattern)(text)
    assert like_matcher(with_hash, "#")(text) == like_matcher(pattern)(text)


def test_case_does_not_matter_to_ilike() -> None:
    assert ilike_matcher("STRAß_")("Straße")
    assert not like_matcher("STRAß_")("Straße")


def test_an_escape_at_the_end_is_an_error_once_a_text_gets_that_far() -> None:
    matcher = like_matcher("ab\\")
    assert not matcher("xy")
    with pytest.raises(InvalidEscapeSequence):
        matcher("abc")
    assert like_matcher_of_all("ab\\")(["xy", "z"]) == [False, False]
    with pytest.raises(InvalidEscapeSequence):
        like_matcher_of_all("ab\\")(["xy", "abc"])


def test_many_wildcards_take_no_longer_than_few() -> None:
    text = "a" * 20_000
    assert not like_matcher("%a%a%a%a%a%a%a%a%b")(text)
    assert not like_matcher("%_a%_a%_a%_a%_b%")(text)

"""Upper and lower case, one code point for one, by whichever way the text allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.functions.costs import lower_cost
from qserver.functions.text.letters import (
    has_plain_case,
    lower,
    lower_letter,
    upper,
    upper_letter,
)

ODD = "ßŉǰİΣσςﬁΐ"


@given(st.text(st.one_of(st.sampled_from("aÄä😀 " + ODD), st.characters())))
def test_a_text_changes_letter_by_letter(text: str) -> None:
    assert upper(text) == "".join(map(upper_letter, text))
    assert lower(text) == "".join(map(lower_letter, text))


@pytest.mark.parametrize("letter", ODD[:5] + ODD[7:])
def test_a_letter_without_one_counterpart_is_seen_and_costs_more(letter: str) -> None:
    assert has_plain_case("ÄÖ 😀") and not has_plain_case(f"ÄÖ{letter}")
    assert lower_cost("Ä" * 10_000) < lower_cost("Ä" * 9_999 + letter)

"""Texts of definitions are parsed once, and within the steps of the statement that needs them."""

from __future__ import annotations

import pytest

from qserver.sql import NotShort, StepBudget
from qserver.sql.binder.expressions.parsed import parsed_query


def test_a_query_is_parsed_within_steps_and_then_takes_none() -> None:
    text = "SELECT " + ", ".join(f"a + {number} AS c{number}" for number in range(200))
    for _ in range(2):
        with pytest.raises(NotShort):
            parsed_query(text, StepBudget.short(1000))
    found = parsed_query(text, StepBudget.short(2000))
    assert parsed_query(text, StepBudget.short(0)) is found

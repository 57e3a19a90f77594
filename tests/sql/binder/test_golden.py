"""The golden scripts hold; each of their statements is a test of its own."""

from __future__ import annotations

import pytest

from tests.sql.binder.golden import Case, Script, answer, scripts

SCRIPTS = list(scripts())
CASES = [(script, case) for script in SCRIPTS for case in script.cases]


@pytest.mark.parametrize(
    ("script", "case"), CASES, ids=[f"{s.path.stem}: {c.sql}" for s, c in CASES]
)
def test_a_statement_is_bound_as_its_script_says(script: Script, case: Case) -> None:
    assert answer(script.catalog(), case.sql) == case.expected

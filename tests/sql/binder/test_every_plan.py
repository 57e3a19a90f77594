"""What holds for every plan: it is sound, and it depends on no literal that is not pinned."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.parser import parse
from tests.sql.binder.checking import check_statement
from tests.sql.binder.golden import Case, Script, scripts
from tests.sql.binder.printing import printed
from tests.sql.binder.statements import bind_text

SUCCESSES = [
    (script, case)
    for script in scripts()
    for case in script.cases
    if not case.expected.startswith("!")
]
each_success = pytest.mark.parametrize(
    ("script", "case"), SUCCESSES, ids=[f"{s.path.stem}: {c.sql}" for s, c in SUCCESSES]
)


@each_success
def test_a_plan_is_sound(script: Script, case: Case) -> None:
    check_statement(bind_text(script.catalog(), case.sql).statement)


@each_success
def test_other_values_of_unpinned_literals_give_the_same_plan(script: Script, case: Case) -> None:
    parsed = parse(case.sql)
    catalog = script.catalog()

    def bound(values: list[Any]) -> Bound:
        return bind(parsed.statement, Literals(values), catalog)

    first = bound(parsed.literals)
    others = [
        value if at in first.in_fingerprint else _another(value)
        for at, value in enumerate(parsed.literals)
    ]
    assert printed(bound(others).statement) == printed(first.statement)


def _another(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, int | Decimal):
        return value + 7
    if isinstance(value, list):
        return [*value, *value]
    return f"{value}7"

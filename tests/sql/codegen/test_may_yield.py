"""Where calls of subqueries may yield: not in a lambda, a comprehension or another's function."""

from __future__ import annotations

import pytest

from qserver.sql.codegen.subqueries import may_yield

CALL = "(yield from query1(row))"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (f"x = {CALL}", True),
        ("x = (yield from costly(call1, row))", True),
        ("x = [each for each in rows]", True),
        (f"x = [{CALL} for row in rows]", False),
        (f"x = [each for each in {CALL}]", False),
        (f"x = 'a for b' + {CALL}", True),
        ("x = [(yield from sort_rows(row)) for row in rows]", True),
        (f"x = lambda row: {CALL}", False),
        ("x = lambda row: row", True),
        ("x = {(yield from quantified(row)) for row in rows}", False),
    ],
)
def test_a_call_may_yield_where_its_caller_knows(statement: str, expected: bool) -> None:
    for name, hands_on in (("run", True), ("query12", True), ("both", True), ("weight3", False)):
        inside = f"def {name}(row):\n    {statement}\n    yield\nx = 1\n"
        outside = f"def {name}(row):\n    yield row\n{statement}\n"
        calls = "query1" in statement or "costly" in statement or "quantified" in statement
        assert may_yield(inside) == (expected and (hands_on or not calls))
        assert may_yield(outside) == expected


def test_a_function_inside_one_that_does_not_hand_on_does_not_either() -> None:
    text = f"def weight(row):\n    def query2(row):\n        x = {CALL}\n    yield\n"
    assert not may_yield(text)
    assert may_yield(text.replace("weight", "run"))

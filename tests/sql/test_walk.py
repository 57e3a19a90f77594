"""Rewriting shares what does not change, and goes from the leaves up or from the top down."""

from __future__ import annotations

from typing import Any

from qserver.functions.resolve import resolve_operator
from qserver.sql.expressions import Apply, Column, Expression, Not
from qserver.sql.plan import Filter, OneRow
from qserver.sql.walk import everything, rebuilt, rewritten, tree_rebuilt
from qserver.values.types import BOOLEAN, INTEGER

PLUS = resolve_operator("+", INTEGER, INTEGER).function
A, B = (Column(1, at, INTEGER, False, name) for at, name in enumerate("ab"))
NULLABLE = Column(2, 0, INTEGER, True, "c")


def sum_of(*terms: Expression) -> Apply:
    total, *others = terms
    for term in others:
        total = Apply(PLUS, (total, term), INTEGER, False)
    assert isinstance(total, Apply)
    return total


def test_parts_that_do_not_change_are_shared() -> None:
    kept = sum_of(B, B)
    total = sum_of(sum_of(A, B), kept)
    for changed in (
        rebuilt(total, lambda node: NULLABLE if node is A else node),
        rewritten(total, lambda node: NULLABLE if node is A else None),
    ):
        assert changed == sum_of_nullable(sum_of_nullable(NULLABLE, B), kept)
        assert changed.arguments[1] is kept
    assert rebuilt(total, lambda node: node) is total
    assert rewritten(total, lambda node: None) is total


def sum_of_nullable(left: Expression, right: Expression) -> Apply:
    return Apply(PLUS, (left, right), INTEGER, True)


def test_from_the_top_down_the_largest_is_found_first() -> None:
    seen: list[Any] = []

    def change(node: Any) -> Any:
        seen.append(node)
        return B if node == sum_of(A, A) else None

    assert rewritten(sum_of(A, A, A), change) == sum_of(B, A)
    assert seen == [sum_of(A, A, A), sum_of(A, A), A]


def test_from_the_leaves_up_a_node_comes_after_its_parts() -> None:
    seen: list[Any] = []

    def change(node: Any) -> Any:
        seen.append(node)
        return B if node is A else node

    assert rebuilt(sum_of(A, A), change) == sum_of(B, B)
    assert seen == [A, A, sum_of(B, B)]


def test_a_sum_as_long_as_one_likes_is_rewritten_from_the_top() -> None:
    changed = rewritten(sum_of(*[A] * 10_000), lambda node: B if node is A else None)
    columns = [each for each in everything(changed) if isinstance(each, Column)]
    assert len(columns) == 10_000 and all(each is B for each in columns)


def test_a_tree_of_plans_is_changed_and_its_expressions_are_not() -> None:
    condition = Not(Column(1, 0, BOOLEAN, False))
    seen: list[Any] = []

    def change(node: Any) -> Any:
        seen.append(type(node))
        return node

    tree = Filter(Filter(OneRow(), condition), condition)
    assert tree_rebuilt(tree, change) is tree
    assert seen == [OneRow, Filter, Filter]

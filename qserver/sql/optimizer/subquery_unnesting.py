"""Subquery unnesting: EXISTS and correlated IN become semi-joins, NOT EXISTS anti-joins.

    WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.y > a.y)
    →  a semi-join b on b.x = a.x and b.y > a.y

A semi-join of a large table with few rows is an IN instead, which looks them up by a key of the
table: see `few_sought`.

This needs an equality that connects the subquery to the outer query; then the subquery is read once
instead of once per outer row.
"""

from __future__ import annotations

from typing import Any

from qserver.sql import plan
from qserver.sql.expressions import Apply, Exists, Expression, InQuery, Not
from qserver.sql.optimizer.few_sought import sought_by_few
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    free_sources,
    has_subquery,
    is_volatile,
    output_sources,
    sources_made,
    sources_named,
    tree_rebuilt,
)


def subquery_unnesting(node: Plan, statistics: Statistics) -> Plan:
    def unnested(each: Plan) -> Plan:
        return _unnest(each, statistics) if isinstance(each, plan.Filter) else each

    return tree_rebuilt(node, unnested)


def _unnest(node: plan.Filter, statistics: Statistics) -> Plan:
    input_plan = node.input
    rest: list[Expression] = []
    for condition in conjuncts(node.condition):
        joined = _joined(input_plan, condition)
        if joined is None:
            rest.append(condition)
            continue
        assert isinstance(joined, plan.Join)
        few = sought_by_few(joined, condition, statistics)
        if few is None:
            input_plan = joined
        else:
            rest.append(few)
    remaining = conjunction(rest)
    return input_plan if remaining is None else plan.Filter(input_plan, remaining)


def _joined(left: Plan, condition: Expression) -> Plan | None:
    negated = False
    while isinstance(condition, Not):
        negated, condition = not negated, condition.operand
    if isinstance(condition, Exists):
        return _semi_join(left, condition.plan, (), negated != condition.negated)
    if isinstance(condition, InQuery) and not negated and not condition.negated:
        return _semi_join_in(left, condition)
    return None


def _semi_join_in(left: Plan, condition: InQuery) -> Plan | None:
    if not free_sources(condition.plan):
        return None  # already read once, into a set
    project = condition.plan
    if not isinstance(project, plan.Project):
        return None
    if any(has_subquery(each) for each in (*project.expressions, *condition.operands)):
        return None
    equalities: tuple[Expression, ...] = tuple(
        Apply(equal, (operand, item), condition.type, True)
        for equal, operand, item in zip(
            condition.equals, condition.operands, project.expressions, strict=True
        )
    )
    return _semi_join(left, condition.plan, equalities, False)


def _semi_join(
    left: Plan, subquery: Plan, more: tuple[Expression, ...], negated: bool
) -> Plan | None:
    inner = subquery
    while isinstance(inner, plan.Project | plan.Sort | plan.Distinct):
        if isinstance(inner, plan.Distinct) and inner.on and more:
            return None  # DISTINCT ON decides which values there are, not only how often
        inner = inner.input
    conditions: list[Expression] = list(more)
    while isinstance(inner, plan.Filter):
        conditions += conjuncts(inner.condition)
        inner = inner.input
    made = sources_made(inner)
    tied = [each for each in conditions if sources_named(each) - made]
    own = [each for each in conditions if not sources_named(each) - made]
    if free_sources(inner) or is_volatile(subquery):
        return None
    if not sources_named(tuple_of(tied)) - made <= frozenset(output_sources(left)):
        return None
    if any(has_subquery(each) for each in tied):
        return None
    if not any(_ties(each, made) for each in tied):
        return None
    own_condition = conjunction(own)
    right = inner if own_condition is None else plan.Filter(inner, own_condition)
    return plan.Join("anti" if negated else "semi", left, right, conjunction(tied))


def tuple_of(expressions: list[Expression]) -> Any:
    """Return a node whose parts are the expressions, for walking."""
    return plan.Values(-1, (tuple(expressions),), ())


def _ties(condition: Expression, made: frozenset[int]) -> bool:
    """Tell whether the condition is an equality with one side inside and the other outside."""
    if not (isinstance(condition, Apply) and condition.function.comparison == "="):
        return False
    first, second = (sources_named(side) for side in condition.arguments)
    inside_first, inside_second = first & made, second & made
    return bool(
        (inside_first and not first - made and second and not inside_second)
        or (inside_second and not second - made and first and not inside_first)
    )

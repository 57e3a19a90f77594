"""Predicate pushdown: moves conditions into scans, below projections and groupings, and to the side
of a join that they name. A condition on both sides becomes the join's condition.

A condition on the right side of a left join cannot move there. But if it refuses NULL, it removes
the rows that the outer join adds, and the join becomes an inner join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import Apply, Column, Elements, Expression, InList, IsNull, Not
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    has_subquery,
    is_volatile,
    may_substitute,
    output_sources,
    sources_named,
    substituted,
)

Conditions = tuple[Expression, ...]


def predicate_pushdown(node: Plan, statistics: Statistics) -> Plan:
    return push(node, ())


def push(node: Plan, conditions: Conditions) -> Plan:
    """Add conditions to a plan, as deep inside as they can go."""
    match node:
        case plan.Filter():
            if is_volatile(node.condition):
                return _above(replace(node, input=push(node.input, ())), conditions)
            return push(node.input, conditions + conjuncts(node.condition))
        case plan.Scan():
            return replace(node, condition=conjunction(conjuncts(node.condition) + conditions))
        case plan.Join(kind="inner" | "cross"):
            return _push_inner(node, conditions + conjuncts(node.condition))
        case plan.Join(kind="left"):
            return _push_left(node, conditions)
        case plan.Join(kind="semi" | "anti"):
            return _push_semi(node, conditions)
        case plan.Join():
            return _above(
                replace(node, left=push(node.left, ()), right=push(node.right, ())), conditions
            )
        case plan.Project():
            return _push_project(node, conditions)
        case plan.Aggregate():
            return _push_aggregate(node, conditions)
        case plan.SetOperation():
            return _push_set_operation(node, conditions)
        case plan.Sort():
            return replace(node, input=push(node.input, conditions))
        case plan.Distinct() if not node.on:
            return replace(node, input=push(node.input, conditions))
        case plan.WithTables():
            return replace(node, input=push(node.input, conditions))
        case plan.Distinct() | plan.Limit() | plan.TopN() | plan.Window():
            return _above(replace(node, input=push(node.input, ())), conditions)
        case _:
            return _above(node, conditions)


def _above(node: Plan, conditions: Conditions) -> Plan:
    condition = conjunction(conditions)
    return node if condition is None else plan.Filter(node, condition)


def _split(
    conditions: Iterable[Expression], sources: Iterable[int]
) -> tuple[Conditions, Conditions]:
    """Split conditions into those that name none of the sources, and those that do."""
    among = frozenset(sources)
    without: list[Expression] = []
    with_them: list[Expression] = []
    for condition in conditions:
        (with_them if sources_named(condition) & among else without).append(condition)
    return tuple(without), tuple(with_them)


def _push_inner(node: plan.Join, conditions: Conditions) -> Plan:
    left_sources, right_sources = output_sources(node.left), output_sources(node.right)
    not_right, names_right = _split(conditions, right_sources)
    only_right, both = _split(names_right, left_sources)
    return replace(
        node,
        kind="inner",
        left=push(node.left, not_right),
        right=push(node.right, only_right),
        condition=conjunction(both),
    )


def _push_left(node: plan.Join, conditions: Conditions) -> Plan:
    right_sources = output_sources(node.right)
    if any(refuses_null(condition, right_sources) for condition in conditions):
        return _push_inner(node, conditions + conjuncts(node.condition))
    on_left, on_right = _split(conditions, right_sources)
    not_left, names_left = _split(conjuncts(node.condition), output_sources(node.left))
    joined = replace(
        node,
        left=push(node.left, on_left),
        right=push(node.right, not_left),
        condition=conjunction(names_left),
    )
    return _above(joined, on_right)


def refuses_null(condition: Expression, sources: Iterable[int]) -> bool:
    """Tell whether a condition cannot be true when all columns of the sources are NULL."""
    among = frozenset(sources)
    match condition:
        case Apply(function=function) if function.strict and not function.gives_null:
            return any(_is_null_with(argument, among) for argument in condition.arguments)
        case IsNull(negated=True):
            return _is_null_with(condition.operand, among)
        case InList():
            if condition.negated and isinstance(condition.items[0], Elements):
                return False  # <> ALL of an empty array is always true
            return _is_null_with(condition.operand, among)
        case Not(operand=InList(items=(Elements(), *_))):
            return False  # nor is = ANY of an empty array ever NULL: it is false
        case Not():
            return refuses_null(condition.operand, among) and isinstance(
                condition.operand, Apply | InList
            )
        case _:
            return False


def _is_null_with(expression: Expression, sources: frozenset[int]) -> bool:
    """Tell whether an expression is NULL when all columns of the sources are."""
    match expression:
        case Column():
            return expression.source in sources
        case Apply(function=function) if function.strict:
            return any(_is_null_with(argument, sources) for argument in expression.arguments)
        case _:
            return False


def _push_semi(node: plan.Join, conditions: Conditions) -> Plan:
    only_right, names_left = _split(conjuncts(node.condition), output_sources(node.left))
    return replace(
        node,
        left=push(node.left, conditions),
        right=push(node.right, only_right),
        condition=conjunction(names_left),
    )


def _push_project(node: plan.Project, conditions: Conditions) -> Plan:
    movable, fixed = [], []
    replacements = {
        (node.source, position): expression for position, expression in enumerate(node.expressions)
    }
    for condition in conditions:
        used = [node.expressions[each.position] for each in _columns_of(condition, node.source)]
        if any(has_subquery(each) or is_volatile(each) for each in used) or not may_substitute(
            condition, replacements
        ):
            fixed.append(condition)
        else:
            movable.append(substituted(condition, replacements))
    return _above(replace(node, input=push(node.input, tuple(movable))), tuple(fixed))


def _columns_of(condition: Expression, source: int) -> list[Column]:
    from qserver.sql.walk import everything

    return [
        each for each in everything(condition) if type(each) is Column and each.source == source
    ]


def _push_aggregate(node: plan.Aggregate, conditions: Conditions) -> Plan:
    movable, fixed = [], []
    replacements = {(node.source, position): key for position, key in enumerate(node.keys)}
    for condition in conditions:
        used = _columns_of(condition, node.source)
        by_key = all(each.position < len(node.keys) for each in used)
        may_move = used and by_key and node.grouping_sets is None
        may_move = may_move and not any(map(is_volatile, node.keys))
        if may_move and may_substitute(condition, replacements):
            movable.append(substituted(condition, replacements))
        else:
            fixed.append(condition)
    return _above(replace(node, input=push(node.input, tuple(movable))), tuple(fixed))


def _push_set_operation(node: plan.SetOperation, conditions: Conditions) -> Plan:
    sides = []
    for side, made in ((node.left, node.left_source), (node.right, node.right_source)):
        replacements: dict[tuple[int, int], Expression] = {
            (node.source, position): Column(made, position, column.type, True, column.name)
            for position, column in enumerate(node.columns)
        }
        own = tuple(substituted(condition, replacements) for condition in conditions)
        sides.append(push(side, own))
    return replace(node, left=sides[0], right=sides[1])

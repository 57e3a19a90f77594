"""Columns that nobody reads are not computed: those of a view or a derived table, above all.

    SELECT b FROM (SELECT 1 / a AS q, b FROM t) AS s      q is NULL, and no division is done

As in PostgreSQL, what is volatile is computed all the same, and so is every column where whole rows
count: below DISTINCT and set operations, except UNION ALL. A subquery stays, with its conditions. A
literal that has to be read is read all the same, before the plan runs; a cast of one may go.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import Column, Constant, Expression, Slot
from qserver.sql.folding import is_cast_literal
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import everything, has_subquery, is_volatile, output_sources, tree_rebuilt

_Used = defaultdict[int, set[int]]
"""The positions that are read of each source."""


def projection_pruning(node: Plan, statistics: Statistics) -> Plan:
    """Again after each change: a column may have been read only by one that is gone."""
    while True:
        pruned = _pruned_once(node)
        if pruned is node:
            return node
        node = pruned


def _pruned_once(node: Plan) -> Plan:
    nodes = list(everything(node))
    used: _Used = defaultdict(set)
    for each in nodes:
        if type(each) is Column:
            used[each.source].add(each.position)
    whole = set(output_sources(node))
    for each in nodes:
        if isinstance(each, plan.Distinct) and not each.on:
            whole.add(each.source)
    for each in nodes:  # a union comes before its sides
        if isinstance(each, plan.SetOperation):
            _look_through(each, used, whole)

    def prune(each: Plan) -> Plan:
        if not isinstance(each, plan.Project) or each.source in whole:
            return each
        unread = [
            at
            for at, expression in enumerate(each.expressions)
            if at not in used[each.source] and _may_go(expression)
        ]
        if not unread:
            return each
        expressions = list(each.expressions)
        for at in unread:
            expressions[at] = Constant(None, expressions[at].type)
        return replace(
            each,
            expressions=tuple(expressions),
            unread=tuple(sorted((*each.unread, *unread))),
        )

    return tree_rebuilt(node, prune)


def _look_through(node: plan.SetOperation, used: _Used, whole: set[int]) -> None:
    """The columns of UNION ALL that are read are read of both sides; elsewhere all are."""
    for side in (node.left_source, node.right_source):
        if node.kind != "union" or not node.is_all or node.source in whole:
            whole.add(side)
        else:
            used[side] |= used[node.source]


def _may_go(expression: Expression) -> bool:
    """Columns and constants cost nothing, and are left as they are."""
    if isinstance(expression, Column | Constant):
        return False
    if isinstance(expression, Slot):
        return is_cast_literal(expression)
    return not (has_subquery(expression) or is_volatile(expression))

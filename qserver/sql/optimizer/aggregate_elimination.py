"""Aggregate elimination: count, min and max that read no more than a tree has to show for them.

    count(*) of a scan, or of a range of a key      the tree knows how many entries it has
    min or max of a column that a tree orders       its first or last entry that is not NULL
    several of them, over the same rows             each by itself

A page of a tree knows the number of entries below it, so a count opens only the pages at both ends
of its range. In a transaction, only rows that come or go conflict with it.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import (
    AggregateCall,
    Column,
    Constant,
    Expression,
    ScalarQuery,
    Slot,
    SortKey,
)
from qserver.sql.optimizer.orders import scan_in_order
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import has_subquery, is_volatile, may_substitute, substituted, tree_rebuilt
from qserver.values.types import BIGINT, INTEGER


def aggregate_elimination(node: Plan, statistics: Statistics) -> Plan:
    return tree_rebuilt(node, _eliminated)


def _eliminated(node: Plan) -> Plan:
    if not isinstance(node, plan.Aggregate) or node.keys or node.grouping_sets is not None:
        return node
    below = _without_projections(node)
    scan = below.input
    if not below.calls or not isinstance(scan, plan.Scan) or not scan.table.has_tree:
        return node
    if len(below.calls) == 1:
        return _single(below, scan) or node
    if scan.condition is not None:
        return node  # one scan for all of them is better
    singles = [_single(replace(below, calls=(call,)), scan) for call in below.calls]
    queries = [
        ScalarQuery(single, call.type, call.nullable)
        for single, call in zip(singles, below.calls, strict=True)
        if single is not None
    ]
    if len(queries) < len(below.calls):
        return node
    columns = [plan.OutputColumn(each.aggregate.name, each.type) for each in below.calls]
    return plan.Project(
        plan.OneRow(),
        node.source,
        (*queries, Constant(0, INTEGER)),
        (*columns, plan.OutputColumn("grouping", INTEGER)),
    )


def _without_projections(node: plan.Aggregate) -> plan.Aggregate:
    """Return the same aggregates over the rows of a table, where projections only choose columns.

    The order of rows does not matter either.
    """
    while isinstance(node.input, plan.Project | plan.Sort):
        below, calls = node.input, node.calls
        if isinstance(below, plan.Project):
            if any(has_subquery(each) or is_volatile(each) for each in below.expressions):
                return node
            made = {(below.source, at): each for at, each in enumerate(below.expressions)}
            if not all(may_substitute(call, made) for call in calls):
                return node
            calls = tuple(substituted(call, made) for call in calls)
        elif not all(isinstance(key.expression, Column) for key in below.keys):
            return node
        node = replace(node, input=below.input, calls=calls)
    return node


def _single(node: plan.Aggregate, scan: plan.Scan) -> Plan | None:
    """Return what replaces one aggregate of a scan."""
    (call,) = node.calls
    if call.filter is not None or call.order_by or scan.access.range.choices:
        return None
    if call.aggregate.name == "count":
        return _count(node, call, scan)
    if call.aggregate.name in ("min", "max"):
        return _extreme(node, call, scan)
    return None


def _count(node: plan.Aggregate, call: AggregateCall, scan: plan.Scan) -> Plan | None:
    if call.distinct or scan.condition is not None or any(map(_may_be_null, call.arguments)):
        return None
    return plan.Count(scan, node.source)


def _may_be_null(argument: Expression) -> bool:
    return argument.nullable or not isinstance(argument, Column | Constant | Slot)


def _extreme(node: plan.Aggregate, call: AggregateCall, scan: plan.Scan) -> Plan | None:
    column, last = call.arguments[0], call.aggregate.name == "max"
    if not isinstance(column, Column) or column.source != scan.source:
        return None
    ordered = scan_in_order(plan.Sort(scan, (SortKey(column, last, last),)))
    if ordered is None:
        return None
    if column.nullable:
        keys = replace(ordered.access.range, not_null=True)
        ordered = replace(ordered, access=replace(ordered.access, range=keys))
    return replace(node, input=plan.Limit(ordered, Constant(1, BIGINT)))

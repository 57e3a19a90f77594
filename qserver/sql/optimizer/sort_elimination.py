"""Sort elimination: sorts before projection, sorts only the wanted rows, or not at all.

    Limit(Sort(x))                      holds only rows that can be among the first
    Sort by the key (Scan)              reads the tree in its order
    Limit(Sort by the key (Scan))       the same, and stops
    Limit(Sort(Aggregate(Scan)))        groups in the order of an index: see `early_end`

Trees are read forward or backward, so a descending key needs no sort either.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql import plan
from qserver.sql.optimizer.early_end import ending_early
from qserver.sql.optimizer.orders import scan_in_order
from qserver.sql.optimizer.predicate_pushdown import push
from qserver.sql.optimizer.projection_pruning import projection_pruning
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import has_subquery, is_volatile, may_substitute, substituted, tree_rebuilt


def sort_elimination(node: Plan, statistics: Statistics) -> Plan:
    def less(each: Plan) -> Plan:
        if isinstance(each, plan.Sort):
            return below_projections(each)
        if isinstance(each, plan.Limit):
            return _limit(each, statistics)
        if isinstance(each, plan.Filter) and isinstance(each.input, plan.Project):
            return push(each, ())  # the limit above it has moved below the projection
        return each

    sorted_less = tree_rebuilt(node, less)
    if sorted_less is node:
        return node
    return projection_pruning(sorted_less, statistics)  # only a sort may have read a column


def below_projections(node: plan.Sort) -> Plan:
    """Sort rows before they are projected: the same order, and fewer new tuples.

    A scan that already has the order needs no sort.
    """
    below = node.input
    if not isinstance(below, plan.Project):
        return scan_in_order(node, all_rows=True) or node
    replacements = {
        (below.source, position): expression
        for position, expression in enumerate(below.expressions)
    }
    if not all(may_substitute(key, replacements) for key in node.keys):
        return node
    keys = tuple(
        replace(key, expression=substituted(key.expression, replacements)) for key in node.keys
    )
    if any(has_subquery(key.expression) or is_volatile(key.expression) for key in keys):
        return node
    if any(has_subquery(each) or is_volatile(each) for each in below.expressions):
        return node
    return replace(below, input=below_projections(plan.Sort(below.input, keys)))


def _limit(node: plan.Limit, statistics: Statistics) -> Plan:
    below = node.input
    if node.limit is None or node.with_ties:
        return node
    early = ending_early(below, statistics)
    if early is not None:
        return replace(node, input=early)
    if isinstance(below, plan.Project) and isinstance(below.input, plan.Sort | plan.Scan):
        if any(has_subquery(each) or is_volatile(each) for each in below.expressions):
            return node
        return replace(below, input=_limit(replace(node, input=below.input), statistics))
    if not isinstance(below, plan.Sort):
        return node
    scan = scan_in_order(below)
    if scan is not None:
        return replace(node, input=scan)  # `order_preservation` sets how many rows are wanted
    return plan.TopN(below.input, below.keys, node.limit, node.offset)

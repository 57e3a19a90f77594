"""Vectorization: conditions and aggregates over large tables compute with numpy.

    Scan with a condition             finds the rows that match, a few thousand at a time
    Aggregate(Scan)                   adds them to its groups
    Aggregate(Join(Scan, …))          joins them before, if hash joins do
    Top-N(Scan)                       drops rows that cannot be among the first
    Top-N(Vectors)                    so does a vector tree

Only what reads a table's own tree to its end: an index gives rows in another order than pages, and
a LIMIT needs few. `sql.vectors` says which expressions can be vectors.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.limits import VECTOR_ROWS_MIN
from qserver.sql import plan
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.vectors.planning import vector_aggregate, vector_filter, vector_top
from qserver.sql.vectors.tree_sorting import with_first_rows
from qserver.sql.walk import tree_rebuilt


def vectorization(node: Plan, statistics: Statistics) -> Plan:
    def change(each: Plan) -> Plan:
        if isinstance(each, plan.TopN) and isinstance(each.input, plan.Vectors):
            return _first_of_tree(each, each.input)
        scan = _first_scan(each.input if isinstance(each, plan.Aggregate | plan.TopN) else each)
        if scan is None or statistics.row_count(scan.table) < VECTOR_ROWS_MIN:
            return each
        match each:
            case plan.Scan() if vector_filter(each) is not None:
                return replace(each, vectors=True)
            case plan.Aggregate(in_order=False) if vector_aggregate(each) is not None:
                return replace(each, input=_joined_over_vectors(each.input), vectors=True)
            case plan.TopN() if vector_top(each) is not None:
                return replace(each, vectors=True)
        return each

    return tree_rebuilt(node, change)


def _first_of_tree(node: plan.TopN, tree: plan.Vectors) -> Plan:
    planned = with_first_rows(tree.planned, node.keys)
    return node if planned is None else replace(node, input=replace(tree, planned=planned))


def _first_scan(node: Plan) -> plan.Scan | None:
    """Return the scan at the end of a chain of joins."""
    while not isinstance(node, plan.Scan):
        match node:
            case plan.Join():
                node = node.left
            case plan.Filter():
                node = node.input
            case _:
                return None
    return node


def _joined_over_vectors(node: Plan) -> Plan:
    match node:
        case plan.Join():
            return replace(node, left=_joined_over_vectors(node.left), vectors=True)
        case plan.Filter():
            return replace(node, input=_joined_over_vectors(node.input))
        case _:
            return node

"""Vector choice: leaves a vector tree out where row code reads much less.

A tree reads its tables whole. Row code may look up a few rows by key, and is then faster than that.
Both are counted in rows that row code visits: a look-up by key costs some of them, a row of a tree
a small part of one, and beginning a tree a few hundred.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qserver.sql import plan
from qserver.sql.join_conditions import divided
from qserver.sql.optimizer.estimate import estimate
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import everything, has_subquery, tree_rebuilt

ROW_OF_TREE: Final = 0.05
START_OF_TREE: Final = 500.0
LOOK_UP: Final = 4.0


def vector_choice(node: Plan, statistics: Statistics) -> Plan:
    def chosen(each: Plan) -> Plan:
        if not isinstance(each, plan.Vectors) or each.by_rows:
            return each
        by_rows = _cost(each.input, statistics)
        if by_rows < START_OF_TREE + ROW_OF_TREE * each.planned.tree.rows:
            return each.input
        return replace(each, by_rows=round(by_rows))

    return tree_rebuilt(node, chosen)


def _cost(node: Plan, statistics: Statistics) -> float:
    """Return the rows that row code visits, those of subqueries once."""
    match node:
        case plan.Scan():
            bare = replace(node, condition=None)
            cost = estimate(bare, statistics)
            read = _of_subqueries(node.condition, statistics)
            return cost + read + _of_subqueries(node.access.range.query, statistics)
        case plan.Join():
            left = estimate(node.left, statistics)
            cost = _cost(node.left, statistics)
            if node.method == "index":
                cost += left * (LOOK_UP + _cost(node.right, statistics))
            else:
                cost += _cost(node.right, statistics)
                if not divided(node)[0] and node.method != "hash":
                    cost += left * estimate(node.right, statistics)
            return cost + left + _of_subqueries(node.condition, statistics)
    cost = 0.0
    for name in ("input", "left", "right"):
        below = getattr(node, name, None)
        if below is not None:
            cost += _cost(below, statistics)
    return cost + _of_subqueries(getattr(node, "condition", None), statistics)


def _of_subqueries(condition: object, statistics: Statistics) -> float:
    if condition is None or not has_subquery(condition):  # type: ignore[arg-type]
        return 0.0
    scans = [each for each in everything(condition) if type(each) is plan.Scan]
    return sum([float(statistics.row_count(each.table)) for each in scans])

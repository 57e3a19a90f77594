"""Vectorization: conditions and aggregates over large tables compute with numpy.

    Scan with a condition             finds the rows that match, a few thousand at a time
    Aggregate(Scan)                   adds them to its groups
    Top-N(Scan)                       drops rows that cannot be among the first

Only what reads a table's own tree to its end: an index gives rows in another order than pages, and
a LIMIT needs few. `sql.vectors` says which expressions can be vectors.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.limits import VECTOR_ROWS_MIN
from qserver.sql import plan
from qserver.sql.optimizer.estimate import RowCount
from qserver.sql.plan import Plan
from qserver.sql.vectors.planning import vector_aggregate, vector_filter, vector_top
from qserver.sql.walk import tree_rebuilt


def vectorization(node: Plan, row_count: RowCount) -> Plan:
    def change(each: Plan) -> Plan:
        scan = each if isinstance(each, plan.Scan) else getattr(each, "input", None)
        if not isinstance(scan, plan.Scan) or row_count(scan.table) < VECTOR_ROWS_MIN:
            return each
        match each:
            case plan.Scan() if vector_filter(each) is not None:
                return replace(each, vectors=True)
            case plan.Aggregate() if vector_aggregate(each) is not None:
                return replace(each, vectors=True)
            case plan.TopN() if vector_top(each) is not None:
                return replace(each, vectors=True)
        return each

    return tree_rebuilt(node, change)

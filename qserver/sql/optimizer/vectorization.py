"""Vectorization: conditions and aggregates over large tables compute with numpy.

    Scan with a condition             finds the rows that match, a few thousand at a time
    Aggregate(Scan)                   adds them to its groups

Only what reads a table's own tree to its end: an index gives rows in another order than pages, and
a LIMIT needs few. `sql.vectors` says which expressions can be vectors.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.limits import CHUNK_ROWS_MIN
from qserver.sql import plan
from qserver.sql.optimizer.estimate import RowCount
from qserver.sql.plan import Plan
from qserver.sql.vectors.planning import vector_aggregate, vector_filter
from qserver.sql.walk import tree_rebuilt


def vectorization(node: Plan, row_count: RowCount) -> Plan:
    def change(each: Plan) -> Plan:
        if isinstance(each, plan.Scan):
            if row_count(each.table) >= CHUNK_ROWS_MIN and vector_filter(each) is not None:
                return replace(each, vectors=True)
        elif isinstance(each, plan.Aggregate) and isinstance(each.input, plan.Scan):
            table = each.input.table
            if row_count(table) >= CHUNK_ROWS_MIN and vector_aggregate(each) is not None:
                return replace(each, vectors=True)
        return each

    return tree_rebuilt(node, change)

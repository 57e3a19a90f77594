"""Right-join normalization: a right join becomes a left join with its sides exchanged."""

from __future__ import annotations

from dataclasses import replace

from qserver.sql.plan import Join, Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import tree_rebuilt


def right_join_normalization(plan: Plan, statistics: Statistics) -> Plan:
    def turned(node: Plan) -> Plan:
        if isinstance(node, Join) and node.kind == "right":
            return replace(node, kind="left", left=node.right, right=node.left)
        return node

    return tree_rebuilt(plan, turned)

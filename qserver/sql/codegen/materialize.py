"""How materialized rows of several sources are stored, and when a pipeline is split."""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.plan import Plan

LOOPS_MOST = 9
"""Nested loops before a pipeline is split; scans and conditions need blocks as well."""


def pattern(sources: tuple[int, ...], rows: RowVariables) -> str:
    """Return the item that stores the rows of several sources: a tuple of rows, or the only row."""
    if len(sources) == 1:
        return rows.row(sources[0])
    return f"({', '.join(rows.row(made) for made in sources)},)" if sources else "()"


def loops_of(node: Plan) -> int:
    """Return the number of nested loops around the plan's consumer."""
    if isinstance(node, plan.Join):
        left = loops_of(node.left)
        if left >= LOOPS_MOST:
            left = 1
        return left if node.kind in ("semi", "anti") else left + 2
    if isinstance(node, plan.Filter | plan.Project | plan.Limit | plan.Distinct):
        return loops_of(node.input) + (0 if isinstance(node, plan.Project) else 1)
    return 2

"""How rows of several sources are kept together, and when a pipeline is cut to keep them."""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.codegen.current_rows import Rows
from qserver.sql.plan import Plan

LOOPS_MOST = 9
"""Loops inside each other before a pipeline is cut; scans and conditions need blocks as well."""


def pattern(sources: tuple[int, ...], rows: Rows) -> str:
    """How rows of several sources are kept as one item: a tuple of them, or the one itself."""
    if len(sources) == 1:
        return rows.row(sources[0])
    return f"({', '.join(rows.row(made) for made in sources)},)" if sources else "()"


def loops_of(node: Plan) -> int:
    """How many loops stand inside each other where the plan's consumer is printed."""
    if isinstance(node, plan.Join):
        left = loops_of(node.left)
        if left >= LOOPS_MOST:
            left = 1
        return left if node.kind in ("semi", "anti") else left + 2
    if isinstance(node, plan.Filter | plan.Project | plan.Limit | plan.Distinct):
        return loops_of(node.input) + (0 if isinstance(node, plan.Project) else 1)
    return 2

"""Imports the modules with numpy when the first plan uses vectors.

That takes a tenth of a second. It counts as planning that is not short, so it happens where long
statements are planned: beside the event loop. A server without such plans never pays for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from qserver.limits import PLANNING_STEPS_MAX
from qserver.sql.plan import Vectors
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import everything


def load_for(statement: Any, budget: StepBudget | None) -> None:
    """Load the modules if an optimized statement uses vectors and they are not loaded."""
    if load.cache_info().currsize:
        return
    nodes = everything(statement)
    if any(getattr(node, "vectors", False) or type(node) is Vectors for node in nodes):
        if budget is not None:
            budget.spend(PLANNING_STEPS_MAX + 1)  # more than a short plan has
        load()


@cache
def load() -> None:
    """Import the modules with numpy."""
    import qserver.sql.vectors.attempts
    import qserver.sql.vectors.first_rows
    import qserver.sql.vectors.joins
    import qserver.sql.vectors.tree_run  # noqa: F401

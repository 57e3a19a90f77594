"""The rules: an ordered tuple of plain functions from plan to plan.

Each looks for one kind of improvement and leaves the rest alone. Order matters, and is the order of
`RULES`: first what a plan means is made plain (right joins turned, subqueries made joins,
conditions moved to where they can be checked first), then joins are ordered, then access paths
and methods are chosen, and last the order of rows is looked after where it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from qserver.sql.effort import Effort
from qserver.sql.plan import Plan
from qserver.sql.rules.choose_access import choose_access
from qserver.sql.rules.estimate import RowCount, with_estimates
from qserver.sql.rules.keep_order import keep_order
from qserver.sql.rules.order_joins import order_joins
from qserver.sql.rules.push_conditions import push_conditions
from qserver.sql.rules.sort_less import sort_less
from qserver.sql.rules.turn_right_joins import turn_right_joins
from qserver.sql.rules.unnest_exists import unnest_exists
from qserver.sql.walk import is_plan, rebuilt

Rule: TypeAlias = Callable[[Plan, RowCount], Plan]

RULES: Final[tuple[Rule, ...]] = (
    turn_right_joins,
    unnest_exists,
    push_conditions,
    order_joins,
    choose_access,
    sort_less,
    keep_order,
    with_estimates,
)


def improve(
    statement: Any,
    row_count: RowCount,
    rules: tuple[Rule, ...] = RULES,
    effort: Effort | None = None,
) -> Any:
    """A bound statement with its plan improved, and those of all its subqueries before."""
    effort = effort or Effort.boundless()
    for rule in rules:
        statement = rebuilt(statement, _applied_to_plans(rule, row_count, effort))
    return statement


def _applied_to_plans(rule: Rule, row_count: RowCount, effort: Effort) -> Callable[[Any], Any]:
    """Whatever holds a plan, a statement, a subquery or a common table, gets it improved."""
    spend = effort.spend

    def improved(node: Any) -> Any:
        spend()
        plan = getattr(node, "plan", None)
        if plan is None or not is_plan(plan):
            return node
        return replace(node, plan=rule(plan, row_count))

    return improved

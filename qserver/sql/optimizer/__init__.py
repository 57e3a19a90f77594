"""The optimizer: an ordered tuple of plain functions from plan to plan.

A rule gets one tree of plan nodes, connected by `input`, `left` and `right`, and stays inside it.
`optimize` finds the trees: that of the statement, of each subquery, and both of a recursive CTE;
the inner ones first, each once.

A rule is idempotent, and may not lose a condition. A condition is in one place: in a filter, a scan
or a join, or in the key of a scan's access path. A join has all its conditions in `condition`; the
keys of a hash table are derived from it (`join_conditions`). `test_conditions_are_kept` adds
conditions up before and after each rule, over every statement of the golden scripts.

Order matters, and is the order of
`RULES`: first what a plan means is made plain (right joins turned, subqueries made joins,
conditions moved to where they can be checked first, columns that nobody reads left out), then joins
are ordered, then access paths and methods are chosen, then the order of rows is looked after where
it shows, and last whole scans are computed over vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final, TypeAlias

from qserver.sql.optimizer.access_path_selection import access_path_selection
from qserver.sql.optimizer.aggregate_elimination import aggregate_elimination
from qserver.sql.optimizer.estimate import RowCount, with_estimates
from qserver.sql.optimizer.join_ordering import join_ordering
from qserver.sql.optimizer.order_preservation import order_preservation
from qserver.sql.optimizer.predicate_pushdown import predicate_pushdown
from qserver.sql.optimizer.projection_pruning import projection_pruning
from qserver.sql.optimizer.right_join_normalization import right_join_normalization
from qserver.sql.optimizer.sort_elimination import sort_elimination
from qserver.sql.optimizer.subquery_unnesting import subquery_unnesting
from qserver.sql.optimizer.vectorization import vectorization
from qserver.sql.plan import Plan
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import is_plan, rebuilt

Rule: TypeAlias = Callable[[Plan, RowCount], Plan]

RULES: Final[tuple[Rule, ...]] = (
    right_join_normalization,
    subquery_unnesting,
    predicate_pushdown,
    projection_pruning,
    join_ordering,
    access_path_selection,
    sort_elimination,
    aggregate_elimination,
    order_preservation,
    vectorization,
    with_estimates,
)


def optimize(
    statement: Any,
    row_count: RowCount,
    rules: tuple[Rule, ...] = RULES,
    budget: StepBudget | None = None,
) -> Any:
    """Optimize the plan of a bound statement and those of its subqueries, inner ones first."""
    budget = budget or StepBudget.boundless()
    for rule in rules:
        statement = rebuilt(statement, _applied_to_plans(rule, row_count, budget))
    return statement


def _applied_to_plans(rule: Rule, row_count: RowCount, budget: StepBudget) -> Callable[[Any], Any]:
    """Return the function that applies a rule to the plans of a statement, subquery or CTE."""
    spend = budget.spend

    def optimized(node: Any) -> Any:
        spend()
        changes = {}
        for name in _plan_fields(type(node)):
            held = getattr(node, name)
            if is_plan(held):
                changes[name] = rule(held, row_count)
        return replace(node, **changes) if changes else node

    return optimized


def _plan_fields(kind: type[Any]) -> tuple[str, ...]:
    names = _PLAN_FIELDS.get(kind)
    if names is None:
        names = tuple(each.name for each in fields(kind) if each.name in ("plan", "recursive"))
        _PLAN_FIELDS[kind] = names
    return names


_PLAN_FIELDS: dict[type, tuple[str, ...]] = {}

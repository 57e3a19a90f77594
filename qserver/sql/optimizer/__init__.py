"""The optimizer: an ordered tuple of plain functions from plan to plan.

A rule gets one tree of plan nodes, connected by `input`, `left` and `right`, and stays inside it.
`optimize` finds the trees: that of the statement, of each subquery, and both of a recursive CTE;
the inner ones first, each once.

A rule is idempotent, and may not lose a condition. A condition is in one place: in a filter, a scan
or a join, or in the key of a scan's access path. A join has all its conditions in `condition`; the
keys of a hash table are derived from it (`join_conditions`). `test_conditions_are_kept` adds
conditions up before and after each rule, over every statement of the golden scripts.

Order matters, and is the order of
`RULES`: first what a plan means is made plain (right joins turned, conditions taken out of ORs,
subqueries made joins, conditions moved to where they can be checked first, columns that nobody
reads left out), then joins are ordered, then access paths and methods are chosen, then the order of
rows is looked after where it shows, and last whole scans are computed over vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final, TypeAlias

from qserver.sql.optimizer.access_path_selection import access_path_selection
from qserver.sql.optimizer.aggregate_elimination import aggregate_elimination
from qserver.sql.optimizer.estimate import with_estimates
from qserver.sql.optimizer.join_ordering import join_ordering
from qserver.sql.optimizer.or_factoring import or_factoring
from qserver.sql.optimizer.order_preservation import order_preservation
from qserver.sql.optimizer.predicate_pushdown import predicate_pushdown
from qserver.sql.optimizer.projection_pruning import projection_pruning
from qserver.sql.optimizer.right_join_normalization import right_join_normalization
from qserver.sql.optimizer.scan_hashing import scan_hashing
from qserver.sql.optimizer.sort_elimination import sort_elimination
from qserver.sql.optimizer.subquery_unnesting import subquery_unnesting
from qserver.sql.optimizer.vector_choice import vector_choice
from qserver.sql.optimizer.vector_trees import vector_trees
from qserver.sql.optimizer.vectorization import vectorization
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import is_plan, with_parts

Rule: TypeAlias = Callable[[Plan, Statistics], Plan]

RULES: Final[tuple[Rule, ...]] = (
    right_join_normalization,
    or_factoring,
    subquery_unnesting,
    predicate_pushdown,
    projection_pruning,
    vector_trees,
    join_ordering,
    access_path_selection,
    sort_elimination,
    aggregate_elimination,
    order_preservation,
    scan_hashing,
    vectorization,
    vector_choice,
    with_estimates,
)


def optimize(
    statement: Any,
    statistics: Statistics,
    rules: tuple[Rule, ...] = RULES,
    budget: StepBudget | None = None,
) -> Any:
    """Optimize the plan of a bound statement and those of its subqueries, inner ones first."""
    trees = _Trees(statistics, budget or StepBudget.boundless())
    for rule in rules:
        statement = trees.optimized(statement, rule)
    return statement


class _Trees:
    """Finds the trees of a statement, and applies rules to them.

    Most expressions hold no subquery. Where one rule finds none the next ones do not look again: a
    statement of thousands of items is searched once, and not once for each rule.
    """

    def __init__(self, statistics: Statistics, budget: StepBudget) -> None:
        self._statistics = statistics
        self._spend = budget.spend
        self._without: dict[int, tuple[Any, int]] = {}
        """Nodes that hold no tree, by identity, and the steps that it took to see that."""
        self._steps = 0
        self._found = 0

    def optimized(self, statement: Any, rule: Rule) -> Any:
        """Return the statement with all its trees as the rule makes them."""
        without = self._without

        def visit(part: Any) -> Any:
            known = without.get(id(part))
            if known is not None:
                self._step(known[1])
                return part
            steps, found = self._steps, self._found
            below = with_parts(part, visit)
            self._step(1)
            changes = {}
            for name in _PLAN_FIELDS[type(below)]:
                held = getattr(below, name)
                if is_plan(held):
                    changes[name] = rule(held, self._statistics)
            if changes:
                self._found += 1
                return replace(below, **changes)
            if found == self._found:
                without[id(below)] = below, self._steps - steps
            return below

        return visit(statement)

    def _step(self, steps: int) -> None:
        """Spend what a search takes, even of what was searched before: steps tell how large a
        statement is."""
        self._steps += steps
        self._spend(steps)


class _PlanFields(dict[type, tuple[str, ...]]):
    """Knows the fields of each kind of node that may hold trees."""

    def __missing__(self, kind: type[Any]) -> tuple[str, ...]:
        names = tuple(each.name for each in fields(kind) if each.name in ("plan", "recursive"))
        self[kind] = names
        return names


_PLAN_FIELDS = _PlanFields()

"""Vector trees: joins and groups of whole tables compute with numpy, from the scans to the groups.

    Aggregate ── Join ── …        →  Vectors ── Aggregate ── Join ── …

The tree is planned here, from the plan before its joins are ordered. Below `Vectors` the other
rules go on with the plan as row code has it: it computes the rows if the tree is refused, and
`vector_choice` leaves the tree out where reading whole tables would take longer.

The uppermost part of a plan that has a tree gets one: a grouping, one with a condition on its
groups, or the joins below a projection. A single table is left to `vectorization`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from qserver.limits import VECTOR_ROWS_MIN
from qserver.sql import plan
from qserver.sql.expressions import Column
from qserver.sql.optimizer.estimate import estimate
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.vectors.program import NotVectorized
from qserver.sql.vectors.tree_planning import planned_tree
from qserver.sql.walk import everything, output_sources

_THROUGH = (plan.Project, plan.Sort, plan.TopN, plan.Limit, plan.Filter, plan.Distinct)
"""What may stand between the projection of a query and the joins that a tree computes."""


def vector_trees(node: Plan, statistics: Statistics) -> Plan:
    return _Search(node, statistics).changed(node, is_read=_ends_in_projection(node))


def _ends_in_projection(node: Plan) -> bool:
    """Whether a plan gives the rows of a projection, so that others name no source below."""
    while isinstance(node, plan.Sort | plan.TopN | plan.Limit | plan.Distinct | plan.Filter):
        node = node.input
    return isinstance(node, plan.Project)


class _Search:
    def __init__(self, root: Plan, statistics: Statistics) -> None:
        self._root = root
        self._statistics = statistics

    def changed(self, node: Plan, is_read: bool) -> Plan:
        """Return a plan with trees. `is_read`: all that reads its rows is in the plan."""
        if isinstance(node, plan.Vectors):
            return node
        if _may_have_one(node, is_read) and self._is_large(node):
            made = self._with_tree(node)
            if made is not None:
                return made
        is_read = is_read and isinstance(node, _THROUGH)
        changes: dict[str, Any] = {}
        for name in ("input", "left", "right"):
            below = getattr(node, name, None)
            if below is None or (name == "right" and getattr(node, "lateral", False)):
                continue
            after = self.changed(below, is_read)
            if after is not below:
                changes[name] = after
        return replace(node, **changes) if changes else node

    def _is_large(self, node: Plan) -> bool:
        scans = [each for each in everything(node) if type(each) is plan.Scan]
        if len(scans) < 2:
            return False
        return max([self._statistics.row_count(scan.table) for scan in scans]) >= VECTOR_ROWS_MIN

    def _with_tree(self, node: Plan) -> Plan | None:
        sources = frozenset(output_sources(node))
        above = {each for each in _read_above(self._root, node) if each.source in sources}
        try:
            planned = planned_tree(node, above, lambda each: estimate(each, self._statistics))
        except NotVectorized:
            return None
        return plan.Vectors(node, planned)


def _may_have_one(node: Plan, is_read: bool) -> bool:
    match node:
        case plan.Aggregate():
            return True
        case plan.Filter(input=plan.Aggregate()):
            return True
        case plan.Join() | plan.Scan() | plan.Filter():
            return is_read
    return False


def _read_above(root: Any, node: Plan) -> set[Column]:
    """Return the columns that a plan names outside of one of its nodes."""
    found: set[Column] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if each is node:
            continue
        if type(each) is Column:
            found.add(each)
            continue
        for name in [field.name for field in fields(each)] if hasattr(each, "__slots__") else ():
            _gather(getattr(each, name), waiting)
    return found


def _gather(value: Any, waiting: list[Any]) -> None:
    if isinstance(value, tuple):
        for item in value:
            _gather(item, waiting)
    elif type(value).__module__ in (plan.__name__, Column.__module__):
        waiting.append(value)

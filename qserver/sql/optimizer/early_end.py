"""Groups and distinct rows that a LIMIT ends early, in the order of a key or an index.

    Limit(Sort(Aggregate(Scan)))        one group after the other, as the index has them
    Limit(Distinct ON (Sort(Scan)))     the same: the first row of each group is enough

So a few groups read as many rows as they have, and not the whole table. A row that is found by an
index costs as much as many of a scan, so that is worth it only where there are many groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from qserver.sql import plan
from qserver.sql.expressions import Column, Expression, SortKey
from qserver.sql.optimizer.orders import scan_in_order
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import has_subquery, is_volatile, substituted

GROUPS_MIN: Final = 500.0
"""With so many groups the usual LIMIT reads a small part of them."""


def ending_early(node: Plan, statistics: Statistics) -> Plan | None:
    """Return what is below a LIMIT so that it gives its rows in order without reading all."""
    keys: tuple[SortKey, ...] = ()
    if isinstance(node, plan.Sort):
        keys, node = node.keys, node.input
    return _in_order(node, keys, statistics)


def _in_order(node: Plan, keys: tuple[SortKey, ...], statistics: Statistics) -> Plan | None:
    match node:
        case plan.Project():
            if any(has_subquery(each) or is_volatile(each) for each in node.expressions):
                return None
            below = _in_order(node.input, _below(node, keys), statistics)
            return None if below is None else replace(node, input=below)
        case plan.Distinct(input=plan.Project() as project):
            below = _distinct(node, project, keys, statistics)
            return None if below is None else replace(node, input=replace(project, input=below))
        case plan.Aggregate(grouping_sets=None) if node.keys:
            below = _grouped(node, keys, statistics)
            return None if below is None else replace(node, input=below, in_order=True)
    return None


def _below(node: plan.Project, keys: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
    made = {(node.source, at): each for at, each in enumerate(node.expressions)}
    return tuple([replace(key, expression=substituted(key.expression, made)) for key in keys])


def _distinct(
    node: plan.Distinct, project: plan.Project, keys: tuple[SortKey, ...], statistics: Statistics
) -> plan.Scan | None:
    below: Plan = project.input
    groups: Sequence[Expression] = project.expressions
    keys = _below(project, keys)
    if node.on:
        made = {(project.source, at): each for at, each in enumerate(project.expressions)}
        groups = [substituted(each, made) for each in node.on]
        if not isinstance(below, plan.Sort) or keys not in ((), below.keys[: len(keys)]):
            return None
        keys, below = below.keys, below.input
    if not keys or not isinstance(below, plan.Scan):
        return None
    return _scan(below, keys, groups, statistics)


def _grouped(
    node: plan.Aggregate, keys: tuple[SortKey, ...], statistics: Statistics
) -> plan.Scan | None:
    scan = node.input
    if not isinstance(scan, plan.Scan):
        return None
    made: dict[Any, Expression] = {(node.source, at): each for at, each in enumerate(node.keys)}
    named = []
    for key in keys:
        found = made.get(_place(key.expression))
        if found is None:
            return None
        named.append(replace(key, expression=found))
    sorted_by = [key.expression for key in named]
    descending = bool(keys) and keys[0].descending
    rest = [SortKey(each, descending, descending) for each in node.keys if each not in sorted_by]
    ordered = _scan(scan, (*named, *rest), node.keys, statistics)
    if ordered is None or (not keys and ordered.access.index is not None):
        return None  # groups that nobody has ordered come in the order of the table
    return ordered


def _place(key: Expression) -> tuple[int, int] | None:
    return (key.source, key.position) if isinstance(key, Column) else None


def _scan(
    scan: plan.Scan, keys: tuple[SortKey, ...], groups: Sequence[Expression], statistics: Statistics
) -> plan.Scan | None:
    """Return the scan in the order of the keys, if it is worth it."""
    positions = {
        each.position for each in groups if isinstance(each, Column) and each.source == scan.source
    }
    if len(positions) < len(set(groups)):
        return None
    found = scan_in_order(plan.Sort(scan, keys))
    distinct = None if found is None else statistics.distinct(scan.table, tuple(sorted(positions)))
    return found if distinct is not None and distinct.values >= GROUPS_MIN else None

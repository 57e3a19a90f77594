"""Join ordering: orders inner joins by size and selects each join's method.

A cluster of inner joins is split into its relations and conditions. A left join among them whose
right side no condition of the cluster names is done after all of them: (a ⟕ b) ⋈ c is (a ⋈ c) ⟕ b.
The smallest relation comes first; next comes the relation that an equality connects to the joined
ones and that gives the fewest rows. Relations that another condition connects come later,
unconnected ones last.

Equalities between the two sides make a hash join, or, if the left side is small and the right side
is a table with a matching key, a look-up for each left row. Without equalities, a key between two
bounds is looked up for each left row, and everything else is a loop over all pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from qserver.sql import plan
from qserver.sql.expressions import Expression
from qserver.sql.join_conditions import divided_between, hash_keys, is_equality
from qserver.sql.optimizer.access_path_selection import best_access
from qserver.sql.optimizer.estimate import (
    LOOKUPS_WORTH_A_SCAN,
    Side,
    estimate,
    joined_rows,
    rows_of_look_up,
    scans_below,
)
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    free_sources,
    output_sources,
    sources_named,
)

ROWS_HASHED_AS_THEY_COME: Final = 200
"""The right side of a join is hashed. Where it has more rows, and the left side fewer, they change
places; otherwise rows stay in the order of the left side, which is that of columns in a table."""


def join_ordering(node: Plan, statistics: Statistics) -> Plan:
    """Order joins from the top, so that a cluster is seen whole; its relations are ordered
    separately.

    A join that has a method has been ordered already, and stays in place.
    """
    if isinstance(node, plan.Join) and node.method is None:
        if node.kind == "inner" and not _has_lateral(node):
            return _ordered_cluster(node, statistics)
        left = join_ordering(node.left, statistics)
        right = join_ordering(node.right, statistics)
        return with_method(replace(node, left=left, right=right), statistics)
    changes: dict[str, Any] = {}
    for name in ("input", "left", "right"):
        below = getattr(node, name, None)
        if below is not None:
            changes[name] = join_ordering(below, statistics)
    return replace(node, **changes) if changes else node


def _has_lateral(node: Plan) -> bool:
    if not isinstance(node, plan.Join) or node.kind != "inner" or node.method is not None:
        return False
    return node.lateral or _has_lateral(node.left) or _has_lateral(node.right)


def _cluster(node: Plan) -> tuple[list[Plan], list[Expression]]:
    """Return the relations and the conditions of a cluster of inner joins."""
    if isinstance(node, plan.Join) and node.kind == "inner" and node.method is None:
        left, left_conditions = _cluster(node.left)
        right, right_conditions = _cluster(node.right)
        return left + right, left_conditions + right_conditions + list(conjuncts(node.condition))
    return [node], []


def _ordered_cluster(node: plan.Join, statistics: Statistics) -> Plan:
    relations, conditions = _cluster(node)
    named = frozenset[int]().union(*map(sources_named, conditions))
    later: list[plan.Join] = []
    inner = [_without_left_joins(relation, named, later) for relation in relations]
    if not later:
        return _ordered(relations, conditions, statistics)
    more = [_cluster(relation) for relation in inner]
    relations = [each for found, _ in more for each in found]
    conditions += [each for _, found in more for each in found]
    joined = _ordered(relations, conditions, statistics)
    for left_join in reversed(later):
        right = join_ordering(left_join.right, statistics)
        joined = with_method(replace(left_join, left=joined, right=right), statistics)
    return joined


def _without_left_joins(node: Plan, named: frozenset[int], later: list[plan.Join]) -> Plan:
    """Return a relation without its left joins, which are added to `later`, the outermost first."""
    while (
        isinstance(node, plan.Join)
        and node.kind == "left"
        and node.method is None
        and not node.lateral
        and not named & frozenset(output_sources(node.right))
    ):
        later.append(node)
        node = node.left
    return node


def _ordered(relations: list[Plan], conditions: list[Expression], statistics: Statistics) -> Plan:
    relations = [join_ordering(relation, statistics) for relation in relations]
    sizes = [estimate(relation, statistics) for relation in relations]
    waiting = list(range(len(relations)))
    named = [sources_named(condition) for condition in conditions]
    owned = [frozenset(output_sources(relation)) for relation in relations]
    scanned = [scans_below(relation) for relation in relations]
    made = frozenset().union(*owned)

    def is_alone(at: int) -> bool:
        return not any(names & owned[at] and names & made - owned[at] for names in named)

    first = min(waiting, key=lambda at: (is_alone(at), sizes[at]))
    waiting.remove(first)
    joined, size = relations[first], sizes[first]
    there = owned[first]
    scans = dict(scanned[first])
    left_over = list(range(len(conditions)))

    def rows_after(at: int) -> tuple[bool, bool, float, int]:
        """Return how well a relation comes next: less is better, and the last but one item is the
        estimated rows."""
        own = owned[at]
        ties = [
            conditions[each]
            for each in left_over
            if named[each] & own and named[each] & there and named[each] <= own | there
        ]
        rows, equal = size * sizes[at], any(is_equality(tie) for tie in ties)
        if ties:
            keys, rest = divided_between(ties, there, own)
            sides = Side(size, scans), Side(sizes[at], scanned[at])
            rows = joined_rows(keys, rest, sides, statistics)
        return not equal, not ties, rows, at

    while waiting:
        _, _, best_size, best = min(map(rows_after, waiting))
        waiting.remove(best)
        there |= owned[best]
        scans |= scanned[best]
        usable = [at for at in left_over if named[at] & made <= there]
        left_over = [at for at in left_over if at not in usable]
        condition = conjunction(conditions[at] for at in usable)
        joined = with_method(
            plan.Join("inner", joined, relations[best], condition), statistics, size
        )
        size = max(1.0, best_size)
    rest = conjunction(conditions[at] for at in left_over)
    return joined if rest is None else plan.Filter(joined, rest)


def with_method(
    node: plan.Join, statistics: Statistics, left_rows: float | None = None
) -> plan.Join:
    """Select the join's method: look-ups, hash, or loop."""
    if node.lateral or (free_sources(node.right) & frozenset(output_sources(node.left))):
        return replace(node, lateral=True, method="index")
    keys = hash_keys(node)
    if not keys:
        return _between(node, statistics) or replace(node, method="loop")
    rows = estimate(node.left, statistics) if left_rows is None else left_rows
    if node.kind in ("inner", "left") and isinstance(node.right, plan.Scan):
        lookup = _lookup(node, node.right, statistics)
        table_rows = statistics.row_count(node.right.table)
        worth = table_rows / LOOKUPS_WORTH_A_SCAN
        if lookup and rows < worth and rows * rows_of_look_up(lookup, statistics) < worth:
            return lookup
    hashed = replace(node, method="hash")
    right = estimate(node.right, statistics)
    if node.kind == "inner" and rows < right and right > ROWS_HASHED_AS_THEY_COME:
        return replace(hashed, left=node.right, right=node.left)
    return hashed


def _lookup(node: plan.Join, scan: plan.Scan, statistics: Statistics) -> plan.Join | None:
    """Return the join as look-ups of the right side's rows, if a key matches."""
    conditions = conjuncts(scan.condition) + conjuncts(node.condition)
    access, rest = best_access(scan, conditions, statistics)
    if access is None or not access.range.equal:
        return None
    return _looked_up(node, scan, access, rest)


def _between(node: plan.Join, statistics: Statistics) -> plan.Join | None:
    """Return the join as look-ups between two bounds of a key of the right side, if it has them."""
    scan = node.right
    if node.kind not in ("inner", "left") or not isinstance(scan, plan.Scan):
        return None
    access, rest = best_access(
        scan, conjuncts(scan.condition) + conjuncts(node.condition), statistics
    )
    if access is None or access.range.low is None or access.range.high is None:
        return None
    return _looked_up(node, scan, access, rest)


def _looked_up(
    node: plan.Join, scan: plan.Scan, access: plan.Access, rest: list[Expression]
) -> plan.Join | None:
    if not sources_named(access.range) & frozenset(output_sources(node.left)):
        return None
    right = frozenset(output_sources(node.right))
    own = [each for each in rest if not sources_named(each) - right]
    both = [each for each in rest if sources_named(each) - right]
    return replace(
        node,
        right=replace(scan, access=access, condition=conjunction(own)),
        condition=conjunction(both),
        lateral=True,
        method="index",
    )

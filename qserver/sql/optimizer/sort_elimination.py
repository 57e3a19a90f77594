"""Sort elimination: sorts before projection, sorts only the wanted rows, or not at all.

    Limit(Sort(x))                      holds only rows that can be among the first
    Sort by the key (Scan)              reads the tree in its order
    Limit(Sort by the key (Scan))       the same, and stops

Trees are read forward or backward, so a descending key needs no sort either.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import Column, SortKey
from qserver.sql.optimizer.predicate_pushdown import push
from qserver.sql.optimizer.projection_pruning import projection_pruning
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import has_subquery, is_volatile, may_substitute, substituted, tree_rebuilt
from qserver.values.schema import Index


def sort_elimination(node: Plan, statistics: Statistics) -> Plan:
    def less(each: Plan) -> Plan:
        if isinstance(each, plan.Sort):
            return below_projections(each)
        if isinstance(each, plan.Limit):
            return _limit(each)
        if isinstance(each, plan.Filter) and isinstance(each.input, plan.Project):
            return push(each, ())  # the limit above it has moved below the projection
        return each

    sorted_less = tree_rebuilt(node, less)
    if sorted_less is node:
        return node
    return projection_pruning(sorted_less, statistics)  # only a sort may have read a column


def below_projections(node: plan.Sort) -> Plan:
    """Sort rows before they are projected: the same order, and fewer new tuples.

    A scan that already has the order needs no sort.
    """
    below = node.input
    if not isinstance(below, plan.Project):
        return scan_in_order(node, all_rows=True) or node
    replacements = {
        (below.source, position): expression
        for position, expression in enumerate(below.expressions)
    }
    if not all(may_substitute(key, replacements) for key in node.keys):
        return node
    keys = tuple(
        replace(key, expression=substituted(key.expression, replacements)) for key in node.keys
    )
    if any(has_subquery(key.expression) or is_volatile(key.expression) for key in keys):
        return node
    if any(has_subquery(each) or is_volatile(each) for each in below.expressions):
        return node
    return replace(below, input=below_projections(plan.Sort(below.input, keys)))


def _limit(node: plan.Limit) -> Plan:
    below = node.input
    if node.limit is None or node.with_ties:
        return node
    if isinstance(below, plan.Project) and isinstance(below.input, plan.Sort | plan.Scan):
        if any(has_subquery(each) or is_volatile(each) for each in below.expressions):
            return node
        return replace(below, input=_limit(replace(node, input=below.input)))
    if not isinstance(below, plan.Sort):
        return node
    scan = scan_in_order(below)
    if scan is not None:
        return replace(node, input=scan)  # `order_preservation` sets how many rows are wanted
    return plan.TopN(below.input, below.keys, node.limit, node.offset)


def scan_in_order(node: plan.Sort, all_rows: bool = False) -> plan.Scan | None:
    """Return the scan in the order of the sort, if a tree has it.

    If all rows are wanted, a sort is faster than a look-up for each row by another index.
    """
    scan = node.input
    if not isinstance(scan, plan.Scan) or scan.access.range.choices or not scan.table.has_tree:
        return None
    orders: list[tuple[Index | None, tuple[int, ...], tuple[bool, ...]]] = []
    if scan.access.index is None:
        orders.append((None, scan.table.primary_key, ()))
    for index in scan.table.indexes:
        same = scan.access.index is index
        free = scan.access == plan.Access() and scan.condition is None
        if (same or (free and not all_rows)) and all(position >= 0 for position in index.columns):
            orders.append((index, index.columns, index.descending))
    for by, columns, descending in orders:
        equal = len(scan.access.range.equal) if scan.access.index is by else 0
        backward = _direction(scan, node.keys, columns[equal:], descending[equal:])
        if backward is not None:
            access = replace(scan.access, index=by, backward=backward)
            return replace(scan, access=access)
    return None


def _direction(
    scan: plan.Scan,
    keys: tuple[SortKey, ...],
    columns: tuple[int, ...],
    descending: tuple[bool, ...],
) -> bool | None:
    """Return False to read forward, True backward, None if the keys are not the columns' order.

    NULLs are last in a column of a tree, and first in a descending one.
    """
    if not keys or len(keys) > len(columns):
        return None
    directions = descending or (False,) * len(columns)
    backward = keys[0].descending != directions[0]
    for key, position, down in zip(keys, columns, directions, strict=False):
        column = key.expression
        if not (isinstance(column, Column) and column.source == scan.source):
            return None
        if column.position != position or key.descending != (down != backward):
            return None
        if column.nullable and key.nulls_first != key.descending:
            return None
    return backward

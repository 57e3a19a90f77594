"""Orders that trees have: a scan that reads its rows in the order of a sort."""

from __future__ import annotations

from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import Column, SortKey
from qserver.values.schema import Index


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

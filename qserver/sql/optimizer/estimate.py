"""Estimates the rows of plans from the sizes of tables, accurately enough to choose by.

There are no statistics. An equality with a whole unique key selects one row; other equalities a
tenth, comparisons a third, everything else a half. A join on a unique key finds one row for each
row of the other side; a join on other columns counts as if those of the smaller table were unique.
Only the order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from qserver.sql import plan
from qserver.sql.expressions import (
    Apply,
    Cast,
    Column,
    Elements,
    Expression,
    InList,
    IsNull,
    Or,
    Slots,
)
from qserver.sql.join_conditions import KeyPair, divided
from qserver.sql.plan import Plan
from qserver.sql.walk import conjuncts, tree_rebuilt
from qserver.values.schema import Table

RowCount: TypeAlias = Callable[[Table], int]
RowsOf: TypeAlias = Callable[[Plan], float]
Scans: TypeAlias = dict[int, plan.Scan]
"""The scans below a node, by the source that each produces."""

EQUAL, COMPARED, OTHER = 0.1, 0.33, 0.5

FOUND_IN_CATALOG = 10.0
"""Rows that a look-up in a catalog finds: those of one object."""


LOOKUPS_WORTH_A_SCAN = 20.0
"""A look-up by key costs about as much as this many rows of a scan."""


def estimate(node: Plan, row_count: RowCount) -> float:
    """Estimate the rows of a plan; at least one."""

    def rows_of(each: Plan) -> float:
        return max(1.0, _ESTIMATES[type(each)](each, row_count, rows_of))

    return rows_of(node)


def with_estimates(node: Plan, row_count: RowCount) -> Plan:
    """Return the plan with the estimate in each node, for EXPLAIN."""
    known: dict[int, float] = {}  # of the nodes below, by identity

    def rows_of(each: Plan) -> float:
        return known[id(each)] if id(each) in known else estimate(each, row_count)

    def noted(each: Any) -> Any:
        if type(each) not in _ESTIMATES:
            return each
        rows = max(1.0, _ESTIMATES[type(each)](each, row_count, rows_of))
        result = replace(each, rows=round(rows, 1))
        known[id(result)] = rows
        return result

    result: Plan = tree_rebuilt(node, noted)
    return result


def selectivity(condition: Expression | None) -> float:
    share = 1.0
    for each in conjuncts(condition):
        if isinstance(each, Apply) and each.function.comparison == "=":
            share *= EQUAL
        elif isinstance(each, Apply) and each.function.comparison in ("<", "<=", ">", ">="):
            share *= COMPARED
        elif isinstance(each, InList) and not each.negated:
            share *= min(1.0, EQUAL * _count(each.items))
        elif isinstance(each, IsNull) and not each.negated:
            share *= EQUAL
        elif isinstance(each, Or):
            share *= min(OTHER, sum(map(selectivity, each.operands)))
        else:
            share *= OTHER
    return share


def _count(items: tuple[Expression, ...]) -> int:
    """Count the items of a list; an array counts as ten."""
    return sum(
        10 if isinstance(item, Elements) else item.count if isinstance(item, Slots) else 1
        for item in items
    )


def _scan(node: plan.Scan, row_count: RowCount, rows_of: RowsOf) -> float:
    rows = float(row_count(node.table))
    keys = node.access.range
    equal = len(keys.equal) + bool(keys.choices)
    choices = _count(keys.choices) if keys.query is None else rows_of(keys.query.plan)
    index = node.access.index
    if index is None:
        unique, width = True, len(node.table.primary_key)
    else:
        unique, width = index.unique, len(index.columns)
    if unique and equal == width:
        rows = float(max(1, choices)) if keys.query is None else min(rows, choices)
    else:
        rows *= EQUAL ** len(keys.equal)
        if keys.equal and not node.table.has_tree:
            rows = min(rows, FOUND_IN_CATALOG)
        rows *= min(1.0, EQUAL * choices) if keys.choices else 1.0
        rows *= COMPARED ** sum(bound is not None for bound in (keys.low, keys.high))
        if index is None and _pins_key(node):
            rows = 1.0
    return rows * selectivity(node.condition)


def _pins_key(node: plan.Scan) -> bool:
    """Tell whether the condition determines the whole primary key."""
    pinned = set()
    for each in conjuncts(node.condition):
        if isinstance(each, Apply) and each.function.comparison == "=":
            for side in each.arguments:
                if isinstance(side, Column) and side.source == node.source:
                    pinned.add(side.position)
    return pinned.issuperset(node.table.primary_key)


def _join(node: plan.Join, row_count: RowCount, rows_of: RowsOf) -> float:
    left, right = rows_of(node.left), rows_of(node.right)
    if node.kind in ("semi", "anti"):
        return left * OTHER
    pairs, rest = divided(node) if node.method == "hash" else ((), node.condition)
    sides = (
        (Side(left, scans_below(node.left)), Side(right, scans_below(node.right)))
        if pairs
        else (Side(left, {}), Side(right, {}))
    )
    rows = joined_rows(pairs, rest, sides, row_count)
    return max(left, rows) if node.kind in ("left", "full") else rows


class Side(NamedTuple):
    """One side of a join: its rows, and the scans that its columns come from."""

    rows: float
    scans: Scans


def joined_rows(
    pairs: tuple[KeyPair, ...],
    rest: Expression | None,
    sides: tuple[Side, Side],
    row_count: RowCount,
) -> float:
    """Estimate the pairs of rows that a join finds by its keys and the residual condition."""
    left, right = sides
    rows = left.rows * right.rows * selectivity(rest)
    if not pairs:
        return rows
    left_keys, right_keys = zip(*pairs, strict=True)
    distinct, others = max(
        _unique_key(left.scans, left_keys, row_count),
        _unique_key(right.scans, right_keys, row_count),
    )
    if not distinct:
        sizes = (
            _table_rows(left, left_keys[0], row_count),
            _table_rows(right, right_keys[0], row_count),
        )
        distinct = max(1 / EQUAL, min(sizes))
    return rows / distinct * EQUAL**others


def _unique_key(
    scans: Scans, keys: tuple[Expression, ...], row_count: RowCount
) -> tuple[float, int]:
    """Return the rows of the largest table whose unique key is among the keys, or 0, and how many
    keys do not belong to it.
    """
    columns = [_column(key) for key in keys]
    best = 0.0, 0
    for source in {column.source for column in columns if column is not None}:
        scan = scans.get(source)
        if scan is None:
            continue
        positions = [
            column.position if column is not None and column.source == source else None
            for column in columns
        ]
        table = scan.table
        indexed = [index.columns for index in table.indexes if index.unique]
        for unique in (table.primary_key, *indexed):
            if set(unique).issubset(positions):
                others = sum([position not in unique for position in positions])
                best = max(best, (max(1.0, float(row_count(table))), others))
    return best


def _table_rows(side: Side, key: Expression, row_count: RowCount) -> float:
    """Return the rows of the table that a key is a column of; those of its side for another key."""
    column = _column(key)
    scan = None if column is None else side.scans.get(column.source)
    return side.rows if scan is None else float(row_count(scan.table))


def _column(key: Expression) -> Column | None:
    """Return the column that a key is, perhaps as another type."""
    while isinstance(key, Cast):
        key = key.operand
    return key if isinstance(key, Column) else None


def scans_below(node: Plan) -> Scans:
    """Return the scans of a plan's own tree, by their sources."""
    found: Scans = {}
    waiting: list[Any] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, plan.Scan):
            found[each.source] = each
            continue
        for name in ("left", "right", "input"):
            below = getattr(each, name, None)
            if below is not None:
                waiting.append(below)
    return found


def _aggregate(node: plan.Aggregate, row_count: RowCount, rows_of: RowsOf) -> float:
    if not node.keys:
        return 1.0
    return rows_of(node.input) * EQUAL


def _limited(node: plan.Limit | plan.TopN, row_count: RowCount, rows_of: RowsOf) -> float:
    limit = getattr(node.limit, "value", None)
    rows = rows_of(node.input)
    return min(rows, float(limit)) if isinstance(limit, int) else rows * EQUAL


def _same(node: Any, row_count: RowCount, rows_of: RowsOf) -> float:
    return rows_of(node.input)


def _set_operation(node: plan.SetOperation, row_count: RowCount, rows_of: RowsOf) -> float:
    left = rows_of(node.left)
    return left + rows_of(node.right) if node.kind == "union" else left


_ESTIMATES: dict[type, Callable[[Any, RowCount, RowsOf], float]] = {
    plan.Scan: _scan,
    plan.OneRow: lambda node, row_count, rows_of: 1.0,
    plan.Count: lambda node, row_count, rows_of: 1.0,
    plan.Values: lambda node, row_count, rows_of: float(len(node.items)),
    plan.FunctionScan: lambda node, row_count, rows_of: 100.0,
    plan.CommonTableScan: lambda node, row_count, rows_of: 100.0,
    plan.Join: _join,
    plan.Filter: lambda node, row_count, rows_of: rows_of(node.input) * selectivity(node.condition),
    plan.Vectors: _same,
    plan.Project: _same,
    plan.Window: _same,
    plan.Sort: _same,
    plan.Distinct: _same,
    plan.WithTables: _same,
    plan.Aggregate: _aggregate,
    plan.Limit: _limited,
    plan.TopN: _limited,
    plan.SetOperation: _set_operation,
}

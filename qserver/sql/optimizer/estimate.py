"""Estimates the rows of plans, accurately enough to choose by.

`Statistics` tells how many values the columns of tables have. Where it knows nothing, an equality
with a whole unique key selects one row; `selectivity` has the rest. A join on a unique key finds
one row for each row of the other side; a join on other columns as many as the side with more values
leaves, and where that is not known counts as if those of the smaller table were unique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

from qserver.sql import plan
from qserver.sql.expressions import Column, Expression, InQuery
from qserver.sql.join_conditions import KeyPair, divided
from qserver.sql.optimizer.selectivity import (
    EQUAL,
    OTHER,
    Equal,
    Scans,
    column_of,
    compared,
    count_of,
    distinct_of,
    selectivity,
    share_between,
    share_of,
    share_of_value,
)
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import conjuncts, everything, substituted, tree_rebuilt
from qserver.values.distinct import Distinct

RowsOf: TypeAlias = Callable[[Plan], float]

FOUND_IN_CATALOG: Final = 10.0
"""Rows that a look-up in a catalog finds: those of one object."""


LOOKUPS_WORTH_A_SCAN: Final = 20.0
"""A look-up by key costs about as much as this many rows of a scan."""


def estimate(node: Plan, statistics: Statistics) -> float:
    """Estimate the rows of a plan; at least one."""

    def rows_of(each: Plan) -> float:
        return max(1.0, _ESTIMATES[type(each)](each, statistics, rows_of))

    return rows_of(node)


def with_estimates(node: Plan, statistics: Statistics) -> Plan:
    """Return the plan with the estimate in each node, for EXPLAIN."""
    statistics = statistics.of_execution
    known: dict[int, float] = {}  # of the nodes below, by identity

    def rows_of(each: Plan) -> float:
        return known[id(each)] if id(each) in known else estimate(each, statistics)

    def noted(each: Any) -> Any:
        if type(each) not in _ESTIMATES:
            return each
        rows = max(1.0, _ESTIMATES[type(each)](each, statistics, rows_of))
        result = replace(each, rows=round(rows, 1))
        known[id(result)] = rows
        return result

    result: Plan = tree_rebuilt(node, noted)
    return result


def _scan(node: plan.Scan, statistics: Statistics, rows_of: RowsOf) -> float:
    rows = float(statistics.row_count(node.table))
    keys, columns = node.access.range, key_columns(node)
    conditions = conjuncts(node.condition)
    query = keys.query
    choices = count_of(keys.choices) if query is None else _values(query.plan, statistics, rows_of)
    equal = dict(zip(columns, keys.equal, strict=False))
    if is_unique(node) and len(keys.equal) + bool(keys.choices) == len(columns):
        rows = float(max(1, choices)) if query is None else min(rows, choices)
        return rows * _share(conditions, {node.source: node}, statistics, rows_of)
    if not node.table.has_tree and equal:
        rows = min(rows * EQUAL ** len(equal), FOUND_IN_CATALOG)
        equal = {}
    if keys.choices:
        chosen = statistics.distinct(node.table, (columns[len(keys.equal)],))
        rows *= min(1.0, share_of_value(chosen) * choices)
    if node.access.index is None and _pins_key(node):
        rows, equal = 1.0, {}
    of_key = node.source, equal
    share = _share(conditions, {node.source: node}, statistics, rows_of, of_key)
    if keys.low or keys.high:
        bounds = (">", keys.low), ("<", keys.high)
        ends = {f"{sign}="[: 1 + end[1]]: end[0] for sign, end in bounds if end is not None}
        share *= share_between(node.table, columns[len(keys.equal)], ends, statistics)
    return rows * share


def _share(
    conditions: Iterable[Expression],
    scans: Scans,
    statistics: Statistics,
    rows_of: RowsOf,
    of_key: tuple[int, Equal] | None = None,
) -> float:
    """Return the share of rows that conditions keep, those with the values of queries, too."""
    every = list(conditions)
    sought = {
        id(each): column
        for each in every
        if isinstance(each, InQuery) and not each.negated and len(each.operands) == 1
        if (column := column_of(each.operands[0], scans)) is not None
    }
    share = share_of([each for each in every if id(each) not in sought], scans, statistics, of_key)
    for each in every:
        if isinstance(each, InQuery) and id(each) in sought:
            distinct = distinct_of(sought[id(each)], scans, statistics)
            values = _values(each.plan, statistics, rows_of)
            share *= OTHER if distinct is None else min(1.0, share_of_value(distinct) * values)
    return share


def key_columns(node: plan.Scan) -> tuple[int, ...]:
    """Return the positions of the columns by which a scan finds its rows."""
    index = node.access.index
    return node.table.primary_key if index is None else index.columns


def is_unique(node: plan.Scan) -> bool:
    return node.access.index is None or node.access.index.unique


def _pins_key(node: plan.Scan) -> bool:
    """Tell whether the condition determines the whole primary key."""
    pinned = set()
    for each in conjuncts(node.condition):
        found = compared(each, {node.source: node})
        if found is not None and found[1] == "=":
            pinned.add(found[0].position)
    return pinned.issuperset(node.table.primary_key)


def _join(node: plan.Join, statistics: Statistics, rows_of: RowsOf) -> float:
    pairs, rest, right = _keys_of(node)
    sides = (
        Side(rows_of(node.left), scans_below(node.left)),
        Side(rows_of(right), scans_below(right)),
    )
    if node.kind in ("semi", "anti"):
        found = _share_found(pairs, rest, sides, statistics)
        return sides[0].rows * (found if node.kind == "semi" else 1 - found)
    rows = joined_rows(pairs, rest, sides, statistics)
    return max(sides[0].rows, rows) if node.kind in ("left", "full") else rows


def _keys_of(node: plan.Join) -> tuple[tuple[KeyPair, ...], Expression | None, Plan]:
    """Return what must be equal, the other conditions, and the right side without either."""
    scan = node.right
    if node.method == "index" and isinstance(scan, plan.Scan):
        keys = scan.access.range
        if not (keys.choices or keys.low or keys.high or keys.not_null):
            columns = [
                Column(scan.source, at, scan.table.columns[at].type, nullable=True)
                for at in key_columns(scan)
            ]
            pairs = tuple(zip(keys.equal, columns, strict=False))
            return pairs, node.condition, replace(scan, access=plan.Access())
    if node.lateral:
        return (), node.condition, node.right
    return *divided(node), node.right


def rows_of_look_up(node: plan.Join, statistics: Statistics) -> float:
    """Return how many entries of an index a join reads for a row of its left side; at least one."""
    scan = node.right
    assert isinstance(scan, plan.Scan)
    equal, columns = scan.access.range.equal, key_columns(scan)
    if is_unique(scan) and len(equal) == len(columns):
        return 1.0
    distinct = statistics.distinct(scan.table, tuple(sorted(columns[: len(equal)])))
    if distinct is None:
        return 1.0
    return max(1.0, statistics.row_count(scan.table) * share_of_value(distinct))


class Side(NamedTuple):
    """One side of a join: its rows, and the scans that its columns come from."""

    rows: float
    scans: Scans


def joined_rows(
    pairs: tuple[KeyPair, ...],
    rest: Expression | None,
    sides: tuple[Side, Side],
    statistics: Statistics,
) -> float:
    """Estimate the pairs of rows that a join finds by its keys and the residual condition."""
    left, right = sides
    rows = left.rows * right.rows * selectivity(rest, left.scans | right.scans, statistics)
    if not pairs:
        return rows
    keys = tuple(zip(*pairs, strict=True))
    unique, others = max(
        _unique_key(left.scans, keys[0], statistics),
        _unique_key(right.scans, keys[1], statistics),
        key=lambda found: found[0],
    )
    if unique:
        for at in others:
            rows *= _share_of_pair(pairs[at], sides, statistics)
        return rows / unique
    found = [_distinct(side, each, statistics) for side, each in zip(sides, keys, strict=True)]
    known = [each for each in found if each is not None]
    if len(known) == len(found):
        return (
            rows
            * prod([1 - each.nulls for each in known])
            / max([1.0, *[each.values for each in known]])
        )
    sizes = [_table_rows(side, each[0], statistics) for side, each in zip(sides, keys, strict=True)]
    return rows / max(1 / EQUAL, min(sizes))


def _share_of_pair(pair: KeyPair, sides: tuple[Side, Side], statistics: Statistics) -> float:
    found = [_distinct(side, (key,), statistics) for side, key in zip(sides, pair, strict=True)]
    return min([share_of_value(each) for each in found if each is not None], default=EQUAL)


def _share_found(
    pairs: tuple[KeyPair, ...],
    rest: Expression | None,
    sides: tuple[Side, Side],
    statistics: Statistics,
) -> float:
    """Return the share of the left rows for which a semi join finds one on the right."""
    if not pairs:
        return OTHER
    keys = tuple(zip(*pairs, strict=True))
    left, right = [
        _distinct(side, each, statistics) for side, each in zip(sides, keys, strict=True)
    ]
    if left is None or right is None:
        return OTHER
    matching = sides[1].rows * selectivity(rest, sides[0].scans | sides[1].scans, statistics)
    there = min(_remaining(right.values, matching, _all_rows(sides[1], statistics)), left.values)
    return (1 - left.nulls) * there / max(1.0, left.values)


def _remaining(values: float, rows: float, all_rows: float) -> float:
    """Return how many of the values of all rows are left in some of them."""
    if values <= 0 or rows >= all_rows:
        return values
    return values * float(1 - (1 - rows / all_rows) ** (all_rows / values))


def _all_rows(side: Side, statistics: Statistics) -> float:
    """Return the rows of the largest table of a side."""
    return max([float(statistics.row_count(scan.table)) for scan in side.scans.values()], default=1)


def _distinct(side: Side, keys: Iterable[Expression], statistics: Statistics) -> Distinct | None:
    """Return how many values expressions have together in the tables of a side."""
    positions: dict[int, set[int]] = {}
    for key in keys:
        column = column_of(key, side.scans)
        if column is None:
            return None
        positions.setdefault(column.source, set()).add(column.position)
    found = []
    for source, those in positions.items():
        distinct = statistics.distinct(side.scans[source].table, tuple(sorted(those)))
        if distinct is None:
            return None
        found.append(distinct)
    nulls = 1 - prod([1 - each.nulls for each in found])
    return Distinct(prod([max(1.0, each.values) for each in found]), nulls)


def _unique_key(
    scans: Scans, keys: tuple[Expression, ...], statistics: Statistics
) -> tuple[float, list[int]]:
    """Return the rows of the largest table whose unique key is among the keys, or 0, and the places
    of the keys that do not belong to it.
    """
    columns = [column_of(key) for key in keys]
    best: tuple[float, list[int]] = 0.0, []
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
                others = [at for at, position in enumerate(positions) if position not in unique]
                rows = max(1.0, float(statistics.row_count(table)))
                best = max(best, (rows, others), key=lambda found: found[0])
    return best


def _table_rows(side: Side, key: Expression, statistics: Statistics) -> float:
    """Return the rows of the table that a key is a column of; those of its side for another key."""
    column = column_of(key, side.scans)
    if column is None:
        return side.rows
    return float(statistics.row_count(side.scans[column.source].table))


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


def _aggregate(node: plan.Aggregate, statistics: Statistics, rows_of: RowsOf) -> float:
    if not node.keys:
        return 1.0
    sets = node.grouping_sets
    if sets is None:
        return _groups(node.input, node.keys, statistics, rows_of)
    keys = [tuple([node.keys[at] for at in each]) for each in sets]
    return sum([_groups(node.input, each, statistics, rows_of) if each else 1.0 for each in keys])


def _groups(
    below: Plan, keys: Iterable[Expression], statistics: Statistics, rows_of: RowsOf
) -> float:
    """Estimate how many values expressions have together in the rows of a plan."""
    rows = rows_of(below)
    named = {}
    plain = True
    for key in keys:
        for each in everything(key):
            if type(each) is Column:
                named[each.source, each.position] = each
        plain = plain and column_of(key) is not None
    side = Side(rows, scans_below(below))
    distinct = _distinct(side, named.values(), statistics) if named else None
    if distinct is None:
        return rows * EQUAL
    values = distinct.values + (distinct.nulls > 0)
    found = min(rows, _remaining(values, rows, _all_rows(side, statistics)))
    return found if plain else min(found, rows * EQUAL)


def _values(node: Plan, statistics: Statistics, rows_of: RowsOf) -> float:
    """Estimate how many different rows a plan has."""
    if not isinstance(node, plan.Project):
        return rows_of(node)
    return min(rows_of(node), _groups(node.input, node.expressions, statistics, rows_of))


def _distinct_rows(node: plan.Distinct, statistics: Statistics, rows_of: RowsOf) -> float:
    below = node.input
    if not node.on or not isinstance(below, plan.Project):
        return _values(below, statistics, rows_of)
    made = {(below.source, at): each for at, each in enumerate(below.expressions)}
    keys = [substituted(key, made) for key in node.on]
    return min(rows_of(below), _groups(below.input, keys, statistics, rows_of))


def _limited(node: plan.Limit | plan.TopN, statistics: Statistics, rows_of: RowsOf) -> float:
    limit = getattr(node.limit, "value", None)
    rows = rows_of(node.input)
    return min(rows, float(limit)) if isinstance(limit, int) else rows * EQUAL


def _filtered(node: plan.Filter, statistics: Statistics, rows_of: RowsOf) -> float:
    about = scans_below(node.input), statistics, rows_of
    return rows_of(node.input) * _share(conjuncts(node.condition), *about)


def _same(node: Any, statistics: Statistics, rows_of: RowsOf) -> float:
    return rows_of(node.input)


def _set_operation(node: plan.SetOperation, statistics: Statistics, rows_of: RowsOf) -> float:
    left = rows_of(node.left)
    return left + rows_of(node.right) if node.kind == "union" else left


_ESTIMATES: dict[type, Callable[[Any, Statistics, RowsOf], float]] = {
    plan.Scan: _scan,
    plan.OneRow: lambda node, statistics, rows_of: 1.0,
    plan.Count: lambda node, statistics, rows_of: 1.0,
    plan.Values: lambda node, statistics, rows_of: float(len(node.items)),
    plan.FunctionScan: lambda node, statistics, rows_of: 100.0,
    plan.CommonTableScan: lambda node, statistics, rows_of: 100.0,
    plan.Join: _join,
    plan.Filter: _filtered,
    plan.Vectors: _same,
    plan.Project: _same,
    plan.Window: _same,
    plan.Sort: _same,
    plan.Distinct: _distinct_rows,
    plan.WithTables: _same,
    plan.Aggregate: _aggregate,
    plan.Limit: _limited,
    plan.TopN: _limited,
    plan.SetOperation: _set_operation,
}

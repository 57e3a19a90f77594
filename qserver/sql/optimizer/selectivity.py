"""Selectivity: the share of rows that satisfies a condition.

Equalities with columns of one table are judged together, by how many values these columns have
together: so it does not matter whether they depend on each other. Where that is not known an
equality finds a tenth of the rows, a comparison a third, everything else a half.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Final, TypeAlias

from qserver.sql import plan
from qserver.sql.expressions import (
    And,
    Apply,
    Cast,
    Column,
    Elements,
    Expression,
    InList,
    IsNull,
    Not,
    Or,
    Slots,
)
from qserver.sql.statistics import UNKNOWN, End, Statistics
from qserver.sql.walk import conjuncts, everything, sources_named
from qserver.values.distinct import Distinct
from qserver.values.schema import Table

Scans: TypeAlias = dict[int, plan.Scan]
"""Scans by the source that each produces."""

Equal: TypeAlias = dict[int, Expression]
"""What columns are compared with, by their positions."""

EQUAL: Final = 0.1
COMPARED: Final = 0.33
OTHER: Final = 0.5

ITEMS_MAX: Final = 100
"""Items of a longer list are not looked at one by one."""

MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def selectivity(condition: Expression | None, scans: Scans, statistics: Statistics) -> float:
    """Return the share of the rows of some scans, or of their pairs, that a condition keeps."""
    return share_of(conjuncts(condition), scans, statistics)


def share_of(
    conditions: Iterable[Expression],
    scans: Scans,
    statistics: Statistics,
    of_key: tuple[int, Equal] | None = None,
) -> float:
    """Return the same of several conditions, and of the values that a source's key must have."""
    equals: dict[int, Equal] = {} if of_key is None else dict([of_key])
    ranges: dict[tuple[int, int], dict[str, Expression]] = {}
    share = 1.0
    for each in conditions:
        found = compared(each, scans)
        if found is None:
            share *= _other(each, scans, statistics)
            continue
        column, symbol, value = found
        other = column_of(value, scans)
        if symbol == "=" and other is not None:
            share *= _both_equal(column, other, scans, statistics)
        elif symbol == "=":
            equals.setdefault(column.source, {}).setdefault(column.position, value)
        elif symbol == "<>":
            table = scans[column.source].table
            same = share_equal(table, {column.position: value}, statistics)
            share *= max(0.0, 1 - same - _nulls(column, scans, statistics))
        else:
            ranges.setdefault((column.source, column.position), {}).setdefault(symbol, value)
    for number, values in equals.items():
        share *= share_equal(scans[number].table, values, statistics)
    for (number, position), ends in ranges.items():
        if position not in equals.get(number, ()):
            share *= share_between(scans[number].table, position, ends, statistics)
    return share


def share_equal(table: Table, equal: Equal, statistics: Statistics) -> float:
    """Return the share of a table's rows whose columns equal these values."""
    if not equal:
        return 1.0
    values = {position: statistics.value(each) for position, each in equal.items()}
    if _are_known(values.values()):
        share = statistics.share_equal(table, values)
        if share is not None:
            return share
    return share_of_value(statistics.distinct(table, tuple(sorted(equal))), len(equal))


def share_of_value(distinct: Distinct | None, columns: int = 1) -> float:
    """Return the share of rows that hold one value, on an average of all values."""
    if distinct is None:
        return EQUAL**columns
    return (1 - distinct.nulls) / max(1.0, distinct.values)


def compared(condition: Expression, scans: Scans) -> tuple[Column, str, Expression] | None:
    """Return the column that is compared, the symbol, and with what."""
    if not isinstance(condition, Apply) or condition.function.comparison not in MIRRORED:
        return None
    symbol = condition.function.comparison
    left, right = condition.arguments
    column = column_of(left, scans)
    if column is not None and not (column.source in sources_named(right) and type(right) is Apply):
        return column, symbol, right
    column = column_of(right, scans)
    if column is not None:
        return column, MIRRORED[symbol], left
    return None


def column_of(expression: Expression, scans: Scans | None = None) -> Column | None:
    """Return the column that an expression is, perhaps as another type; one of the scans."""
    while isinstance(expression, Cast):
        expression = expression.operand
    if not isinstance(expression, Column):
        return None
    return expression if scans is None or expression.source in scans else None


def distinct_of(column: Column, scans: Scans, statistics: Statistics) -> Distinct | None:
    return statistics.distinct(scans[column.source].table, (column.position,))


def count_of(items: tuple[Expression, ...]) -> int:
    """Count the items of a list; an array counts as ten."""
    return sum(
        10 if isinstance(item, Elements) else item.count if isinstance(item, Slots) else 1
        for item in items
    )


def _both_equal(one: Column, other: Column, scans: Scans, statistics: Statistics) -> float:
    shares = [share_of_value(distinct_of(each, scans, statistics)) for each in (one, other)]
    return min(shares)


def share_between(
    table: Table, position: int, ends: dict[str, Expression], statistics: Statistics
) -> float:
    values = {symbol: statistics.value(each) for symbol, each in ends.items()}
    if _are_known(values.values()):
        low, high = _end(values, ">"), _end(values, "<")
        share = statistics.share_between(table, position, low, high)
        if share is not None:
            return share
    return COMPARED ** len(ends)


def _end(values: dict[str, Any], symbol: str) -> End:
    for included in (False, True):
        name = f"{symbol}=" if included else symbol
        if name in values:
            return values[name], included
    return None


def _other(condition: Expression, scans: Scans, statistics: Statistics) -> float:
    match condition:
        case InList():
            return _in_list(condition, scans, statistics)
        case IsNull():
            column = column_of(condition.operand, scans)
            distinct = None if column is None else distinct_of(column, scans, statistics)
            share = EQUAL if distinct is None else distinct.nulls
            return _negated(share, condition.negated, OTHER if distinct is None else None)
        case Or():
            shares = [selectivity(each, scans, statistics) for each in condition.operands]
            return 1 - prod([1 - share for share in shares])
        case And():
            return share_of(condition.operands, scans, statistics)
        case Not():
            share = selectivity(condition.operand, scans, statistics)
            return max(0.0, 1 - share - _nulls(condition.operand, scans, statistics))
        case Column() if condition.source in scans:
            table = scans[condition.source].table
            share_true = statistics.share_equal(table, {condition.position: True})
            return OTHER if share_true is None else share_true
        case Apply() if condition.function.comparison in ("<", "<=", ">", ">="):
            return COMPARED
        case Apply() if condition.function.comparison == "=":
            return EQUAL
    return OTHER


def _in_list(condition: InList, scans: Scans, statistics: Statistics) -> float:
    column = column_of(condition.operand, scans)
    count = count_of(condition.items)
    if column is None:
        return _negated(min(1.0, EQUAL * count), condition.negated, OTHER)
    table, distinct = scans[column.source].table, distinct_of(column, scans, statistics)
    found = share_of_value(distinct) * count
    values = [statistics.value(each) for each in condition.items[:ITEMS_MAX]]
    if count <= ITEMS_MAX and _are_known(values):
        known = {value: statistics.share_equal(table, {column.position: value}) for value in values}
        if None not in known.values():
            found = sum([share for share in known.values() if share is not None])
    return _negated(min(1.0, found), condition.negated, OTHER if distinct is None else None)


def _nulls(expression: Expression, scans: Scans, statistics: Statistics) -> float:
    """Return the share of rows for which an expression is NULL because a column is."""
    found = [
        distinct_of(each, scans, statistics)
        for each in everything(expression)
        if type(each) is Column and each.nullable and each.source in scans
    ]
    return max([each.nulls for each in found if each is not None], default=0.0)


def _are_known(values: Iterable[Any]) -> bool:
    return all(value is not UNKNOWN for value in values)


def _negated(share: float, negated: bool, instead: float | None) -> float:
    if not negated:
        return share
    return 1 - share if instead is None else instead

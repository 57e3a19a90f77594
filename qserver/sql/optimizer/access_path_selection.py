"""Access path selection: how a scan finds its rows, by key, key prefix, index, or all rows.

A key serves equalities of its leading columns with expressions that do not depend on the row, then
IN or bounds on the next column, including the bounds of a pattern with a fixed prefix. A condition
that the key guarantees is not checked again.

`IN (query)` serves where a list would, if the query is read once. Its rows may be many, so a scan
that finds a key in another way does that.

A secondary index is used for equalities and IN, and for a range only if both ends are bounded: a
row found by an index costs as much as twenty rows of a scan.

Where several keys serve, the one that finds the fewest rows is used, if statistics tell; otherwise
the one that serves most conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from qserver.functions.text.prefixes import bounds_of
from qserver.sql import plan
from qserver.sql.expressions import Apply, Cast, Column, Expression, InList, InQuery, Slot
from qserver.sql.optimizer.estimate import (
    LOOKUPS_WORTH_A_SCAN,
    estimate,
    is_unique,
    key_columns,
)
from qserver.sql.plan import Access, KeyRange, Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    free_sources,
    is_volatile,
    sources_named,
    tree_rebuilt,
)
from qserver.values.schema import Index
from qserver.values.types import CAREFUL_KINDS, TEXT, Kind

_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.NAME})
"""Types whose keys are those of text, in the same order."""
_MIRRORED = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def access_path_selection(node: Plan, statistics: Statistics) -> Plan:
    def chosen(each: Plan) -> Plan:
        if not isinstance(each, plan.Scan) or each.access != Access():
            return each
        conditions = conjuncts(each.condition)
        access, rest = best_access(each, conditions, statistics)
        query = None if access is None else access.range.query
        if access is not None and query is not None:
            access = _with_few(each, access, statistics)
            if not access.range.few:  # reading such a table costs nothing
                access, rest = best_access(
                    each, [one for one in conditions if one is not query], statistics
                )
                rest.append(query)
        if access is None:
            return each
        return replace(each, access=access, condition=conjunction(rest))

    return tree_rebuilt(node, chosen)


def _with_few(scan: plan.Scan, access: Access, statistics: Statistics) -> Access:
    """Return the access with the number of look-ups that cost as much as reading the rows."""
    prefix = Access(access.index, KeyRange(access.range.equal))
    rows = estimate(replace(scan, access=prefix, condition=None), statistics)
    return replace(access, range=replace(access.range, few=int(rows / LOOKUPS_WORTH_A_SCAN)))


def best_access(
    scan: plan.Scan, conditions: Iterable[Expression], statistics: Statistics
) -> tuple[Access | None, list[Expression]]:
    """Return the best access path for the conditions, and the conditions it leaves."""
    every = list(conditions)
    terms = _terms(scan, every)
    candidates = [_fit(scan, None, scan.table.primary_key, terms)]
    candidates += [
        _fit(scan, index, index.columns, terms) for index in scan.table.indexes if _usable(index)
    ]
    candidates = [candidate for candidate in candidates if candidate[0] > 0]
    if not candidates:
        return None, every
    _, access, used = max(candidates, key=lambda candidate: candidate[0])
    if len(candidates) > 1 and not _finds_one(scan, access):
        costs = [_cost(scan, each, statistics) for _, each, _ in candidates]
        if None not in costs:
            found = zip(costs, candidates, strict=True)
            _, (_, access, used) = min(found, key=lambda each: (each[0], -each[1][0]))
    return access, [condition for condition in every if id(condition) not in used]


def _finds_one(scan: plan.Scan, access: Access) -> bool:
    """Whether a path leads to one row."""
    bare = replace(scan, access=access)
    return is_unique(bare) and len(access.range.equal) == len(key_columns(bare))


def _cost(scan: plan.Scan, access: Access, statistics: Statistics) -> float | None:
    """Return the rows that a path reads, as many as they cost; None where not enough is known."""
    bare = replace(scan, access=access, condition=None)
    held = key_columns(bare)[: len(access.range.equal) + bool(access.range.choices)]
    if not held or statistics.distinct(scan.table, tuple(sorted(held))) is None:
        return None
    rows = estimate(bare, statistics)
    return rows if access.index is None else rows * LOOKUPS_WORTH_A_SCAN


def _usable(index: Index) -> bool:
    """Exclude indexes on expressions and partial indexes."""
    return all(position >= 0 for position in index.columns) and not getattr(index, "where", None)


class _Terms:
    """Conditions on one column: equality, choices and bounds, each with its condition."""

    def __init__(self) -> None:
        self.equal: tuple[Expression, Expression] | None = None
        self.choices: tuple[tuple[Expression, ...], Expression] | None = None
        self.query: InQuery | None = None
        self.low: tuple[Expression, bool, Expression] | None = None
        self.high: tuple[Expression, bool, Expression] | None = None


def _terms(scan: plan.Scan, conditions: list[Expression]) -> dict[int, _Terms]:
    terms: dict[int, _Terms] = {}
    for condition in conditions:
        if isinstance(condition, InList):
            _note_choices(scan, condition, terms)
        elif isinstance(condition, InQuery):
            _note_query(scan, condition, terms)
        elif isinstance(condition, Apply) and condition.function.comparison in _MIRRORED:
            left, right = condition.arguments
            symbol = condition.function.comparison
            if not _note(scan, terms, left, symbol, right, condition):
                _note(scan, terms, right, _MIRRORED[symbol], left, condition)
    for condition in conditions:  # last, because explicit bounds are at least as good
        if isinstance(condition, Apply):
            _note_prefix(scan, condition, terms)
    return terms


def _note_prefix(scan: plan.Scan, condition: Apply, terms: dict[int, _Terms]) -> None:
    """Add the bounds of a pattern. The match itself is still checked: bounds only narrow."""
    bounds = bounds_of(condition.function)
    if bounds is None:
        return
    subject, pattern = condition.arguments
    column = _column_of(scan, subject)
    if column is None or column.type.kind not in _TEXTS or sources_named(pattern):
        return
    of_column = terms.setdefault(column.position, _Terms())
    if of_column.low is None and of_column.high is None:
        low, high = [Apply(each, (pattern,), TEXT, pattern.nullable) for each in bounds]
        of_column.low, of_column.high = (low, True, low), (high, False, high)


def _note(
    scan: plan.Scan,
    terms: dict[int, _Terms],
    side: Expression,
    symbol: str,
    other: Expression,
    condition: Expression,
) -> bool:
    column = _column_of(scan, side)
    if column is None:
        return False
    if scan.source in sources_named(other) or is_volatile(other):
        return False
    of_column = terms.setdefault(column.position, _Terms())
    if symbol == "=":
        of_column.equal = of_column.equal or (other, condition)
    elif symbol in (">", ">="):
        of_column.low = of_column.low or (other, symbol == ">=", condition)
    else:
        of_column.high = of_column.high or (other, symbol == "<=", condition)
    return True


def _note_choices(scan: plan.Scan, condition: InList, terms: dict[int, _Terms]) -> None:
    column = _column_of(scan, condition.operand)
    if condition.negated or column is None:
        return
    if condition.equal.comparison != "=":
        return
    others = [item for item in condition.items if type(item) is not Slot]  # which may be thousands
    if any(scan.source in sources_named(item) or is_volatile(item) for item in others):
        return
    of_column = terms.setdefault(column.position, _Terms())
    of_column.choices = of_column.choices or (condition.items, condition)


def _note_query(scan: plan.Scan, condition: InQuery, terms: dict[int, _Terms]) -> None:
    if condition.negated or len(condition.operands) != 1 or free_sources(condition.plan):
        return
    column = _column_of(scan, condition.operands[0])
    if column is None or column.type.kind in CAREFUL_KINDS:
        return
    if condition.equals[0].comparison == "=":
        of_column = terms.setdefault(column.position, _Terms())
        of_column.query = of_column.query or condition


def _column_of(scan: plan.Scan, side: Expression) -> Column | None:
    """The column of the scan that this is, or a cast to text of which changes nothing."""
    if isinstance(side, Cast) and side.type == TEXT and side.operand.type.kind in _TEXTS:
        side = side.operand
    return side if isinstance(side, Column) and side.source == scan.source else None


def _fit(
    scan: plan.Scan,
    index: Index | None,
    columns: tuple[int, ...],
    terms: dict[int, _Terms],
) -> tuple[float, Access, set[int]]:
    """Return the score of a key for the terms, its access path, and the guaranteed conditions."""
    equal: list[Expression] = []
    used: set[int] = set()
    score = 0.0
    for position in columns:
        of_column = terms.get(position)
        if of_column is None or of_column.equal is None:
            break
        equal.append(of_column.equal[0])
        used.add(id(of_column.equal[1]))
        score += 10
    keys = KeyRange(tuple(equal))
    if len(equal) < len(columns):
        of_next = terms.get(columns[len(equal)], _Terms())
        more, keys = _fit_next(of_next, index, keys, used)
        score += more
    whole = len(equal) + bool(keys.choices) == len(columns)
    unique = index is None or index.unique
    if whole and unique and keys.query is None:
        score += 1000
    elif index is not None and score:
        score -= 1  # the primary key finds rows without a second look-up
    return score, Access(index, keys), used


def _fit_next(
    of_next: _Terms, index: Index | None, keys: KeyRange, used: set[int]
) -> tuple[float, KeyRange]:
    """Return what the column behind those that are held to one value adds, and the range then."""
    if of_next.choices is not None:
        used.add(id(of_next.choices[1]))
        return 8.0, replace(keys, choices=of_next.choices[0])
    if of_next.query is not None and not sources_named(keys):
        used.add(id(of_next.query))
        return 5.0, replace(keys, choices=(of_next.query,))
    low, high = of_next.low, of_next.high
    bounds = [bound for bound in (low, high) if bound is not None]
    descending = bool(index and index.descending and index.descending[len(keys.equal)])
    if descending or not (index is None or len(bounds) == 2 or keys.equal):
        return 0.0, keys
    used.update([id(bound[2]) for bound in bounds])
    return 2.0 * len(bounds), replace(keys, low=low and low[:2], high=high and high[:2])

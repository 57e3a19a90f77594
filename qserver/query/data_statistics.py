"""What a snapshot's trees tell a planner about the rows of tables.

A branch knows the number of entries below each child, so counts between two keys cost a few pages,
and a sample of entries at even places costs a few dozen. Nothing is stored or kept: the next plan
samples the next data. A tree of an index tells how many values its first columns have, rows tell
that of the others.

Pages are loaded in the thread of the event loop only. Elsewhere a planner goes on without what it
does not know, and notes what it `wanted`; `read` finds that, and then it plans again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from qserver.errors import DataCorrupted, LogFailed, QserverError
from qserver.query.catalog.sources import source_of
from qserver.sql import (
    UNKNOWN,
    End,
    Expression,
    Literals,
    Statistics,
    StepBudget,
    value_of_literal,
)
from qserver.storage.ranges import RangedTree, Trees
from qserver.storage.samples import Entries, count, distinct_prefixes, distinct_values, sample
from qserver.values.distinct import Distinct
from qserver.values.keys import NULL_KEY, TOP, Key, key_element
from qserver.values.schema import Index, Table
from qserver.values.steps import Steps

Asked: TypeAlias = tuple[Any, ...]
"""A question: its name, and what it is about."""

STEPS_OF_QUESTION: Final = 100
"""Finding an answer takes as long as so many steps of planning, where pages have to be loaded."""


class DataStatistics(Statistics):
    """Statistics of one planning."""

    def __init__(
        self, trees: Trees, budget: StepBudget | None = None, *, may_read: bool = True
    ) -> None:
        self._trees = trees
        self._budget = budget
        self._may_read = may_read
        self.literals: Literals | None = None
        """Those of the only execution that is planned for, if it is only one."""
        self._known: dict[Asked, Any] = {}
        self._samples: dict[int, list[Entries]] = {}
        self._wanted: dict[Asked, Callable[[], Any]] = {}

    def read(self) -> Steps[bool]:
        """Find what was wanted, in steps; return whether there was anything."""
        wanted, self._wanted = self._wanted, {}
        for asked, find in wanted.items():
            self._known[asked] = _if_readable(find)
            yield
        return bool(wanted)

    # --- what a planner asks ---

    def row_count(self, table: Table) -> int:
        return source_of(table.name).guess if table.id < 0 else len(self._trees.tree(table.id))

    def distinct(self, table: Table, positions: tuple[int, ...]) -> Distinct | None:
        rows = self._rows(table)
        if rows is None:
            return None
        if set(table.primary_key) <= set(positions):
            return Distinct(len(rows), 0.0)
        asked = "distinct", table.id, positions
        found: Distinct | None = self._found(asked, lambda: self._distinct(table, positions))
        return found

    def share_equal(self, table: Table, values: Mapping[int, Any]) -> float | None:
        if self._rows(table) is None:
            return None
        asked = "equal", table.id, *sorted(values.items())
        found: float | None = self._found(asked, lambda: self._share_equal(table, values))
        return found

    def share_between(self, table: Table, position: int, low: End, high: End) -> float | None:
        if self._rows(table) is None:
            return None
        asked = "between", table.id, position, low, high
        about = table, position, low, high
        found: float | None = self._found(asked, lambda: self._share_between(*about))
        return found

    @property
    def of_execution(self) -> Statistics:
        return self if self.literals is None else _WithValues(self, self.literals)

    # --- how it is found ---

    def _rows(self, table: Table) -> RangedTree | None:
        """Return the tree of a table with rows; those of the catalog have none."""
        rows = self._trees.tree(table.id)
        return rows if table.id > 0 and len(rows) else None

    def _found(self, asked: Asked, find: Callable[[], Any]) -> Any:
        try:
            if asked in self._known:
                return self._known[asked]
        except TypeError:  # a value that cannot be told from others
            return None
        if not self._may_read:
            self._wanted[asked] = find
            return None
        if self._budget is not None:
            self._budget.spend(STEPS_OF_QUESTION)
        found = self._known[asked] = _if_readable(find)
        return found

    def _sample(self, tree: int) -> list[Entries]:
        if tree not in self._samples:
            self._samples[tree] = sample(self._trees.tree(tree))
        return self._samples[tree]

    def _distinct(self, table: Table, positions: tuple[int, ...]) -> Distinct:
        least = 0.0
        for tree, columns in _keys(table):
            width = len(columns)
            while width and not set(columns[:width]) <= set(positions):
                width -= 1
            if not width or not len(self._trees.tree(tree)):
                continue
            found = distinct_prefixes(self._trees.tree(tree), self._sample(tree), width)
            if width == len(positions):
                return found
            least = max(least, found.values)
        runs = [
            [tuple([key_element(row[at]) for at in positions]) for row in rows]
            for _, rows in self._sample(table.id)
        ]
        found = distinct_values(runs, len(self._trees.tree(table.id)))
        return Distinct(max(found.values, least), found.nulls)

    def _share_equal(self, table: Table, values: Mapping[int, Any]) -> float | None:
        elements = {at: key_element(value) for at, value in values.items()}
        if NULL_KEY in elements.values():
            return 0.0
        rows = len(self._trees.tree(table.id))
        for tree, columns in _keys(table):
            width = len(values)
            if set(columns[:width]) == elements.keys() and len(self._trees.tree(tree)):
                descending = _directions(table, tree)
                prefix = tuple(
                    [key_element(values[at], at in descending) for at in columns[:width]]
                )
                return count(self._trees.tree(tree), prefix, (*prefix, TOP)) / rows
        sampled = [row for _, rows in self._sample(table.id) for row in rows]
        same = sum(
            [all(key_element(row[at]) == each for at, each in elements.items()) for row in sampled]
        )
        if len(sampled) == rows or same > FEW:
            return same / len(sampled)
        distinct = self._distinct(table, tuple(sorted(values)))
        average = (1 - distinct.nulls) / max(1.0, distinct.values)
        return min(average, 1 / len(sampled)) if not same else max(average, same / len(sampled))

    def _share_between(self, table: Table, position: int, low: End, high: End) -> float | None:
        ends = _key_end(low), _key_end(high)
        if any(end is not None and end[0] is NULL_KEY for end in ends):
            return 0.0
        for tree, columns in _keys(table):
            if columns[0] == position and position not in _directions(table, tree):
                found = count(self._trees.tree(tree), *_between_keys(*ends))
                return found / len(self._trees.tree(table.id))
        return self._share_of_sample(table, position, *ends)

    def _share_of_sample(self, table: Table, position: int, low: End, high: End) -> float:
        elements = [
            key_element(row[position]) for _, some in self._sample(table.id) for row in some
        ]
        inside = sum([each is not NULL_KEY and _is_between(each, low, high) for each in elements])
        is_whole = len(elements) == len(self._trees.tree(table.id))
        least = 0.0 if is_whole else HALF_A_ROW
        return max(inside, least) / max(1, len(elements))


class _WithValues(Statistics):
    """The same statistics, with the values of literals."""

    def __init__(self, data: DataStatistics, literals: Literals) -> None:
        self._data = data
        self._literals = literals

    def row_count(self, table: Table) -> int:
        return self._data.row_count(table)

    def distinct(self, table: Table, positions: tuple[int, ...]) -> Distinct | None:
        return self._data.distinct(table, positions)

    def share_equal(self, table: Table, values: Mapping[int, Any]) -> float | None:
        return self._data.share_equal(table, values)

    def share_between(self, table: Table, position: int, low: End, high: End) -> float | None:
        return self._data.share_between(table, position, low, high)

    def value(self, expression: Expression) -> Any:
        try:
            return value_of_literal(expression, self._literals.guess)
        except QserverError:  # the statement fails, but only when it is run
            return UNKNOWN


FEW = 2
"""Seen so often in a sample a value is not told from the average one."""

HALF_A_ROW = 0.5
"""In place of no row of a sample."""


def _keys(table: Table) -> list[tuple[int, tuple[int, ...]]]:
    """Return the trees in the order of a table's own columns, with those."""
    indexed = [(index.id, index.columns) for index in table.indexes if _is_plain(table, index)]
    return [(table.id, table.primary_key), *indexed]


def _is_plain(table: Table, index: Index) -> bool:
    return not any(table.columns[at].hidden for at in index.columns)


def _directions(table: Table, tree: int) -> set[int]:
    """Return the descending columns of an index."""
    for index in table.indexes:
        if index.id == tree:
            pairs = zip(index.columns, index.descending, strict=False)
            return {at for at, descending in pairs if descending}
    return set()


def _key_end(end: End) -> End:
    """Return an end with its value as the element of a key."""
    return None if end is None else (key_element(end[0]), end[1])


def _between_keys(low: End, high: End) -> tuple[Key | None, Key]:
    """Return the bounds of keys whose first element lies between two ends; NULL is behind all."""
    first: Key | None = None
    last: Key = (NULL_KEY,)
    if low is not None:
        first = (low[0],) if low[1] else (low[0], TOP)
    if high is not None:
        last = (high[0], TOP) if high[1] else (high[0],)
    return first, last


def _is_between(element: Any, low: End, high: End) -> bool:
    if low is not None and not (element > low[0] or (low[1] and element == low[0])):
        return False
    return high is None or bool(element < high[0] or (high[1] and element == high[0]))


def _if_readable(find: Callable[[], Any]) -> Any:
    """Return what is found, None where a page cannot be read or values cannot be compared: what
    needs them fails with a better word."""
    try:
        return find()
    except (DataCorrupted, LogFailed, TypeError):
        return None

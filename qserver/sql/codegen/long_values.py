"""Finds the columns of materialized rows whose long values the statement itself holds.

A value from a table or from the statement is in memory anyway; a computed value occupies the
statement's memory as long as the row is held. So only computed columns of unbounded types are
measured.

A column of a view on a view is looked up through all of them. Each is looked up once: the number of
paths through them doubles with each view, the number of columns does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qserver.sql import plan
from qserver.sql.expressions import Case, Coalesce, Column, Constant, Expression, ScalarQuery, Slot
from qserver.sql.plan import Plan
from qserver.values.sizes import is_sized
from qserver.values.types import SqlType


def long_columns(node: Plan, made: int) -> tuple[int, ...]:
    """Return the positions in a source's rows that must be measured."""
    return _Columns(node).long_of(made)


def is_long(expression: Expression, node: Plan) -> bool:
    """Tell whether the expression computes values that may be long, over the rows of `node`."""
    return _Columns(node).is_long(expression)


class _Columns:
    """The columns that a plan makes, by source and position."""

    def __init__(self, node: Plan) -> None:
        self._makers: dict[int, Any] = {}
        self._known: dict[tuple[int, int], bool] = {}
        for each in _below(node):
            source = getattr(each, "source", None)
            if source is not None and not isinstance(each, plan.Distinct):
                self._makers.setdefault(source, each)

    def long_of(self, made: int) -> tuple[int, ...]:
        width = _width(self._makers.get(made))
        return tuple(at for at in range(width) if self._is_long_column(made, at))

    def _is_long_column(self, made: int, at: int) -> bool:
        known = self._known.get((made, at))
        if known is None:
            known = self._known[made, at] = self._looked_up(self._makers.get(made), at)
        return known

    def _looked_up(self, maker: Any, at: int) -> bool:
        match maker:
            case plan.Project():
                return self.is_long(maker.expressions[at])
            case plan.Aggregate():
                if at < len(maker.keys):
                    return self.is_long(maker.keys[at])
                return is_sized(maker.calls[at - len(maker.keys)].type)
            case plan.Window():
                return is_sized(maker.calls[at].type)
            case plan.FunctionScan():
                return is_sized(maker.columns[at].type)
            case plan.SetOperation():
                sides = (maker.left_source, maker.right_source)
                return any(self._is_long_column(side, at) for side in sides)
            case plan.Values(repeated=False):
                return any(self.is_long(item[at]) for item in maker.items)
        return False

    def is_long(self, expression: Expression) -> bool:
        if not is_sized(expression.type) or isinstance(expression, Constant | Slot | ScalarQuery):
            return False
        if isinstance(expression, Column):
            return self._is_long_column(expression.source, expression.position)
        if isinstance(expression, Case):
            results = [result for _, result in expression.whens]
            return any(map(self.is_long, (*results, expression.otherwise)))
        if isinstance(expression, Coalesce):
            return any(map(self.is_long, expression.operands))
        return True


def _width(maker: Any) -> int:
    """Return the number of columns that may be long; a table's are in memory anyway."""
    match maker:
        case plan.Aggregate():
            return len(maker.keys) + len(maker.calls)
        case plan.Window():
            return len(maker.calls)
        case plan.Project() | plan.FunctionScan() | plan.SetOperation() | plan.Values():
            return len(maker.columns)
    return 0


def columns_made(node: Plan, made: int) -> tuple[Expression, ...]:
    """Return the expressions of a source's columns, or () if they are not expressions."""
    maker = _maker(node, made)
    match maker:
        case plan.Project():
            return maker.expressions
        case plan.SetOperation():
            return columns_made(maker.left, maker.left_source)
    return ()


def types_made(node: Plan, made: int) -> tuple[SqlType, ...]:
    """The types of the columns of a source that a plan makes."""
    return tuple(column.type for column in _maker(node, made).columns)


def values_given_once(expressions: tuple[Expression, ...], node: Plan) -> set[int]:
    """Return the positions of literals and parameters that occur in one row, and once in it."""
    if not isinstance(node, plan.Values):
        return set()  # there may be many rows
    found: set[int] = set()
    seen: set[int | str] = set()
    for at, each in enumerate(expressions):
        origins = _origins(each, node)
        names = {origin.name for origin in origins if isinstance(origin, Slot)}
        if all(isinstance(origin, Slot | Constant) for origin in origins) and not names & seen:
            found.add(at)
        seen |= names
    return found


def _origins(expression: Expression, node: Plan) -> tuple[Expression, ...]:
    """Return the expression, or its expressions in all rows of VALUES."""
    if isinstance(expression, Column):
        maker = _maker(node, expression.source)
        if isinstance(maker, plan.Values):
            return tuple([item[expression.position] for item in maker.items])
    return (expression,)


def _maker(node: Plan, made: int) -> Any:
    """Return the node that produces a source's rows; None if it is outside of the plan."""
    for each in _below(node):
        if not isinstance(each, plan.Distinct) and getattr(each, "source", None) == made:
            return each
    return None


def _below(node: Plan) -> Iterator[Any]:
    waiting: list[Any] = [node]
    while waiting:
        each = waiting.pop()
        yield each
        for name in ("input", "left", "right"):
            below = getattr(each, name, None)
            if below is not None:
                waiting.append(below)

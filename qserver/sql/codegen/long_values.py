"""Finds the columns of materialized rows whose long values the statement itself holds.

A value from a table or from the statement is in memory anyway; a computed value occupies the
statement's memory as long as the row is held. So only computed columns of unbounded types are
measured.
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
    maker = _maker(node, made)
    match maker:
        case plan.Project():
            return _positions(maker.expressions, maker.input)
        case plan.Aggregate():
            calls = [is_sized(call.type) for call in maker.calls]
            keys = _positions(maker.keys, maker.input)
            return keys + tuple(len(maker.keys) + at for at, long in enumerate(calls) if long)
        case plan.Window():
            return tuple(at for at, call in enumerate(maker.calls) if is_sized(call.type))
        case plan.FunctionScan():
            return tuple(at for at, column in enumerate(maker.columns) if is_sized(column.type))
        case plan.SetOperation():
            left = long_columns(maker.left, maker.left_source)
            return tuple(sorted({*left, *long_columns(maker.right, maker.right_source)}))
        case plan.Values(repeated=False):
            found = {at for item in maker.items for at in _positions(item, maker)}
            return tuple(sorted(found))
    return ()


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


def _positions(expressions: tuple[Expression, ...], node: Plan) -> tuple[int, ...]:
    return tuple(at for at, each in enumerate(expressions) if is_long(each, node))


def is_long(expression: Expression, node: Plan) -> bool:
    """Tell whether the expression computes values that may be long, over the rows of `node`."""
    if not is_sized(expression.type) or isinstance(expression, Constant | Slot | ScalarQuery):
        return False
    if isinstance(expression, Column):
        return expression.position in long_columns(node, expression.source)
    if isinstance(expression, Case):
        results = [result for _, result in expression.whens]
        return any(is_long(each, node) for each in (*results, expression.otherwise))
    if isinstance(expression, Coalesce):
        return any(is_long(each, node) for each in expression.operands)
    return True


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

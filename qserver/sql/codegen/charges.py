"""Calls that may take long: which they are, and how generated code counts them.

    (call_3(r0[1], slot0) if len(r0[1]) + len(slot0) < 1024 else (yield from costly(call_4, …)))

Short arguments go the quick way, with no more than a look at their lengths. Long ones go through
`Context.costly`, which refuses what would take too long, counts the rest, and gives the loop back
when enough has been counted. In a lambda, where nothing can be given back, it is
`Context.compute`, and whoever calls the lambda gives the loop back between rows.

Comparisons are not counted where one side came with the statement: a look at the length would
cost more than most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from qserver.sql.execution import CostlyCall
from qserver.sql.expressions import Apply, Cast, Column, Constant, Expression, IsDistinct, Slot
from qserver.sql.functions.costs import BASED, FREE, PATTERNED, Cost, cast_cost, cost_of, linear
from qserver.sql.functions.registry import Aggregate, Function, TableFunction
from qserver.sql.walk import everything, free_sources, has_subquery, is_volatile
from qserver.values.sizes import is_sized
from qserver.values.types import INTEGER_KINDS, Kind, SqlType

_NUMERIC_STEPS_SHORT = 4
"""Sums and products of so few numbers with a declared precision are short, too."""

_ONE_BY_ONE = frozenset({"sum", "avg", "min", "max"})
"""Aggregates of numbers that multiply none."""

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def is_costly(expression: Any) -> bool:
    """May something in the expression take long?"""
    return any(
        (type(each) is Apply and bool(measured(each)))
        or (type(each) is Cast and cost_of_cast(each) is not None)
        or (type(each) is IsDistinct and bool(measured(comparison_of(each))))
        for each in everything(expression)
    )


def comparison_of(expression: IsDistinct) -> Apply:
    """What decides where neither side is NULL."""
    sides = (expression.left, expression.right)
    return Apply(expression.equal, sides, expression.type, nullable=False)


def measured(expression: Apply) -> tuple[int, ...]:
    """The arguments whose length decides what a call costs; (-1,) if more than that does."""
    function = expression.function
    if function.explodes or function.name in BASED or _reads_patterns(expression):
        return (-1,)
    if function.cost is FREE:
        return ()
    return tuple(
        at for at, argument in enumerate(expression.arguments) if may_be_long(argument)
    ) * (not _is_cheap_comparison(expression))


def _reads_patterns(expression: Apply) -> bool:
    """Does each row bring a pattern of its own? To read one takes longer than to look for it."""
    function = expression.function
    if function.prepare is None and function.name not in PATTERNED:
        return False
    if len(expression.arguments) < 2:
        return False  # ~ before a number turns its bits over
    pattern = expression.arguments[1]
    return bool(free_sources(pattern)) or has_subquery(pattern) or is_volatile(pattern)


def _is_cheap_comparison(expression: Apply) -> bool:
    function = expression.function
    if function.cost is not None or function.name not in _COMPARISONS:
        return False
    return any(isinstance(each, Slot | Constant) for each in expression.arguments) or all(
        each.type.kind is Kind.NUMERIC for each in expression.arguments
    )


def may_be_long(expression: Expression) -> bool:
    """Can its values be long, and differ from row to row?"""
    if not is_sized(expression.type) or isinstance(expression, Constant):
        return False
    if expression.type.kind is not Kind.NUMERIC:
        return True
    nodes = list(everything(expression))
    return len(nodes) > 2 * _NUMERIC_STEPS_SHORT or not all(map(_is_short_number, nodes))


def _is_short_number(node: Any) -> bool:
    if isinstance(node, Apply):
        return node.function.name in ("+", "-", "*")
    if isinstance(node, Cast):
        return node.operand.type.kind in INTEGER_KINDS
    return isinstance(node, Column | Constant) and not is_sized(node.type)


def cost_of_cast(expression: Cast) -> Cost | None:
    """What a cast costs, if that depends on the length of what is cast."""
    source = expression.operand.type
    if not is_sized(source):
        return None
    cost = cast_cost(source, expression.type)
    return None if cost is FREE else cost


def cost_of_slot(slot: Slot) -> Cost | None:
    """What it costs to convert what came with the statement."""
    cost = cast_cost(SqlType(Kind.UNKNOWN), slot.type)
    return None if cost is FREE else cost


@lru_cache(maxsize=8192)
def costly_call(function: Function) -> CostlyCall:
    """A function as the context calls it."""
    return CostlyCall(
        function.name,
        function.call,
        cost_of(function.name, function.parameters, function.cost, function.returns),
        is_sized(function.returns),
        function.needs_context,
    )


@lru_cache(maxsize=8192)
def costly_cast(function: Callable[[Any], Any], cost: Cost, target: SqlType) -> CostlyCall:
    return CostlyCall(f"a conversion to {target}", function, cost, is_sized(target))


@lru_cache(maxsize=2048)
def costly_rows(function: TableFunction) -> CostlyCall:
    """A function that makes rows. They are taken one by one, and what keeps them measures them."""
    cost = cost_of(function.name, function.parameters, function.cost)
    return CostlyCall(function.name, function.call, cost, makes_long=False)


def step_cost(aggregate: Aggregate, argument: Expression) -> Cost | None:
    """What it costs an aggregate to look at a long value, if it does more than keep or count it."""
    if aggregate.keeps or aggregate.name == "count" or not may_be_long(argument):
        return None
    if argument.type.kind is Kind.NUMERIC and aggregate.name not in _ONE_BY_ONE:
        return linear(500)
    return cost_of(aggregate.name, (argument.type,), None)


def size_code(argument: Expression, code: str) -> str:
    """Source for the length of a value, near enough to tell a short one from a long one."""
    kind = argument.type.kind
    if kind is Kind.JSONB:
        return f"4 * len({code}.text)"
    if kind is Kind.JSON:
        return f"4 * len({code})"
    if kind is Kind.NUMERIC:
        return f"{code}.__sizeof__()"
    if kind in (Kind.ARRAY, Kind.RECORD, Kind.UNKNOWN):
        return f"size_of({code})"
    return f"len({code})"

"""Costly calls: which calls may be expensive, and how generated code charges them.

    (call_3(r0[1], slot0) if len(r0[1]) + len(slot0) < 1024 else (yield from costly(call_4, …)))

A call with short arguments is direct. A call with long ones goes through `Context.costly`, which
refuses calls that would take too long, charges the others, and yields when enough steps are
charged. A lambda cannot yield: it uses `Context.compute`, and its caller yields between rows.

Comparisons with a value of the statement are not charged: the length check would cost more than
most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from qserver.functions.context import CostlyCall
from qserver.functions.costs import (
    BASED,
    BYTES_SMALL,
    FREE,
    PATTERNED,
    Cost,
    cast_cost,
    cost_of,
    key_cost,
    linear,
)
from qserver.functions.registry import Aggregate, Function, TableFunction
from qserver.sql.expressions import (
    Apply,
    Cast,
    Column,
    Constant,
    Expression,
    Folded,
    IsDistinct,
    Slot,
)
from qserver.sql.walk import everything, free_sources, has_subquery, is_volatile
from qserver.values.sizes import ELEMENT_BYTES, is_sized
from qserver.values.types import INTEGER_KINDS, Kind, SqlType

_NUMERIC_STEPS_SHORT = 4
"""Arithmetic on at most this many numbers of declared precision gives a short number."""

_ONE_BY_ONE = frozenset({"sum", "avg", "min", "max"})
"""Aggregates of numbers without multiplication."""

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def is_costly(expression: Any) -> bool:
    return any(
        (type(each) is Apply and bool(measured(each)))
        or (type(each) is Cast and cost_of_cast(each) is not None)
        or (type(each) is IsDistinct and bool(measured(comparison_of(each))))
        for each in everything(expression)
    )


def comparison_of(expression: IsDistinct) -> Apply:
    """Return the comparison that decides when neither side is NULL."""
    sides = (expression.left, expression.right)
    return Apply(expression.equal, sides, expression.type, nullable=False)


def measured(expression: Apply) -> tuple[int, ...]:
    """Return the arguments whose length determines the cost; (-1,) if more than length does."""
    function = expression.function
    if function.explodes or function.name in BASED or _reads_patterns(expression):
        return (-1,)
    if function.cost is FREE:
        return ()
    return tuple(
        at for at, argument in enumerate(expression.arguments) if may_be_long(argument)
    ) * (not _is_cheap_comparison(expression))


def _reads_patterns(expression: Apply) -> bool:
    """Tell whether each row has its own pattern, which costs more to compile than to match."""
    function = expression.function
    if function.prepare is None and function.name not in PATTERNED:
        return False
    if len(expression.arguments) < 2:
        return False  # ~ before a number is bitwise NOT
    pattern = expression.arguments[1]
    return bool(free_sources(pattern)) or has_subquery(pattern) or is_volatile(pattern)


def _is_cheap_comparison(expression: Apply) -> bool:
    function = expression.function
    if function.cost is not None or function.name not in _COMPARISONS:
        return False
    return any(isinstance(each, Slot | Constant | Folded) for each in expression.arguments) or all(
        each.type.kind is Kind.NUMERIC for each in expression.arguments
    )


def may_be_long(expression: Expression) -> bool:
    """Tell whether values can be long and differ from row to row."""
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
    """Return the cost of a cast if it depends on the length of the operand."""
    source = expression.operand.type
    if not is_sized(source):
        return None
    cost = cast_cost(source, expression.type)
    return None if cost is FREE else cost


def cost_of_slot(slot: Slot) -> Cost | None:
    cost = cast_cost(SqlType(Kind.UNKNOWN), slot.type)
    return None if cost is FREE else cost


@lru_cache(maxsize=8192)
def costly_call(function: Function) -> CostlyCall:
    """Return a function with its cost, for `Context.costly`."""
    return CostlyCall(
        function.name,
        function.call,
        cost_of(function.name, function.parameters, function.cost, function.returns),
        is_sized(function.returns),
        function.takes_context,
    )


@lru_cache(maxsize=8192)
def costly_cast(function: Callable[[Any], Any], cost: Cost, target: SqlType) -> CostlyCall:
    return CostlyCall(f"a conversion to {target}", function, cost, is_sized(target))


@lru_cache(maxsize=2048)
def costly_rows(function: TableFunction) -> CostlyCall:
    """Return a table function with its cost. Its rows are measured where they are held."""
    cost = cost_of(function.name, function.parameters, function.cost)
    if function.cost is None and any(each.kind is Kind.JSON for each in function.parameters):
        cost = key_cost  # all parts are made before the first row, as they stand in the text
    return CostlyCall(function.name, function.call, cost, False, function.takes_context)


def step_cost(aggregate: Aggregate, argument: Expression) -> Cost | None:
    """Return an aggregate's cost for a long value, if it does more than hold or count the value."""
    if not may_be_long(argument) or aggregate.name == "count":
        return None
    if aggregate.keeps:  # as it is, or as JSON
        makes_json = aggregate.returns.kind in (Kind.JSON, Kind.JSONB)
        return cost_of("to_json", (argument.type,), None, aggregate.returns) if makes_json else None
    if argument.type.kind is Kind.NUMERIC and aggregate.name not in _ONE_BY_ONE:
        return linear(500)
    return cost_of(aggregate.name, (argument.type,), None)


def multiplies_long(aggregate: Aggregate, arguments: Sequence[Expression]) -> bool:
    """Tell whether an aggregate multiplies numbers that may be long, and divides in the end."""
    return (
        aggregate.returns.kind is Kind.NUMERIC
        and not aggregate.keeps
        and aggregate.name not in _ONE_BY_ONE
        and any(each.type.kind is Kind.NUMERIC and may_be_long(each) for each in arguments)
    )


def multiplied_cost(size: int) -> int:
    """Return the cost of multiplying a number of a size in bytes with itself."""
    return 0 if size < BYTES_SMALL else size * 500 // 1000


@lru_cache(maxsize=512)
def costly_finish(aggregate: Aggregate) -> CostlyCall:
    """Return what makes an aggregate's value of its states, with its cost."""
    states = {f"s{number}": f"s{number}" for number in range(len(aggregate.initial))}
    finish = aggregate.finish.format(**states)
    call = eval(f"lambda {', '.join(states)}: {finish}", dict(aggregate.names))
    return CostlyCall(aggregate.name, call, linear(1000), makes_long=False)


def size_code(argument: Expression, code: str) -> str:
    """Return the source of a value's approximate length, which separates short from long values."""
    kind = argument.type.kind
    if kind is Kind.JSONB:
        return f"4 * len({code}.text)"
    if kind is Kind.JSON:
        return f"4 * len({code})"
    if kind is Kind.NUMERIC:
        return f"{code}.__sizeof__()"
    element = argument.type.element
    if kind is Kind.ARRAY and element is not None and not is_sized(element):
        flat = f"{ELEMENT_BYTES} * len({code})"
        return f"({flat} if not {code} or type({code}[0]) is not tuple else size_of({code}))"
    if kind in (Kind.ARRAY, Kind.RECORD, Kind.UNKNOWN):
        return f"size_of({code})"
    return f"len({code})"

"""Binds IN, ANY and ALL over lists and arrays.

    a IN (1, 2)             one look-up, if all have a common type; else a = 1 OR a = 2
    a = ANY (ARRAY[1, 2])   the same as IN
    a < ANY (ARRAY[1, 2])   a < 1 OR a < 2; with a very long list, as with a query's rows
    a = ANY ($1)            one look-up among the elements; <> ALL likewise

a < ANY (array) is a function of the operand and the array, created for the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from qserver.errors import QserverError, WrongObjectType
from qserver.functions.costs import Cost, cost_of
from qserver.functions.registry import Function
from qserver.functions.resolve import common_type, resolve_operator, resolve_table_function
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.coercion import implicit, suggested_types
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown, located
from qserver.sql.binder.expressions.rows import compare, conjunction, disjunction
from qserver.sql.expressions import (
    Apply,
    Array,
    Cast,
    Elements,
    Expression,
    InList,
    Quantified,
    RunRefused,
    Slots,
)
from qserver.sql.folding import is_constant
from qserver.sql.plan import FunctionScan, OutputColumn
from qserver.values.sizes import size_of
from qserver.values.types import BOOLEAN, TEXT, Kind, SqlType, array_of

COMPARED_MIN: Final = 1000
"""So many items of ANY or ALL are compared in a loop; fewer are faster as conditions."""


def in_list(
    binding: Binding, operand: Operand, items: Sequence[Operand], negated: bool, position: int
) -> Expression:
    """`operand [NOT] IN (items)`"""
    symbol = "<>" if negated else "="
    if len(items) > 1 and not isinstance(operand, RowValue):
        found = _look_up(binding, operand, items, negated)
        if found is not None:
            return found
    parts = _compared(binding, symbol, operand, items, position)
    return conjunction(parts) if negated else disjunction(parts)


def _compared(
    binding: Binding, symbol: str, operand: Operand, items: Sequence[Operand], position: int
) -> list[Expression]:
    if any(map(_is_run, items)):
        raise RunRefused
    parts: list[Expression] = []
    for at, item in enumerate(items):
        value = operand if at == 0 else again(binding, operand)
        parts.append(compare(binding, symbol, value, item, position))
    return parts


def _look_up(
    binding: Binding, operand: Operand, items: Sequence[Operand], negated: bool
) -> Expression | None:
    """Return one node for all items, if they have a common type with an equality."""
    try:
        every = (operand, *items)
        types = suggested_types(binding, every) or [each.type for each in every]
        shared = common_type(types, "IN").bare
        resolved = resolve_operator("=", shared, shared)
    except QserverError:
        return None
    left, right = resolved.parameters
    if left != right:
        return None
    return InList(
        _through(binding, operand, shared, left),
        tuple([_through(binding, item, shared, right) for item in items]),
        resolved.function,
        negated,
    )


def _through(binding: Binding, operand: Operand, shared: SqlType, wanted: SqlType) -> Expression:
    """Cast to the shared type, which determines how a literal is read, then to the operator's."""
    return implicit(binding, implicit(binding, operand, shared), wanted)


def over_items(
    binding: Binding,
    symbol: str,
    operand: Operand,
    items: Sequence[Operand],
    is_all: bool,
    position: int,
) -> Expression | None:
    """`operand symbol ANY|ALL (ARRAY[items])`; None if only `over_array` can bind it."""
    if not items or any(item.type.kind in (Kind.ARRAY, Kind.RECORD) for item in items):
        return None  # arrays within an array are its dimensions; rows become values
    if all(isinstance(item, Unknown) and not isinstance(item.name, str) for item in items):
        # An array of plain literals only is a text array, whatever it is compared with.
        items = [implicit(binding, item, TEXT) for item in items]
    if symbol == "=" and not is_all:
        return in_list(binding, operand, items, False, position)
    if symbol in ("<>", "!=") and is_all:
        return in_list(binding, operand, items, True, position)
    if any(map(_is_run, items)):
        return _over_run(binding, symbol, operand, items, is_all)
    parts = _compared(binding, symbol, operand, items, position)
    return conjunction(parts) if is_all else disjunction(parts)


def _is_run(item: Operand) -> bool:
    return isinstance(item, Slots) or (isinstance(item, Unknown) and item.count > 1)


def _over_run(
    binding: Binding, symbol: str, operand: Operand, items: Sequence[Operand], is_all: bool
) -> Expression:
    """Compare with very many items of one type one after the other, as with the rows of a query."""
    count = sum(item.count if isinstance(item, Slots) else 1 for item in items)
    is_other = isinstance(operand, Unknown | RowValue) or operand.type.kind is Kind.CHAR
    if is_other or count < COMPARED_MIN or len({item.type for item in items}) > 1:
        raise RunRefused
    resolved = resolve_operator(symbol, operand.type, items[0].type)
    left, right = resolved.parameters
    array = Array(tuple([implicit(binding, item, right) for item in items]), array_of(right))
    unnest = resolve_table_function("unnest", [array.type])
    if resolved.returns != BOOLEAN:
        raise RunRefused
    columns = (OutputColumn("unnest", right, nullable=True),)
    rows = FunctionScan(binding.new_source(), unnest.function, (array,), columns)
    return Quantified(implicit(binding, operand, left), resolved.function, is_all, rows)


def over_array(
    binding: Binding, symbol: str, operand: Operand, array: Operand, is_all: bool, position: int
) -> Expression:
    """`operand symbol ANY|ALL (array)` for a computed array."""
    if isinstance(array, Unknown):
        array = implicit(binding, array, array_of(_element_for(operand)), position)
    if array.type.kind is not Kind.ARRAY or array.type.element is None:
        raise WrongObjectType(
            "op ANY/ALL (array) requires array on right side", position=position + 1
        )
    try:
        resolved = resolve_operator(symbol, operand.type, array.type.element)
    except QserverError as error:
        raise located(error, position) from None
    if resolved.returns != BOOLEAN:
        raise WrongObjectType(
            "op ANY/ALL (array) requires operator to yield boolean", position=position + 1
        )
    left, right = resolved.parameters
    arguments = (
        implicit(binding, operand, left, position),
        implicit(binding, array, array_of(right), position),
    )
    is_member = resolved.function.comparison == ("<>" if is_all else "=")
    if is_member and left == right and _is_given(arguments[1]):
        equal = resolved.function if not is_all else resolve_operator("=", left, right).function
        return InList(arguments[0], (Elements(arguments[1], right),), equal, negated=is_all)
    return Apply(_over_elements(resolved.function, is_all), arguments, BOOLEAN, nullable=True)


def _is_given(array: Expression) -> bool:
    """Tell whether the array is the same for all rows: a parameter, or made of literals."""
    while isinstance(array, Cast):
        array = array.operand
    return is_constant(array)


def _element_for(operand: Operand) -> SqlType:
    return TEXT if operand.type.kind is Kind.UNKNOWN else operand.type.bare


@lru_cache(maxsize=1024)
def _over_elements(comparison: Function, is_all: bool) -> Function:
    """Return the function of ANY or ALL: true if one element (ANY) satisfies the comparison, false
    if one (ALL) does not; else NULL if anything was NULL. An empty array decides even for NULL."""
    decisive = not is_all
    compares = comparison.call

    def call(operand: Any, array: tuple[Any, ...] | None) -> bool | None:
        if array is None:
            return None
        unknown = False
        for element in flat(array):
            if operand is None or element is None:
                unknown = True
            elif bool(compares(operand, element)) is decisive:
                return decisive
        return None if unknown else is_all

    left, right = comparison.parameters
    return Function(
        f"{comparison.name} {'all' if is_all else 'any'}",
        (left, array_of(right)),
        BOOLEAN,
        call,
        strict=False,
        gives_null=True,
        symbol=f"{comparison.symbol or comparison.name} {'ALL' if is_all else 'ANY'}",
        cost=_cost_of_each(comparison),
        explodes=comparison.prepare is not None,
    )


def _cost_of_each(comparison: Function) -> Cost:
    """Return the cost of comparing with all elements; each pattern among them is compiled."""
    each = cost_of(comparison.name, comparison.parameters, comparison.cost)

    def cost(operand: Any, array: tuple[Any, ...] | None) -> int:
        if not array:
            return 0
        if comparison.prepare is None:
            return (size_of(array) * 8 + min(size_of(operand) * len(array), size_of(array))) // 1000
        total = 0
        for element in flat(array):
            total += 2 + each(operand, element)
            if total > STEPS_AT_ONCE_MAX:
                break
        return total

    return cost


def flat(array: tuple[Any, ...]) -> Iterator[Any]:
    for element in array:
        if type(element) is tuple:
            yield from flat(element)
        else:
            yield element

"""f(VARIADIC array): passes the elements of an array as arguments.

Their number, and therefore the function, is known only at run time: the call is resolved then, for
as many arguments as the array has elements. Resolutions are cached, so this costs a look-up per
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from qserver.errors import DatatypeMismatch, QserverError, UndefinedFunction
from qserver.functions.registry import Function
from qserver.functions.resolve import (
    Resolved,
    resolve_function,
    resolve_without_elements,
    takes_variadic,
)
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.membership import flat
from qserver.sql.binder.expressions.operands import Operand, Unknown, located
from qserver.sql.expressions import Apply, Expression
from qserver.values.casts import cast_function
from qserver.values.types import TEXT, Kind, SqlType, array_of


def variadic_call(
    binding: Binding, name: str, operands: Sequence[Operand], position: int
) -> Expression:
    """Bind the call; the last operand is the array."""
    *leading, last = operands
    if last.type.kind not in (Kind.ARRAY, Kind.UNKNOWN):
        raise DatatypeMismatch("VARIADIC argument must be an array", position=position + 1)
    array = implicit(binding, last, array_of(last.type.element or TEXT), position)
    element = array.type.element or TEXT
    if not takes_variadic(name, len(leading)):
        shown = ", ".join(str(each.type) for each in operands)
        raise UndefinedFunction(f"function {name}({shown}) does not exist", position=position + 1)
    known = _resolved(name, [each.type for each in leading], element, position)
    firsts = [
        implicit(binding, each, wanted, position)
        if isinstance(each, Unknown)
        else settled(binding, each)
        for each, wanted in zip(leading, known.parameters, strict=False)
    ]
    types = tuple([each.type for each in firsts])
    chosen = _spreading(name, types, element, known.returns)
    return Apply(chosen, (*firsts, array), known.returns, nullable=True)


def _resolved(name: str, types: Sequence[SqlType], element: SqlType, position: int) -> Resolved:
    """Return what the call means, whose type does not depend on the number of arguments."""
    for count in (2, 1):
        try:
            return resolve_function(name, (*types, *[element] * count))
        except QserverError as error:
            if count == 1:
                raise located(error, position) from None
    raise AssertionError("one of both attempts decides")


@lru_cache(maxsize=1024)
def _spreading(
    name: str, types: tuple[SqlType, ...], element: SqlType, returns: SqlType
) -> Function:
    """Return the function that spreads its array; cached, so that equal calls are equal."""

    def call(*arguments: Any) -> Any:
        *firsts, array = arguments
        if array is None:
            return None
        elements = list(flat(array))
        given = (*firsts, *elements)
        if elements:
            resolved = resolve_function(name, (*types, *[element] * len(elements)))
        else:
            resolved = resolve_without_elements(name, types)
        values = [
            None if value is None else cast(value)
            for value, cast in zip(given, _casts(resolved, types, element), strict=True)
        ]
        if resolved.function.strict and None in values:
            return None
        return resolved.function.call(*values)

    return Function(name, (*types, array_of(element)), returns, call, strict=False, gives_null=True)


def _casts(resolved: Resolved, types: tuple[SqlType, ...], element: SqlType) -> list[Any]:
    return [
        cast_function(types[at] if at < len(types) else element, parameter)
        for at, parameter in enumerate(resolved.parameters)
    ]

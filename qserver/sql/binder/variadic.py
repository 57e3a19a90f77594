"""f(VARIADIC array): passes the elements of an array as arguments.

Their number, and therefore the function, is known only at run time: the call is resolved then, for
as many arguments as the array has elements. Resolutions are cached, so this costs a look-up per
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from qserver.errors import DatatypeMismatch, QserverError
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.coercion import implicit, settled
from qserver.sql.binder.membership import flat
from qserver.sql.binder.operands import Operand, located
from qserver.sql.expressions import Apply, Expression
from qserver.sql.functions.registry import Function
from qserver.sql.functions.resolve import Resolved, resolve_function
from qserver.values.casts import cast_function
from qserver.values.types import TEXT, Kind, SqlType, array_of


def variadic_call(
    binding: Binding, name: str, operands: Sequence[Operand], position: int
) -> Expression:
    """Bind the call; the last operand is the array."""
    firsts = [settled(binding, each) for each in operands[:-1]]
    last = operands[-1]
    if last.type.kind not in (Kind.ARRAY, Kind.UNKNOWN):
        raise DatatypeMismatch("VARIADIC argument must be an array", position=position + 1)
    array = implicit(binding, last, array_of(last.type.element or TEXT), position)
    element = array.type.element or TEXT
    types = tuple([each.type for each in firsts])
    returns = _returned(name, types, element, position)
    chosen = _spreading(name, types, element, returns)
    return Apply(chosen, (*firsts, array), returns, nullable=True)


def _returned(name: str, types: tuple[SqlType, ...], element: SqlType, position: int) -> SqlType:
    """Return the type of the result, which does not depend on the number of arguments."""
    for count in (2, 1):
        try:
            return resolve_function(name, (*types, *[element] * count)).returns
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
        resolved = resolve_function(name, (*types, *[element] * len(elements)))
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

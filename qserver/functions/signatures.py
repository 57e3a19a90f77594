"""Signatures: the parameters of a function, also of one for many types.

A module of this folder lists its functions in up to four tuples, which `all_functions` collects:

    OPERATORS         Function or Generic, by symbol; one parameter: a prefix operator
    FUNCTIONS         Function or Generic, by name
    AGGREGATES        Aggregate or Generic
    TABLE_FUNCTIONS   TableFunction or Generic

A parameter may be a placeholder (PostgreSQL: a polymorphic type). All ANYELEMENT, ANYNONARRAY and
ANYENUM of one call are one type, ANYARRAY its array; ANYCOMPATIBLE and ANYCOMPATIBLEARRAY are the
common type of their arguments; ANY takes an argument as it is.

A plain Function may have placeholders in `parameters` and `returns`, which are replaced when the
types of a call are known. If the implementation depends on the type, a `Generic` creates the
function for it. Either way there is one object per function and types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from qserver.functions.registry import Aggregate, Function, TableFunction
from qserver.values.types import Kind, SqlType

ONE_TYPE: Final = frozenset({Kind.ANYELEMENT, Kind.ANYNONARRAY, Kind.ANYENUM})
PLACEHOLDERS: Final = ONE_TYPE | {
    Kind.ANY,
    Kind.ANYARRAY,
    Kind.ANYCOMPATIBLE,
    Kind.ANYCOMPATIBLEARRAY,
}


@dataclass(frozen=True, slots=True, eq=False)
class Generic:
    """A function, aggregate or table function for many types.

    `make` gets one type per argument, with a `variadic` last parameter repeated for each argument.
    Types are bare, without precision or length.
    """

    name: str
    parameters: tuple[SqlType, ...]
    make: Callable[[tuple[SqlType, ...]], Any]
    variadic: bool = False


Concrete: TypeAlias = Function | Aggregate | TableFunction
Signature: TypeAlias = Concrete | Generic


def parameters_for(signature: Signature, count: int) -> tuple[SqlType, ...] | None:
    """Return the parameters for a call with `count` arguments; None if there is no such call."""
    parameters = signature.parameters
    if len(parameters) == count:
        return parameters
    if is_variadic(signature) and count > len(parameters):
        return parameters + (parameters[-1],) * (count - len(parameters))
    return None


def is_variadic(signature: Signature) -> bool:
    return isinstance(signature, Function | Generic) and signature.variadic


def is_generic(types: tuple[SqlType, ...]) -> bool:
    """Tell whether there is a placeholder among the types."""
    return any(each.kind in PLACEHOLDERS for each in types)

"""Signatures: what a function asks of its arguments, also where it takes many types.

A module of this folder announces what it has in up to four tuples, which `catalogue` collects:

    OPERATORS         Function or Generic, by symbol; one parameter: a prefix operator
    FUNCTIONS         Function or Generic, by name
    AGGREGATES        Aggregate or Generic
    TABLE_FUNCTIONS   TableFunction or Generic

A parameter may be a placeholder (PostgreSQL: a polymorphic type). All ANYELEMENT, ANYNONARRAY and
ANYENUM of one call stand for one type, ANYARRAY for its arrays; ANYCOMPATIBLE and
ANYCOMPATIBLEARRAY stand for the common type of their arguments; ANY takes an argument as it is.

Where values are treated alike whatever their type, a plain Function with placeholders in
`parameters` and `returns` will do: they are replaced when the types of a call are known. Where the
type makes a difference, a `Generic` makes the function for it. Either way there is one object per
function and types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from qserver.sql.functions.registry import Aggregate, Function, TableFunction
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

    `make` is given one type per argument, with a `variadic` last parameter repeated as often as the
    call has it. Types come bare, without precision or length.
    """

    name: str
    parameters: tuple[SqlType, ...]
    make: Callable[[tuple[SqlType, ...]], Any]
    variadic: bool = False


Concrete: TypeAlias = Function | Aggregate | TableFunction
Signature: TypeAlias = Concrete | Generic


def parameters_for(signature: Signature, count: int) -> tuple[SqlType, ...] | None:
    """The parameters for a call with so many arguments; None if it cannot have as many."""
    parameters = signature.parameters
    if len(parameters) == count:
        return parameters
    if is_variadic(signature) and count > len(parameters):
        return parameters + (parameters[-1],) * (count - len(parameters))
    return None


def is_variadic(signature: Signature) -> bool:
    """May the last parameter repeat?"""
    return isinstance(signature, Function | Generic) and signature.variadic


def is_generic(types: tuple[SqlType, ...]) -> bool:
    """Is there a placeholder among the types?"""
    return any(each.kind in PLACEHOLDERS for each in types)

"""Resolves a name and the types of its arguments to one function.

The binder gets a `Resolved` and casts each argument to its type in `parameters`. A quoted literal
has type UNKNOWN, and so does NULL: the function determines its type.

Equal questions get the same object, so functions are compared by identity. Precision and length are
ignored: a NUMERIC(10,2) resolves as NUMERIC, and a result has neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeVar, cast

from qserver.errors import (
    AmbiguousFunction,
    CannotCoerce,
    DatatypeMismatch,
    UndefinedFunction,
)
from qserver.functions.all_functions import AGGREGATES, FUNCTIONS, OPERATORS, TABLE_FUNCTIONS
from qserver.functions.candidates import Candidate, accepts, narrow
from qserver.functions.conversions import TYPE_NAMES, conversion
from qserver.functions.general import extreme
from qserver.functions.placeholders import concrete, returned
from qserver.functions.registry import Aggregate, Function, TableFunction
from qserver.functions.signatures import (
    Concrete,
    Generic,
    Signature,
    is_generic,
    is_variadic,
    parameters_for,
)
from qserver.functions.type_categories import common_of, converts
from qserver.values.types import UNKNOWN, Kind, SqlType

WINDOW_FUNCTIONS: Final = frozenset(
    {
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
    }
)
ORDERED_SET_AGGREGATES: Final = frozenset({"mode", "percentile_cont", "percentile_disc"})
HYPOTHETICAL_AGGREGATES: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_OPERATOR_ALIASES: Final[Mapping[str, str]] = {
    "!=": "<>",
    "like": "~~",
    "not like": "!~~",
    "ilike": "~~*",
    "not ilike": "!~~*",
}

S = TypeVar("S", bound=Signature)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A function, the type that each argument must be cast to, and the type of the result."""

    function: Function
    parameters: tuple[SqlType, ...]
    returns: SqlType


@dataclass(frozen=True, slots=True)
class ResolvedAggregate:
    aggregate: Aggregate
    parameters: tuple[SqlType, ...]
    returns: SqlType


@dataclass(frozen=True, slots=True)
class ResolvedTableFunction:
    function: TableFunction
    parameters: tuple[SqlType, ...]


def resolve_operator(symbol: str, left: SqlType | None, right: SqlType) -> Resolved:
    """Resolve an operator; `left` is None for a prefix operator."""
    arguments = (right.bare,) if left is None else (left.bare, right.bare)
    return _resolve_operator(_OPERATOR_ALIASES.get(symbol, symbol), arguments)


def resolve_function(name: str, argument_types: Sequence[SqlType]) -> Resolved:
    return _resolve_function(name, tuple(argument_types))


def resolve_aggregate(name: str, argument_types: Sequence[SqlType]) -> ResolvedAggregate:
    """Resolve an aggregate; no arguments is count(*).

    An ordered-set aggregate takes its direct arguments first, then those of WITHIN GROUP.
    """
    return _resolve_aggregate(name, _bare(argument_types))


def resolve_table_function(name: str, argument_types: Sequence[SqlType]) -> ResolvedTableFunction:
    return _resolve_table_function(name, _bare(argument_types))


def is_function(name: str) -> bool:
    return name in FUNCTIONS or name in TYPE_NAMES or name in ("greatest", "least")


def takes_variadic(name: str, count: int) -> bool:
    """Tell whether an array may stand for the arguments after the first `count`."""
    return bool(_variadic(name, count))


def resolve_without_elements(name: str, types: Sequence[SqlType]) -> Resolved:
    """Resolve f(a, VARIADIC '{}'), a call that cannot be written without VARIADIC."""
    signature = _variadic(name, len(types))[0]
    bare = _bare(types)
    parameters = tuple(
        [
            given if is_generic((wanted,)) else wanted
            for given, wanted in zip(bare, signature.parameters, strict=False)
        ]
    )
    function = signature.make(parameters) if isinstance(signature, Generic) else signature
    return Resolved(function, parameters, function.returns)


def _variadic(name: str, count: int) -> list[Function | Generic]:
    return [
        each
        for each in FUNCTIONS.get(name, ())
        if is_variadic(each) and len(each.parameters) == count + 1
    ]


def is_aggregate(name: str) -> bool:
    """Tell whether the name is an aggregate's. Hypothetical ones may be window functions, too."""
    return name in AGGREGATES


def is_ordered_set_aggregate(name: str) -> bool:
    """Tell whether the aggregate is written with WITHIN GROUP."""
    return name in ORDERED_SET_AGGREGATES or name in HYPOTHETICAL_AGGREGATES


def is_window_function(name: str) -> bool:
    """Tell whether the function works only over a window. (Any aggregate can be used so, too.)"""
    return name in WINDOW_FUNCTIONS


def is_table_function(name: str) -> bool:
    return name in TABLE_FUNCTIONS


def common_type(types: Sequence[SqlType], construct: str) -> SqlType:
    """Return the common type of several expressions.

    `construct` is PostgreSQL's word for the context, for errors: CASE, COALESCE, VALUES, UNION,
    INTERSECT, EXCEPT, GREATEST, LEAST, ARRAY, IN. For CASE the ELSE comes first, as in PostgreSQL.
    If all are unknown literals the type is TEXT.
    """
    first = types[0]
    if first.kind is not Kind.UNKNOWN and all(each == first for each in types):
        return first
    without_size = [each.bare for each in types]
    common = common_of(without_size)
    if common is None:
        raise _cannot_be_matched(without_size, construct)
    for each in without_size:
        if not converts(each, common):
            raise CannotCoerce(f"{construct} could not convert type {each} to {common}")
    return common


def _cannot_be_matched(types: Sequence[SqlType], construct: str) -> DatatypeMismatch:
    """Return the error with the type chosen so far, and the first type that does not fit."""
    chosen = UNKNOWN
    for at, each in enumerate(types):
        so_far = common_of(types[: at + 1])
        if so_far is None:
            return DatatypeMismatch(f"{construct} types {chosen} and {each} cannot be matched")
        chosen = so_far
    raise AssertionError("these types have a common type")


def _bare(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return tuple([each.bare for each in types])


# --- the search ----------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def _resolve_operator(symbol: str, arguments: tuple[SqlType, ...]) -> Resolved:
    if symbol in _COMPARISONS and all(each.kind is Kind.RECORD for each in arguments):
        _require_alike(symbol, *arguments)
    signatures = OPERATORS.get(symbol, ())
    found = _exact(signatures, arguments) or _exact(signatures, _both_sides_known(arguments))
    function, parameters = found or _best(signatures, arguments, _OperatorCall(symbol, arguments))
    return Resolved(cast(Function, function), parameters, cast(Function, function).returns)


def _require_alike(symbol: str, left: SqlType, right: SqlType) -> None:
    """Refuse to compare rows of other fields, or with a field whose type has no order."""
    if not (left.columns and right.columns):
        return  # rows whose fields nobody knows before they are there
    pairs = zip(left.columns, right.columns, strict=False)
    for number, ((_, one), (_, other)) in enumerate(pairs, 1):
        if one.kind is not other.kind or one.element != other.element or one.enum != other.enum:
            raise DatatypeMismatch(
                f"cannot compare dissimilar column types {one.bare} and {other.bare}"
                f" at record column {number}"
            )
        if one.kind in (Kind.JSON, Kind.JSONPATH, Kind.UNKNOWN):
            what = "an equality operator" if symbol in ("=", "<>") else "a comparison function"
            raise UndefinedFunction(f"could not identify {what} for type {one.bare}")
        _require_alike(symbol, one, other)
    if len(left.columns) != len(right.columns):
        raise DatatypeMismatch("cannot compare record types with different numbers of columns")


@lru_cache(maxsize=8192)
def _resolve_function(name: str, types: tuple[SqlType, ...]) -> Resolved:
    arguments = _bare(types)
    if name in ("greatest", "least"):
        return _resolve_extreme(name, arguments)
    signatures = FUNCTIONS.get(name, ())
    found = _exact(signatures, arguments)
    if found is None:
        made = conversion(name, arguments)
        if made is not None:
            return Resolved(made, made.parameters, made.returns)
        found = _best(signatures, arguments, _Call(name, arguments), types)
    function, parameters = found
    return Resolved(cast(Function, function), parameters, cast(Function, function).returns)


def _resolve_extreme(name: str, arguments: tuple[SqlType, ...]) -> Resolved:
    """Resolve GREATEST and LEAST, for any number of arguments of one common type."""
    shared = common_type(arguments, name.upper())
    try:
        less = _resolve_operator("<", (shared, shared)).function.call
    except UndefinedFunction:
        raise UndefinedFunction(
            f"could not identify a comparison function for type {shared}"
        ) from None
    function = extreme(name, shared, len(arguments), less)
    return Resolved(function, function.parameters, shared)


@lru_cache(maxsize=4096)
def _resolve_aggregate(name: str, arguments: tuple[SqlType, ...]) -> ResolvedAggregate:
    signatures = AGGREGATES.get(name, ())
    found = _exact(signatures, arguments) or _best(signatures, arguments, _Call(name, arguments))
    aggregate, parameters = found
    return ResolvedAggregate(
        cast(Aggregate, aggregate), parameters, cast(Aggregate, aggregate).returns
    )


@lru_cache(maxsize=1024)
def _resolve_table_function(name: str, arguments: tuple[SqlType, ...]) -> ResolvedTableFunction:
    signatures = TABLE_FUNCTIONS.get(name, ())
    found = _exact(signatures, arguments) or _best(signatures, arguments, _Call(name, arguments))
    function, parameters = found
    return ResolvedTableFunction(cast(TableFunction, function), parameters)


Chosen = tuple[Concrete, tuple[SqlType, ...]]


def _exact(signatures: Sequence[S], arguments: tuple[SqlType, ...]) -> Chosen | None:
    for signature in signatures:
        if signature.parameters == arguments and not isinstance(signature, Generic):
            return signature, arguments
    return None


def _both_sides_known(arguments: tuple[SqlType, ...]) -> tuple[SqlType, ...]:
    """Give an unknown literal the type of the other operand, which is tried first."""
    if len(arguments) == 2 and UNKNOWN in arguments:
        other = arguments[0] if arguments[1] == UNKNOWN else arguments[1]
        return other, other
    return arguments


def _best(
    signatures: Sequence[S],
    arguments: tuple[SqlType, ...],
    call: _Call,
    sized: tuple[SqlType, ...] | None = None,
) -> Chosen:
    """Return the only candidate for bare arguments; `sized` have precision and length."""
    candidates: list[Candidate[S]] = []
    for signature in signatures:
        parameters = parameters_for(signature, len(arguments))
        if parameters is not None and accepts(parameters, arguments):
            candidates.append((parameters, signature))
    if not candidates:
        raise call.undefined()
    if len(candidates) > 1:
        candidates = narrow(candidates, arguments)
    if len(candidates) > 1:
        raise call.ambiguous()
    ((parameters, chosen),) = candidates
    types = concrete(parameters, arguments)
    assert types is not None, "a candidate accepts its arguments"
    if UNKNOWN in types:
        raise DatatypeMismatch(
            "could not determine polymorphic type because input has type unknown"
        )
    if sized is not None:  # a function of any type may print its argument, and CHAR(n) has blanks
        types = tuple(
            [
                full if _goes_by_size(chosen, parameter, full) else each
                for parameter, each, full in zip(parameters, types, sized, strict=True)
            ]
        )
    return _made(chosen, parameters, types), types


def _goes_by_size(chosen: Signature, parameter: SqlType, given: SqlType) -> bool:
    """Does it give a part of what it is given, or take anything, perhaps to print it?"""
    if chosen.name in _PARTS:
        return given.element is not None
    is_char = (given.element or given).kind is Kind.CHAR
    return is_char and (parameter.kind is Kind.ANY or chosen.name in _PRINTERS)


_PARTS: Final = ("array_subscript", "array_slice")
_PRINTERS: Final = ("to_json", "to_jsonb", "array_to_json", "array_to_string")


@lru_cache(maxsize=8192)
def _made(
    signature: Signature, parameters: tuple[SqlType, ...], types: tuple[SqlType, ...]
) -> Concrete:
    """Instantiate a signature; cached: one object per signature and types."""
    if isinstance(signature, Generic):
        return cast(Concrete, signature.make(types))
    if not is_generic(parameters):
        return signature
    if isinstance(signature, TableFunction):
        columns = tuple(
            (name, returned(each, parameters, types)) for name, each in signature.columns
        )
        return replace(signature, parameters=types, columns=columns)
    returns = returned(signature.returns, parameters, types)
    return replace(signature, parameters=types, returns=returns)


def undefined_function(name: str, arguments: Sequence[SqlType]) -> UndefinedFunction:
    return _Call(name, tuple(arguments)).undefined()


# --- errors --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in errors: `lower(integer)`."""

    name: str
    arguments: tuple[SqlType, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"

    def undefined(self) -> UndefinedFunction:
        return UndefinedFunction(
            f"function {self} does not exist",
            hint="No function matches the given name and argument types. "
            "You might need to add explicit type casts.",
        )

    def ambiguous(self) -> AmbiguousFunction:
        return AmbiguousFunction(
            f"function {self} is not unique",
            hint="Could not choose a best candidate function. "
            "You might need to add explicit type casts.",
        )


class _OperatorCall(_Call):
    """An operator in errors: `integer + text`."""

    def __str__(self) -> str:
        if len(self.arguments) == 1:
            return f"{self.name} {self.arguments[0]}"
        return f"{self.arguments[0]} {self.name} {self.arguments[1]}"

    def undefined(self) -> UndefinedFunction:
        if len(self.arguments) == 1:
            hint = (
                "No operator matches the given name and argument type. "
                "You might need to add an explicit type cast."
            )
        else:
            hint = (
                "No operator matches the given name and argument types. "
                "You might need to add explicit type casts."
            )
        return UndefinedFunction(f"operator does not exist: {self}", hint=hint)

    def ambiguous(self) -> AmbiguousFunction:
        return AmbiguousFunction(
            f"operator is not unique: {self}",
            hint="Could not choose a best candidate operator. "
            "You might need to add explicit type casts.",
        )

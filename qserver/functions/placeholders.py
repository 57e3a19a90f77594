"""Resolves the placeholders of a signature in a call: PostgreSQL's polymorphic types.

    parameters   anyarray  anyelement        arguments  integer[]  unknown
    element      integer                     result     integer[]  integer

Unknown literals follow the other arguments. If a placeholder has only unknown literals, it stays
UNKNOWN, which `resolve` refuses.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.functions.signatures import ONE_TYPE, PLACEHOLDERS
from qserver.functions.type_categories import common_of, converts
from qserver.values.types import TEXT, UNKNOWN, Kind, SqlType, array_of


class Disagreement(Exception):
    """The arguments do not fit the placeholders; the candidate is dropped."""


def concrete(
    parameters: Sequence[SqlType], arguments: Sequence[SqlType]
) -> tuple[SqlType, ...] | None:
    """Replace the placeholders of the parameters; None if the arguments do not agree."""
    try:
        element = _element(parameters, arguments)
        shared = _shared(parameters, arguments)
    except Disagreement:
        return None
    return tuple(
        (TEXT if argument == UNKNOWN else argument)
        if parameter.kind is Kind.ANY
        else replaced(parameter, element, shared)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def returned(
    returns: SqlType, parameters: Sequence[SqlType], arguments: Sequence[SqlType]
) -> SqlType:
    """Return the type of the result, for arguments that agree."""
    if returns.kind not in PLACEHOLDERS:
        return returns
    return replaced(returns, _element(parameters, arguments), _shared(parameters, arguments))


def replaced(parameter: SqlType, element: SqlType, shared: SqlType) -> SqlType:
    kind = parameter.kind
    if kind in ONE_TYPE:
        return element
    if kind is Kind.ANYARRAY:
        return UNKNOWN if element == UNKNOWN else array_of(element)
    if kind is Kind.ANYCOMPATIBLE:
        return shared
    if kind is Kind.ANYCOMPATIBLEARRAY:
        return array_of(shared)
    return parameter


def _element(parameters: Sequence[SqlType], arguments: Sequence[SqlType]) -> SqlType:
    """Return the type of ANYELEMENT."""
    element, may_be_array, must_be_enum = UNKNOWN, True, False
    for parameter, argument in zip(parameters, arguments, strict=True):
        kind = parameter.kind  # there are no arrays of arrays
        may_be_array = may_be_array and kind not in (Kind.ANYNONARRAY, Kind.ANYARRAY)
        must_be_enum = must_be_enum or kind is Kind.ANYENUM
        if argument == UNKNOWN or not (kind in ONE_TYPE or kind is Kind.ANYARRAY):
            continue
        found: SqlType | None = argument
        if kind is Kind.ANYARRAY:
            found = argument.element
        if found is None or element not in (UNKNOWN, found):
            raise Disagreement
        element = found
    if element.kind is Kind.ARRAY and not may_be_array:
        raise Disagreement
    if must_be_enum and element.kind not in (Kind.ENUM, Kind.UNKNOWN):
        raise Disagreement
    return element


def _shared(parameters: Sequence[SqlType], arguments: Sequence[SqlType]) -> SqlType:
    """Return the type of ANYCOMPATIBLE."""
    types: list[SqlType] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        if parameter.kind is Kind.ANYCOMPATIBLE:
            types.append(argument)
        elif parameter.kind is Kind.ANYCOMPATIBLEARRAY and argument != UNKNOWN:
            if argument.element is None:
                raise Disagreement
            types.append(argument.element)
    shared = common_of(types)
    has_arrays = any(parameter.kind is Kind.ANYCOMPATIBLEARRAY for parameter in parameters)
    if shared is None or (has_arrays and shared.kind is Kind.ARRAY):
        raise Disagreement
    if not all(converts(each, shared) for each in types):
        raise Disagreement  # TIME and TIMESTAMP have one category, but no cast to each other
    return shared

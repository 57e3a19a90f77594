"""Assignment to a part of a value: UPDATE … SET a[2] = 5, a[1:2] = '{7,8}', j['x']['y'] = '1'.

    array_assign(array, element, i, j …)              one place; a one-dimensional array may grow
    array_assign_slice(array, source, low, high …)    NULL for an omitted bound
    jsonb_assign(jsonb, jsonb, key, key …)            creates missing parts of the path

Each is a function from the old value to the new one, which the column is then set to. Arrays start
at 1, so a place before the first, or a gap before the only element, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.errors import (
    ArraySubscriptError,
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NullValueNotAllowed,
    QserverError,
)
from qserver.functions.arrays.functions import too_large
from qserver.functions.json.json_access import index_of
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.limits import ARRAY_ELEMENTS_MAX
from qserver.values.arrays import Array, dimensions, flat, shaped
from qserver.values.jsonb import Jsonb, Structure, jsonb_of
from qserver.values.types import ANYARRAY, ANYELEMENT, INTEGER, JSONB, TEXT, SqlType

# --- one element ---------------------------------------------------------------------------------


def array_assign(array: Array | None, element: Any, *places: int | None) -> Array:
    if None in places:
        raise _null_subscript("array")
    numbers = [place for place in places if place is not None]
    if not array:
        if any(number != 1 for number in numbers):
            raise _other_bound()
        return shaped((element,), (1,) * len(numbers))
    if len(numbers) != len(dimensions(array)):
        raise ArraySubscriptError("wrong number of array subscripts")
    if len(numbers) == 1:
        return _with_elements(array, numbers[0], (element,))
    return _with_part(array, numbers, element)


def _with_elements(array: Array, first: int, elements: Array) -> Array:
    """Overwrite elements from a place on, padded with NULLs up to it."""
    if first < 1:
        raise _other_bound()
    if first + len(elements) - 1 > ARRAY_ELEMENTS_MAX:
        raise too_large()
    gap = (None,) * (first - 1 - len(array))
    return array[: first - 1] + gap + elements + array[first - 1 + len(elements) :]


def _with_part(array: Array, places: list[int], element: Any) -> Array:
    at = places[0] - 1
    if not 0 <= at < len(array):
        raise ArraySubscriptError("array subscript out of range")
    part = element if len(places) == 1 else _with_part(array[at], places[1:], element)
    return (*array[:at], part, *array[at + 1 :])


# --- a slice -------------------------------------------------------------------------------------


def array_assign_slice(
    array: Array | None, source: Array | None, *bounds: int | None
) -> Array | None:
    """Return the array with a slice overwritten by the elements of another, in order."""
    if source is None:
        return array
    pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
    if not array:
        return _new_slice(source, pairs)
    sizes = dimensions(array)
    if len(pairs) > len(sizes):
        raise ArraySubscriptError("wrong number of array subscripts")
    pairs += [(None, None)] * (len(sizes) - len(pairs))
    ranges = [
        _checked(1 if low is None else low, size if high is None else high)
        for (low, high), size in zip(pairs, sizes, strict=True)
    ]
    elements = _enough(flat(source), ranges)
    if len(ranges) == 1:
        return _with_elements(array, ranges[0].start, elements)
    if any(
        each.start < 1 or each.stop - 1 > size for each, size in zip(ranges, sizes, strict=True)
    ):
        raise ArraySubscriptError("array subscript out of range")
    return _over(array, ranges, iter(elements))


def _new_slice(source: Array, pairs: list[tuple[int | None, int | None]]) -> Array:
    ranges = []
    for low, high in pairs:
        if low is None or high is None:
            raise ArraySubscriptError(
                "array slice subscript must provide both boundaries",
                detail="When assigning to a slice of an empty array value,"
                " slice boundaries must be fully specified.",
            )
        ranges.append(_checked(low, high))
    if any(each.start != 1 for each in ranges):
        raise _other_bound()
    return shaped(_enough(flat(source), ranges), tuple(map(len, ranges)))


def _checked(low: int, high: int) -> range:
    if high < low:
        raise ArraySubscriptError("upper bound cannot be less than lower bound")
    return range(low, high + 1)


def _enough(elements: Array, ranges: list[range]) -> Array:
    needed = 1
    for each in ranges:
        needed *= len(each)
    if len(elements) < needed:
        raise ArraySubscriptError("source array too small")
    return elements[:needed]


def _over(array: Array, ranges: list[range], elements: Iterator[Any]) -> Array:
    first, *inner = ranges
    return tuple(
        [
            part if at not in first else (_over(part, inner, elements) if inner else next(elements))
            for at, part in enumerate(array, 1)
        ]
    )


# --- JSONB ---------------------------------------------------------------------------------------


def jsonb_assign(value: Jsonb | None, new: Jsonb | None, *path: str | None) -> Jsonb:
    """Return the value with another at the path; missing parts are created."""
    steps = [step for step in path if step is not None]
    if len(steps) < len(path):
        raise _null_subscript("jsonb")
    structure = _empty_for(steps[0]) if value is None else value.value
    return jsonb_of(_set(structure, steps, 0, None if new is None else new.value))


def _set(structure: Structure, steps: list[str], level: int, new: Structure) -> Structure:
    if level == len(steps):
        return new
    step = steps[level]
    if isinstance(structure, dict):
        inner = structure[step] if step in structure else _missing(steps, level)
        return {**structure, step: _set(inner, steps, level + 1, new)}
    if isinstance(structure, list):
        return _set_element(structure, steps, level, new)
    raise InvalidParameterValue(
        "cannot replace existing key",
        detail="The path assumes key is a composite object, but it is a scalar value.",
    )


def _set_element(
    array: list[Structure], steps: list[str], level: int, new: Structure
) -> list[Structure]:
    index = index_of(steps[level])
    if index is None:
        raise InvalidTextRepresentation(
            f'path element at position {level + 1} is not an integer: "{steps[level]}"'
        )
    at = index + len(array) if index < 0 else index
    if at < 0:
        raise InvalidParameterValue(
            f"path element at position {level + 1} is out of range: {index}"
        )
    if at >= ARRAY_ELEMENTS_MAX:
        raise too_large()
    grown = array + [None] * (at + 1 - len(array))
    inner = array[at] if at < len(array) else _missing(steps, level)
    grown[at] = _set(inner, steps, level + 1, new)
    return grown


def _missing(steps: list[str], level: int) -> Structure:
    """Return the value of a missing step: an array before a number, else an object."""
    return _empty_for(steps[level + 1]) if level + 1 < len(steps) else None


def _empty_for(step: str) -> Structure:
    return {} if index_of(step) is None else []


# --- errors and the table ------------------------------------------------------------------------


def _null_subscript(kind: str) -> QserverError:
    return NullValueNotAllowed(f"{kind} subscript in assignment must not be null")


def _other_bound() -> QserverError:
    return FeatureNotSupported("arrays with a lower bound other than 1 do not exist")


def _place(place: int | None) -> int:
    """Require a written bound to be not NULL; an omitted one is NULL and does not get here."""
    if place is None:
        raise _null_subscript("array")
    return place


def _assign(types: tuple[SqlType, ...]) -> Function:
    return Function("array_assign", types, types[0], array_assign, strict=False)


def _assign_slice(types: tuple[SqlType, ...]) -> Function:
    return Function(
        "array_assign_slice", types, types[0], array_assign_slice, strict=False, gives_null=True
    )


FUNCTIONS: Final = (
    Function("array_place", (INTEGER,), INTEGER, _place, strict=False),
    Generic("array_assign", (ANYARRAY, ANYELEMENT, INTEGER), _assign, variadic=True),
    Generic(
        "array_assign_slice", (ANYARRAY, ANYARRAY, INTEGER, INTEGER), _assign_slice, variadic=True
    ),
    Function(
        "jsonb_assign", (JSONB, JSONB, TEXT), JSONB, jsonb_assign, strict=False, variadic=True
    ),
)

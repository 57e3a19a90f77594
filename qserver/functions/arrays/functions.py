"""Arrays: subscripts and slices, ||, @>, && and the array_… functions.

Values are those of `values.arrays`: tuples, nested by dimension, counted from 1. Equality is that
of key elements, so 1.0 equals 1.00 and NaN equals NaN; NULL equals NULL in array_position and
array_remove, but matches nothing in @> and &&.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, cast

from qserver.errors import (
    ArraySubscriptError,
    DataError,
    FeatureNotSupported,
    NullValueNotAllowed,
    ProgramLimitExceeded,
    QserverError,
)
from qserver.functions.costs import FREE, fill_cost, list_cost, parts_cost
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.limits import ARRAY_DIMENSIONS_MAX, ARRAY_ELEMENTS_MAX
from qserver.values.arrays import Array, dimensions, flat, is_rectangular, shaped
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.keys import key_element
from qserver.values.records import Record
from qserver.values.text_output import shown_function
from qserver.values.types import (
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYELEMENT,
    BOOLEAN,
    INT2VECTOR,
    INTEGER,
    OIDVECTOR,
    TEXT,
    SqlType,
    array_of,
)
from qserver.values.zoned_time import ZonedTime


def too_large() -> QserverError:
    return ProgramLimitExceeded(f"array size exceeds the maximum allowed ({ARRAY_ELEMENTS_MAX})")


# --- subscripts ----------------------------------------------------------------------------------


def subscript(array: Any, *places: int) -> Any:
    """Return the element at a place; NULL for none, or for too few or too many subscripts."""
    for place in places:
        if type(array) is not tuple or not 1 <= place <= len(array):
            return None
        array = array[place - 1]
    return None if type(array) is tuple else array


def array_slice(array: Array | None, *bounds: int | None) -> Array | None:
    """Return a slice, given first and last place per dimension; NULL omits a bound."""
    if array is None:
        return None
    sizes = dimensions(array)
    if len(bounds) // 2 > len(sizes):
        return ()
    return _sliced(array, list(zip(bounds[::2], bounds[1::2], strict=True)))


def _sliced(array: Array, bounds: list[tuple[int | None, int | None]]) -> Array:
    if not bounds:
        return array
    low, high = bounds[0]
    parts = array[max(low or 1, 1) - 1 if low is not None else 0 :]
    if high is not None:
        parts = parts[: max(high - max(1 if low is None else low, 1) + 1, 0)]
    if len(bounds) == 1:
        return parts
    inner = tuple([_sliced(part, bounds[1:]) for part in parts])
    return inner if inner and inner[0] else ()


# --- concatenation -------------------------------------------------------------------------------


def append(array: Array | None, element: Any) -> Array:
    return (*_one_dimension(array), element)


def prepend(element: Any, array: Array | None) -> Array:
    return (element, *_one_dimension(array))


def _one_dimension(array: Array | None) -> Array:
    if array and type(array[0]) is tuple:
        raise DataError("argument must be empty or one-dimensional array")
    return array or ()


def concatenate(left: Array | None, right: Array | None) -> Array | None:
    """Concatenate two arrays of one shape, or an array and one of its parts."""
    if not left or not right:
        return left if left or right is None else right
    first, second = dimensions(left), dimensions(right)
    if first[1:] == second[1:] and len(first) == len(second):
        return left + right
    if first[1:] == second:
        return (*left, right)
    if first == second[1:]:
        return (left, *right)
    raise ArraySubscriptError("cannot concatenate incompatible arrays")


def array_of_arrays(parts: tuple[Any, ...]) -> Array:
    """Build ARRAY[a, b] of arrays: one dimension more, or none if all are empty."""
    if not any(parts):  # NULL counts as empty
        return ()
    if not all(type(part) is tuple for part in parts) or not is_rectangular(parts):
        raise ArraySubscriptError(
            "multidimensional arrays must have array expressions with matching dimensions"
        )
    return parts


# --- sizes ---------------------------------------------------------------------------------------


def length(array: Array, dimension: int) -> int | None:
    sizes = dimensions(array)
    return sizes[dimension - 1] if 1 <= dimension <= len(sizes) else None


def lower(array: Array, dimension: int) -> int | None:
    return 1 if 1 <= dimension <= len(dimensions(array)) else None


def _last_from_0(array: Array, dimension: int) -> int | None:
    found = length(array, dimension)
    return None if found is None else found - 1


def _first_from_0(array: Array, dimension: int) -> int | None:
    return None if lower(array, dimension) is None else 0


def count_dimensions(array: Array) -> int | None:
    return len(dimensions(array)) or None


def show_dimensions(array: Array) -> str | None:
    return "".join(f"[1:{size}]" for size in dimensions(array)) or None


def cardinality(array: Array) -> int:
    count = 1
    for size in dimensions(array) or (0,):
        count *= size
    return count


# --- searching -----------------------------------------------------------------------------------


def position(array: Array | None, element: Any, start: int | None = 1) -> int | None:
    if not array:
        return None
    if start is None:
        raise NullValueNotAllowed("initial position must not be null")
    wanted = key_element(element)
    for at, each in enumerate(_searched(array), 1):
        if at >= start and key_element(each) == wanted:
            return at
    return None


def positions(array: Array | None, element: Any) -> Array | None:
    if array is None:
        return None
    wanted = key_element(element)
    return tuple([at for at, each in enumerate(_searched(array), 1) if key_element(each) == wanted])


def _searched(array: Array) -> Array:
    if array and type(array[0]) is tuple:
        raise FeatureNotSupported(
            "searching for elements in multidimensional arrays is not supported"
        )
    return array


def remove(array: Array | None, element: Any) -> Array | None:
    if array is None:
        return None
    if array and type(array[0]) is tuple:
        raise FeatureNotSupported("removing elements from multidimensional arrays is not supported")
    unwanted = key_element(element)
    return tuple([each for each in array if key_element(each) != unwanted])


def replace(array: Array | None, old: Any, new: Any) -> Array | None:
    if array is None:
        return None
    wanted = key_element(old)
    elements = [new if key_element(each) == wanted else each for each in flat(array)]
    return shaped(tuple(elements), dimensions(array))


_ARE_NO_KEYS: Final = frozenset({float, Decimal, Interval, Jsonb, ZonedTime, tuple, Record})
"""Types of values that may equal others without being the same, or that hold values."""


def contains(whole: Array, part: Array) -> bool:
    """Tell whether each element of the part is in the whole. NULL never is."""
    if _ARE_NO_KEYS.isdisjoint(map(type, whole)) and _ARE_NO_KEYS.isdisjoint(map(type, part)):
        return None not in part and set(whole).issuperset(part)
    present = {key_element(each) for each in flat(whole) if each is not None}
    return all(each is not None and key_element(each) in present for each in flat(part))


def contained(part: Array, whole: Array) -> bool:
    return contains(whole, part)


def overlaps(left: Array, right: Array) -> bool:
    if _ARE_NO_KEYS.isdisjoint(map(type, left)) and _ARE_NO_KEYS.isdisjoint(map(type, right)):
        return bool({*left}.intersection(right) - {None})
    present = {key_element(each) for each in flat(left) if each is not None}
    return any(each is not None and key_element(each) in present for each in flat(right))


# --- construction and conversion -----------------------------------------------------------------


def fill(element: Any, sizes: Array | None, bounds: Array | None = ()) -> Array:
    if sizes is None or bounds is None:
        raise NullValueNotAllowed("dimension array or low bound array cannot be null")
    if sizes and type(sizes[0]) is tuple:
        raise ArraySubscriptError(
            "wrong number of array subscripts", detail="Dimension array must be one dimensional."
        )
    if None in sizes or None in bounds:
        raise NullValueNotAllowed("dimension values cannot be null")
    if len(sizes) > ARRAY_DIMENSIONS_MAX:
        raise ProgramLimitExceeded(
            f"number of array dimensions ({len(sizes)}) exceeds"
            f" the maximum allowed ({ARRAY_DIMENSIONS_MAX})"
        )
    if any(bound != 1 for bound in bounds):
        raise FeatureNotSupported("arrays with a lower bound other than 1 do not exist")
    total = 1 if sizes else 0
    for size in sizes:
        if size < 0:
            raise too_large()
        total *= size
    if total > ARRAY_ELEMENTS_MAX:
        raise too_large()
    if not total:
        return ()
    filled = element
    for size in reversed(sizes):
        filled = (filled,) * size  # all parts of a dimension are one
    return cast(Array, filled)


def fill_from(element: Any, sizes: Array | None, bounds: Array | None) -> Array:
    """`fill` with lower bounds; each dimension must have one, and all must be 1."""
    if sizes is not None and bounds is not None and len(sizes) != len(bounds):
        raise ArraySubscriptError(
            "wrong number of array subscripts",
            detail="Low bound array has different size than dimensions array.",
        )
    return fill(element, sizes, bounds)


def trim(array: Array, count: int) -> Array:
    if not 0 <= count <= len(array):
        raise ArraySubscriptError(f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def string_to_array(
    text: str | None, delimiter: str | None, null: str | None = None
) -> Array | None:
    """Split a text: at a NULL delimiter into characters, at an empty one not at all."""
    if text is None:
        return None
    if not text:
        return ()
    parts: list[str] | tuple[str, ...] = (
        tuple(text) if delimiter is None else text.split(delimiter) if delimiter else (text,)
    )
    return tuple([None if null is not None and part == null else part for part in parts])


def _to_string(types: tuple[SqlType, ...]) -> Function:
    element = types[0].element
    assert element is not None, "an array has elements"
    show = shown_function(element)

    def to_string(array: Array | None, delimiter: str | None, null: str | None = None) -> Any:
        if array is None or delimiter is None:
            return None
        texts = [null if each is None else show(each) for each in flat(array)]
        return delimiter.join([text for text in texts if text is not None])

    return Function(
        "array_to_string",
        types,
        TEXT,
        to_string,
        strict=False,
        gives_null=True,
        cost=list_cost(types[0]),
        explodes=True,
    )


# --- the tables ----------------------------------------------------------------------------------

_INTEGERS: Final = array_of(INTEGER)


def _subscripts(types: tuple[SqlType, ...]) -> Function:
    element = types[0].element
    assert element is not None, "an array has elements"
    inline = "({0}[{1} - 1] if 0 < {1} <= len({0}) and type({0}[{1} - 1]) is not tuple else None)"
    return Function(
        "array_subscript",
        types,
        element,
        subscript,
        inline=inline if len(types) == 2 else None,
        gives_null=True,
        cost=FREE,
    )


def _slices(types: tuple[SqlType, ...]) -> Function:
    return Function("array_slice", types, types[0], array_slice, strict=False, gives_null=True)


def _optional(name: str, parameters: tuple[SqlType, ...], returns: SqlType, call: Any) -> Function:
    """Return a function that accepts NULL."""
    return Function(name, parameters, returns, call, strict=False, gives_null=True)


def _filled(parameters: tuple[SqlType, ...], call: Any) -> Function:
    return Function(
        "array_fill",
        parameters,
        ANYARRAY,
        call,
        strict=False,
        gives_null=True,
        cost=fill_cost,
        explodes=True,
    )


def _functions() -> Iterator[Function | Generic]:
    array, element = ANYCOMPATIBLEARRAY, ANYCOMPATIBLE
    yield Generic("array_subscript", (ANYARRAY, INTEGER), _subscripts, variadic=True)
    yield Generic("array_slice", (ANYARRAY, INTEGER, INTEGER), _slices, variadic=True)
    yield _optional("array_append", (array, element), array, append)
    yield _optional("array_prepend", (element, array), array, prepend)
    yield _optional("array_cat", (array, array), array, concatenate)
    for name, call in (("array_length", length), ("array_upper", length), ("array_lower", lower)):
        yield Function(name, (ANYARRAY, INTEGER), INTEGER, call, gives_null=True, cost=FREE)
    for vector in (INT2VECTOR, OIDVECTOR):  # they count from 0
        for name, call in (("array_upper", _last_from_0), ("array_lower", _first_from_0)):
            yield Function(name, (vector, INTEGER), INTEGER, call, gives_null=True, cost=FREE)
    yield Function(
        "array_ndims", (ANYARRAY,), INTEGER, count_dimensions, gives_null=True, cost=FREE
    )
    yield Function("array_dims", (ANYARRAY,), TEXT, show_dimensions, gives_null=True, cost=FREE)
    yield Function("cardinality", (ANYARRAY,), INTEGER, cardinality, cost=FREE)
    yield _optional("array_position", (array, element), INTEGER, position)
    yield _optional("array_position", (array, element, INTEGER), INTEGER, position)
    yield _optional("array_positions", (array, element), _INTEGERS, positions)
    yield _optional("array_remove", (array, element), array, remove)
    yield _optional("array_replace", (array, element, element), array, replace)
    yield _filled((ANYELEMENT, _INTEGERS), fill)
    yield _filled((ANYELEMENT, _INTEGERS, _INTEGERS), fill_from)
    yield Function("trim_array", (ANYARRAY, INTEGER), ANYARRAY, trim)
    yield Generic("array_to_string", (ANYARRAY, TEXT), _to_string)
    yield Generic("array_to_string", (ANYARRAY, TEXT, TEXT), _to_string)
    for count in (2, 3):
        yield Function(
            "string_to_array",
            (TEXT,) * count,
            array_of(TEXT),
            string_to_array,
            strict=False,
            gives_null=True,
            cost=parts_cost,
        )


def _operators() -> Iterator[Function]:
    array, element = ANYCOMPATIBLEARRAY, ANYCOMPATIBLE
    joins: tuple[tuple[SqlType, SqlType, Callable[..., Any]], ...] = (
        (array, array, concatenate),
        (array, element, append),
        (element, array, prepend),
    )
    for left, right, call in joins:
        yield Function("||", (left, right), array, call, strict=False, gives_null=True, symbol="||")
    for symbol, compare in (("@>", contains), ("<@", contained), ("&&", overlaps)):
        yield Function(symbol, (ANYARRAY, ANYARRAY), BOOLEAN, compare, symbol=symbol)


FUNCTIONS: Final = tuple(_functions())
OPERATORS: Final = tuple(_operators())

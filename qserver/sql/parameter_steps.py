"""Large parameters: measured first, then converted in steps with yield checks.

    given ─► is_heavy? ─ no ──► ParameterList.slots, in one go
                 └────── yes ─► _weighed ─► _converted, a part at a time ─► the same slots

The conversion of megabytes of lists takes seconds. A value beyond the size limit, or a text whose
conversion cannot be interrupted and costs too much, is refused first, with the errors that a cast
would cause.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from sys import getsizeof
from typing import Any, Final

from qserver.errors import ArraySubscriptError
from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context
from qserver.functions.costs import BYTES_SMALL, cast_cost, refuse_size, refuse_steps
from qserver.limits import ROW_BYTES_MAX, STEPS_AT_ONCE_MAX
from qserver.sql.codegen.charges import costly_cast
from qserver.sql.parameters import (
    Given,
    ParameterList,
    check_dimensions,
    converter,
    json_of,
)
from qserver.values.arrays import is_rectangular
from qserver.values.sizes import ELEMENT_BYTES
from qserver.values.steps import Steps
from qserver.values.types import INTEGER_KINDS, Kind, SqlType

BYTES_HEAVY: Final = 64 * 1024
"""Parameters smaller than this in total are converted in one go."""

VALUES_FEW: Final = 32
TEXT_SHORT_LENGTH: Final = 256
"""So many values are not heavy if their texts are shorter than this and their numbers short."""

INTEGER_SHORT: Final = 2**63

PART_VALUES: Final = 256
"""Values between two yield checks."""

BITS_SQUARED_OF_STEP: Final = 1_000_000
"""The square of a number's bits, per step: one microsecond for three hundred digits."""

CONTAINER_BYTES: Final = 64
"""The size of a list or object without its elements."""

_CONTAINERS: Final = frozenset({list, tuple, dict})
_ALWAYS_SHORT: Final = frozenset({bool, float, type(None)})
_STEPS_OF_READING: Final = 8
"""Steps for a value that is parsed from a text."""


def is_heavy(given: Given) -> bool:
    """Tell whether a conversion in one go would delay other tasks."""
    if not given or (type(given) is list and len(given) <= VALUES_FEW and _are_short(given)):
        return False
    left = BYTES_HEAVY - getsizeof(given)
    if type(given) is list and _CONTAINERS.isdisjoint(map(type, given)):
        return left < sum(map(getsizeof, given))
    waiting: list[Any] = [given]
    for each in waiting:
        if left < 0:  # so what is looked at is never long
            return True
        values = each.values() if type(each) is not list and isinstance(each, Mapping) else each
        left -= sum(map(getsizeof, values))
        if not _CONTAINERS.isdisjoint(map(type, values)):
            waiting += [value for value in values if type(value) in _CONTAINERS]
    return left < 0


def _are_short(values: Sequence[Any]) -> bool:
    """Tell by types and lengths, which is quicker than by sizes, of what most requests give."""
    for value in values:
        kind = type(value)
        if kind is int:
            if not -INTEGER_SHORT < value < INTEGER_SHORT:
                return False
        elif kind is str:
            if len(value) >= TEXT_SHORT_LENGTH:
                return False
        elif kind not in _ALWAYS_SHORT:
            return False
    return True


def slots_in_steps(
    parameters: ParameterList, literals: Sequence[Any], given: Given, context: Context
) -> Generator[None, None, dict[int | str, Any]]:
    """`ParameterList.slots` for heavy parameters: long ones alone, short ones many at once."""
    all_bytes = 0
    slots: dict[int | str, Any] = dict(enumerate(literals))
    every = parameters.values(given)
    for at in range(0, len(every), PART_VALUES):
        here = slice(at, at + PART_VALUES)
        values, types, converters = every[here], parameters.types[here], parameters.converters[here]
        if any(map(_is_long, values)) or any(each.element for each in types):
            for (name, _), sql_type, value in zip(converters, types, values, strict=True):
                size = yield from _weighed(value, context)
                all_bytes += size
                if all_bytes > ROW_BYTES_MAX:
                    raise refuse_size(all_bytes, ROW_BYTES_MAX)
                slots[name] = yield from _converted(sql_type, value, context)
            continue
        all_bytes += sum([_short_bytes(value) for value in values])
        if all_bytes > ROW_BYTES_MAX:
            raise refuse_size(all_bytes, ROW_BYTES_MAX)
        for (name, convert), value in zip(converters, values, strict=True):
            slots[name] = None if value is None else context.weigh(convert(value))
        yield from _pause(context, _STEPS_OF_READING * len(values))
    return slots


def _short_bytes(value: Any) -> int:
    more = len(value) if type(value) is str else value.__sizeof__() * (type(value) is Decimal)
    return CONTAINER_BYTES + ELEMENT_BYTES + int(more)


def _pause(context: Context, steps: int) -> Generator[None, None, None]:
    context.work += steps
    if context.work > STEPS_BETWEEN_PAUSES:
        context.work = 0
        context.check()
        yield None


def _weighed(value: Any, context: Context) -> Generator[None, None, int]:
    """Return the bytes of a given value; refuse too many."""
    total = steps = 0
    most = context.value_bytes_most
    waiting: list[Any] = [(value,)]
    while waiting:
        each = waiting.pop()
        is_object = type(each) is dict
        total += CONTAINER_BYTES + ELEMENT_BYTES * len(each) * (1 + is_object)
        if total > most:
            raise refuse_size(total, most)
        members = chain.from_iterable(each.items()) if is_object else iter(each)
        while part := list(islice(members, PART_VALUES)):
            for item in part:
                kind = type(item)
                if kind is str:
                    total += len(item)
                elif kind in _CONTAINERS:
                    waiting.append(item)
                elif kind is Decimal:
                    total += item.__sizeof__()
                elif kind is int and item.bit_length() > 64:
                    total += item.bit_length() // 8
                    steps += item.bit_length() ** 2 // BITS_SQUARED_OF_STEP
            if steps > STEPS_AT_ONCE_MAX:
                raise refuse_steps("a conversion of numbers", steps)
            if total > most:
                raise refuse_size(total, most)
            yield from _pause(context, 1 + len(part) // 8)
    return total


def _converted(sql_type: SqlType, value: Any, context: Context) -> Steps[Any]:
    if value is None:
        return None
    if sql_type.element is not None and type(value) is not str:
        return (yield from _converted_array(sql_type, sql_type.element, value, context))
    if type(value) in _CONTAINERS:
        value = json_of(value)
    if type(value) is not str or len(value) < BYTES_SMALL:
        yield from _pause(context, _STEPS_OF_READING)
        return context.weigh(converter(sql_type)(value))
    cost = cast_cost(SqlType(Kind.UNKNOWN), sql_type)
    return (yield from context.costly(costly_cast(converter(sql_type), cost, sql_type), value))


def _converted_array(
    sql_type: SqlType, element: SqlType, value: Any, context: Context
) -> Steps[Any]:
    """Convert a list. The elements get their types first; then the shape is checked."""
    listed = value if isinstance(value, list | tuple) else [value]
    array = yield from _converted_part(element, listed, context, 1)
    yield from _pause(context, STEPS_BETWEEN_PAUSES)
    if not is_rectangular(array):
        raise ArraySubscriptError(
            "multidimensional arrays must have sub-arrays with matching dimensions"
        )
    return context.weigh(array)


def _converted_part(
    element: SqlType, values: Sequence[Any], context: Context, depth: int
) -> Steps[Any]:
    check_dimensions(depth)
    convert = converter(element)
    steps_of_each = 1 if element.kind in INTEGER_KINDS else _STEPS_OF_READING
    converted: list[Any] = []
    for at in range(0, len(values), PART_VALUES):
        part = values[at : at + PART_VALUES]
        if not any(map(_is_long, part)):
            converted += [None if each is None else convert(each) for each in part]
            yield from _pause(context, steps_of_each * len(part))
            continue
        for each in part:
            if type(each) is list or type(each) is tuple:
                made = yield from _converted_part(element, each, context, depth + 1)
            else:
                made = yield from _converted(element, each, context)
            converted.append(made)
    return tuple(converted)


def _is_long(value: Any) -> bool:
    return type(value) in _CONTAINERS or value.__sizeof__() > BYTES_SMALL

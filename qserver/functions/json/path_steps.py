"""The steps of SQL/JSON paths that go down into a document: members, elements, levels, filters.

In lax mode a step for objects goes through the elements of an array, once, and one for arrays takes
anything else as an array of itself. Errors of structure are passed over in lax mode (`ignores`),
and behind `.**` also in strict mode.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from qserver.errors import (
    DataError,
    InvalidJsonSubscript,
    JsonArrayNotFound,
    JsonMemberNotFound,
    JsonObjectNotFound,
)
from qserver.functions.json.path_run import (
    Failure,
    Found,
    Item,
    Run,
    Sequence,
    Test,
    Walk,
    is_number,
)
from qserver.values.jsonb import Structure

VISIT_STEPS: Final = 2
"""What it takes to look at a part of a document."""

_MISSING: Final = object()
_INTEGERS: Final = range(-(2**31), 2**31)


def unwrapped(step: Walk) -> Walk:
    """Return the step that goes through the elements of an array."""

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        return through(step, run, item, found) if type(item) is list else step(run, item, found)

    return walk


def through(step: Walk, run: Run, items: list[Item], found: Found | None) -> bool:
    """Take a step from each of the items."""
    run.spend(VISIT_STEPS * len(items))
    some = False
    for each in items:
        if step(run, each, found):
            if found is None:
                return True
            some = True
    return some


def _not_there(ignores: bool, make: Callable[[], DataError]) -> bool:
    if ignores:
        return False
    raise Failure(make())


# --- members -------------------------------------------------------------------------------------


def member(name: str, then: Walk, ignores: bool) -> Walk:
    def no_member() -> DataError:
        return JsonMemberNotFound(f'JSON object does not contain key "{name}"')

    def no_object() -> DataError:
        return JsonMemberNotFound("jsonpath member accessor can only be applied to an object")

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is not dict:
            return _not_there(ignores, no_object)
        value = item.get(name, _MISSING)
        if value is _MISSING:
            return _not_there(ignores, no_member)
        return then(run, value, found)

    return walk


def lax_member(name: str, then: Walk) -> Walk:
    """`member`, also of the elements of an array."""

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is dict:
            value = item.get(name, _MISSING)
            return value is not _MISSING and then(run, value, found)
        return type(item) is list and through(of_element, run, item, found)

    of_element = member(name, then, ignores=True)
    return walk


def members(names: tuple[str, ...], general: Sequence) -> Sequence:
    """Return the items of `@.a.b` in lax mode; `general` is for arrays on the way."""

    def items(run: Run, item: Item) -> Found:
        value = run.current
        for name in names:
            if type(value) is not dict:
                return general(run, item) if type(value) is list else []
            value = value.get(name, _MISSING)
            if value is _MISSING:
                return []
        return [value]

    return items


def any_member(then: Walk, ignores: bool) -> Walk:
    def no_object() -> DataError:
        message = "jsonpath wildcard member accessor can only be applied to an object"
        return JsonObjectNotFound(message)

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is not dict:
            return _not_there(ignores, no_object)
        return through(then, run, list(item.values()), found)

    return walk


# --- elements ------------------------------------------------------------------------------------


def any_element(then: Walk, lax: bool, ignores: bool) -> Walk:
    def no_array() -> DataError:
        message = "jsonpath wildcard array accessor can only be applied to an array"
        return JsonArrayNotFound(message)

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is list:
            return through(then, run, item, found)
        return then(run, item, found) if lax else _not_there(ignores, no_array)

    return walk


Position = Callable[[Run, Item], int]


def elements(
    ranges: list[tuple[Position, Position | None]], then: Walk, lax: bool, ignores: bool
) -> Walk:
    def no_array() -> DataError:
        return JsonArrayNotFound("jsonpath array accessor can only be applied to an array")

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is not list and not lax:
            return _not_there(ignores, no_array)
        items = item if type(item) is list else [item]
        outer, run.size = run.size, len(items)
        some = False
        run.spend(VISIT_STEPS * len(ranges))
        for first, last in ranges:
            low = first(run, item)
            high = low if last is None else last(run, item)
            if not (ignores or 0 <= low <= high < len(items)):
                message = "jsonpath array subscript is out of bounds"
                raise Failure(InvalidJsonSubscript(message))
            if through(then, run, items[max(low, 0) : max(high + 1, 0)], found):
                some = True
                if found is None:
                    break
        run.size = outer
        return some

    return walk


def fixed_position(number: Any) -> Position:
    """Return the position that a number gives."""
    return lambda run, item: _integer(number)


def position(sequence: Sequence) -> Position:
    """Return the position that is computed for each array."""

    def found(run: Run, item: Item) -> int:
        items = sequence(run, item)
        if len(items) != 1 or not is_number(items[0]):
            message = "jsonpath array subscript is not a single numeric value"
            raise Failure(InvalidJsonSubscript(message))
        return _integer(items[0])

    return found


def _integer(number: int | Decimal) -> int:
    is_short = type(number) is int or Decimal(number).adjusted() < 20
    whole = int(number) if is_short else _INTEGERS.stop
    if whole not in _INTEGERS:
        raise Failure(InvalidJsonSubscript("jsonpath array subscript is out of integer range"))
    return whole


def last_position(then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        return then(run, run.size - 1, found)

    return walk


# --- levels --------------------------------------------------------------------------------------


def levels(first: int | None, last: int | None, then: Walk) -> Walk:
    """`.**`: the item itself is level 0. `last` as the first level is that of what has no parts."""

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        some = first == 0 and _own_level(run, item, found)
        if some and found is None:
            return True
        if type(item) is not list and type(item) is not dict:
            return some
        below: list[Structure] = []
        _collect(run, item, 1, first, last, below)
        return through(then, run, below, found) or some

    def _own_level(run: Run, item: Item, found: Found | None) -> bool:
        try:
            return then(run, item, found)
        except Failure:
            if run.throws or (type(item) is not list and type(item) is not dict):
                raise
            return False  # as PostgreSQL forgets it, if there are levels below

    return walk


def _collect(
    run: Run,
    item: Structure,
    level: int,
    first: int | None,
    last: int | None,
    below: list[Structure],
) -> None:
    """Add what is below an item, each before its own parts."""
    if last is not None and level > last:
        return
    parts = item if type(item) is list else list(item.values())
    run.spend(len(parts))
    only_leaves = first is None and last is None
    for part in parts:
        has_parts = type(part) is list or type(part) is dict
        if (first is not None and level >= first) or (only_leaves and not has_parts):
            below.append(part)
        if has_parts:
            _collect(run, part, level + 1, first, last, below)


# --- filters -------------------------------------------------------------------------------------


def filtered(test: Test, then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        run.spend(VISIT_STEPS)
        outer, run.current = run.current, item
        result = test(run, item)
        run.current = outer
        return result is True and then(run, item, found)

    return walk

"""The methods of SQL/JSON paths: `.type()`, `.size()`, `.double()`, `.keyvalue()` …"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from qserver.errors import (
    DataError,
    InvalidArgumentForJsonDatetime,
    JsonArrayNotFound,
    JsonObjectNotFound,
    NonNumericJsonItem,
    QserverError,
)
from qserver.functions.datetime.exact_pattern import exact_parts, iso_moment_of, moment_of
from qserver.functions.json.path_places import places_of
from qserver.functions.json.path_run import (
    OBJECT_NUMBERS,
    Base,
    Failure,
    Found,
    Item,
    Run,
    Walk,
    is_number,
    last_step,
    type_name,
)
from qserver.functions.numbers.mathematics import ceiling_numeric, floor_numeric
from qserver.values.casts import cast_function
from qserver.values.text_input import double_from_text
from qserver.values.types import DOUBLE, NUMERIC

DATETIME_STEPS: Final = 50
"""The cost of reading a date or time."""

PAIR_STEPS: Final = 10
PLACE_STEPS: Final = 3
"""The cost of a pair that `.keyvalue()` makes, and of finding the place of a part."""


def type_method(then: Walk) -> Walk:
    return lambda run, item, found: then(run, type_name(item), found)


def size_method(then: Walk, lax: bool, ignores: bool) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is list:
            return then(run, len(item), found)
        if lax:
            return then(run, 1, found)
        if ignores:
            return False
        message = "jsonpath item method .size() can only be applied to an array"
        raise Failure(JsonArrayNotFound(message))

    return walk


def number_method(name: str, then: Walk) -> Walk:
    convert = _NUMBER_METHODS[name]

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if not is_number(item):
            message = f"jsonpath item method .{name}() can only be applied to a numeric value"
            raise Failure(NonNumericJsonItem(message))
        return then(run, convert(item), found)

    return walk


def _rounded(on_decimal: Callable[[Decimal], Decimal]) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is int else on_decimal(value)


_NUMBER_METHODS: Final[dict[str, Callable[[Any], Any]]] = {
    "abs": lambda value: abs(value) if type(value) is int else value.copy_abs(),
    "floor": _rounded(floor_numeric),
    "ceiling": _rounded(ceiling_numeric),
}
NUMBER_METHODS: Final = frozenset(_NUMBER_METHODS)


def double_method(then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        return then(run, _double(item), found)

    return walk


def _double(item: Item) -> Item:
    if is_number(item):
        if _read(str(item)) is None:
            message = "numeric argument of jsonpath item method .double() is out of range for type"
            raise Failure(NonNumericJsonItem(f"{message} double precision"))
        return item
    if type(item) is not str:
        message = "jsonpath item method .double() can only be applied to a string or numeric value"
        raise Failure(NonNumericJsonItem(message))
    value = _read(item)
    if value is None:
        message = "string argument of jsonpath item method .double() is not a valid representation"
        raise Failure(NonNumericJsonItem(f"{message} of a double precision number"))
    return cast_function(DOUBLE, NUMERIC)(value)


def _read(text: str) -> float | None:
    try:
        value = double_from_text(text)
    except DataError:
        return None
    return value if isfinite(value) else None


def datetime_method(template: str | None, then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is not str:
            message = "jsonpath item method .datetime() can only be applied to a string"
            raise Failure(InvalidArgumentForJsonDatetime(message))
        run.spend(DATETIME_STEPS)
        return then(run, _moment(item, template), found)

    return walk


def _moment(text: str, template: str | None) -> Item:
    if template is not None:
        parts = exact_parts(template)
        try:
            return moment_of(text, parts)
        except QserverError as error:
            raise Failure(error) from None
    moment = iso_moment_of(text)
    if moment is None:
        raise Failure(
            InvalidArgumentForJsonDatetime(
                f'datetime format is not recognized: "{text}"',
                hint="Use a datetime template argument to specify the input data format.",
            )
        )
    return moment


def keyvalue_method(then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if type(item) is not dict:
            message = "jsonpath item method .keyvalue() can only be applied to an object"
            raise Failure(JsonObjectNotFound(message))
        if then is last_step and found is None:
            return bool(item)
        run.spend(PAIR_STEPS * len(item))
        base = run.base
        number = _object_number(run, item)
        first = 1 if run.variables is None else 2
        some = False
        for key, value in item.items():
            pair = {"id": number, "key": key, "value": value}
            run.base = Base(pair, first + run.numbered)
            run.numbered += 1
            some = then(run, pair, found) or some
            run.base = base
            if some and found is None:
                break
        return some

    return walk


def _object_number(run: Run, item: Item) -> int:
    base = run.base
    if base is None:
        return 0
    if base.places is None:
        base.places, parts = places_of(base.document)
        run.spend(PLACE_STEPS * parts)
    return base.places.get(id(item), 0) + base.number * OBJECT_NUMBERS

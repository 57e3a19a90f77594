"""Items of SQL/JSON paths: how they compare, how they are computed with, and what they print."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from qserver.errors import DataError, FeatureNotSupported
from qserver.functions.json.json_making import json_writer
from qserver.functions.json.path_run import Failure, Item, Run
from qserver.functions.numbers import numeric_math
from qserver.values.casts import cast_function
from qserver.values.jsonb import Jsonb, Structure, jsonb_of
from qserver.values.text_output import text_of_time, text_of_timestamp
from qserver.values.types import DATE, TIME, TIMESTAMP, TIMETZ, SqlType
from qserver.values.zoned_time import ZonedTime
from qserver.values.zones import offset_text, session_moment

Comparison = Callable[[Run, Item, Item], "bool | None"]

_MOMENT: Final = "moment"
_KINDS: Final[dict[type, Any]] = {
    type(None): None,
    bool: bool,
    int: int,
    Decimal: int,
    str: str,
    list: list,
    dict: list,
    **dict.fromkeys((date, datetime, time, ZonedTime), _MOMENT),
}
"""Items of one kind compare, but arrays and objects."""

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: str) -> Comparison:
    """Return a comparison of two items; what cannot be compared is unknown."""
    compare = _COMPARE[sign]
    with_null, of_nulls = sign == "!=", sign in ("==", "<=", ">=")

    def compared(run: Run, left: Item, right: Item) -> bool | None:
        kind = _KINDS[type(left)]
        if kind is not _KINDS[type(right)]:
            return with_null if left is None or right is None else None
        if kind is None:
            return of_nulls
        if kind is list:
            return None
        if kind is _MOMENT:
            pair = _comparable(run, left, right)
            return None if pair is None else compare(*pair)
        return compare(left, right)

    return compared


def starts_with(run: Run, left: Item, right: Item) -> bool | None:
    return left.startswith(right) if type(left) is str and type(right) is str else None


# --- dates and times -----------------------------------------------------------------------------


def _comparable(run: Run, left: Item, right: Item) -> tuple[Any, Any] | None:
    """Return both as one type; None if there is none."""
    if type(left) is type(right) and type(left) is not datetime:
        return left, right
    timed = isinstance(left, time), isinstance(right, time)
    if timed[0] is not timed[1]:
        return None
    if timed[0]:
        return _with_zone(run, left), _with_zone(run, right)
    if _is_zoned(left) or _is_zoned(right):
        return _moment(run, left), _moment(run, right)
    return _timestamp(left), _timestamp(right)


def _is_zoned(item: Item) -> bool:
    return type(item) is datetime and item.tzinfo is not None


def _timestamp(item: Item) -> datetime:
    return item if type(item) is datetime else datetime(item.year, item.month, item.day)


def _moment(run: Run, item: Item) -> datetime:
    if _is_zoned(item):
        return item  # type: ignore[no-any-return]
    _check_zone(run, "date" if type(item) is date else "timestamp", "timestamptz")
    return session_moment(_timestamp(item))


def _with_zone(run: Run, item: Item) -> Any:
    if type(item) is ZonedTime:
        return item
    _check_zone(run, "time", "timetz")
    return cast_function(TIME, TIMETZ)(item)


def _check_zone(run: Run, source: str, target: str) -> None:
    if not run.uses_zone:
        raise FeatureNotSupported(
            f"cannot convert value from {source} to {target} without time zone usage",
            hint="Use *_tz() function for time zone support.",
        )


# --- numbers -------------------------------------------------------------------------------------

_INTEGERS: Final = range(-(2**63), 2**63)
_ON_INTEGERS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_ON_NUMBERS: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": numeric_math.add,
    "-": numeric_math.subtract,
    "*": numeric_math.multiply,
    "/": numeric_math.divide,
    "%": numeric_math.remainder,
}
_STEP_BYTES: Final = 32
"""Bytes of a long number with which one step computes."""


def computed(run: Run, sign: str, left: Any, right: Any) -> int | Decimal:
    """Compute with two numbers as with numerics."""
    on_integers = _ON_INTEGERS.get(sign)
    if on_integers is not None and type(left) is int and type(right) is int:
        result = on_integers(left, right)
        if result in _INTEGERS:
            return result
    one, other = Decimal(left), Decimal(right)
    run.spend((one.__sizeof__() + other.__sizeof__()) // _STEP_BYTES)
    try:
        return _ON_NUMBERS[sign](one, other)
    except DataError as error:
        raise Failure(error) from None


def negated(value: Any) -> int | Decimal:
    if type(value) is int:
        return -value
    return value.copy_negate() if value else value  # type: ignore[no-any-return]


# --- results -------------------------------------------------------------------------------------


def jsonb_of_item(item: Item) -> Jsonb:
    return jsonb_of(structure_of(item))


def structure_of(item: Item) -> Structure:
    """Return an item as JSON: dates and times are texts."""
    kind = _TYPES_OF_MOMENTS.get(type(item))
    if kind is None:
        return item
    if kind is TIMESTAMP:
        text = text_of_timestamp(item.replace(tzinfo=None)).replace(" ", "T")
        return text if item.tzinfo is None else f"{text}{_offset(item)}"
    if kind is TIMETZ:
        return f"{text_of_time(item.without_zone())}{_offset(item)}"
    return json_writer(kind)(item)[1:-1]


_TYPES_OF_MOMENTS: Final[dict[type, SqlType]] = {
    date: DATE,
    datetime: TIMESTAMP,
    time: TIME,
    ZonedTime: TIMETZ,
}


def _offset(item: Any) -> str:
    text = offset_text(item.utcoffset())
    return text if ":" in text else f"{text}:00"

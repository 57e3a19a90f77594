"""Reads JSON and JSONB: -> ->> #> #>>, lengths and types, and set-returning functions.

Both types are texts underneath, and parts of a text are texts, so each function is implemented
once, on text. JSON keeps its spelling, JSONB is canonical; `_Flavour` has the differences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from qserver.errors import InvalidParameterValue, QserverError
from qserver.functions.costs import key_cost
from qserver.functions.registry import Function, TableFunction
from qserver.values.arrays import flat
from qserver.values.digits import clipped_integer
from qserver.values.json_parts import elements, kind_of, member, members, scalar_text
from qserver.values.jsonb import Jsonb
from qserver.values.types import INTEGER, JSON, JSONB, TEXT, SqlType, array_of

_INTEGER: Final = re.compile(r"\s*[+-]?\d+", re.ASCII)
_INDEX_MAX: Final = 2**31 - 1
_TEXTS: Final = array_of(TEXT)

RowIterable = Iterable[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Flavour:
    """JSON or JSONB: its name, its type, and conversions between a value and its text."""

    name: str
    type: SqlType
    text_of: Callable[[Any], str]
    value_of: Callable[[str], Any]


_JSON: Final = _Flavour("json", JSON, str, str)
_JSONB: Final = _Flavour("jsonb", JSONB, lambda value: value.text, Jsonb)


# --- one part ------------------------------------------------------------------------------------


def field(text: str, key: str) -> str | None:
    """Return the value of a key; None unless the value is an object."""
    return member(text, key) if kind_of(text) == "object" else None


def element(text: str, index: int) -> str | None:
    """Return an element by its index from 0, or from -1 backward."""
    if kind_of(text) != "array":
        return None
    parts = elements(text)
    return parts[index] if -len(parts) <= index < len(parts) else None


def _element_of_jsonb(text: str, index: int) -> str | None:
    """`element` of JSONB, which treats a scalar as an array of itself, only here."""
    if kind_of(text) in ("array", "object"):
        return element(text, index)
    return text if index in (0, -1) else None


def part_at(text: str, path: tuple[str | None, ...]) -> str | None:
    """Return the value at a path of keys and indexes."""
    found: str | None = text
    for step in flat(path):
        if found is None or step is None:
            return None
        kind = kind_of(found)
        if kind == "object":
            found = member(found, step)
        elif kind == "array" and (index := index_of(step)) is not None:
            found = element(found, index)
        else:
            return None
    return found


def _part_of_json(text: str, path: tuple[str | None, ...]) -> str | None:
    """`part_at` of JSON, whose keys may repeat: the last that leads to the end of the path."""
    steps = tuple(flat(path))
    found = part_at(text, steps)
    if found is None and len(steps) > 1 and None not in steps:
        return _last_of_all(text, steps)
    return found


def _last_of_all(text: str, steps: tuple[str, ...]) -> str | None:
    if not steps:
        return text
    step, rest = steps[0], steps[1:]
    if kind_of(text) == "object":
        parts = [part for key, part in members(text) if key == step]
    else:
        found = part_at(text, (step,))
        parts = [] if found is None else [found]
    ends = (_last_of_all(part, rest) for part in reversed(parts))
    return next((end for end in ends if end is not None), None)


def _finder(flavour: _Flavour) -> Callable[[str, tuple[str | None, ...]], str | None]:
    return _part_of_json if flavour is _JSON else part_at


def index_of(step: str) -> int | None:
    """Return a step of a path as an index, if it is one."""
    index = None if _INTEGER.fullmatch(step) is None else clipped_integer(step)
    return None if index is None or abs(index) > _INDEX_MAX else index


def _parts(flavour: _Flavour, find: Callable[[str, Any], str | None]) -> Callable[[Any, Any], Any]:
    text_of, value_of = flavour.text_of, flavour.value_of

    def part(value: Any, key: Any) -> Any:
        found = find(text_of(value), key)
        return None if found is None else value_of(found)

    return part


def _texts(flavour: _Flavour, find: Callable[[str, Any], str | None]) -> Callable[[Any, Any], Any]:
    text_of = flavour.text_of

    def text(value: Any, key: Any) -> str | None:
        found = find(text_of(value), key)
        return None if found is None else scalar_text(found)

    return text


def _extract(flavour: _Flavour, convert: Callable[[str], Any]) -> Callable[..., Any]:
    find = _finder(flavour)

    def extract(value: Any, *path: str) -> Any:
        found = find(flavour.text_of(value), path)
        return None if found is None else convert(found)

    return extract


def _subscript(value: Jsonb, *path: str) -> Any:
    return _extract(_JSONB, Jsonb)(value, *path)


def _subscript_number(value: Jsonb, index: int) -> Any:
    return _extract(_JSONB, Jsonb)(value, str(index))


# --- type and length -----------------------------------------------------------------------------


def _length(flavour: _Flavour) -> Callable[[Any], int]:
    def array_length(value: Any) -> int:
        text = flavour.text_of(value)
        kind = kind_of(text)
        if kind != "array":
            what = "a non-array" if kind == "object" else "a scalar"
            raise InvalidParameterValue(f"cannot get array length of {what}")
        return len(elements(text))

    return array_length


def _kind(flavour: _Flavour) -> Callable[[Any], str]:
    return lambda value: kind_of(flavour.text_of(value))


# --- rows ----------------------------------------------------------------------------------------


def _each(
    flavour: _Flavour, convert: Callable[[str], Any], name: str
) -> Callable[[Any], RowIterable]:
    def rows(value: Any) -> RowIterable:
        text = flavour.text_of(value)
        kind = kind_of(text)
        if kind != "object":
            raise _not_an_object(flavour, name, kind)
        return ((key, convert(part)) for key, part in members(text))

    return rows


def _not_an_object(flavour: _Flavour, name: str, kind: str) -> QserverError:
    if flavour is _JSONB:
        return InvalidParameterValue(f"cannot call {name} on a non-object")
    what = "an array as an object" if kind == "array" else "a scalar"
    return InvalidParameterValue(f"cannot deconstruct {what}")


def _keys(flavour: _Flavour, name: str) -> Callable[[Any], RowIterable]:
    def rows(value: Any) -> RowIterable:
        text = flavour.text_of(value)
        kind = kind_of(text)
        if kind != "object":
            what = "an array" if kind == "array" else "a scalar"
            raise InvalidParameterValue(f"cannot call {name} on {what}")
        return ((key,) for key, _ in members(text))

    return rows


def _elements(
    flavour: _Flavour, convert: Callable[[str], Any], name: str
) -> Callable[[Any], RowIterable]:
    def rows(value: Any) -> RowIterable:
        text = flavour.text_of(value)
        kind = kind_of(text)
        if kind != "array":
            raise _not_an_array(flavour, name, kind)
        return ((convert(part),) for part in elements(text))

    return rows


def _not_an_array(flavour: _Flavour, name: str, kind: str) -> QserverError:
    if flavour is _JSON:
        what = "a non-array" if kind == "object" else "a scalar"
        return InvalidParameterValue(f"cannot call {name} on {what}")
    what = "an object" if kind == "object" else "a scalar"
    return InvalidParameterValue(f"cannot extract elements from {what}")


# --- the tables ----------------------------------------------------------------------------------


def _operators() -> Iterator[Function]:
    for flavour in (_JSON, _JSONB):
        own = flavour.type
        by_number = element if flavour is _JSON else _element_of_jsonb
        for key, find in ((TEXT, field), (INTEGER, by_number)):
            yield _operator("->", (own, key), own, _parts(flavour, find))
            yield _operator("->>", (own, key), TEXT, _texts(flavour, find))
        yield _operator("#>", (own, _TEXTS), own, _parts(flavour, _finder(flavour)))
        yield _operator("#>>", (own, _TEXTS), TEXT, _texts(flavour, _finder(flavour)))


def _operator(
    symbol: str, parameters: tuple[SqlType, ...], returns: SqlType, call: Callable[..., Any]
) -> Function:
    return Function(symbol, parameters, returns, call, gives_null=True, symbol=symbol)


def _functions() -> Iterator[Function]:
    for flavour in (_JSON, _JSONB):
        name, own = flavour.name, flavour.type
        by_number = element if flavour is _JSON else _element_of_jsonb
        for suffix, returns, make in (("", own, _parts), ("_text", TEXT, _texts)):
            for part, key, find in (
                ("object_field", TEXT, field),
                ("array_element", INTEGER, by_number),
            ):
                yield Function(
                    f"{name}_{part}{suffix}",
                    (own, key),
                    returns,
                    make(flavour, find),
                    gives_null=True,
                )
        for suffix, returns, convert in (
            ("", own, flavour.value_of),
            ("_text", TEXT, scalar_text),
        ):
            yield Function(
                f"{name}_extract_path{suffix}",
                (own, TEXT),
                returns,
                _extract(flavour, convert),
                gives_null=True,
                variadic=True,
            )
        yield Function(f"{name}_array_length", (own,), INTEGER, _length(flavour))
        yield Function(f"{name}_typeof", (own,), TEXT, _kind(flavour))
    yield Function(
        "array_subscript", (JSONB, TEXT), JSONB, _subscript, gives_null=True, variadic=True
    )
    yield Function("array_subscript", (JSONB, INTEGER), JSONB, _subscript_number, gives_null=True)


def _table_functions() -> Iterator[TableFunction]:
    for flavour in (_JSON, _JSONB):
        name, own = flavour.name, flavour.type
        conversions: tuple[tuple[str, SqlType, Callable[[str], Any]], ...] = (
            ("", own, flavour.value_of),
            ("_text", TEXT, scalar_text),
        )
        for suffix, returns, convert in conversions:
            each, each_element = f"{name}_each{suffix}", f"{name}_array_elements{suffix}"
            columns = (("key", TEXT), ("value", returns))
            yield TableFunction(each, (own,), columns, _each(flavour, convert, each), cost=key_cost)
            yield TableFunction(
                each_element,
                (own,),
                (("value", returns),),
                _elements(flavour, convert, each_element),
            )
        keys = f"{name}_object_keys"
        yield TableFunction(keys, (own,), ((keys, TEXT),), _keys(flavour, keys), cost=key_cost)


OPERATORS: Final = tuple(_operators())
FUNCTIONS: Final = tuple(_functions())
TABLE_FUNCTIONS: Final = tuple(_table_functions())

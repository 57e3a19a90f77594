"""JSONB containment (@> and ?), strip_nulls and pretty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from json import JSONDecoder
from typing import Any, Final, TypeAlias

from qserver.functions.costs import key_cost, pairs_cost, pretty_cost
from qserver.functions.registry import Function
from qserver.values.jsonb import (
    Jsonb,
    Structure,
    jsonb_of,
    key_order,
    number_text,
    order_key,
    quoted,
    read_once,
)
from qserver.values.types import BOOLEAN, JSON, JSONB, TEXT, SqlType, array_of

_TEXTS: Final = array_of(TEXT)
_CONTAINERS: Final = (list, dict)

Keys = tuple[str | None, ...]


# --- containment ---------------------------------------------------------------------------------


def contains(whole: Jsonb, part: Jsonb) -> bool:
    """Tell whether the whole contains the part in place; an array contains a lone scalar."""
    words, matches = _matcher(part.text)
    text = whole.text
    for word in words:
        if word not in text:
            return False
    return matches(read_once(text))


def contained(part: Jsonb, whole: Jsonb) -> bool:
    left, right = whole.value, part.value
    if isinstance(left, list) and not isinstance(right, _CONTAINERS):
        return _contains(left, [right])
    return _contains(left, right)


Matches: TypeAlias = Callable[[Any], bool]


@lru_cache(maxsize=64)
def _matcher(text: str) -> tuple[tuple[str, ...], Matches]:
    """Return texts that each value has which contains a part, and the function that tells whether
    it does: a part is most often the same for all rows."""
    part = read_once(text)
    words: list[str] = []
    matches = _matching(part, words)
    if isinstance(part, _CONTAINERS):
        return tuple(words), matches
    return tuple(
        words
    ), lambda whole: any(map(matches, whole)) if type(whole) is list else matches(whole)


def _matching(part: Structure, words: list[str]) -> Matches:
    """Return what tells whether a value contains a part; add the texts that it must have."""
    if isinstance(part, dict):
        words += map(quoted, part)
        members = [(key, _matching(value, words)) for key, value in part.items()]
        return lambda whole: (
            type(whole) is dict
            and all(key in whole and matches(whole[key]) for key, matches in members)
        )
    if isinstance(part, list):
        return _matching_elements(part, words)
    if isinstance(part, str):
        words.append(quoted(part))
        return lambda whole: whole == part
    if part is None or isinstance(part, bool):
        return lambda whole: whole is part
    return lambda whole: type(whole) in _NUMBERS and whole == part


def _matching_elements(part: list[Structure], words: list[str]) -> Matches:
    lone = [each for each in part if not isinstance(each, _CONTAINERS)]
    if len(lone) > SCALARS_MAX:
        return lambda whole: type(whole) is list and _contains_elements(whole, part)
    elements = [_matching(each, words) for each in part]
    return lambda whole: (
        type(whole) is list and all(any(map(matches, whole)) for matches in elements)
    )


_NUMBERS: Final = frozenset({int, Decimal})

SCALARS_MAX: Final = 8
"""More scalars of an array are looked up among those of the other, not compared one by one."""

WORDS_MAX: Final = 4
"""More texts are not worth looking for."""


def _contains(whole: Structure, part: Structure) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and _contains_elements(whole, part)
    return not isinstance(whole, _CONTAINERS) and order_key(whole) == order_key(part)


def _contains_elements(whole: list[Structure], part: list[Structure]) -> bool:
    scalars = {order_key(each) for each in whole if not isinstance(each, _CONTAINERS)}
    return all(
        any(_contains(other, each) for other in whole)
        if isinstance(each, _CONTAINERS)
        else order_key(each) in scalars
        for each in part
    )


def exists(value: Jsonb, key: str) -> bool:
    """Tell whether the text is a key of the object, an element of the array, or the value."""
    return key in _texts_of(value)


def exists_any(value: Jsonb, keys: Keys) -> bool:
    return not _texts_of(value).isdisjoint(keys)


def exists_all(value: Jsonb, keys: Keys) -> bool:
    return _texts_of(value).issuperset({*keys} - {None})


def _texts_of(value: Jsonb) -> set[str]:
    """The keys of an object, the texts in an array, or the text itself."""
    structure = value.value
    if isinstance(structure, dict):
        return set(structure)
    return {
        each
        for each in (structure if isinstance(structure, list) else [structure])
        if type(each) is str
    }


# --- formatting ----------------------------------------------------------------------------------


def strip_nulls(value: Jsonb) -> Jsonb:
    return jsonb_of(_without_nulls(value.value))


def _without_nulls(structure: Structure) -> Structure:
    if isinstance(structure, dict):
        return {key: _without_nulls(part) for key, part in structure.items() if part is not None}
    if isinstance(structure, list):
        return [_without_nulls(part) for part in structure]
    return structure


class _Verbatim(str):
    """A number as written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in order, including duplicate keys."""


_READER: Final = JSONDecoder(parse_int=_Verbatim, parse_float=_Verbatim, object_pairs_hook=_Pairs)


def strip_nulls_of_json(text: str) -> str:
    """Strip nulls of JSON, which keeps order and spelling; only blanks are lost."""
    return _compact(_READER.decode(text))


def _compact(value: Any) -> str:
    if isinstance(value, _Pairs):
        kept = [f"{quoted(key)}:{_compact(part)}" for key, part in value if part is not None]
        return f"{{{','.join(kept)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_compact, value))}]"
    if isinstance(value, _Verbatim):
        return str(value)
    return _scalar(value)


def _scalar(value: Structure) -> str:
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return number_text(value)


def pretty(value: Jsonb) -> str:
    """Print one member or element per line, four blanks per level."""
    return _pretty(value.value, "\n")


def _pretty(value: Structure, line: str) -> str:
    inner = f"{line}    "
    if isinstance(value, dict):
        parts = [
            f"{inner}{quoted(key)}: {_pretty(value[key], inner)}"
            for key in sorted(value, key=key_order)
        ]
        return f"{{{','.join(parts)}{line}}}"
    if isinstance(value, list):
        return f"[{','.join(inner + _pretty(part, inner) for part in value)}{line}]"
    return _scalar(value)


# --- the tables ----------------------------------------------------------------------------------


def _operators() -> Iterator[Function]:
    table: tuple[tuple[str, SqlType, Any], ...] = (
        ("@>", JSONB, contains),
        ("<@", JSONB, contained),
        ("?", TEXT, exists),
        ("?|", _TEXTS, exists_any),
        ("?&", _TEXTS, exists_all),
    )
    for symbol, right, call in table:
        cost = pairs_cost if right == JSONB else None
        yield Function(symbol, (JSONB, right), BOOLEAN, call, symbol=symbol, cost=cost)


OPERATORS: Final = tuple(_operators())
FUNCTIONS: Final = (
    Function("jsonb_contains", (JSONB, JSONB), BOOLEAN, contains, cost=pairs_cost),
    Function("jsonb_contained", (JSONB, JSONB), BOOLEAN, contained, cost=pairs_cost),
    Function("jsonb_exists", (JSONB, TEXT), BOOLEAN, exists),
    Function("jsonb_exists_any", (JSONB, _TEXTS), BOOLEAN, exists_any),
    Function("jsonb_exists_all", (JSONB, _TEXTS), BOOLEAN, exists_all),
    Function("jsonb_strip_nulls", (JSONB,), JSONB, strip_nulls, cost=pretty_cost),
    Function("json_strip_nulls", (JSON,), JSON, strip_nulls_of_json, cost=key_cost),
    Function("jsonb_pretty", (JSONB,), TEXT, pretty, cost=pretty_cost),
)

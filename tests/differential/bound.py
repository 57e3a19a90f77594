"""The bound form of a statement: its typed literals as parameters.

    SELECT count(*) FROM t WHERE a = '5'::int4 AND b = ANY ('{1,NULL}'::int8[])
    ──► SELECT count(*) FROM t WHERE a = $1::int4 AND b = ANY ($2::int8[])      [5, [1, None]]

Only a literal with a cast beside it is bound: its parameter has the same type, so the statement
means the same. Equal literals are one parameter, as GROUP BY may need them to be.
"""

from __future__ import annotations

import re
from typing import Any, Final

_NUMBERS: Final = ("int2", "int4", "int8")
_TEXTS: Final = ("text", "numeric", "float8", "date", "timestamp", "timestamptz", "bool")
_TYPED: Final = re.compile(
    rf"(?<![\w'&])'((?:[^']|'')*)'::({'|'.join([*_NUMBERS, *_TEXTS])})\b(\[\])?(?![\w(\[])"
)
_ELEMENT: Final = re.compile(r'\s*(?:"([^"\\]*)"|([^",{}\\\s][^",{}\\]*?))\s*(?:,|$)')


def bound_form(sql: str) -> tuple[str, list[Any]]:
    """Return a text with parameters, and their values as JSON has them."""
    parameters: list[Any] = []
    numbers: dict[tuple[str, str], int] = {}

    def bind(found: re.Match[str]) -> str:
        text, kind = found[1].replace("''", "'"), found[2] + (found[3] or "")
        if (text, kind) not in numbers:
            try:
                value = _array(text, found[2]) if found[3] else _value(text, found[2])
            except ValueError:
                return found[0]
            parameters.append(value)
            numbers[text, kind] = len(parameters)
        return f"${numbers[text, kind]}::{kind}"

    return _TYPED.sub(bind, sql), parameters


def _value(text: str, kind: str) -> int | str:
    return int(text) if kind in _NUMBERS else text


def _array(text: str, kind: str) -> list[int | str | None]:
    """Read a plain array: one dimension, no escapes."""
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(text)
    inside = text[1:-1].strip()
    found: list[int | str | None] = []
    at = 0
    while at < len(inside):
        element = _ELEMENT.match(inside, at)
        if element is None:
            raise ValueError(text)
        plain = element[2]
        if plain is not None and plain.upper() == "NULL":
            found.append(None)
        else:
            found.append(_value(element[1] if plain is None else plain, kind))
        at = element.end()
    return found

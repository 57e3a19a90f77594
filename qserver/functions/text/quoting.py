"""quote_ident, quote_literal, quote_nullable: names and values as SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from qserver.errors import InvalidParameterValue
from qserver.functions.costs import linear
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.values.identifiers import quote_identifier
from qserver.values.text_output import text_function
from qserver.values.types import ANYELEMENT, BOOLEAN, TEXT, SqlType, array_of


def quote_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def quote_nullable(text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


def _literal_of(types: tuple[SqlType, ...]) -> Function:
    show = text_function(types[0])
    return Function("quote_literal", types, TEXT, lambda value: quote_literal(show(value)))


def _nullable_of(types: tuple[SqlType, ...]) -> Function:
    show = text_function(types[0])

    def call(value: Any) -> str:
        return "NULL" if value is None else quote_literal(show(value))

    return Function("quote_nullable", types, TEXT, call, strict=False)


_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*')


def parse_identifier(text: str, strict: bool = True) -> tuple[str, ...]:
    """Return the parts of a name; what is behind them is an error if `strict`."""
    parts: list[str] = []
    at = 0
    while (found := _PART.match(text, at)) is not None:
        quoted, plain = found.groups()
        parts.append(plain.lower() if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    if not parts or text[at - 1 : at] == "." or (strict and at < len(text)):
        raise InvalidParameterValue(f'string is not a valid identifier: "{text}"')
    return tuple(parts)


FUNCTIONS: Final = (
    Function("parse_ident", (TEXT,), array_of(TEXT), parse_identifier, cost=linear(100)),
    Function("parse_ident", (TEXT, BOOLEAN), array_of(TEXT), parse_identifier, cost=linear(100)),
    Function("quote_ident", (TEXT,), TEXT, quote_identifier),
    Function("quote_literal", (TEXT,), TEXT, quote_literal, cost=linear(12)),
    Generic("quote_literal", (ANYELEMENT,), _literal_of),
    Function("quote_nullable", (TEXT,), TEXT, quote_nullable, strict=False),
    Generic("quote_nullable", (ANYELEMENT,), _nullable_of),
)

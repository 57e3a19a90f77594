"""quote_ident, quote_literal, quote_nullable: names and values as SQL."""

from __future__ import annotations

from typing import Any, Final

from qserver.functions.costs import linear
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.values.identifiers import quote_identifier
from qserver.values.text_output import text_function
from qserver.values.types import ANYELEMENT, TEXT, SqlType


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


FUNCTIONS: Final = (
    Function("quote_ident", (TEXT,), TEXT, quote_identifier),
    Function("quote_literal", (TEXT,), TEXT, quote_literal, cost=linear(12)),
    Generic("quote_literal", (ANYELEMENT,), _literal_of),
    Function("quote_nullable", (TEXT,), TEXT, quote_nullable, strict=False),
    Generic("quote_nullable", (ANYELEMENT,), _nullable_of),
)

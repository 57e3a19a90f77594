"""Concatenation of texts with values of any type: ||, concat, concat_ws and similar.

`||` casts its other operand to text; concat, concat_ws and format print values as a client sees
them. The difference shows for booleans: `true` by the cast, `t` by printing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from qserver.functions.costs import FREE, joined_cost
from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.values.casts import cast_function
from qserver.values.text_output import shown_function
from qserver.values.types import ANY, ANYNONARRAY, INTEGER, TEXT, SqlType


def _joined(at: int, types: tuple[SqlType, ...]) -> Function:
    """The operator for a text and something else, which is at this place."""
    cast = cast_function(types[at], TEXT)
    calls = (lambda left, right: cast(left) + right, lambda left, right: left + cast(right))
    return Function("||", types, TEXT, calls[at], symbol="||")


def _concat(types: tuple[SqlType, ...]) -> Function:
    printers = tuple(map(shown_function, types))

    def concat(*values: Any) -> str:
        return "".join(
            [show(value) for show, value in zip(printers, values, strict=True) if value is not None]
        )

    return Function("concat", types, TEXT, concat, strict=False)


def _concat_with_separator(types: tuple[SqlType, ...]) -> Function:
    printers = tuple(map(shown_function, types[1:]))

    def concat_ws(separator: str | None, *values: Any) -> str | None:
        if separator is None:
            return None
        return separator.join(
            [show(value) for show, value in zip(printers, values, strict=True) if value is not None]
        )

    return Function(
        "concat_ws",
        types,
        TEXT,
        concat_ws,
        strict=False,
        gives_null=True,
        cost=joined_cost,
        explodes=True,
    )


def _count_nulls(types: tuple[SqlType, ...]) -> Function:
    return Function("num_nulls", types, INTEGER, _nulls, strict=False, cost=FREE)


def _count_values(types: tuple[SqlType, ...]) -> Function:
    return Function("num_nonnulls", types, INTEGER, _non_nulls, strict=False, cost=FREE)


def _nulls(*values: Any) -> int:
    return sum(value is None for value in values)


def _non_nulls(*values: Any) -> int:
    return sum(value is not None for value in values)


OPERATORS: Final = (
    Function("||", (TEXT, TEXT), TEXT, str.__add__, inline="({0} + {1})", symbol="||"),
    Generic("||", (ANYNONARRAY, TEXT), partial(_joined, 0)),
    Generic("||", (TEXT, ANYNONARRAY), partial(_joined, 1)),
)

FUNCTIONS: Final = (
    Generic("concat", (ANY,), _concat, variadic=True),
    Generic("concat_ws", (TEXT, ANY), _concat_with_separator, variadic=True),
    Generic("num_nulls", (ANY,), _count_nulls, variadic=True),
    Generic("num_nonnulls", (ANY,), _count_values, variadic=True),
    Function("textcat", (TEXT, TEXT), TEXT, str.__add__, inline="({0} + {1})"),
)

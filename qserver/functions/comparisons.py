"""= <> < <= > >= for each type, and between numbers of several types.

Dates and timestamps compare as the wider type: the other side is cast, which never fails. So an
index of the wider column is used, and a hash join needs no function of its own.

Values of one type compare natively, NaN excepted: in Python NaN differs from itself, in SQL it
equals itself and is above everything else. So a float's template checks for NaN only if Python's
answer is no. A Decimal NaN cannot be ordered at all, so a NUMERIC's template checks first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.values.types import (
    ANYENUM,
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERNAL_CHAR,
    INTERVAL,
    NAME,
    NUMERIC,
    OID,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID_TYPE,
    XID,
    Kind,
    SqlType,
)

_NATIVE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PYTHON: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

# If Python's answer is no (or, for <>, yes), NaN may be the reason.
FLOAT_TEMPLATES: Final = {
    "=": "({0} == {1} or {0} != {0} and {1} != {1})",
    "<>": "({0} != {1} and ({0} == {0} or {1} == {1}))",
    "<": "({0} < {1} or {1} != {1} and {0} == {0})",
    "<=": "({0} <= {1} or {1} != {1})",
    ">": "({0} > {1} or {0} != {0} and {1} == {1})",
    ">=": "({0} >= {1} or {0} != {0})",
}
NUMERIC_TEMPLATES: Final = {
    "=": FLOAT_TEMPLATES["="],
    "<>": FLOAT_TEMPLATES["<>"],
    "<": "({0} < {1} if {0} == {0} and {1} == {1} else {0} == {0})",
    "<=": "({0} <= {1} if {0} == {0} and {1} == {1} else {1} != {1})",
    ">": "({0} > {1} if {0} == {0} and {1} == {1} else {1} == {1})",
    ">=": "({0} >= {1} if {0} == {0} and {1} == {1} else {0} != {0})",
}


def comparisons(sql_type: SqlType) -> tuple[Function, ...]:
    """Return all six comparisons for a type whose values compare natively."""
    return tuple(_native(symbol, sql_type, sql_type) for symbol in _NATIVE)


def _native(symbol: str, left: SqlType, right: SqlType) -> Function:
    return Function(
        symbol,
        (left, right),
        BOOLEAN,
        _NATIVE[symbol],
        inline=f"({{0}} {_PYTHON[symbol]} {{1}})",
        symbol=symbol,
        comparison=symbol,
    )


def _with_nan(symbol: str, left: SqlType, right: SqlType, templates: dict[str, str]) -> Function:
    return Function(
        symbol,
        (left, right),
        BOOLEAN,
        _careful(_NATIVE[symbol]),
        inline=templates[symbol],
        symbol=symbol,
        comparison=symbol,
    )


def _careful(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison of floats or Decimals that handles NaN."""

    def call(left: float | Decimal, right: float | Decimal) -> bool:
        if left != left or right != right:
            return compare(left != left, right != right)
        return compare(left, right)

    return call


_NATIVE_TYPES: Final = (
    *(BOOLEAN, TEXT, SqlType(Kind.CHAR), UUID_TYPE, BYTEA, ANYENUM),
    *(DATE, TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL),
    *(NAME, INTERNAL_CHAR, OID, XID, SqlType(Kind.PG_LSN), SqlType(Kind.TID)),
    SqlType(Kind.PG_NODE_TREE),
)


def _announced() -> Iterator[Function]:
    for sql_type in _NATIVE_TYPES:
        yield from comparisons(sql_type)
    for symbol in _NATIVE:
        yield _native(symbol, NAME, TEXT)
        yield _native(symbol, TEXT, NAME)
        for left in (SMALLINT, INTEGER, BIGINT):
            for right in (SMALLINT, INTEGER, BIGINT):
                yield _native(symbol, left, right)
        for left in (REAL, DOUBLE):
            for right in (REAL, DOUBLE):
                yield _with_nan(symbol, left, right, FLOAT_TEMPLATES)
        yield _with_nan(symbol, NUMERIC, NUMERIC, NUMERIC_TEMPLATES)


OPERATORS: Final = tuple(_announced())

FUNCTIONS: Final = (
    Function("booleq", (BOOLEAN, BOOLEAN), BOOLEAN, operator.eq, inline="({0} == {1})"),
    Function("boolne", (BOOLEAN, BOOLEAN), BOOLEAN, operator.ne, inline="({0} != {1})"),
)

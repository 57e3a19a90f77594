"""NaN in sets and dicts.

In SQL a NaN equals any other. In Python two of them are different unless they are one object, so
all that go into a set become the same object, in arrays, records and rows too.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import nan
from typing import Any, Final

from qserver.sql.codegen.source import Source
from qserver.values.numerics import NOT_A_NUMBER
from qserver.values.records import Record
from qserver.values.types import Kind, SqlType

_NUMBERS: Final = (Kind.REAL, Kind.DOUBLE, Kind.NUMERIC)


def may_be_nan(sql_type: SqlType) -> bool:
    """May a value of the type be a NaN, or hold one?"""
    return (sql_type.element or sql_type).kind in (*_NUMBERS, Kind.RECORD)


def one_nan(value: Any) -> Any:
    """The value with one object for all NaNs; of a row, an array or a record each part."""
    kind = type(value)
    if kind is float:
        return value if value == value else nan
    if kind is Decimal:
        return NOT_A_NUMBER if value.is_nan() else value
    if kind is tuple or kind is Record:
        return kind(map(one_nan, value))
    return value


def told_apart(source: Source, sql_type: SqlType, code: str) -> str:
    """The code of a value as it goes into a set."""
    if not may_be_nan(sql_type):
        return code
    source.name("one_nan", one_nan)
    if sql_type.kind in _NUMBERS and code.isidentifier():
        return f"{code} if {code} == {code} else one_nan({code})"
    return f"one_nan({code})"


def rows_told_apart(source: Source, types: Iterable[SqlType], code: str) -> str:
    """The code of a row of these types as it goes into a set."""
    if not any(map(may_be_nan, types)):
        return code
    source.name("one_nan", one_nan)
    return f"one_nan({code})"

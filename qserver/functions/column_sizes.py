"""pg_column_size: the bytes that PostgreSQL needs for a value that it has just computed.

Those of numbers, times and texts are PostgreSQL's; those of arrays and documents, about so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.values.sizes import size_of
from qserver.values.types import (
    INTEGER,
    NUMBERING_KINDS,
    REG_KINDS,
    TEXT_KINDS,
    Kind,
    SqlType,
)

HEAD_BYTES: Final = 4
_FIXED: Final[Mapping[Kind, int]] = {
    Kind.BOOLEAN: 1,
    Kind.INTERNAL_CHAR: 1,
    Kind.SMALLINT: 2,
    **dict.fromkeys((Kind.INTEGER, Kind.REAL, Kind.DATE, Kind.ENUM), 4),
    **dict.fromkeys((*NUMBERING_KINDS, *REG_KINDS), 4),
    **dict.fromkeys((Kind.BIGINT, Kind.DOUBLE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 8),
    Kind.TID: 6,
    Kind.TIMETZ: 12,
    Kind.INTERVAL: 16,
    Kind.UUID: 16,
    Kind.NAME: 64,
}


@lru_cache(maxsize=1024)
def size_function(sql_type: SqlType) -> Function:
    """Return pg_column_size of a type."""
    return Function("pg_column_size", (sql_type,), INTEGER, _measure(sql_type))


def _measure(sql_type: SqlType) -> Callable[[Any], int]:
    fixed = _FIXED.get(sql_type.kind)
    if fixed is not None:
        return lambda value: fixed
    if sql_type.kind in TEXT_KINDS or sql_type.kind in (Kind.JSON, Kind.JSONPATH):
        return lambda value: HEAD_BYTES + len(value.encode())
    if sql_type.kind is Kind.BYTEA:
        return lambda value: HEAD_BYTES + len(value)
    if sql_type.kind is Kind.NUMERIC:
        return _of_numeric
    return lambda value: HEAD_BYTES + size_of(value)


def _of_numeric(value: Decimal) -> int:
    """Four digits take two bytes; so do the length and the place of the point."""
    if not value.is_finite() or not value:
        return HEAD_BYTES + 2
    digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
    whole = max(len(digits) + exponent, 0)
    fraction = max(-exponent, 0)
    return HEAD_BYTES + 2 + 2 * (-(-whole // 4) + -(-fraction // 4))

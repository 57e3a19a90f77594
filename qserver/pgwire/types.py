"""The numbers by which PostgreSQL's clients know types: oid, size and modifier.

Built-in types have PostgreSQL's own oids. An enum is announced as text: its labels are sent as
texts in both formats, and a client that does not know the type reads them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from qserver.values.types import Kind, SqlType, array_of

OIDS: Final[Mapping[Kind, tuple[int, int, int]]] = {
    Kind.BOOLEAN: (16, 1000, 1),
    Kind.BYTEA: (17, 1001, -1),
    Kind.BIGINT: (20, 1016, 8),
    Kind.SMALLINT: (21, 1005, 2),
    Kind.INTEGER: (23, 1007, 4),
    Kind.TEXT: (25, 1009, -1),
    Kind.JSON: (114, 199, -1),
    Kind.REAL: (700, 1021, 4),
    Kind.DOUBLE: (701, 1022, 8),
    Kind.CHAR: (1042, 1014, -1),
    Kind.VARCHAR: (1043, 1015, -1),
    Kind.DATE: (1082, 1182, 4),
    Kind.TIME: (1083, 1183, 8),
    Kind.TIMESTAMP: (1114, 1115, 8),
    Kind.TIMESTAMPTZ: (1184, 1185, 8),
    Kind.INTERVAL: (1186, 1187, 16),
    Kind.TIMETZ: (1266, 1270, 12),
    Kind.NUMERIC: (1700, 1231, -1),
    Kind.RECORD: (2249, 2287, -1),
    Kind.UUID: (2950, 2951, 16),
    Kind.JSONB: (3802, 3807, -1),
    Kind.ENUM: (25, 1009, -1),
    Kind.UNKNOWN: (25, 1009, -2),
    Kind.VOID: (2278, 0, 4),
}
"""Of each kind: its oid, the oid of its arrays, and the size of its values in PostgreSQL."""

_LIKE_TEXT: Final = (Kind.ENUM, Kind.UNKNOWN)
_FULL_INTERVAL: Final = 0x7FFF << 16
_HEADER: Final = 4
"""PostgreSQL counts the header of a value in the modifiers of some types."""


@lru_cache(maxsize=4096)
def oid_of(sql_type: SqlType) -> int:
    if sql_type.element is not None:
        return OIDS.get(sql_type.element.kind, OIDS[Kind.TEXT])[1]
    return OIDS.get(sql_type.kind, OIDS[Kind.TEXT])[0]


def size_of(sql_type: SqlType) -> int:
    return -1 if sql_type.element is not None else OIDS.get(sql_type.kind, OIDS[Kind.TEXT])[2]


def modifier_of(sql_type: SqlType) -> int:
    """Return the modifier, which holds a length or a precision; -1 without one."""
    if sql_type.element is not None:
        return modifier_of(sql_type.element)
    if sql_type.length is not None:
        return sql_type.length + _HEADER
    if sql_type.scale is not None:
        assert sql_type.precision is not None
        return (sql_type.precision << 16 | sql_type.scale & 0x7FF) + _HEADER
    if sql_type.precision is not None:
        full = _FULL_INTERVAL if sql_type.kind is Kind.INTERVAL else 0
        return full | sql_type.precision
    return -1


def type_of_oid(oid: int) -> SqlType | None:
    """Return the type that a client declares; None if the statement decides."""
    return _TYPES.get(oid)


def _types() -> dict[int, SqlType]:
    found: dict[int, SqlType] = {}
    for kind, (oid, of_array, _) in OIDS.items():
        if kind in (*_LIKE_TEXT, Kind.VOID, Kind.RECORD):
            continue
        found[oid] = SqlType(kind)
        found[of_array] = array_of(SqlType(kind))
    return found


_TYPES: Final = _types()

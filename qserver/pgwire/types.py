"""The numbers by which PostgreSQL's clients know types: oid, size and modifier.

Built-in types have PostgreSQL's own oids. Those of a database, enums and the rows of relations,
have theirs in what a plan tells of its columns; those of their arrays are the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from qserver.values.types import OPAQUE_KINDS, REG_KINDS, Kind, SqlType, array_of, is_vector

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
    Kind.JSONPATH: (4072, 4073, -1),
    Kind.ENUM: (25, 1009, -1),
    Kind.UNKNOWN: (25, 1009, -2),
    Kind.VOID: (2278, 0, 4),
    Kind.INTERNAL_CHAR: (18, 1002, 1),
    Kind.NAME: (19, 1003, 64),
    Kind.OID: (26, 1028, 4),
    Kind.TID: (27, 1010, 6),
    Kind.XID: (28, 1011, 4),
    Kind.CID: (29, 1012, 4),
    Kind.REGPROC: (24, 1008, 4),
    Kind.REGPROCEDURE: (2202, 2207, 4),
    Kind.REGOPER: (2203, 2208, 4),
    Kind.REGOPERATOR: (2204, 2209, 4),
    Kind.REGCLASS: (2205, 2210, 4),
    Kind.REGTYPE: (2206, 2211, 4),
    Kind.REGNAMESPACE: (4089, 4090, 4),
    Kind.REGROLE: (4096, 4097, 4),
    Kind.REGCOLLATION: (4191, 4192, 4),
    Kind.REGCONFIG: (3734, 3735, 4),
    Kind.REGDICTIONARY: (3769, 3770, 4),
    Kind.ACLITEM: (1033, 1034, 12),
    Kind.INET: (869, 1041, -1),
    Kind.PG_NODE_TREE: (194, 0, -1),
    Kind.PG_LSN: (3220, 3221, 8),
    Kind.XID8: (5069, 271, 8),
    Kind.PG_NDISTINCT: (3361, 0, -1),
    Kind.PG_DEPENDENCIES: (3402, 0, -1),
    Kind.PG_MCV_LIST: (5017, 0, -1),
    Kind.PG_STATISTIC: (10029, 10028, -1),
    Kind.ANYARRAY: (2277, 0, -1),
}
"""Of each kind: its oid, the oid of its arrays, and the size of its values in PostgreSQL."""

_VECTORS: Final = {"int2vector": 22, "oidvector": 30}
_LIKE_TEXT: Final = (Kind.ENUM, Kind.UNKNOWN)
_FULL_INTERVAL: Final = 0x7FFF << 16
_ENUM_SIZE: Final = 4
_HEADER: Final = 4
"""PostgreSQL counts the header of a value in the modifiers of some types."""


@lru_cache(maxsize=4096)
def oid_of(sql_type: SqlType) -> int:
    if is_vector(sql_type):
        return _VECTORS[str(sql_type)]
    if sql_type.oid:
        return sql_type.oid
    if sql_type.element is not None:
        if sql_type.element.oid:
            return sql_type.element.oid + 1
        return OIDS.get(sql_type.element.kind, OIDS[Kind.TEXT])[1]
    return OIDS.get(sql_type.kind, OIDS[Kind.TEXT])[0]


def size_of(sql_type: SqlType) -> int:
    if sql_type.enum is not None and sql_type.oid:
        return _ENUM_SIZE
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
        if kind in (*_LIKE_TEXT, *REG_KINDS, *OPAQUE_KINDS, Kind.VOID, Kind.RECORD, Kind.ANYARRAY):
            continue
        found[oid] = SqlType(kind)
        found[of_array] = array_of(SqlType(kind))
    return found


_TYPES: Final = _types()

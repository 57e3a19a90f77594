"""PostgreSQL's internal names of the built-in types: `int4`, `_text` for an array of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INT2VECTOR,
    INTEGER,
    INTERNAL_CHAR,
    INTERVAL,
    JSON,
    JSONB,
    JSONPATH,
    NAME,
    NUMBERING_KINDS,
    NUMERIC,
    OIDVECTOR,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNSTORED_KINDS,
    UUID_TYPE,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    is_vector,
)

_SIMPLE: Final = {
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "float4": REAL,
    "float8": DOUBLE,
    "numeric": NUMERIC,
    "bool": BOOLEAN,
    "text": TEXT,
    "name": NAME,
    "varchar": VARCHAR,
    "bpchar": SqlType(Kind.CHAR),
    "date": DATE,
    "time": TIME,
    "timetz": TIMETZ,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID_TYPE,
    "bytea": BYTEA,
    "json": JSON,
    "jsonb": JSONB,
    "jsonpath": JSONPATH,
    "char": INTERNAL_CHAR,
    **{
        kind.value: SqlType(kind)
        for kind in (*NUMBERING_KINDS, *UNSTORED_KINDS)
        if kind is not Kind.PG_STATISTIC
    },
}
TYPES_BY_NAME: Final[Mapping[str, SqlType]] = {
    **_SIMPLE,
    "int2vector": INT2VECTOR,
    "oidvector": OIDVECTOR,
    **{f"_{name}": array_of(sql_type) for name, sql_type in _SIMPLE.items()},
}
_NAMES: Final = {sql_type.kind: name for name, sql_type in _SIMPLE.items()} | {
    each: each.value for each in (Kind.RECORD, Kind.UNKNOWN, Kind.VOID, Kind.ANYARRAY)
}


def type_name_of(sql_type: SqlType) -> str:
    """Return the internal name: `varchar` for varchar(10), `_int4` for an array, an enum's own."""
    if is_vector(sql_type):
        return str(sql_type)
    if sql_type.element is not None:
        return f"_{type_name_of(sql_type.element)}"
    if sql_type.enum is not None:
        return sql_type.enum.name
    return _NAMES.get(sql_type.kind) or str(sql_type.kind.value)

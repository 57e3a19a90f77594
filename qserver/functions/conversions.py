"""Type names as functions: `int4('7')`, `text(42)`, `date(now())` are casts.

Only PostgreSQL's internal names, with one argument. A function of that name with exactly these
types has precedence.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.registry import Function
from qserver.values.casts import cast_function, context_between, unchanged
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    JSONPATH,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID_TYPE,
    VARCHAR,
    Kind,
    SqlType,
)

TYPE_NAMES: Final[dict[str, SqlType]] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "float4": REAL,
    "float8": DOUBLE,
    "numeric": NUMERIC,
    "text": TEXT,
    "varchar": VARCHAR,
    "bpchar": SqlType(Kind.CHAR),
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID_TYPE,
    "bytea": BYTEA,
    "json": JSON,
    "jsonb": JSONB,
    "jsonpath": JSONPATH,
}


def conversion(name: str, arguments: tuple[SqlType, ...]) -> Function | None:
    """Return the cast that a call means; None if it means none."""
    target = TYPE_NAMES.get(name)
    if target is None or len(arguments) != 1:
        return None
    source = arguments[0]
    if source == UNKNOWN:
        return Function(name, (target,), target, unchanged, inline="{0}")
    if source != target and context_between(source, target) is None:
        return None
    return Function(name, arguments, target, cast_function(source, target))

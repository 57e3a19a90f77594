"""The types that random schemas and expressions are made of.

A *kind* is a type without its arguments, under PostgreSQL's short name: `int4`, `numeric`,
`text[]`. A column is declared with one of the spellings of its kind (`numeric(10, 2)`), and an
expression is asked for by kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "bool": ("boolean", "bool"),
    "int2": ("smallint",),
    "int4": ("integer", "int", "int4"),
    "int8": ("bigint",),
    "numeric": ("numeric", "numeric(12, 3)", "numeric(8, 2)", "decimal(20, 0)"),
    "float4": ("real",),
    "float8": ("double precision", "float"),
    "text": ("text",),
    "varchar": ("varchar(20)", "varchar"),
    "bpchar": ("char(6)", "char(12)"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp(3)", "timestamp(0)"),
    "timestamptz": ("timestamptz",),
    "time": ("time", "time(2)"),
    "timetz": ("timetz",),
    "interval": ("interval",),
    "uuid": ("uuid",),
    "bytea": ("bytea",),
    "json": ("json",),
    "jsonb": ("jsonb",),
    "mood": ("mood",),
    "int4[]": ("integer[]", "int array"),
    "text[]": ("text[]",),
    "numeric[]": ("numeric[]", "numeric(10, 2)[]"),
    "float8[]": ("double precision[]",),
    "bool[]": ("boolean[]",),
    "date[]": ("date[]",),
    "int8[]": ("bigint[]",),
    "timestamp[]": ("timestamp[]",),
}

ENUM_LABELS: Final = ("sad", "ok", "happy", "Very Happy")
"""Of the enum `mood`, in their order, which is not that of the alphabet."""

INTEGERS: Final = ("int2", "int4", "int8")
NUMBERS: Final = (*INTEGERS, "numeric", "float4", "float8")
TEXTS: Final = ("text", "varchar", "bpchar")
MOMENTS: Final = ("date", "timestamp", "timestamptz")
ELEMENTS: Final = ("int4", "text", "numeric", "float8", "bool", "date", "int8", "timestamp")
ARRAYS: Final = tuple(f"{element}[]" for element in ELEMENTS)
ALL: Final = tuple(SPELLINGS)
COMPARABLE: Final = tuple(kind for kind in ALL if kind != "json")

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "T": ALL,
    "C": COMPARABLE,
    "N": NUMBERS,
    "I": INTEGERS,
    "S": TEXTS,
    "M": MOMENTS,
    "E": ELEMENTS,
    "A": ARRAYS,
}
"""What the capital letters of templates stand for: any kind of the group, the same throughout."""

COMMON: Final = ("int4", "int8", "numeric", "text", "bool", "float8", "date", "timestamp")
"""The kinds that are drawn more often than others."""


def cast_name(kind: str) -> str:
    """How a cast names the kind; `char` alone would mean char(1)."""
    return "char(8)" if kind == "bpchar" else kind

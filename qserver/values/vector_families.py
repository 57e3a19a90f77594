"""Which columns can be numpy vectors, and how their values are written as numbers.

    family        of types                        a value becomes
    integer       smallint, integer, bigint       itself
    numeric       numeric with a scale            its digits as one integer: 12.34 is 1234, scale 2
    float         real, double precision          itself
    boolean       boolean                         itself
    date          date                            its ordinal day
    timestamp     timestamp, timestamptz          microseconds since 1970
    text          text, varchar, char             its place among the few values of the page

This module does not import numpy: `vectors` does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from qserver.values.types import Kind, SqlType

INTEGER: Final = "integer"
NUMERIC: Final = "numeric"
FLOAT: Final = "float"
BOOLEAN: Final = "boolean"
DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
ZONED: Final = "timestamptz"
TEXT: Final = "text"
TEXTS: Final = "texts"
"""Texts as they are, where a page has too many for their places: only vector trees read them."""

_FAMILIES: Final = {
    Kind.SMALLINT: INTEGER,
    Kind.INTEGER: INTEGER,
    Kind.BIGINT: INTEGER,
    Kind.NUMERIC: NUMERIC,
    Kind.REAL: FLOAT,
    Kind.DOUBLE: FLOAT,
    Kind.BOOLEAN: BOOLEAN,
    Kind.DATE: DATE,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMPTZ: ZONED,
    Kind.TEXT: TEXT,
    Kind.VARCHAR: TEXT,
    Kind.CHAR: TEXT,
}

SCALE_MAX: Final = 18
"""Digits after the point that an integer of 64 bits can have."""


class ColumnVector(NamedTuple):
    """A column as a vector: its position in the row, its family, its digits after the point."""

    position: int
    family: str
    scale: int = 0


def as_texts(wanted: ColumnVector) -> ColumnVector:
    """Return a column of text as texts as they are."""
    return wanted._replace(family=TEXTS)


def family_of(sql_type: SqlType) -> str | None:
    return _FAMILIES.get(sql_type.kind)


def column_vector(position: int, sql_type: SqlType) -> ColumnVector | None:
    """Return how a column becomes a vector; None if it cannot."""
    family = family_of(sql_type)
    if family is None:
        return None
    if family != NUMERIC:
        return ColumnVector(position, family)
    scale = sql_type.scale
    if scale is None or not 0 <= scale <= SCALE_MAX:
        return None  # without a declared scale each value has its own
    return ColumnVector(position, family, scale)

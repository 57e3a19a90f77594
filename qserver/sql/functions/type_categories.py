"""Which types go together: categories, preferred types, implicit casts, the common type.

    number     smallint integer bigint numeric real DOUBLE PRECISION
    string     TEXT, character varying, character
    datetime   date, time, timestamp, TIMESTAMP WITH TIME ZONE
    boolean    BOOLEAN                         interval   INTERVAL

In capitals is the preferred type of the category, which wins when nothing else decides. All other
kinds stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qserver.sql.functions.signatures import PLACEHOLDERS
from qserver.values.casts import Context, context_between
from qserver.values.types import (
    DATETIME_KINDS,
    NUMBER_KINDS,
    TEXT,
    TEXT_KINDS,
    TIME_KINDS,
    UNKNOWN,
    Kind,
    SqlType,
)

STRING: Final = "string"

_CATEGORY: Final[dict[Kind, str]] = {
    **dict.fromkeys(NUMBER_KINDS, "number"),
    **dict.fromkeys(TEXT_KINDS, STRING),
    **dict.fromkeys((*DATETIME_KINDS, *TIME_KINDS), "datetime"),
    **dict.fromkeys((Kind.UUID, Kind.BYTEA, Kind.JSON, Kind.JSONB), "own"),
    **dict.fromkeys(PLACEHOLDERS, "placeholder"),
}
_PREFERRED: Final = frozenset(
    {Kind.BOOLEAN, Kind.DOUBLE, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}
)


def category(sql_type: SqlType) -> str:
    """Types of one category convert into each other, more or less."""
    return _CATEGORY.get(sql_type.kind, sql_type.kind.value)


def is_preferred(sql_type: SqlType) -> bool:
    """Is it the type of its category that is chosen when nothing else decides?"""
    return sql_type.kind in _PREFERRED


def converts(source: SqlType, target: SqlType) -> bool:
    """May a value of one bare type become one of the other without being asked?"""
    if source in (target, UNKNOWN):
        return True
    return context_between(source, target) is Context.IMPLICIT


def common_of(types: Sequence[SqlType]) -> SqlType | None:
    """The common type of bare types, TEXT if all are unknown; None if their categories differ."""
    chosen = UNKNOWN
    for candidate in types:
        if candidate in (UNKNOWN, chosen):
            continue
        if chosen == UNKNOWN:
            chosen = candidate
        elif category(candidate) != category(chosen):
            return None
        elif (
            not is_preferred(chosen)
            and converts(chosen, candidate)
            and not converts(candidate, chosen)
        ):
            chosen = candidate
    return TEXT if chosen == UNKNOWN else chosen

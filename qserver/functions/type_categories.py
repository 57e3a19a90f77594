"""Type categories, preferred types, implicit casts, and the common type.

    number     smallint integer bigint numeric real DOUBLE PRECISION, OID, regclass …
    string     TEXT, character varying, character, name
    datetime   date, time, timestamp, TIMESTAMP WITH TIME ZONE
    boolean    BOOLEAN                         interval   INTERVAL

The preferred type of a category is in capitals: it wins when nothing else decides. All other kinds
are categories of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qserver.functions.signatures import PLACEHOLDERS
from qserver.values.casts import Context, context_between
from qserver.values.types import (
    DATETIME_KINDS,
    NUMBER_KINDS,
    RECORD,
    REG_KINDS,
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
    **dict.fromkeys((*TEXT_KINDS, Kind.NAME), STRING),
    **dict.fromkeys((Kind.OID, *REG_KINDS), "number"),
    **dict.fromkeys((*DATETIME_KINDS, *TIME_KINDS), "datetime"),
    **dict.fromkeys((Kind.UUID, Kind.BYTEA, Kind.JSON, Kind.JSONB, Kind.JSONPATH), "own"),
    **dict.fromkeys(PLACEHOLDERS, "placeholder"),
}
_PREFERRED: Final = frozenset(
    {Kind.BOOLEAN, Kind.DOUBLE, Kind.OID, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}
)


def category(sql_type: SqlType) -> str:
    """Return the category; types of one category mostly convert into each other."""
    return _CATEGORY.get(sql_type.kind, sql_type.kind.value)


def is_preferred(sql_type: SqlType) -> bool:
    return sql_type.kind in _PREFERRED


def converts(source: SqlType, target: SqlType) -> bool:
    """Tell whether there is an implicit cast between two bare types."""
    if source in (target, UNKNOWN):
        return True
    return context_between(source, target) is Context.IMPLICIT


def common_of(types: Sequence[SqlType]) -> SqlType | None:
    """Return the common type of bare types, TEXT if all are unknown, None across categories."""
    chosen = UNKNOWN
    for candidate in types:
        if candidate in (UNKNOWN, chosen):
            continue
        if chosen == UNKNOWN:
            chosen = candidate
        elif category(candidate) != category(chosen):
            return None
        elif candidate.kind is Kind.RECORD:
            chosen = RECORD
        elif (
            not is_preferred(chosen)
            and converts(chosen, candidate)
            and not converts(candidate, chosen)
        ):
            chosen = candidate
    return TEXT if chosen == UNKNOWN else chosen

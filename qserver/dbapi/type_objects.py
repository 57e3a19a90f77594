"""The types of columns and the constructors of values that PEP 249 names.

The type code of a column is the name of its type, as the server tells it: `"numeric(8,2)"`. It is
equal to one of the five type objects here, so `description[0][1] == NUMBER` is true of it.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Final, NamedTuple

from qserver.client.python_values import MODIFIERS, plain_name

Date, Time, Timestamp, Binary = date, time, datetime, bytes


def DateFromTicks(ticks: float) -> date:
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    return datetime.fromtimestamp(ticks)


class TypeObject:
    """Equal to the type code of each of its types, whatever their length or precision."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return plain_name(other) in self._names
        return self is other

    def __hash__(self) -> int:
        return id(self)


STRING: Final = TypeObject("text", "character varying", "character", "name", '"char"')
BINARY: Final = TypeObject("bytea")
NUMBER: Final = TypeObject(
    "smallint", "integer", "bigint", "real", "double precision", "numeric", "boolean"
)
DATETIME: Final = TypeObject(
    "date",
    "interval",
    *(f"{kind} {zone} time zone" for kind in ("time", "timestamp") for zone in ("with", "without")),
)
ROWID: Final = TypeObject("oid")


class Column(NamedTuple):
    """One of a cursor's `description`."""

    name: str
    type_code: str
    display_size: None = None
    internal_size: int | None = None
    precision: int | None = None
    scale: int | None = None
    null_ok: bool | None = None


def column_of(name: str, type_code: str) -> Column:
    found = MODIFIERS.search(type_code)
    numbers = [int(each) for each in re.findall(r"-?\d+", found[0])] if found else []
    if not numbers:
        return Column(name, type_code)
    if plain_name(type_code) == "numeric":
        return Column(name, type_code, precision=numbers[0], scale=numbers[1])
    if type_code == STRING:
        return Column(name, type_code, internal_size=numbers[0])
    return Column(name, type_code, precision=numbers[0])

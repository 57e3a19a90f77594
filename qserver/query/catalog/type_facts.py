"""The functions of information_schema: lengths, precisions and positions by oid and modifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.query.catalog.data import relations
from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import indexes_of
from qserver.query.catalog.types import shown_type
from qserver.values.schema import Table

INTEGERS: Final = {21: 16, 23: 32, 20: 64}
FLOATS: Final = {700: 24, 701: 53}
NUMERIC: Final = 1700
SIZED_TEXTS: Final = (1042, 1043)
TEXTS: Final = (25, *SIZED_TEXTS)
TIMES: Final = (1083, 1114, 1184, 1266)
DATE: Final = 1082
INTERVAL: Final = 1186
BYTES_PER_CHARACTER: Final = 4


def true_type(objects: Objects, attribute: Any, of_type: Any) -> int:
    """The type of a column, or what its domain is made of."""
    return int(_field(of_type, "pg_type", "typbasetype") or _typed(attribute, "atttypid"))


def true_modifier(objects: Objects, attribute: Any, of_type: Any) -> int:
    if _field(of_type, "pg_type", "typtype") == "d":
        return int(_field(of_type, "pg_type", "typtypmod"))
    return int(_typed(attribute, "atttypmod"))


def _typed(attribute: Any, column: str) -> Any:
    return _field(attribute, "pg_attribute", column)


def _field(record: Any, relation: str, column: str) -> Any:
    return record[relations()["pg_catalog", relation].names.index(column)]


def char_length(objects: Objects, oid: int, modifier: int) -> int | None:
    return modifier - 4 if oid in SIZED_TEXTS and modifier != -1 else None


def octet_length(objects: Objects, oid: int, modifier: int) -> int | None:
    if oid not in TEXTS:
        return None
    length = char_length(objects, oid, modifier)
    return 2**30 if length is None else BYTES_PER_CHARACTER * length


def precision(objects: Objects, oid: int, modifier: int) -> int | None:
    if oid == NUMERIC:
        return None if modifier == -1 else (modifier - 4) >> 16 & 0xFFFF
    return INTEGERS.get(oid) or FLOATS.get(oid)


def radix(objects: Objects, oid: int, modifier: int) -> int | None:
    if oid == NUMERIC:
        return 10
    return 2 if oid in INTEGERS or oid in FLOATS else None


def scale(objects: Objects, oid: int, modifier: int) -> int | None:
    if oid == NUMERIC:
        return None if modifier == -1 else (modifier - 4) & 0xFFFF
    return 0 if oid in INTEGERS else None


def second_digits(objects: Objects, oid: int, modifier: int) -> int | None:
    if oid == DATE:
        return 0
    if oid in TIMES:
        return modifier if modifier >= 0 else 6
    if oid == INTERVAL:
        return 6 if modifier < 0 or modifier & 0xFFFF == 0xFFFF else modifier & 0xFFFF
    return None


def interval_fields(objects: Objects, oid: int, modifier: int) -> str | None:
    if oid != INTERVAL:
        return None
    shown = shown_type(objects.world, oid, modifier) or ""
    words = shown.upper().removeprefix("INTERVAL").strip()
    return words.partition("(")[0].strip() or None


def index_position(objects: Objects, oid: int, number: int) -> int | None:
    """The place of a column in an index."""
    for table in objects.world.with_oid(oid):
        for index in indexes_of(table) if isinstance(table, Table) else ():
            if index.oid == oid:
                numbers = [part.number for part in index.parts]
                return numbers.index(number) + 1 if number in numbers else None
    return None


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "_pg_truetypid": true_type,
    "_pg_truetypmod": true_modifier,
    "_pg_char_max_length": char_length,
    "_pg_char_octet_length": octet_length,
    "_pg_numeric_precision": precision,
    "_pg_numeric_precision_radix": radix,
    "_pg_numeric_scale": scale,
    "_pg_datetime_precision": second_digits,
    "_pg_interval_type": interval_fields,
    "_pg_index_position": index_position,
}

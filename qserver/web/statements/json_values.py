"""Values as JSON: the column's type decides how a value looks, never its size.

msgspec writes most values as they are stored. For the others a function here converts a value (not
NULL) into one that msgspec can write:

    real, double      a number with the fewest digits; "NaN", "Infinity" as texts
    numeric           a text with every digit
    interval          ISO 8601: P1Y2M3DT4H5M6.7S
    json, jsonb       the value itself, on one line
    timetz            ISO 8601 with its offset: 12:00:00+02:00
    enum, char(n)     a text
    regclass, …       the name of the object
    tid               a text: (0,1)
    array, record     an array of such values; a record is the text that PostgreSQL prints
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any, Final

import msgspec

from qserver.values.interval_text import iso_text_of_interval
from qserver.values.row_places import text_of_place
from qserver.values.text_output import (
    shown_function,
    text_of_double,
    text_of_numeric,
    text_of_real,
)
from qserver.values.types import REG_KINDS, Kind, SqlType
from qserver.values.zoned_time import ZonedTime

Converter = Callable[[Any], Any]

encode_json: Final = msgspec.json.Encoder().encode
encode_lines: Final = msgspec.json.Encoder().encode_lines


@lru_cache(maxsize=4096)
def converter(sql_type: SqlType) -> Converter | None:
    """The function that prepares a value of the type for msgspec; None if none is needed."""
    if sql_type.element is not None:
        return _array_converter(converter(sql_type.element))
    if sql_type.kind is Kind.RECORD or (sql_type.kind is Kind.CHAR and sql_type.length):
        return shown_function(sql_type)
    return _CONVERTERS.get(sql_type.kind)


def _array_converter(element: Converter | None) -> Converter | None:
    if element is None:
        return None

    def convert(value: Any) -> Any:
        if type(value) is tuple:
            return [None if each is None else convert(each) for each in value]
        return element(value)

    return convert


def _double(value: float) -> float | str:
    return value if isfinite(value) else text_of_double(value)


def _real(value: float) -> float | str:
    """A 32-bit number has fewer digits than the double that holds it would show."""
    return float(text_of_real(value)) if isfinite(value) else text_of_real(value)


def _json(text: str) -> msgspec.Raw:
    data = text.encode("utf-8", "surrogatepass")
    if "\n" in text or "\r" in text:  # a row is one line, in streams too
        data = msgspec.json.format(data, indent=-1)
    return msgspec.Raw(data)


_CONVERTERS: Final[Mapping[Kind, Converter]] = {
    Kind.REAL: _real,
    Kind.DOUBLE: _double,
    Kind.NUMERIC: text_of_numeric,
    Kind.INTERVAL: iso_text_of_interval,
    Kind.TIMETZ: ZonedTime.plain,
    Kind.JSON: _json,
    Kind.JSONB: lambda value: _json(value.text),
    Kind.ENUM: lambda value: str.__str__(value),
    **dict.fromkeys(REG_KINDS, attrgetter("text")),
    Kind.OID: int,
    Kind.TID: text_of_place,
}

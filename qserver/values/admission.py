"""Admits values to columns: exactly, or with an error, never with a silent change.

`admitter(type)` returns one small function for the type. The table of what each type takes is in
`types`. Errors have PostgreSQL's codes and messages; `schema` adds the column.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from qserver.errors import (
    ArraySubscriptError,
    CharacterNotInRepertoire,
    DatatypeMismatch,
    DatetimeFieldOverflow,
    NumericValueOutOfRange,
    StringDataRightTruncation,
)
from qserver.values.arrays import is_rectangular
from qserver.values.enumeration import Enumeration, Label
from qserver.values.floats import double_from_exact, real_from_double, real_from_exact
from qserver.values.interval import Interval
from qserver.values.json_input import json_from_text
from qserver.values.json_path_input import json_path_from_text
from qserver.values.jsonb import Jsonb
from qserver.values.numerics import fit_numeric, plain_numeric
from qserver.values.object_names import ObjectName
from qserver.values.records import Record
from qserver.values.second_digits import second_rounder
from qserver.values.types import (
    INTEGER_BITS,
    NUMBERING_KINDS,
    OPAQUE_KINDS,
    REG_KINDS,
    Kind,
    SqlType,
    type_of_value,
)
from qserver.values.zoned_time import ZonedTime, in_zone

Admitter = Callable[[Any], Any]


@lru_cache(maxsize=4096)
def admitter(sql_type: SqlType) -> Admitter:
    kind = sql_type.kind
    if kind in INTEGER_BITS:
        return _integer_admitter(sql_type, INTEGER_BITS[kind])
    if kind is Kind.NUMERIC:
        return _numeric_admitter(sql_type)
    if kind in (Kind.VARCHAR, Kind.CHAR):
        return _limited_text_admitter(sql_type)
    if sql_type.enum is not None:
        return _label_admitter(sql_type.enum)
    if sql_type.kind is Kind.RECORD:
        return _row_admitter(sql_type)
    if sql_type.element is not None:
        return _array_admitter(sql_type, sql_type.element)
    if sql_type.precision is not None or sql_type.fields is not None:
        return _rounding_admitter(sql_type)
    return _SIMPLE_ADMITTERS[kind]


def mismatch(sql_type: SqlType | Kind, value: Any) -> DatatypeMismatch:
    """The error for a Python value that no assignment takes."""
    try:
        given = str(type_of_value(value))
    except KeyError:
        given = f"unknown ({type(value).__name__})"
    wanted = sql_type.value if isinstance(sql_type, Kind) else str(sql_type)
    return DatatypeMismatch(f"value is of type {given} but type {wanted} is needed")


# --- numbers -------------------------------------------------------------------------------------


def _integer_admitter(sql_type: SqlType, bits: int) -> Admitter:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)

    def admit_integer(value: Any) -> Any:
        if type(value) is int:
            if low <= value < high:
                return value
            raise NumericValueOutOfRange(f"{sql_type} out of range")
        if value is None:
            return None
        raise mismatch(sql_type, value)

    return admit_integer


def _admit_double(value: Any) -> Any:
    if type(value) is float or value is None:
        return value
    if type(value) is int or type(value) is Decimal:
        return double_from_exact(value)
    raise mismatch(Kind.DOUBLE, value)


def _admit_real(value: Any) -> Any:
    if type(value) is float:
        return real_from_double(value)
    if type(value) is int or type(value) is Decimal:
        return real_from_exact(value)
    if value is None:
        return None
    raise mismatch(Kind.REAL, value)


def _numeric_admitter(sql_type: SqlType) -> Admitter:
    precision, scale = sql_type.precision, sql_type.scale

    def admit_numeric(value: Any) -> Any:
        if type(value) is int:
            value = Decimal(value)
        elif type(value) is not Decimal:
            if value is None:
                return None
            raise mismatch(sql_type, value)
        if precision is None or scale is None:
            return plain_numeric(value)
        return fit_numeric(value, precision, scale)

    return admit_numeric


# --- text ----------------------------------------------------------------------------------------


def _admit_text(value: Any) -> Any:
    if type(value) is str:
        return clean_text(value)
    if value is None:
        return None
    raise mismatch(Kind.TEXT, value)


def clean_text(text: str) -> str:
    """The text itself, if it is valid UTF-8 without NUL."""
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            surrogate = text[error.start].encode(errors="surrogatepass")
            wrong = " ".join(f"0x{byte:02x}" for byte in surrogate)
            message = f'invalid byte sequence for encoding "UTF8": {wrong}'
            raise CharacterNotInRepertoire(message) from None
    return text


def _limited_text_admitter(sql_type: SqlType) -> Admitter:
    length, padded = sql_type.length, sql_type.kind is Kind.CHAR

    def admit_limited_text(value: Any) -> Any:
        text = _admit_text(value)
        if text is None:
            return None
        if length is not None and len(text) > length:
            if text[length:].strip(" "):
                raise StringDataRightTruncation(f"value too long for type {sql_type}")
            text = text[:length]
        return text.rstrip(" ") if padded else text

    return admit_limited_text


# --- the rest ------------------------------------------------------------------------------------


def _admit_boolean(value: Any) -> Any:
    if value is None or type(value) is bool:
        return value
    raise mismatch(Kind.BOOLEAN, value)


def _admit_date(value: Any) -> Any:
    if value is None or type(value) is date:
        return value
    raise mismatch(Kind.DATE, value)


def _admit_timestamp(value: Any) -> Any:
    if type(value) is datetime and value.tzinfo is None:
        return value.replace(fold=0) if value.fold else value
    if value is None:
        return None
    raise mismatch(Kind.TIMESTAMP, value)


def _admit_timestamptz(value: Any) -> Any:
    if type(value) is datetime and value.tzinfo is not None:
        return value if value.tzinfo is UTC and not value.fold else _to_utc(value)
    if value is None:
        return None
    raise mismatch(Kind.TIMESTAMPTZ, value)


def _to_utc(value: datetime) -> datetime:
    """The datetime in UTC; raises if that lies outside of Python's calendar."""
    try:
        return value.astimezone(UTC).replace(fold=0)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def _rounding_admitter(sql_type: SqlType) -> Admitter:
    """Rounds a time or an interval to the type's digits, as PostgreSQL's assignment does."""
    admit_exact, fit = _SIMPLE_ADMITTERS[sql_type.kind], second_rounder(sql_type)
    if fit is None:
        return admit_exact

    def admit_rounded(value: Any) -> Any:
        value = admit_exact(value)
        return None if value is None else fit(value)

    return admit_rounded


def _admit_time(value: Any) -> Any:
    if type(value) is time and value.tzinfo is None:
        return value.replace(fold=0) if value.fold else value
    if value is None:
        return None
    raise mismatch(Kind.TIME, value)


def _admit_timetz(value: Any) -> Any:
    if type(value) is ZonedTime:
        return value
    if type(value) is time and value.utcoffset() is not None:
        return in_zone(value, value.tzinfo)
    if value is None:
        return None
    raise mismatch(Kind.TIMETZ, value)


def _exact_admitter(kind: Kind, python_type: type) -> Admitter:
    """For a type that takes every value of one Python type."""

    def admit_exact(value: Any) -> Any:
        if value is None or type(value) is python_type:
            return value
        raise mismatch(kind, value)

    return admit_exact


def _admit_json(value: Any) -> Any:
    text = _admit_text(value) if value is None or type(value) is str else None
    if text is None and value is not None:
        raise mismatch(Kind.JSON, value)
    return None if text is None else json_from_text(text)


def _admit_path(value: Any) -> Any:
    if value is None:
        return None
    if type(value) is str:
        return json_path_from_text(value)
    raise mismatch(Kind.JSONPATH, value)


def _row_admitter(sql_type: SqlType) -> Admitter:
    admitters = [admitter(each) for _, each in sql_type.columns]

    def admit(value: Any) -> Record | None:
        if value is None:
            return None
        if type(value) is not Record or len(value) != len(admitters):
            raise mismatch(sql_type, value)
        return Record([each(item) for each, item in zip(admitters, value, strict=True)])

    return admit


def _label_admitter(enum: Enumeration) -> Admitter:
    labels = {str(label): label for label in enum.labels}

    def admit_label(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not Label and type(value) is not str:
            raise mismatch(SqlType(Kind.ENUM, enum=enum), value)
        return labels.get(value) or enum.label_of(value)

    return admit_label


def _array_admitter(sql_type: SqlType, element: SqlType) -> Admitter:
    admit_element = admitter(element)

    def admit_part(array: tuple[Any, ...]) -> tuple[Any, ...]:
        if array and type(array[0]) is tuple:
            return tuple([admit_part(part) for part in array])
        return tuple([admit_element(value) for value in array])

    def admit_array(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not tuple:
            raise mismatch(sql_type, value)
        if not is_rectangular(value):
            raise ArraySubscriptError(
                "multidimensional arrays must have sub-arrays with matching dimensions"
            )
        return admit_part(value)

    return admit_array


_SIMPLE_ADMITTERS: dict[Kind, Admitter] = {
    Kind.BOOLEAN: _admit_boolean,
    Kind.REAL: _admit_real,
    Kind.DOUBLE: _admit_double,
    Kind.TEXT: _admit_text,
    Kind.DATE: _admit_date,
    Kind.TIMESTAMP: _admit_timestamp,
    Kind.TIMESTAMPTZ: _admit_timestamptz,
    Kind.TIME: _admit_time,
    Kind.TIMETZ: _admit_timetz,
    Kind.INTERVAL: _exact_admitter(Kind.INTERVAL, Interval),
    Kind.UUID: _exact_admitter(Kind.UUID, UUID),
    Kind.BYTEA: _exact_admitter(Kind.BYTEA, bytes),
    Kind.JSON: _admit_json,
    Kind.JSONB: _exact_admitter(Kind.JSONB, Jsonb),
    Kind.JSONPATH: _admit_path,
    **dict.fromkeys((Kind.NAME, Kind.INTERNAL_CHAR, *OPAQUE_KINDS), _admit_text),
    **{kind: _exact_admitter(kind, int) for kind in (*NUMBERING_KINDS, Kind.TID)},
    **{kind: _exact_admitter(kind, ObjectName) for kind in REG_KINDS},
    Kind.ANYARRAY: _exact_admitter(Kind.ANYARRAY, tuple),
}

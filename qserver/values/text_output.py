"""Prints values as PostgreSQL does.

`text_function` prints what a cast to text gives, `shown` what a client sees; they differ for
booleans and for CHAR(n), which is padded only for the client. Dates are ISO, TIMESTAMPTZ is in the
zone of the session,
floats are the shortest text that reads back as the same number. Values within an array or a record
look as the client sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from math import copysign, frexp, inf, isfinite, ldexp
from operator import attrgetter
from typing import Any, Final

import msgspec

from qserver.values.arrays import array_writer
from qserver.values.binary_text import text_of_bytes
from qserver.values.interval_text import text_of_interval
from qserver.values.row_places import text_of_place
from qserver.values.types import (
    NUMBER_KINDS,
    NUMBERING_KINDS,
    OPAQUE_KINDS,
    REG_KINDS,
    Kind,
    SqlType,
    is_vector,
    type_of_value,
)
from qserver.values.zones import SESSION_ZONE, offset_of, offset_text, on_session_clock

_REAL_NORMAL_MIN = 2.0**-126

_encode: Final = msgspec.json.Encoder().encode

_NEVER_QUOTED: Final = frozenset(
    {*NUMBER_KINDS, *NUMBERING_KINDS, Kind.BOOLEAN, Kind.DATE, Kind.UUID}
)
"""Kinds whose texts have no character that needs quotes in an array."""


@lru_cache(maxsize=4096)
def text_function(sql_type: SqlType) -> Callable[[Any], str]:
    """The function that prints values of a type, except NULL, as a cast to text does."""
    if is_vector(sql_type):
        return lambda vector: " ".join([str(int(each)) for each in vector])
    if sql_type.element is not None:
        kind = sql_type.element.kind
        write = shown_function(sql_type.element)
        return array_writer(write, kind is not Kind.RECORD, kind not in _NEVER_QUOTED)
    if sql_type.kind is Kind.RECORD:
        return _record_writer(tuple(each for _, each in sql_type.columns))
    return TEXT_OUTPUT[sql_type.kind]


@lru_cache(maxsize=4096)
def shown_function(sql_type: SqlType) -> Callable[[Any], str]:
    """The function that prints values, except NULL, as a client sees them."""
    if sql_type.kind is Kind.BOOLEAN:
        return lambda value: "t" if value else "f"
    length = sql_type.length
    if sql_type.kind is Kind.CHAR and length is not None:
        return lambda value: str(value).ljust(length)
    return text_function(sql_type)


def shown(value: Any, sql_type: SqlType) -> str:
    """The text that a client sees: CHAR(n) with its blanks, booleans as t or f."""
    return shown_function(sql_type)(value)


# --- numbers -------------------------------------------------------------------------------------


def text_of_numeric(value: Decimal) -> str:
    """All digits, never an exponent; the scale shows."""
    return format(value, "f") if value.is_finite() else _special_number(float(value))


def text_of_double(value: float) -> str:
    """The shortest text that reads back as this double: `0.1`, `1e+20`, `-0`, `Infinity`."""
    size = abs(value)
    if size < 1e15:
        # Within these bounds msgspec and `repr` agree, and msgspec is several times faster.
        text = _encode(value).decode() if size >= 1e-4 else repr(value)
        return text[:-2] if text.endswith(".0") else text
    if not isfinite(value):
        return _special_number(value)
    digits, exponent = _digits_of(repr(size))
    if size >= 2.0**53 and not _is_inside(digits, exponent, size):
        digits, exponent = _shortest_digits(size, 53, -1074, len(digits))
    return _layout(value, digits, exponent, fixed_below=15)


def _is_inside(digits: str, exponent: int, size: float) -> bool:
    """Do the digits of a large number lie nearer to it than half a step to a neighbour?"""
    tens = exponent + 1 - len(digits)
    fraction, power = frexp(size)
    if tens < 0 or fraction == 0.5:  # the neighbour below is nearer
        return False
    away: int = abs(int(digits) * 10**tens - int(size))
    return away < 1 << (power - 54)


def text_of_real(value: float) -> str:
    """The shortest text that reads back as this 32-bit number."""
    if not isfinite(value):
        return _special_number(value)
    size = abs(value)
    digits, exponent = _digits_of_real(size) if size else ("0", 0)
    return _layout(value, digits, exponent, fixed_below=6)


def _digits_of_real(size: float) -> tuple[str, int]:
    """The shortest digits; doubles hold the borders between 32-bit numbers exactly.

    Six digits always survive 32 bits, so there are no fewer to look for, but for the tiniest
    numbers, which have fewer bits.
    """
    fraction, power = frexp(size)
    half_step = ldexp(1.0, max(power - 24, -149) - 1)
    count_min = 6 if size >= _REAL_NORMAL_MIN else 1
    if fraction == 0.5:  # the neighbour below is nearer
        return _shortest_digits(size, 24, -149, count_min)
    for count in range(count_min, 10):
        text = f"{size:.{count}g}"
        away = abs(float(text) - size)
        if away < half_step:
            return _digits_of(text)
        if away == half_step:  # on the border, or so near to it that a double does not tell
            return _shortest_digits(size, 24, -149, count)
    raise AssertionError(f"9 digits tell all 32-bit numbers apart, but not {size!r}")


def _special_number(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value == inf else "-Infinity"


def _digits_of(text: str) -> tuple[str, int]:
    """The significant digits of a positive number's text, and the power of ten of the first."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(digits) - len(fraction) - 1 + int(power or 0)
    digits = digits.rstrip("0")
    return (digits, exponent) if digits else ("0", 0)


@lru_cache(maxsize=4096)
def _shortest_digits(
    value: float, bits: int, exponent_min: int, count_min: int = 1
) -> tuple[str, int]:
    """The fewest digits that lie strictly nearer to `value` than to its neighbours.

    Python's `repr` also accepts digits exactly halfway to a neighbour; PostgreSQL does not, so that
    the result does not depend on a reader's rounding. `count_min`: no fewer digits suffice.

    Exact, in whole numbers: all is counted in quarters of the step to the next neighbour, times as
    many powers of ten as make them whole.
    """
    fraction, power = frexp(value)
    step_power = max(power - bits, exponent_min)
    tens = max(2 - step_power, 0)
    quarter = 5**tens if tens else 1 << (step_power - 2)
    exact = int(ldexp(value, -step_power)) * 4 * quarter
    is_narrow = fraction == 0.5 and step_power > exponent_min  # the neighbour below is nearer
    low, high = exact - (quarter if is_narrow else 2 * quarter), exact + 2 * quarter
    length = len(str(exact))
    for count in range(count_min, 18):
        dropped = max(length - count, 0)
        unit = 10**dropped
        floor, rest = divmod(exact, unit)
        rounds_up = 2 * rest > unit or (2 * rest == unit and floor % 2 == 1)
        for number in (floor + rounds_up, floor + (not rounds_up)):  # the nearer first
            if low < number * unit < high:
                text = str(number)
                return text.rstrip("0"), len(text) - 1 + dropped - tens
    raise AssertionError(f"17 digits tell every double apart, but not {value!r}")


def _layout(value: float, digits: str, exponent: int, fixed_below: int) -> str:
    sign = "-" if copysign(1.0, value) < 0 else ""
    if not -4 <= exponent < fixed_below:
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}e{exponent:+03d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    rest = digits[exponent + 1 :]
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


# --- the rest ------------------------------------------------------------------------------------


def text_of_timestamp(value: datetime) -> str:
    """`2024-01-02 03:04:05.5`, with as many fractional digits as needed."""
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def text_of_timestamptz(value: datetime) -> str:
    """The same in the zone of the session: `2024-01-02 03:04:05+00`."""
    if SESSION_ZONE.get() is None:
        return f"{text_of_timestamp(value)}+00"
    local = on_session_clock(value)
    return text_of_timestamp(local) + offset_text(local.utcoffset() or timedelta())


def text_of_time(value: time) -> str:
    """`03:04:05.5`, with as many fractional digits as needed; with an offset `03:04:05+02`."""
    text = value.replace(tzinfo=None).isoformat()
    if value.microsecond:
        text = text.rstrip("0")
    return text if value.tzinfo is None else text + offset_text(offset_of(value))


_RECORD_NEEDS_QUOTES: Final = frozenset('(),"\\ \t\n\v\f\r')


def _record_writer(types: tuple[SqlType, ...]) -> Callable[[Any], str]:
    """`(1,"a b",)`: NULL prints nothing, empty text has quotes, special characters are doubled."""

    def text_of_record(record: tuple[Any, ...]) -> str:
        known = types or tuple(map(_type_of_field, record))
        return f"({','.join(map(text_of_field, record, known))})"

    def text_of_field(value: Any, sql_type: SqlType) -> str:
        if value is None:
            return ""
        text = shown(value, sql_type)
        if text and _RECORD_NEEDS_QUOTES.isdisjoint(text):
            return text
        doubled = text.replace("\\", "\\\\").replace('"', '""')
        return f'"{doubled}"'

    return text_of_record


def _type_of_field(value: Any) -> SqlType:
    return SqlType(Kind.UNKNOWN) if value is None else type_of_value(value)


TEXT_OUTPUT: dict[Kind, Callable[[Any], str]] = {
    Kind.ANYARRAY: array_writer(str),
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.SMALLINT: str,
    Kind.INTEGER: str,
    Kind.BIGINT: str,
    Kind.REAL: text_of_real,
    Kind.DOUBLE: text_of_double,
    Kind.NUMERIC: text_of_numeric,
    Kind.TEXT: str,
    Kind.VARCHAR: str,
    Kind.CHAR: str,
    Kind.DATE: lambda value: value.isoformat(),
    Kind.TIMESTAMP: text_of_timestamp,
    Kind.TIMESTAMPTZ: text_of_timestamptz,
    Kind.TIME: text_of_time,
    Kind.TIMETZ: text_of_time,
    Kind.INTERVAL: text_of_interval,
    Kind.UUID: str,
    Kind.BYTEA: text_of_bytes,
    Kind.JSON: str,
    Kind.JSONB: str,
    Kind.JSONPATH: str,
    Kind.ENUM: str,
    **dict.fromkeys((Kind.NAME, Kind.INTERNAL_CHAR, *OPAQUE_KINDS, *NUMBERING_KINDS), str),
    **dict.fromkeys(REG_KINDS, attrgetter("text")),
    Kind.TID: text_of_place,
    Kind.UNKNOWN: str,
    Kind.VOID: lambda value: "",
}

"""Prints values as PostgreSQL does.

`text_function` prints what a cast to text gives, `shown` what a client sees; they differ for
booleans and for CHAR(n), which is padded only for the client. Dates are ISO, TIMESTAMPTZ is in UTC,
floats are the shortest text that reads back as the same number. Values within an array or a record
look as the client sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import lru_cache
from math import frexp, inf, isfinite
from typing import Any, Final

from qserver.values.arrays import array_writer
from qserver.values.binary_text import text_of_bytes
from qserver.values.floats import round_to_real
from qserver.values.interval_text import text_of_interval
from qserver.values.types import Kind, SqlType, type_of_value
from qserver.values.zones import offset_of, offset_text

_REAL_NORMAL_MIN = 2.0**-126


@lru_cache(maxsize=4096)
def text_function(sql_type: SqlType) -> Callable[[Any], str]:
    """The function that prints values of a type, except NULL, as a cast to text does."""
    if sql_type.element is not None:
        nests = sql_type.element.kind is not Kind.RECORD
        return array_writer(shown_function(sql_type.element), nests)
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
    if not isfinite(value):
        return _special_number(value)
    if abs(value) >= 2.0**53:
        digits, exponent = _shortest_digits(abs(value), 53, -1074)
    else:
        digits, exponent = _digits_of(repr(abs(value)))
    return _layout(value, digits, exponent, fixed_below=15)


def text_of_real(value: float) -> str:
    """The shortest text that reads back as this 32-bit number."""
    if not isfinite(value):
        return _special_number(value)
    size = abs(value)
    text = f"{size:.6g}"
    # Six digits always survive 32 bits, so if they suffice they are the shortest. Exceptions are
    # the tiniest numbers, which have fewer bits, and those from 2**24, where six digits may lie on
    # the border between two numbers.
    ordinary = _REAL_NORMAL_MIN <= size < 2.0**24 or size == 0.0
    if ordinary and round_to_real(float(text)) == size:
        digits, exponent = _digits_of(text)
    else:
        digits, exponent = _shortest_digits(size, 24, -149)
    return _layout(value, digits, exponent, fixed_below=6)


def _special_number(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value == inf else "-Infinity"


def _digits_of(text: str) -> tuple[str, int]:
    """The significant digits of a positive number's text, and the power of ten of the first."""
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return (digits, number.adjusted()) if digits else ("0", 0)


def _shortest_digits(value: float, bits: int, exponent_min: int) -> tuple[str, int]:
    """The fewest digits that lie strictly nearer to `value` than to its neighbours.

    Python's `repr` also accepts digits exactly halfway to a neighbour; PostgreSQL does not, so that
    the result does not depend on a reader's rounding. Exact arithmetic, because this is the rare
    case.
    """
    fraction, power = frexp(value)
    step_power = max(power - bits, exponent_min)
    with localcontext(Context(prec=1200)):
        exact = Decimal(value)
        half_step = Decimal(2) ** (step_power - 1)
        below = half_step / 2 if fraction == 0.5 and step_power > exponent_min else half_step
        low, high = exact - below, exact + half_step
        for count in range(1, 18):
            shape = Decimal((0, (1,), exact.adjusted() - count + 1))
            floor = exact.quantize(shape, rounding=ROUND_FLOOR)
            ceiling = exact.quantize(shape, rounding=ROUND_CEILING)
            inside = [number for number in (floor, ceiling) if low < number < high]
            if inside:
                return _digits_of(str(min(inside, key=lambda number: _distance(number, exact))))
    raise AssertionError(f"17 digits tell every double apart, but not {value!r}")


def _distance(number: Decimal, exact: Decimal) -> tuple[Decimal, int]:
    """Prefers the nearer number, and of two equally near the one with an even last digit."""
    return abs(number - exact), number.as_tuple().digits[-1] % 2


def _layout(value: float, digits: str, exponent: int, fixed_below: int) -> str:
    sign = "-" if str(value)[0] == "-" else ""
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
    """The same in UTC, the only session zone: `2024-01-02 03:04:05+00`."""
    return f"{text_of_timestamp(value)}+00"


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
    Kind.ENUM: str,
    Kind.UNKNOWN: str,
    Kind.VOID: lambda value: "",
}

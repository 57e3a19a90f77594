"""Casts between the SQL types, with PostgreSQL's results and errors.

A statement looks up `cast_function(source, target)` once, when it is compiled, and calls the
function for each value except NULL, which needs no cast.

A cast has two steps, as in PostgreSQL: to the kind of the target (a table, below), then to its
length or precision. An explicit cast to VARCHAR(n) truncates silently; an assignment raises.
`context_of` tells where a cast may happen:

    IMPLICIT      in any expression       integer → bigint → numeric → double precision
    ASSIGNMENT    into a column           the reverse, and anything → text
    EXPLICIT      only by CAST or `::`    text → anything, boolean ↔ integer

An array is cast element by element, under the rules of its elements. An untyped literal (UNKNOWN)
is text that may become any type. A cast to regclass or its kin needs the catalog: the binder makes
a call of it (`functions.objects`), and here is only where such a cast may happen.

Different from PostgreSQL: any text, not only a literal, that is cast to INTERVAL MONTH counts
months if it names no unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from math import isfinite
from typing import Any

from qserver.errors import (
    CannotCoerce,
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
)
from qserver.limits import IDENTIFIER_BYTES_MAX
from qserver.values.admission import admitter
from qserver.values.arrays import array_reader, mapped
from qserver.values.binary_text import bytes_from_text, uuid_from_text
from qserver.values.datetime_input import (
    date_from_text,
    time_from_text,
    timestamp_from_text,
    timestamptz_from_text,
    timetz_from_text,
)
from qserver.values.floats import double_from_exact, real_from_double, real_from_exact
from qserver.values.interval import MICROSECONDS_PER_DAY, Interval
from qserver.values.interval_text import interval_from_text, interval_reader
from qserver.values.json_input import json_from_text, jsonb_from_text
from qserver.values.json_path_input import json_path_from_text
from qserver.values.jsonb import Jsonb
from qserver.values.log_positions import position_from_text
from qserver.values.numerics import fit_numeric, plain_numeric, round_to_integer
from qserver.values.record_input import record_reader
from qserver.values.row_places import place_from_text
from qserver.values.second_digits import microseconds_of, second_rounder, time_of
from qserver.values.text_input import (
    boolean_from_text,
    double_from_text,
    integer_reader,
    numeric_from_text,
    real_from_text,
)
from qserver.values.text_output import text_function
from qserver.values.types import (
    INTEGER_BITS,
    INTEGER_KINDS,
    NUMBER_KINDS,
    NUMBERING_KINDS,
    OPAQUE_KINDS,
    PSEUDO_KINDS,
    REG_KINDS,
    STRING_KINDS,
    TEXT_KINDS,
    Kind,
    SqlType,
    is_vector,
)
from qserver.values.zoned_time import ZonedTime, in_zone
from qserver.values.zones import (
    WINTER,
    on_session_clock,
    session_local,
    session_moment,
    session_offset,
)

Cast = Callable[[Any], Any]


class Context(IntEnum):
    """Where a cast may happen; each member includes those before it."""

    EXPLICIT = 1
    ASSIGNMENT = 2
    IMPLICIT = 3


@lru_cache(maxsize=4096)
def cast_function(source: SqlType, target: SqlType) -> Cast:
    """The explicit cast for values other than NULL; `unchanged` if none is needed."""
    to_kind = _to_kind(source, target, Context.EXPLICIT)
    return _composed(to_kind, _cut_to_size(target) if source != target else unchanged)


@lru_cache(maxsize=4096)
def assignment_function(source: SqlType, target: SqlType) -> Cast:
    """The cast for values stored in a column, which never truncates silently."""
    to_kind = _to_kind(source, target, Context.ASSIGNMENT)
    return _composed(to_kind, _fit_to_size(target) if source != target else unchanged)


def unchanged(value: Any) -> Any:
    """The cast that does nothing."""
    return value


def context_of(source: Kind, target: Kind) -> Context | None:
    """The context of a cast between kinds; None if there is no such cast. See `context_between`."""
    if source is target:
        return Context.IMPLICIT
    if source is Kind.UNKNOWN:
        return Context.IMPLICIT
    if source in PSEUDO_KINDS or target in PSEUDO_KINDS or target is Kind.RECORD:
        return None
    if (source, target) in _EXPLICIT:
        return Context.EXPLICIT
    if target in REG_KINDS:
        return _context_of_object(source, target)
    if (source, target) in _CASTS:
        return Context.IMPLICIT if (source, target) in _IMPLICIT else Context.ASSIGNMENT
    if target in TEXT_KINDS or target is Kind.NAME:
        return Context.IMPLICIT if source in TEXT_KINDS else Context.ASSIGNMENT
    return Context.EXPLICIT if source in STRING_KINDS else None


def _context_of_object(source: Kind, target: Kind) -> Context | None:
    if source in STRING_KINDS:
        is_class = target is Kind.REGCLASS and source is not Kind.NAME
        return Context.IMPLICIT if is_class else Context.EXPLICIT
    if source in (Kind.OID, *INTEGER_KINDS) or {source, target} in _OBJECT_PAIRS:
        return Context.IMPLICIT
    return Context.EXPLICIT if source in REG_KINDS else None


def context_between(source: SqlType, target: SqlType) -> Context | None:
    """The same for whole types: arrays follow their elements; an enum casts to no other enum."""
    if source.element is not None and target.element is not None:
        if is_vector(target) and source != target:
            return Context.EXPLICIT
        return context_between(source.element, target.element)
    if target.kind is Kind.RECORD and target.oid and source.kind in STRING_KINDS:
        return Context.EXPLICIT
    if source.enum is not None and target.enum is not None:
        return Context.IMPLICIT if source.enum.key == target.enum.key else None
    return context_of(source.kind, target.kind)


def _to_kind(source: SqlType, target: SqlType, context: Context) -> Cast:
    allowed = context_between(source, target)
    if allowed is None or allowed < context:
        raise CannotCoerce(f"cannot cast type {source.bare} to {target.bare}")
    if source.element is not None and target.element is not None:
        return _each_element(_to_kind(source.element, target.element, context))
    if source.kind is target.kind:
        return unchanged
    if target.kind in TEXT_KINDS:
        return unchanged if source.kind in _TEXTUAL else text_function(source)
    if target.kind is Kind.NAME:
        return _composed(
            unchanged if source.kind in _TEXTUAL else text_function(source), name_of_text
        )
    if source.kind is Kind.CHAR and source.length is not None:
        return _padded(reader(target), source.length)
    if source.kind in _TEXTUAL:
        return reader(target)
    return _CASTS[source.kind, target.kind]


def reader(target: SqlType) -> Cast:
    """A function that reads a value from text, before length and precision apply."""
    if is_vector(target) and target.element is not None:
        read = reader(target.element)
        return lambda text: tuple([read(word) for word in text.split()])
    if target.element is not None:
        return array_reader(reader(target.element))
    if target.enum is not None:
        return target.enum.label_of
    if target.fields is not None:
        return interval_reader(target.fields)
    if target.kind is Kind.RECORD:
        return record_reader([_field_reader(each) for _, each in target.columns])
    return _READERS[target.kind]


def _field_reader(target: SqlType) -> Cast:
    """What reads a field of a row: one that is too long is refused, not cut."""
    return _composed(reader(target), _fit_to_size(target))


def name_of_text(text: str) -> str:
    """A name has up to 63 bytes; what is behind them is cut off, as in PostgreSQL."""
    if len(text) * 4 <= IDENTIFIER_BYTES_MAX:
        return text
    return text.encode()[:IDENTIFIER_BYTES_MAX].decode(errors="ignore")


def _internal_char(text: str) -> str:
    """The first byte of a text; of one that is not ASCII, PostgreSQL's octal escape."""
    first = text[:1].encode()[:1]
    return text[:1] if first < b"\x80" else f"\\{first[0]:o}"


def _unsigned(kind: Kind) -> Cast:
    def read(text: str) -> int:
        digits = text.strip()
        if not re.fullmatch(r"[-+]?\d+", digits):
            raise InvalidTextRepresentation(f'invalid input syntax for type {kind.value}: "{text}"')
        number = int(digits) if len(digits) < 20 else 2**63
        if not -(2**31) <= number < 2**32:
            raise NumericValueOutOfRange(f'value "{text}" is out of range for type {kind.value}')
        return number % 2**32

    return read


def _oid_from_integer(value: int) -> int:
    """Negative numbers of 32 bits become large ones, as in PostgreSQL."""
    if not -(2**31) <= value < 2**32:
        raise NumericValueOutOfRange("OID out of range")
    return value % 2**32


def _integer_from_oid(value: int) -> int:
    """The same 32 bits, with a sign."""
    return value - 2**32 if value >= 2**31 else int(value)


def _each_element(function: Cast) -> Cast:
    return unchanged if function is unchanged else lambda array: mapped(function, array)


def _padded(read: Cast, length: int) -> Cast:
    """Reads CHAR(n) with its blanks, which show only in error messages."""
    return lambda text: read(text.ljust(length))


def _composed(first: Cast, second: Cast) -> Cast:
    if first is unchanged:
        return second
    if second is unchanged:
        return first
    return lambda value: second(first(value))


# --- length and precision ------------------------------------------------------------------------


def _cut_to_size(target: SqlType) -> Cast:
    length = target.length
    if target.element is not None:
        return _each_element(_cut_to_size(target.element))
    if target.kind is Kind.VARCHAR and length is not None:
        return lambda text: text[:length]
    if target.kind is Kind.CHAR:
        return lambda text: text[:length].rstrip(" ")
    return _fit_to_size(target)


def _fit_to_size(target: SqlType) -> Cast:
    precision, scale = target.precision, target.scale
    if target.element is not None:
        return _each_element(_fit_to_size(target.element))
    if target.kind is Kind.NUMERIC and precision is not None and scale is not None:
        return lambda value: fit_numeric(value, precision, scale)
    if target.kind in (Kind.VARCHAR, Kind.CHAR) and target.length is not None:
        return admitter(target)
    if precision is not None or target.fields is not None:
        return second_rounder(target) or unchanged
    return unchanged


# --- numbers -------------------------------------------------------------------------------------


def _integer_from_integer(kind: Kind) -> Cast:
    low, high = -(2 ** (INTEGER_BITS[kind] - 1)), 2 ** (INTEGER_BITS[kind] - 1)

    def narrow(value: int) -> int:
        if low <= value < high:
            return value
        raise NumericValueOutOfRange(f"{kind.value} out of range")

    return narrow


def _integer_from_float(kind: Kind) -> Cast:
    narrow = _integer_from_integer(kind)

    def round_half_to_even(value: float) -> int:
        if not isfinite(value):
            raise NumericValueOutOfRange(f"{kind.value} out of range")
        return narrow(round(value))  # type: ignore[no-any-return]

    return round_half_to_even


def _integer_from_numeric(kind: Kind) -> Cast:
    narrow = _integer_from_integer(kind)

    def round_half_away_from_zero(value: Decimal) -> int:
        if not value.is_finite():
            what = "NaN" if value.is_nan() else "infinity"
            raise FeatureNotSupported(f"cannot convert {what} to {kind.value}")
        if value.adjusted() > 20:  # past 64 bits; int() of it may be huge
            raise NumericValueOutOfRange(f"{kind.value} out of range")
        return narrow(round_to_integer(value))  # type: ignore[no-any-return]

    return round_half_away_from_zero


def _numeric_from_double(value: float) -> Decimal:
    """Keeps the 15 digits that every double holds exactly."""
    return plain_numeric(Decimal(f"{value:.15g}"))


def _numeric_from_real(value: float) -> Decimal:
    return plain_numeric(Decimal(f"{value:.6g}"))


# --- dates and times -----------------------------------------------------------------------------


def _timestamp_from_date(value: date) -> datetime:
    return datetime(value.year, value.month, value.day)


def _timestamptz_from_date(value: date) -> datetime:
    return session_moment(datetime(value.year, value.month, value.day))


def _date_from_timestamptz(value: datetime) -> date:
    return on_session_clock(value).date()


def _time_from_timestamptz(value: datetime) -> time:
    return on_session_clock(value).time()


def _timetz_from_timestamptz(value: datetime) -> ZonedTime:
    return in_zone(on_session_clock(value).time(), session_offset(value))


def _timetz_from_time(value: time) -> ZonedTime:
    """The offset is that of a winter's day, because a time of day has no day of its own."""
    return in_zone(value, session_offset(WINTER))


def _interval_from_time(value: time) -> Interval:
    return Interval(0, 0, microseconds_of(value))


def _time_from_interval(value: Interval) -> time:
    """The interval without its whole days."""
    return time_of(value.microseconds % MICROSECONDS_PER_DAY)


# --- JSON ----------------------------------------------------------------------------------------


def _jsonb_kind(value: Any) -> str:
    if value is None:
        return "null"
    for python_type, name in (
        (bool, "boolean"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, python_type):
            return name
    return "numeric"


def _boolean_from_jsonb(value: Jsonb) -> bool:
    structure = value.value
    if isinstance(structure, bool):
        return structure
    raise _no_jsonb_cast(structure, Kind.BOOLEAN)


def _number_from_jsonb(kind: Kind) -> Cast:
    convert = unchanged if kind is Kind.NUMERIC else _CASTS[Kind.NUMERIC, kind]

    def number_from_jsonb(value: Jsonb) -> Any:
        structure = value.value
        if _jsonb_kind(structure) != "numeric":
            raise _no_jsonb_cast(structure, kind)
        return convert(structure if isinstance(structure, Decimal) else Decimal(structure))

    return number_from_jsonb


def _no_jsonb_cast(structure: Any, kind: Kind) -> InvalidParameterValue:
    return InvalidParameterValue(f"cannot cast jsonb {_jsonb_kind(structure)} to type {kind.value}")


# --- the tables ----------------------------------------------------------------------------------

_READERS: dict[Kind, Cast] = {
    Kind.BOOLEAN: boolean_from_text,
    Kind.REAL: real_from_text,
    Kind.DOUBLE: double_from_text,
    Kind.NUMERIC: numeric_from_text,
    Kind.DATE: date_from_text,
    Kind.TIMESTAMP: timestamp_from_text,
    Kind.TIMESTAMPTZ: timestamptz_from_text,
    Kind.TIME: time_from_text,
    Kind.TIMETZ: timetz_from_text,
    Kind.INTERVAL: interval_from_text,
    Kind.UUID: uuid_from_text,
    Kind.BYTEA: bytes_from_text,
    Kind.JSON: json_from_text,
    Kind.JSONB: jsonb_from_text,
    Kind.JSONPATH: json_path_from_text,
    **dict.fromkeys((*TEXT_KINDS, *OPAQUE_KINDS, Kind.UNKNOWN), unchanged),
    Kind.PG_LSN: position_from_text,
    Kind.TID: place_from_text,
    Kind.NAME: name_of_text,
    Kind.INTERNAL_CHAR: _internal_char,
    **{kind: _unsigned(kind) for kind in NUMBERING_KINDS},
    **{kind: integer_reader(kind) for kind in INTEGER_KINDS},
}

_CASTS: dict[tuple[Kind, Kind], Cast] = {
    (Kind.BOOLEAN, Kind.INTEGER): int,
    (Kind.INTEGER, Kind.BOOLEAN): bool,
    (Kind.REAL, Kind.DOUBLE): unchanged,
    (Kind.REAL, Kind.NUMERIC): _numeric_from_real,
    (Kind.DOUBLE, Kind.REAL): real_from_double,
    (Kind.DOUBLE, Kind.NUMERIC): _numeric_from_double,
    (Kind.NUMERIC, Kind.REAL): real_from_exact,
    (Kind.NUMERIC, Kind.DOUBLE): double_from_exact,
    (Kind.DATE, Kind.TIMESTAMP): _timestamp_from_date,
    (Kind.DATE, Kind.TIMESTAMPTZ): _timestamptz_from_date,
    (Kind.TIMESTAMP, Kind.DATE): datetime.date,
    (Kind.TIMESTAMP, Kind.TIMESTAMPTZ): session_moment,
    (Kind.TIMESTAMPTZ, Kind.DATE): _date_from_timestamptz,
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP): session_local,
    (Kind.TIMESTAMP, Kind.TIME): datetime.time,
    (Kind.TIMESTAMPTZ, Kind.TIME): _time_from_timestamptz,
    (Kind.TIMESTAMPTZ, Kind.TIMETZ): _timetz_from_timestamptz,
    (Kind.TIME, Kind.TIMETZ): _timetz_from_time,
    (Kind.TIMETZ, Kind.TIME): ZonedTime.without_zone,
    (Kind.TIME, Kind.INTERVAL): _interval_from_time,
    (Kind.INTERVAL, Kind.TIME): _time_from_interval,
    (Kind.JSON, Kind.JSONB): jsonb_from_text,
    (Kind.JSONB, Kind.JSON): str,
    (Kind.JSONB, Kind.BOOLEAN): _boolean_from_jsonb,
}
for _kind in INTEGER_KINDS:
    _CASTS[_kind, Kind.REAL] = real_from_exact
    _CASTS[_kind, Kind.DOUBLE] = float
    _CASTS[_kind, Kind.NUMERIC] = Decimal
    _CASTS[Kind.REAL, _kind] = _integer_from_float(_kind)
    _CASTS[Kind.DOUBLE, _kind] = _integer_from_float(_kind)
    _CASTS[Kind.NUMERIC, _kind] = _integer_from_numeric(_kind)
    for _wider in INTEGER_KINDS:
        if INTEGER_BITS[_wider] > INTEGER_BITS[_kind]:
            _CASTS[_kind, _wider] = unchanged
            _CASTS[_wider, _kind] = _integer_from_integer(_kind)

_CASTS[Kind.OID, Kind.INTEGER] = _integer_from_oid
_CASTS[Kind.OID, Kind.BIGINT] = int
_CASTS[Kind.INTERNAL_CHAR, Kind.INTEGER] = lambda text: ord(text[:1] or "\0")
for _kind in INTEGER_KINDS:
    _CASTS[_kind, Kind.OID] = _oid_from_integer
for _kind in REG_KINDS:
    _CASTS[_kind, Kind.OID] = int
    _CASTS[_kind, Kind.INTEGER] = _integer_from_oid
    _CASTS[_kind, Kind.BIGINT] = int
for _kind in TEXT_KINDS:
    _CASTS[Kind.NAME, _kind] = _CASTS[Kind.INTERNAL_CHAR, _kind] = unchanged
    _CASTS[_kind, Kind.NAME] = name_of_text
    _CASTS[_kind, Kind.INTERNAL_CHAR] = _internal_char

for _kind in NUMBER_KINDS:
    _CASTS[Kind.JSONB, _kind] = _number_from_jsonb(_kind)

_EXPLICIT = {
    (Kind.BOOLEAN, Kind.INTEGER),
    (Kind.INTEGER, Kind.BOOLEAN),
    *((Kind.JSONB, kind) for kind in (Kind.BOOLEAN, *NUMBER_KINDS)),
    (Kind.INTERNAL_CHAR, Kind.INTEGER),
}

# Kinds whose values are `str`.
_TEXTUAL = frozenset({*STRING_KINDS, *OPAQUE_KINDS, Kind.UNKNOWN})

# Kinds that are two names for one sort of objects.
_OBJECT_PAIRS = ({Kind.REGPROC, Kind.REGPROCEDURE}, {Kind.REGOPER, Kind.REGOPERATOR})

# Each kind widens to those after it.
_NUMBERS = (*INTEGER_KINDS, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)
_DATETIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_IMPLICIT = {
    (order[at], wider)
    for order in (_NUMBERS, _DATETIMES)
    for at in range(len(order))
    for wider in order[at + 1 :]
} | {
    (Kind.TIME, Kind.TIMETZ),
    (Kind.TIME, Kind.INTERVAL),
    (Kind.NAME, Kind.TEXT),
    (Kind.INTERNAL_CHAR, Kind.TEXT),
    *((kind, Kind.NAME) for kind in TEXT_KINDS),
    *((kind, Kind.OID) for kind in (*INTEGER_KINDS, *REG_KINDS)),
}

"""Values in PostgreSQL's binary format, out and in.

    numbers, oids           big-endian, of the type's size
    numeric                 digits in base 10,000, with weight, sign and scale
    dates and times         days or microseconds since 2000-01-01
    texts, json, enums      UTF-8; jsonb has a byte of version before it
    arrays, records         sizes and oids, then each element with its length

What cannot be a value of the type is refused with 22P03, and never read beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Any, Final
from uuid import UUID

from qserver.errors import (
    DatatypeMismatch,
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
)
from qserver.limits import ARRAY_DIMENSIONS_MAX
from qserver.pgwire.messages import NULL, text_of
from qserver.pgwire.text_format import Reader, Writer
from qserver.pgwire.types import oid_of
from qserver.values.interval import Interval
from qserver.values.records import Record
from qserver.values.row_places import PLACE_BYTES, text_of_place
from qserver.values.text_output import shown_function
from qserver.values.types import (
    NUMBERING_KINDS,
    REG_KINDS,
    Kind,
    SqlType,
    is_vector,
    type_of_value,
)
from qserver.values.zoned_time import ZonedTime
from qserver.values.zones import offset_of

_DAY_ONE: Final = date(2000, 1, 1).toordinal()
_MOMENT_ONE: Final = datetime(2000, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY_MICROSECONDS: Final = 86_400_000_000
_NAN, _INFINITY, _MINUS_INFINITY, _NEGATIVE = 0xC000, 0xD000, 0xF000, 0x4000
_SCALE_OF_INFINITY: Final = 0x20  # which PostgreSQL sends, and nobody reads
_BASE_DIGITS: Final = 4
_NUMERIC_HEAD: Final = Struct("!HhHH")
_ARRAY_HEAD: Final = Struct("!iiI")
_DIMENSION: Final = Struct("!ii")
_INT: Final = Struct("!i")
_LONG: Final = Struct("!q")
_FIELD: Final = Struct("!Ii")


# --- out ------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def binary_writer(sql_type: SqlType) -> Writer:
    """Return the function that writes values of a type, except NULL."""
    if sql_type.element is not None:
        return _array_writer(sql_type.element, 0 if is_vector(sql_type) else 1)
    if sql_type.kind is Kind.RECORD:
        return _record_writer(tuple(each for _, each in sql_type.columns))
    known = _WRITERS.get(sql_type.kind)
    if known is not None:
        return known
    shown = shown_function(sql_type)
    return lambda value: shown(value).encode()


def _write_numeric(value: Decimal) -> bytes:
    if not value.is_finite():
        if value.is_nan():
            return _NUMERIC_HEAD.pack(0, 0, _NAN, 0)
        sign = _INFINITY if value > 0 else _MINUS_INFINITY
        return _NUMERIC_HEAD.pack(0, 0, sign, _SCALE_OF_INFINITY)
    is_negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "it is finite"
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, fraction = (text[:-scale], text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    fraction = fraction.ljust(-(-len(fraction) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    text = whole + fraction
    groups = [int(text[at : at + _BASE_DIGITS]) for at in range(0, len(text), _BASE_DIGITS)]
    weight = len(whole) // _BASE_DIGITS - 1
    while groups and groups[0] == 0:
        del groups[0]
        weight -= 1
    while groups and groups[-1] == 0:
        del groups[-1]
    if not groups:
        weight = is_negative = 0
    head = _NUMERIC_HEAD.pack(len(groups), weight, _NEGATIVE if is_negative else 0, scale)
    return head + Struct(f"!{len(groups)}h").pack(*groups)


def _microseconds_of(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _write_timetz(value: ZonedTime) -> bytes:
    west = -int(offset_of(value).total_seconds())
    return Struct("!qi").pack(_microseconds_of(value), west)


def _write_position(value: str) -> bytes:
    """Write a place in the log, 16/B374D848."""
    high, _, low = value.partition("/")
    return Struct("!II").pack(int(high, 16), int(low, 16))


def _write_timestamp(value: datetime) -> bytes:
    return _LONG.pack((value.replace(tzinfo=None) - _MOMENT_ONE) // _MICROSECOND)


_WRITERS: Final[dict[Kind, Writer]] = {
    Kind.BOOLEAN: lambda value: b"\1" if value else b"\0",
    Kind.SMALLINT: Struct("!h").pack,
    Kind.INTEGER: _INT.pack,
    Kind.BIGINT: _LONG.pack,
    Kind.REAL: Struct("!f").pack,
    Kind.DOUBLE: Struct("!d").pack,
    Kind.NUMERIC: _write_numeric,
    Kind.TEXT: str.encode,
    Kind.VARCHAR: str.encode,
    Kind.DATE: lambda value: _INT.pack(value.toordinal() - _DAY_ONE),
    Kind.TIMESTAMP: _write_timestamp,
    Kind.TIMESTAMPTZ: _write_timestamp,  # stored in UTC
    Kind.TIME: lambda value: _LONG.pack(_microseconds_of(value)),
    Kind.TIMETZ: _write_timetz,
    Kind.INTERVAL: lambda value: Struct("!qii").pack(value.microseconds, value.days, value.months),
    Kind.UUID: lambda value: value.bytes,
    Kind.BYTEA: bytes,
    **dict.fromkeys((Kind.JSONB, Kind.JSONPATH), lambda value: b"\1" + str(value).encode()),
    Kind.VOID: lambda value: b"",
    Kind.PG_LSN: _write_position,
    Kind.XID8: lambda value: Struct("!Q").pack(int(value)),
    Kind.TID: lambda value: value.to_bytes(PLACE_BYTES),
    Kind.ANYARRAY: lambda value: _array_writer(_type_of_items(value), 1)(value),
    **dict.fromkeys((*NUMBERING_KINDS, *REG_KINDS), Struct("!I").pack),
}
"""The other kinds are written as their texts."""


def _array_writer(element: SqlType, first: int) -> Writer:
    write, oid = binary_writer(element), oid_of(element)

    def array(value: tuple[Any, ...]) -> bytes:
        sizes: list[int] = []
        inner: Any = value
        while type(inner) is tuple and (inner or not sizes):
            sizes.append(len(inner))
            inner = inner[0] if inner else None
        items = list(value)
        for _ in sizes[1:]:
            items = [each for row in items for each in row]
        if not items:
            return _ARRAY_HEAD.pack(0, 0, oid)
        head = _ARRAY_HEAD.pack(len(sizes), int(None in items), oid)
        places = [_DIMENSION.pack(size, first) for size in sizes]
        return b"".join([head, *places, *[_sized(each, write) for each in items]])

    return array


def _record_writer(types: tuple[SqlType, ...]) -> Writer:
    def record(value: tuple[Any, ...]) -> bytes:
        known = types or tuple(map(_type_of_field, value))
        parts = [_INT.pack(len(known))]
        for each, sql_type in zip(value, known, strict=True):
            parts += (Struct("!I").pack(oid_of(sql_type)), _sized(each, binary_writer(sql_type)))
        return b"".join(parts)

    return record


def _type_of_items(value: tuple[Any, ...]) -> SqlType:
    """Return the type of the items of an array of any type."""
    inner: Any = value
    while isinstance(inner, tuple):
        inner = next((each for each in inner if each is not None), None)
    return SqlType(Kind.TEXT) if inner is None else type_of_value(inner)


def _type_of_field(value: Any) -> SqlType:
    return SqlType(Kind.UNKNOWN) if value is None else type_of_value(value)


def _sized(value: Any, write: Writer) -> bytes:
    if value is None:
        return NULL
    data = write(value)
    return _INT.pack(len(data)) + data


# --- in -------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def binary_reader(sql_type: SqlType) -> Reader:
    """Return the function that reads a parameter of a type."""
    if sql_type.element is not None:
        return _guarded(_array_reader(sql_type.element), sql_type)
    if sql_type.kind is Kind.RECORD:
        return _guarded(_record_reader(tuple(each for _, each in sql_type.columns)), sql_type)
    read = _READERS.get(sql_type.kind)
    return text_of if read is None else _guarded(read, sql_type)


def _guarded(read: Reader, sql_type: SqlType) -> Reader:
    def guarded(data: bytes) -> Any:
        try:
            return read(data)
        except (StructError, IndexError, ValueError, OverflowError) as wrong:
            raise InvalidBinaryRepresentation(
                f"incorrect binary data format for a value of type {sql_type}"
            ) from wrong

    return guarded


def _number(code: str) -> Reader:
    unpack = Struct(code).unpack
    return lambda data: unpack(data)[0]


def _read_position(data: bytes) -> str:
    high, low = Struct("!II").unpack(data)
    return f"{high:X}/{low:X}"


def _read_boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError("one byte is expected")
    return data != b"\0"


def _read_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = _NUMERIC_HEAD.unpack_from(data)
    groups = Struct(f"!{count}H").unpack(data[_NUMERIC_HEAD.size :])
    if sign in (_NAN, _INFINITY, _MINUS_INFINITY):
        return Decimal({_NAN: "NaN", _INFINITY: "Infinity"}.get(sign, "-Infinity"))
    if sign not in (0, _NEGATIVE) or scale > 0x3FFF or any(each > 9999 for each in groups):
        raise ValueError("it is no number")
    digits = "".join([f"{each:04}" for each in groups]) or "0"
    exponent = (weight + 1 - count) * _BASE_DIGITS
    drop = -exponent - scale
    if drop > 0:  # digits beyond the scale do not count
        digits = digits[:-drop] or "0"
    elif drop < 0:
        digits += "0" * -drop
    return Decimal((int(sign == _NEGATIVE), tuple(map(int, digits)), -scale))


def _read_date(data: bytes) -> date:
    (days,) = _INT.unpack(data)
    if not 1 <= days + _DAY_ONE <= date.max.toordinal():
        raise DatetimeFieldOverflow("date out of range")
    return date.fromordinal(days + _DAY_ONE)


def _read_timestamp(data: bytes) -> datetime:
    (microseconds,) = _LONG.unpack(data)
    try:
        return _MOMENT_ONE + timedelta(microseconds=microseconds)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def _time_of(microseconds: int) -> time:
    if not 0 <= microseconds < _DAY_MICROSECONDS:
        raise DatetimeFieldOverflow("time out of range")
    return (_MOMENT_ONE + timedelta(microseconds=microseconds)).time()


def _read_timetz(data: bytes) -> ZonedTime:
    microseconds, west = Struct("!qi").unpack(data)
    at, zone = _time_of(microseconds), timezone(timedelta(seconds=-west))
    return ZonedTime(at.hour, at.minute, at.second, at.microsecond, zone)


def _read_interval(data: bytes) -> Interval:
    microseconds, days, months = Struct("!qii").unpack(data)
    return Interval(months, days, microseconds)


def _read_place(data: bytes) -> str:
    if len(data) != PLACE_BYTES:
        raise ValueError(f"a tid has {PLACE_BYTES} bytes")
    return text_of_place(int.from_bytes(data))


def _read_versioned(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError("the only version is 1")
    return text_of(data[1:])


_READERS: Final[dict[Kind, Reader]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.SMALLINT: _number("!h"),
    Kind.INTEGER: _number("!i"),
    Kind.BIGINT: _number("!q"),
    Kind.REAL: _number("!f"),
    Kind.DOUBLE: _number("!d"),
    Kind.NUMERIC: _read_numeric,
    Kind.DATE: _read_date,
    Kind.TIMESTAMP: _read_timestamp,
    Kind.TIMESTAMPTZ: lambda data: _read_timestamp(data).replace(tzinfo=UTC),
    Kind.TIME: lambda data: _time_of(_LONG.unpack(data)[0]),
    Kind.TIMETZ: _read_timetz,
    Kind.INTERVAL: _read_interval,
    Kind.UUID: lambda data: UUID(bytes=data),
    Kind.BYTEA: lambda data: data,
    **dict.fromkeys((Kind.JSONB, Kind.JSONPATH), _read_versioned),
    Kind.PG_LSN: _read_position,
    Kind.XID8: lambda data: str(Struct("!Q").unpack(data)[0]),
    Kind.TID: _read_place,
    **dict.fromkeys(NUMBERING_KINDS, _number("!I")),
}
"""The other kinds are texts."""


def _record_reader(types: tuple[SqlType, ...]) -> Reader:
    if not types:
        raise FeatureNotSupported("input of anonymous composite types is not implemented")
    reads = [binary_reader(each) for each in types]

    def record(data: bytes) -> Record:
        (count,) = _INT.unpack_from(data)
        if count != len(reads):
            raise DatatypeMismatch(f"wrong number of columns: {count}, expected {len(reads)}")
        at, values = _INT.size, []
        for read in reads:
            _, size = _FIELD.unpack_from(data, at)
            at += _FIELD.size
            if size < -1 or at + max(size, 0) > len(data):
                raise ValueError("a field is cut off")
            values.append(None if size == -1 else read(data[at : at + size]))
            at += max(size, 0)
        if at != len(data):
            raise ValueError("there is more behind the last field")
        return Record(values)

    return record


def _array_reader(element: SqlType) -> Reader:
    read = binary_reader(element)

    def array(data: bytes) -> tuple[Any, ...]:
        count, _, _ = _ARRAY_HEAD.unpack_from(data)
        if not 0 <= count <= ARRAY_DIMENSIONS_MAX:
            raise ValueError("invalid number of dimensions")
        at, sizes, total = _ARRAY_HEAD.size, [], 1
        for _ in range(count):
            size, low = _DIMENSION.unpack_from(data, at)
            if size < 0 or low != 1:
                raise ValueError("arrays count from 1")
            sizes.append(size)
            total *= size
            at += _DIMENSION.size
        if not count:
            total = 0
        if total * _INT.size > len(data):
            raise ValueError("there are fewer elements")
        items: list[Any] = list(_items(data, at, total, read))
        for size in reversed(sizes[1:]):
            items = [tuple(items[at : at + size]) for at in range(0, len(items), size or 1)]
        return tuple(items)

    return array


def _items(data: bytes, at: int, count: int, read: Callable[[bytes], Any]) -> Iterator[Any]:
    for _ in range(count):
        (size,) = _INT.unpack_from(data, at)
        at += _INT.size
        if size == -1:
            yield None
            continue
        if size < 0 or at + size > len(data):
            raise ValueError("an element is cut off")
        yield read(data[at : at + size])
        at += size
    if at != len(data):
        raise ValueError("there is more behind the last element")

"""Encodes rows and keys as self-describing MessagePack, without loss.

`decode(encode(value)) == value`, and the encoding keeps more: types (1, 1.0, true and 1.00 stay
four things), the scale of a Decimal, the sign of -0.0, NaN, NULL_KEY. Sequences decode as tuples.

MessagePack has 64-bit integers, floats, text, bytes, booleans, nil and points in time. All other
values are extensions; the codes are part of the file format and never change:

    code  value                      payload
    1     Decimal                    its text, which holds scale, sign, NaN and Infinity
    2     date                       proleptic ordinal, 1 is 0001-01-01, as text
    3     datetime without zone      ISO text
    4     int past 64 bits           hexadecimal text
    5     NAN_KEY, NULL_KEY, TOP     rank, one byte
    6     Descending                 the element, encoded by these rules
    7     tuple within a row         the tuple, encoded by these rules (`encode_entries` only)
    8     Interval                   months, days and microseconds as text, blanks between
    9     time                       ISO text, with the offset if it has one
    10    UUID                       its 16 bytes
    11    Jsonb                      its canonical text
    12    Label of an enum           position and label as text, a blank between
    -1    datetime with zone         MessagePack's own timestamp, in UTC

msgspec writes Decimals and dates as bare text unless they are replaced first. Replacing costs more
than encoding, so one check of all types, at C speed, finds whether there is anything to replace; in
most rows there is not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any, cast
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from qserver.errors import DataCorrupted
from qserver.values.enumeration import Label
from qserver.values.interval import Interval, interval_of_parts
from qserver.values.jsonb import Jsonb
from qserver.values.keys import ABOVE_BY_RANK, Above, Descending, Key, Row
from qserver.values.zoned_time import ZonedTime, in_zone

# What msgspec or the readers of the extensions raise for invalid bytes.
_UNREADABLE = (ValueError, ArithmeticError, LookupError, TypeError, RecursionError)

DECIMAL = 1
DATE = 2
TIMESTAMP = 3
BIG_INTEGER = 4
ABOVE = 5
DESCENDING = 6
NESTED = 7
INTERVAL = 8
TIME = 9
UUID_BYTES = 10
JSONB = 11
LABEL = 12

SHARED_BYTES_MAX = 6
SHARED_MAX = 2**14
"""Decimals and dates whose text is so short, and so many of each, are one object in all rows."""

Entry = tuple[Key, Row | None]
Buffer = bytes | memoryview
Replacements = dict[type, Callable[[Any], Any]]


def encode(value: object) -> bytes:
    """Encode a SQL value, a key element, or any nest of tuples, lists and str-keyed dicts."""
    try:
        return _encode(_prepare(value))
    except OverflowError:
        return _encode(_prepare_every_integer(value))


def decode(data: bytes) -> Any:
    """Decode what `encode` encoded; lists become tuples."""
    try:
        return _freeze(_decode(data))
    except _UNREADABLE as error:
        raise _corrupted(data, error) from error


def encode_entries(entries: Mapping[Key, Row | None], plain: bool = False) -> bytes:
    """Encode writes by key; a row of None is a deletion."""
    return encode_columns(list(entries), list(entries.values()), plain)


def encode_columns(keys: Sequence[Key], rows: Sequence[Row | None], plain: bool = False) -> bytes:
    """Encode keys and rows as two columns: as fast to write as pairs, and faster to read.

    `plain`: the table's definition proves that there is nothing to replace.
    """
    try:
        if plain:
            return _encode((keys, rows))
        if _all_plain(map(type, _flat(keys))) and _all_plain(map(type, _flat(filter(None, rows)))):
            return _encode((keys, rows))
        return _encode((_replaced_in(keys), _replaced_in(rows)))
    except OverflowError:
        return _encode((_replaced(keys, _REPLACE_EVERY), _replaced(rows, _REPLACE_EVERY)))


def decode_entries(data: bytes) -> list[Entry]:
    """The entries that `encode_entries` encoded, in order."""
    return list(zip(*decode_columns(data), strict=True))


def count_entries(data: bytes, start: int = 0) -> int:
    """How many entries were encoded, without reading them: arrays begin with their length."""
    kind = data[start + 1]
    if kind & 0xF0 == 0x90:
        return kind & 0x0F
    return int.from_bytes(data[start + 2 : start + (4 if kind == 0xDC else 6)], "big")


def find_row(data: Buffer, key: Key) -> Row | None:
    """The row at a key of ascending ones that `encode_columns` encoded; decodes no other row."""
    try:
        keys, rows = _decode_keys(data)
    except _UNREADABLE as error:
        raise _corrupted(data, error) from error
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        return None
    try:
        return _decode_row(rows[at])
    except _UNREADABLE as error:
        raise _corrupted(data, error) from error


def decode_columns(data: Buffer) -> tuple[list[Key], list[Row | None]]:
    """The same entries as two columns of one length."""
    try:
        keys, rows = _decode_entries(data)
        if len(keys) != len(rows):
            raise ValueError(f"{len(keys)} keys with {len(rows)} rows")
        return keys, rows
    except _UNREADABLE as error:
        raise _corrupted(data, error) from error


def decode_stored_rows(data: Buffer) -> list[Row]:
    """The rows of the same entries as they are stored: what MessagePack lacks is an `Ext`.

    Reading all extensions takes three times as long as the rest. A scan that wants few columns
    reads theirs with `restored`.
    """
    try:
        rows: list[Row] = _decode_stored(data)[1]
        return rows
    except _UNREADABLE as error:
        raise _corrupted(data, error) from error


def restored(values: Iterable[Any]) -> list[Any]:
    """Values of stored rows as what they are."""
    try:
        return [
            _RESTORE[value.code](cast(bytes, value.data)) if type(value) is Ext else value
            for value in values
        ]
    except _UNREADABLE as error:
        raise DataCorrupted("cannot decode stored values", detail=str(error)) from error


# --- replacing values that MessagePack lacks -----------------------------------------------------


def _prepare(value: Any) -> Any:
    replace = _REPLACE.get(type(value))
    return value if replace is None else replace(value)


def _prepare_sequence(values: Sequence[Any]) -> Any:
    return values if _all_plain(map(type, values)) else tuple(map(_prepare, values))


def _prepare_mapping(mapping: dict[str, Any]) -> Any:
    return {name: _prepare(value) for name, value in mapping.items()}


def _prepare_time(value: time) -> Ext:
    return Ext(TIME, value.isoformat().encode())


def _prepare_datetime(value: datetime) -> object:
    # A datetime with a zone is a point in time, which MessagePack has.
    return Ext(TIMESTAMP, value.isoformat().encode()) if value.tzinfo is None else value


def _prepare_every_integer(value: Any) -> Any:
    """The slow path, for a value with an integer that does not fit in 64 bits."""
    if isinstance(value, tuple | list):
        return tuple(map(_prepare_every_integer, value))
    if isinstance(value, dict):
        return {name: _prepare_every_integer(part) for name, part in value.items()}
    return _prepare_integer(value) if type(value) is int else _prepare(value)


def _prepare_integer(value: int) -> object:
    if -(2**63) <= value < 2**64:
        return value
    return Ext(BIG_INTEGER, b"%x" % value if value >= 0 else b"-%x" % -value)


def _prepare_nested(value: Any) -> object:
    # The reader of entries expects one level of arrays, which saves it a search; a deeper array is
    # wrapped in an extension.
    return Ext(NESTED, encode(value))


def _replaced_in(rows: Sequence[Row | None]) -> Sequence[Any]:
    """Replace values column by column: most columns have nothing to replace, or every value."""
    try:
        columns: list[Any] = list(zip(*rows, strict=True))
    except (TypeError, ValueError):  # a deleted row, or rows of different lengths
        return _replaced(rows, _REPLACE_IN_ROW)
    if not columns:
        return rows
    replacement = _REPLACE_IN_ROW.get
    for at, column in enumerate(columns):
        kinds = set(map(type, column))
        if kinds.isdisjoint(_REPLACE_IN_ROW):
            continue
        if len(kinds) == 1:
            columns[at] = list(map(_REPLACE_IN_ROW[kinds.pop()], column))
        else:
            columns[at] = [
                value if (replace := replacement(type(value))) is None else replace(value)
                for value in column
            ]
    return list(zip(*columns, strict=True))


def _replaced(rows: Iterable[Row | None], replacements: Replacements) -> list[Any]:
    replacement = replacements.get
    return [
        None
        if row is None
        else [
            value if (replace := replacement(type(value))) is None else replace(value)
            for value in row
        ]
        for row in rows
    ]


_ABOVE_EXTENSIONS = {rank: Ext(ABOVE, bytes((rank,))) for rank in ABOVE_BY_RANK}

_REPLACE: Replacements = {
    tuple: _prepare_sequence,
    list: _prepare_sequence,
    dict: _prepare_mapping,
    Decimal: lambda value: Ext(DECIMAL, str(value).encode()),
    date: lambda value: Ext(DATE, b"%d" % value.toordinal()),
    datetime: _prepare_datetime,
    Above: lambda value: _ABOVE_EXTENSIONS[value.rank],
    Descending: lambda value: Ext(DESCENDING, encode(value.value)),
    Interval: lambda value: Ext(INTERVAL, b"%d %d %d" % value.parts),
    time: _prepare_time,
    ZonedTime: _prepare_time,
    UUID: lambda value: Ext(UUID_BYTES, value.bytes),
    Jsonb: lambda value: Ext(JSONB, value.text.encode()),
    Label: lambda value: Ext(LABEL, f"{value.position!r} {value}".encode()),
}
_REPLACE_IN_ROW: Replacements = _REPLACE | dict.fromkeys((tuple, list, dict), _prepare_nested)
_REPLACE_EVERY: Replacements = _REPLACE_IN_ROW | {int: _prepare_integer}

_all_plain = frozenset(_REPLACE).isdisjoint
_flat = chain.from_iterable


# --- restoring -----------------------------------------------------------------------------------


def _restore(code: int, payload: memoryview) -> Any:
    restore = _RESTORE.get(code)
    if restore is None:
        raise ValueError(f"unknown extension {code}")
    return restore(bytes(payload))


class _Shared(dict[bytes, Any]):
    """Values by their payloads; the short ones, of which there are few, are read once."""

    def __init__(self, read: Callable[[bytes], Any]) -> None:
        self._read = read

    def __missing__(self, payload: bytes) -> Any:
        value = self._read(payload)
        if len(payload) <= SHARED_BYTES_MAX and len(self) < SHARED_MAX:
            self[payload] = value
        return value


@lru_cache(maxsize=4096)
def _label(payload: bytes) -> Label:
    """Many rows share few labels, so each label is one object."""
    position, _, text = payload.decode().partition(" ")
    return Label(text, float(position))


def _time(payload: bytes) -> time:
    value = time.fromisoformat(payload.decode())
    return value if value.tzinfo is None else in_zone(value, value.tzinfo)


_RESTORE: dict[int, Callable[[bytes], Any]] = {
    DECIMAL: _Shared(lambda payload: Decimal(payload.decode())).__getitem__,
    DATE: _Shared(lambda payload: date.fromordinal(int(payload))).__getitem__,
    TIMESTAMP: lambda payload: datetime.fromisoformat(payload.decode()),
    BIG_INTEGER: lambda payload: int(payload, 16),
    ABOVE: lambda payload: ABOVE_BY_RANK[payload[0]],
    DESCENDING: lambda payload: Descending(decode(payload)),
    NESTED: lambda payload: decode(payload),
    INTERVAL: lambda payload: interval_of_parts(*map(int, payload.split())),
    TIME: _time,
    UUID_BYTES: lambda payload: UUID(bytes=payload),
    JSONB: lambda payload: Jsonb(payload.decode()),
    LABEL: _label,
}


def _freeze(value: Any) -> Any:
    """msgspec decodes lists; convert them to tuples at every level."""
    kind = type(value)
    if kind is list:
        return tuple(value) if _NESTING.isdisjoint(map(type, value)) else tuple(map(_freeze, value))
    if kind is dict:
        return {name: _freeze(part) for name, part in value.items()}
    return value


_NESTING = frozenset({tuple, list, dict})


def _corrupted(data: Buffer, error: Exception) -> DataCorrupted:
    return DataCorrupted(f"cannot decode {len(data)} bytes of stored data", detail=str(error))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ext_hook=_restore).decode
_decode_entries = msgspec.msgpack.Decoder(
    tuple[list[tuple[Any, ...]], list[tuple[Any, ...] | None]], ext_hook=_restore
).decode
_decode_stored = msgspec.msgpack.Decoder(tuple[msgspec.Raw, list[tuple[Any, ...]]]).decode
_decode_keys = msgspec.msgpack.Decoder(
    tuple[list[tuple[Any, ...]], list[msgspec.Raw]], ext_hook=_restore
).decode
_decode_row = msgspec.msgpack.Decoder(tuple[Any, ...], ext_hook=_restore).decode

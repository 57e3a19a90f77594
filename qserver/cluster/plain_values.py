"""Plain values as msgpack, and back without a schema.

msgpack has None, booleans, numbers, texts, bytes, lists and maps. Extensions carry the rest:
Decimal, UUID, dates, times, intervals and integers of more than 64 bits. A datetime with a zone
comes back with its offset from UTC, as an equal one; a datetime without a zone stays without.

**A tuple comes back as a list.** A struct is sent as a map of its fields, or as a list if it is
`array_like`; its reader converts what it gets. Everything else is refused with TypeError: to send
it is a mistake of the program. So is a key of a map that needs an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

_SAME: Final = frozenset({type(None), bool, float, str, bytes})
_MICROSECOND: Final = timedelta(microseconds=1)


def _from_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode())


def _integer_bytes(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


_EXTENSIONS: Final[tuple[tuple[type, Callable[[Any], bytes], Callable[[bytes], object]], ...]] = (
    (int, _integer_bytes, _integer),
    (Decimal, lambda value: str(value).encode(), _from_text(Decimal)),
    (UUID, lambda value: value.bytes, lambda data: UUID(bytes=data)),
    (datetime, lambda value: value.isoformat().encode(), _from_text(datetime.fromisoformat)),
    (date, lambda value: value.isoformat().encode(), _from_text(date.fromisoformat)),
    (time, lambda value: value.isoformat().encode(), _from_text(time.fromisoformat)),
    (
        timedelta,
        lambda value: _integer_bytes(value // _MICROSECOND),
        lambda data: timedelta(microseconds=_integer(data)),
    ),
)
"""A type, its bytes, and the way back; its place here is its code."""

_PACKERS: Final = {kind: (code, to) for code, (kind, to, _) in enumerate(_EXTENSIONS)}


def packed(value: Any) -> object:
    """Return what msgpack can hold for a plain value."""
    kind = type(value)
    if kind in _SAME or (kind is int and -(1 << 63) <= value < 1 << 64):
        return value
    if kind is list or kind is tuple:
        return [each if type(each) in _SAME else packed(each) for each in value]
    if kind is dict:
        return {packed(key): packed(each) for key, each in value.items()}
    if kind in _PACKERS:
        code, to_bytes = _PACKERS[kind]
        return Ext(code, to_bytes(value))
    if isinstance(value, msgspec.Struct):
        fields = {name: packed(getattr(value, name)) for name in value.__struct_fields__}
        return list(fields.values()) if value.__struct_config__.array_like else fields
    raise TypeError(f"{kind.__qualname__} is not a plain value")


def unpacked(code: int, data: memoryview) -> object:
    """Return the value of an extension: the hook of a msgpack decoder."""
    if not 0 <= code < len(_EXTENSIONS):
        raise ValueError(f"no type has the code {code}")
    return _EXTENSIONS[code][2](bytes(data))

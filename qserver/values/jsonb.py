"""JSONB: JSON by its meaning, in one canonical text.

    {"b": 1.50, "aa": 2, "b": 3}    becomes    {"b": 3, "aa": 2}

The last of equal keys wins; keys are ordered by length, then by bytes; numbers keep their scale
and lose their exponent; blanks stand where PostgreSQL prints them. The text is the value: compact
and ready to show; a reader in C parses it when a function asks. A small cache keeps the last
structures, because expressions ask several times for the same one.

Structures are None, bool, int, Decimal, str, list and dict, and nothing mutates them. 1.0 and 1.00
are equal but differ in text, so comparison uses `order_key`, in PostgreSQL's order:

    []  <  null  <  "text"  <  number  <  false  <  true  <  [array]  <  {object}

with longer arrays and objects above shorter ones. (PostgreSQL puts a top-level empty array first.)
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, final

import msgspec

Structure = Any
"""None, bool, int, Decimal, str, a list of structures or a dict from str to structures."""


@final
class Jsonb:
    """A JSONB value. Make one with `jsonb_of`, or from a canonical text."""

    __slots__ = ("text",)

    text: str

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "text", text)

    @property
    def value(self) -> Structure:
        """The structure; do not mutate it."""
        return _read(self.text)

    def order_key(self) -> tuple[Any, ...]:
        """A tuple that sorts and compares as the value does."""
        value = _read(self.text)
        return (-1,) if value == [] else order_key(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Jsonb):
            return NotImplemented
        return self.text == other.text or self.order_key() == other.order_key()

    def __lt__(self, other: object) -> bool:
        return self.order_key() < other.order_key() if isinstance(other, Jsonb) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.order_key() <= other.order_key() if isinstance(other, Jsonb) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.order_key() > other.order_key() if isinstance(other, Jsonb) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.order_key() >= other.order_key() if isinstance(other, Jsonb) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.order_key())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Jsonb does not change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Jsonb does not change: {name}")

    def __reduce__(self) -> tuple[type[Jsonb], tuple[str]]:
        return Jsonb, (self.text,)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Jsonb({self.text!r})"


def jsonb_of(value: Structure) -> Jsonb:
    return Jsonb(_canonical_text(value))


def key_order(key: str) -> tuple[int, bytes]:
    """The sort key of an object's keys: by length, then by bytes."""
    encoded = key.encode()
    return len(encoded), encoded


def quoted(text: str) -> str:
    return encode_basestring(text)


def number_text(value: int | Decimal) -> str:
    """A number as JSON: all digits, no exponent."""
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _canonical_text(value: Structure) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int:
        return str(value)
    if kind is dict:
        keys = sorted(value, key=key_order) if len(value) > 1 else value
        texts = [f"{encode_basestring(key)}: {_canonical_text(value[key])}" for key in keys]
        return f"{{{', '.join(texts)}}}"
    if kind is list:
        return f"[{', '.join(map(_canonical_text, value))}]"
    return _CONSTANTS[value] if value is None or kind is bool else number_text(value)


_CONSTANTS = {None: "null", True: "true", False: "false"}


def order_key(value: Structure) -> tuple[Any, ...]:
    """The order key of a structure inside another."""
    kind = type(value)
    if value is None:
        return (0,)
    if kind is str:
        return (1, value)
    if kind is bool:
        return (3, value)
    if kind is dict:
        keys = sorted(value, key=key_order) if len(value) > 1 else value
        parts = [part for key in keys for part in (key, order_key(value[key]))]
        return (5, len(value), *parts)
    if kind is list:
        return (4, len(value), *map(order_key, value))
    return (2, _plain(value))


def _plain(value: int | Decimal) -> Decimal:
    """Equal numbers as one Decimal."""
    return Decimal(number_text(value).rstrip("0").rstrip(".") if _has_point(value) else value)


def _has_point(value: int | Decimal) -> bool:
    return isinstance(value, Decimal) and "." in number_text(value)


KEPT_LENGTH_MAX = 64 * 1024
"""Longer texts are not cached: a cached structure takes ten times the length of its text."""


def _read(text: str) -> Structure:
    return _read_kept(text) if len(text) <= KEPT_LENGTH_MAX else read_once(text)


def read_once(text: str) -> Structure:
    """Return the structure of a canonical text that is not read again."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        # The only canonical texts that msgspec refuses hold an integer of thousands of digits.
        return _LARGE_NUMBERS.decode(text)


_read_kept = lru_cache(maxsize=64)(read_once)

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_LARGE_NUMBERS = JSONDecoder(parse_int=Decimal, parse_float=Decimal)

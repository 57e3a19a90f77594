"""How many bytes a value has, about: what it counts for as memory and against its largest size.

Only values whose length is not fixed by their type are measured; all others are taken for nothing,
because whoever counts rows takes a flat sum for each of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from qserver.errors import ProgramLimitExceeded
from qserver.limits import ROW_BYTES_MAX
from qserver.values.jsonb import Jsonb
from qserver.values.records import Record
from qserver.values.types import TEXT_KINDS, Kind, SqlType

ELEMENT_BYTES: Final = 16
"""What each element of an array counts for, beside its own length."""

JSONB_BYTES: Final = 96
"""The same for one that is JSON: it has a text, and that has a length."""

_NUMERIC_SMALL: Final = Decimal(0).__sizeof__()

SIZED_KINDS: Final = frozenset(
    {
        *TEXT_KINDS,
        Kind.BYTEA,
        Kind.JSON,
        Kind.JSONB,
        Kind.NUMERIC,
        Kind.ARRAY,
        Kind.RECORD,
        Kind.UNKNOWN,
    }
)
"""Kinds whose values have a length of their own."""


def is_sized(sql_type: SqlType) -> bool:
    """Can values of the type be long? A declared precision or length keeps them short."""
    if sql_type.kind is Kind.NUMERIC:
        return sql_type.precision is None
    return sql_type.kind in SIZED_KINDS


def check_rows(rows: Sequence[tuple[Any, ...]], sized: Sequence[int]) -> None:
    """Refuse a row that is too big to be answered; `sized`: the positions of long values."""
    sizes = [sum([size_of(row[at]) for at in sized]) for row in rows]
    most = max(sizes)
    if most > ROW_BYTES_MAX:
        raise ProgramLimitExceeded(
            f"row is too big: size {most}, maximum size {ROW_BYTES_MAX}",
            hint="Select fewer of its columns.",
        )


def size_of(value: Any) -> int:
    """The bytes of a value; 0 for NULL and for whatever has a fixed size."""
    kind = type(value)
    if kind is str:
        return len(value) if value.isascii() else int(value.__sizeof__())
    if kind is bytes:
        return len(value)
    if kind is Jsonb:
        return size_of(value.text)
    if kind is Decimal:
        return int(value.__sizeof__()) - _NUMERIC_SMALL
    if kind is tuple or kind is list or kind is Record:
        return _size_of_elements(value)
    return 0


def _size_of_elements(elements: Any) -> int:
    """A million elements take some hundredths of a second: nothing here is called for each."""
    flat = ELEMENT_BYTES * len(elements)
    kinds = set(map(type, elements))
    if kinds.isdisjoint(_SIZED_CLASSES):
        return flat
    if type(None) in kinds:
        kinds.discard(type(None))
        elements = [each for each in elements if each is not None]
    if len(kinds) > 1:
        return flat + sum(map(size_of, elements))
    (kind,) = kinds
    if kind is tuple:
        return flat + _size_of_elements(tuple(chain.from_iterable(elements)))
    if kind is Decimal:
        return flat + sum(map(Decimal.__sizeof__, elements))
    if kind is Jsonb:
        flat += JSONB_BYTES * len(elements)
        elements = [each.text for each in elements]
    elif kind is not str:
        return flat + sum(map(size_of, elements))
    joined = "".join(elements)
    return flat + (len(joined) if joined.isascii() else sum(map(str.__sizeof__, elements)))


_SIZED_CLASSES: Final = frozenset({str, bytes, Jsonb, Decimal, tuple, list, Record})

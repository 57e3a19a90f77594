"""Estimates the bytes of a value, for memory accounting and size limits.

Only values without a fixed length are measured. All others count 0, because callers that count rows
add a flat sum per column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Final

from qserver.errors import ProgramLimitExceeded
from qserver.limits import ROW_BYTES_MAX
from qserver.values.jsonb import Jsonb
from qserver.values.keys import Descending, RecordKey
from qserver.values.records import Record
from qserver.values.types import TEXT_KINDS, Kind, SqlType

ELEMENT_BYTES: Final = 16
"""The charge for each element of an array, besides its own length."""

JSONB_BYTES: Final = 96
"""The additional charge for a JSONB element: an object with a text."""

_NUMERIC_SMALL: Final = Decimal(0).__sizeof__()
_TEXT_EMPTY: Final = "".__sizeof__()
_TEXT_OF: Final = attrgetter("text")

_TEXTS: Final = frozenset({str})
_NUMERICS: Final = frozenset({Decimal})
_SIZED: Final = frozenset({str, bytes, Jsonb, Decimal, tuple, list, Record, RecordKey, Descending})
"""The types whose values count in `size_of`."""

SIZED_KINDS: Final = frozenset(
    {
        *TEXT_KINDS,
        Kind.BYTEA,
        Kind.JSON,
        Kind.JSONB,
        Kind.JSONPATH,
        Kind.NUMERIC,
        Kind.ARRAY,
        Kind.RECORD,
        Kind.UNKNOWN,
    }
)
"""Kinds whose values vary in length."""


def is_sized(sql_type: SqlType) -> bool:
    """Can values of the type be long? A NUMERIC with a declared precision cannot."""
    if sql_type.kind is Kind.NUMERIC:
        return sql_type.precision is None
    return sql_type.kind in SIZED_KINDS


def check_rows(rows: Sequence[tuple[Any, ...]], sized: Sequence[int]) -> None:
    """Refuse a row that is too big for an answer; `sized`: the positions of long values."""
    sizes = [sum([size_of(row[at]) for at in sized]) for row in rows]
    most = max(sizes, default=0)
    if most > ROW_BYTES_MAX:
        raise ProgramLimitExceeded(
            f"row is too big: size {most}, maximum size {ROW_BYTES_MAX}",
            hint="Select fewer of its columns.",
        )


def size_of(value: Any) -> int:
    """The bytes of a value; 0 for NULL and for values of a fixed size."""
    kind = type(value)
    if kind is str:
        return len(value) if value.isascii() else int(value.__sizeof__())
    if kind is bytes:
        return len(value)
    if kind is Jsonb:
        return size_of(value.text)
    if kind is Decimal:
        return int(value.__sizeof__()) - _NUMERIC_SMALL
    if kind is tuple or kind is list or kind is Record or kind is RecordKey:
        return _size_of_elements(value)
    return size_of(value.value) if kind is Descending else 0


def size_of_all(values: Iterable[Any]) -> int:
    """The bytes of many values together, about; without a call for each if they are of one type."""
    values = list(filter(None, values))  # without NULL and what is empty
    kinds = set(map(type, values))
    if kinds.isdisjoint(_SIZED):
        return 0
    if kinds == _TEXTS:
        return sum(map(str.__sizeof__, values)) - _TEXT_EMPTY * len(values)
    if kinds == _NUMERICS:
        return sum(map(Decimal.__sizeof__, values)) - _NUMERIC_SMALL * len(values)
    return sum(map(size_of, values))


def size_of_columns(rows: Sequence[tuple[Any, ...]]) -> int:
    """The bytes of all values of rows, about."""
    try:
        return sum(map(size_of_all, zip(*rows, strict=True)))
    except ValueError:  # rows of different lengths
        return size_of_all(chain.from_iterable(rows))


def size_of_rows(
    rows: Sequence[tuple[Any, ...]], row_bytes: int, columns: Iterable[int] = ()
) -> int:
    """The bytes of rows, about: `row_bytes` for each, and the values of some columns."""
    size = row_bytes * len(rows)
    if len(rows) == 1:
        (row,) = rows
        for at in columns:
            value = row[at]
            size += len(value) if type(value) is str and value.isascii() else size_of(value)
    else:
        for at in columns:
            size += size_of_all(map(itemgetter(at), rows))
    return size


def _size_of_elements(elements: Any) -> int:
    """Makes no call per element: a million elements take some hundredths of a second."""
    flat = ELEMENT_BYTES * len(elements)
    if len(elements) >= _MANY and type(elements[0]) is tuple is type(elements[-1]):
        with suppress(TypeError):  # if not all of them are parts of an array
            return flat + _size_of_elements(tuple(chain.from_iterable(elements)))
    kinds = set(map(type, elements))
    if kinds.isdisjoint(_SIZED_CLASSES):
        return flat
    if type(None) in kinds:
        kinds.discard(type(None))
        elements = list(filter(None, elements))  # what is empty counts nothing either
        if not elements:
            return flat
    if len(kinds) > 1:
        return flat + sum(map(size_of, elements))
    (kind,) = kinds
    if kind is tuple:
        return flat + _size_of_elements(tuple(chain.from_iterable(elements)))
    if kind is Decimal:
        return flat + sum(map(Decimal.__sizeof__, elements))
    if kind is Jsonb:
        flat += JSONB_BYTES * len(elements)
        elements = list(map(_TEXT_OF, elements))
    elif kind is bytes:
        return flat + sum(map(len, elements))
    elif kind is not str:
        return flat + sum(map(size_of, elements))
    joined = "".join(elements)
    return flat + (len(joined) if joined.isascii() else sum(map(str.__sizeof__, elements)))


_MANY: Final = 64
"""Of so many values the first and the last tell whether all are parts of an array. Texts among them
would count more than they are, never less."""

_SIZED_CLASSES: Final = frozenset(
    {str, bytes, Jsonb, Decimal, tuple, list, Record, RecordKey, Descending}
)

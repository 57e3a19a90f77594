"""Encodes rows as JSON, working per column and not per value wherever possible.

    rows ─► zip ─► columns, some converted ─► map(Struct) ─► msgspec

Each list of columns gets its own Struct class, because msgspec writes Structs four times as fast as
dictionaries and builds them from row tuples in C. A column that needs conversion (see
`json_values`) is converted as a whole.

Duplicate names get `_2`, `_3` …, so that no value is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any, Final

import msgspec

from qserver.limits import ANSWER_PART_BYTES, PLANS_KEPT_MAX, ROW_BYTES_MAX
from qserver.sql import Rows
from qserver.values.sizes import check_rows, is_sized, size_of_rows
from qserver.values.types import SqlType
from qserver.web.statements.json_values import converter, encode_json, encode_lines

VALUE_BYTES_FLAT: Final = 8
"""The size of a short value and the punctuation around it and its name, without the name."""

ROWS_ENCODED_AT_ONCE: Final = 1000
"""Rows of one answer encoded without yielding: about a tenth of a millisecond."""


class RowEncoder:
    """Encodes the rows of one list of columns and types."""

    __slots__ = (
        "_convert",
        "_flat",
        "_long",
        "_make",
        "_rows_at_once",
        "columns",
        "columns_json",
        "query_head",
        "types",
        "types_json",
    )

    def __init__(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> None:
        self.columns = columns
        self.types = types
        names = unique_names(columns)
        self.columns_json = encode_json(names)
        self.query_head = b'{"success":true,"columns":%b,"rows":' % self.columns_json
        """The text before the rows of a query's answer."""
        self.types_json = encode_json([str(each) for each in types])
        self._make = _maker(names)
        self._flat = 2 + sum(VALUE_BYTES_FLAT + len(name) for name in names)
        self._rows_at_once = min(ROWS_ENCODED_AT_ONCE, ANSWER_PART_BYTES // self._flat)
        self._long = [at for at, each in enumerate(types) if is_sized(each)]
        conversions = [converter(each) for each in types]
        self._convert = [
            (at, convert) for at, convert in enumerate(conversions) if convert is not None
        ]

    def are_short(self, rows: Rows) -> bool:
        """Whether the rows are few, and quick to encode."""
        if len(rows) > self._rows_at_once:
            return False
        return not self._long or self.size_about(rows) <= ANSWER_PART_BYTES

    def size_about(self, rows: Rows) -> int:
        """The approximate size of the rows as objects; more where characters need escapes."""
        flat, long = self._flat, self._long
        return size_of_rows(rows, flat, long) if long else flat * len(rows)

    def cut(self, rows: Rows) -> Iterator[tuple[Rows, int]]:
        """Cut rows into slices that are quick to encode and limited in size; with their sizes.

        A single row that is too big is refused. A statement that writes never has one: it was
        refused before the commit.
        """
        most = max(1, self._rows_at_once)
        for start in range(0, len(rows), most):
            yield from self._halved(rows[start : start + most])

    def _halved(self, rows: Rows) -> Iterator[tuple[Rows, int]]:
        size, half = self.size_about(rows), len(rows) // 2
        if size > ANSWER_PART_BYTES and half:
            yield from self._halved(rows[:half])
            yield from self._halved(rows[half:])
            return
        if size > ROW_BYTES_MAX:
            check_rows(rows, self._long)
        yield rows, size

    def objects(self, rows: Rows) -> bytes:
        """A JSON array of objects."""
        objects = self._objects(rows) if self._convert else list(starmap(self._make, rows))
        return encode_json(objects)

    def arrays(self, rows: Rows) -> bytes:
        """A JSON array of arrays."""
        return encode_json(list(self._converted(rows)) if self._convert else rows)

    def lines(self, rows: Rows) -> bytes:
        """A JSON object for each row, each on a line of its own."""
        objects = self._objects(rows) if self._convert else list(starmap(self._make, rows))
        return encode_lines(objects)

    def array_lines(self, rows: Rows) -> bytes:
        """A JSON array for each row, each on a line of its own."""
        return encode_lines(list(self._converted(rows)) if self._convert else rows)

    def _objects(self, rows: Rows) -> list[Any]:
        return list(map(self._make, *self._columns(rows))) if rows else []

    def _converted(self, rows: Rows) -> Iterable[tuple[Any, ...]]:
        return zip(*self._columns(rows), strict=True) if rows else ()

    def _columns(self, rows: Rows) -> list[Sequence[Any]]:
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for at, convert in self._convert:
            columns[at] = [None if value is None else convert(value) for value in columns[at]]
        return columns


COLUMNS_KEPT_MAX = 32 * PLANS_KEPT_MAX
"""Columns of all cached encoders: an encoder has a class with a field for each."""


class RowEncoders:
    """A cache of encoders, for as many results as there are plans.

    A plan keeps its tuple of columns, so the identity of that serves as the key; the encoder
    references the tuple, so no other tuple can get the same identity while it is cached.
    """

    def __init__(self) -> None:
        self._kept: dict[int, RowEncoder] = {}
        self._columns = 0

    def find(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> RowEncoder:
        key = id(columns)
        encoder = self._kept.get(key)
        if encoder is None or (encoder.types is not types and encoder.types != types):
            self._columns += len(columns)
            if len(self._kept) >= PLANS_KEPT_MAX or self._columns > COLUMNS_KEPT_MAX:
                self._kept.clear()
                self._columns = len(columns)
            encoder = self._kept[key] = RowEncoder(columns, types)
        return encoder


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The same names; repeated ones get a number."""
    if len(set(columns)) == len(columns):
        return tuple(columns)
    taken = set(columns)
    seen: set[str] = set()
    numbers: dict[str, int] = {}
    names = []
    for column in columns:
        number = numbers.get(column, 0) + 1  # earlier numbers are taken
        name = column if number == 1 else f"{column}_{number}"
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{column}_{number}"
        numbers[column] = number
        seen.add(name)
        names.append(name)
    return tuple(names)


def _maker(names: tuple[str, ...]) -> Callable[..., Any]:
    """A function from a row's values to an object. Some names cannot be fields of a Struct."""
    if all(name.isprintable() and not set(name) & {'"', "\\"} for name in names):
        fields = [(f"field_{at}", Any) for at in range(len(names))]
        renamed = {f"field_{at}": name for at, name in enumerate(names)}
        return msgspec.defstruct("Row", fields, rename=renamed, gc=False)
    return lambda *values: dict(zip(names, values, strict=True))

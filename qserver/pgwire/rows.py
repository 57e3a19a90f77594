"""Rows as messages: RowDescription, and DataRow in the formats that the client has asked for."""

from __future__ import annotations

from functools import lru_cache
from operator import call
from struct import Struct
from typing import Any, Final

from qserver.errors import FeatureNotSupported, ProtocolViolation
from qserver.pgwire.binary_format import binary_writer
from qserver.pgwire.messages import NULL, message
from qserver.pgwire.text_format import Writer, styled_writer, text_writer
from qserver.pgwire.types import modifier_of, oid_of, size_of
from qserver.query.settings.values import TextStyle
from qserver.values.types import SqlType

BINARY: Final = 1
ALL_TEXT: Final[tuple[int, ...]] = ()
WRITERS_KEPT: Final = 1024
_COLUMN: Final = Struct("!IhIhih")
_ROW: Final = Struct("!cih")
_length: Final = Struct("!i").pack


class RowWriter:
    """Writes the rows of one list of columns."""

    __slots__ = ("_count", "_fields", "_formats", "_styled", "columns", "description", "types")

    def __init__(
        self, columns: tuple[str, ...], types: tuple[SqlType, ...], formats: tuple[int, ...]
    ) -> None:
        """`formats`: one for each column, or one for all; none is text."""
        self.columns = columns
        self.types = types
        each = formats_of(formats, len(columns), "result")
        self.description = _description(columns, types, each)
        self._count = len(columns)
        self._formats = each
        self._styled: tuple[TextStyle, RowWriter] | None = None
        self._fields = [
            _field(binary_writer(sql_type) if form == BINARY else text_writer(sql_type))
            for sql_type, form in zip(types, each, strict=True)
        ]

    def check(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> None:
        """Raise if these columns are others than the client was told of."""
        is_same = columns is self.columns and types is self.types
        if not is_same and (types != self.types or columns != self.columns):
            raise FeatureNotSupported("cached plan must not change result type")

    def styled(self, style: TextStyle | None) -> RowWriter:
        """Return what writes the same rows as the settings of a session say."""
        if style is None:
            return self
        if self._styled is None or self._styled[0] != style:
            made = RowWriter(self.columns, self.types, self._formats)
            made._fields = [
                field if form == BINARY else _field(styled_writer(sql_type, style))
                for field, sql_type, form in zip(
                    self._fields, self.types, self._formats, strict=True
                )
            ]
            self._styled = style, made
        return self._styled[1]

    def write(self, rows: list[Any], out: bytearray) -> None:
        """Append a DataRow for each row."""
        count, fields, head = self._count, self._fields, _ROW.pack
        for row in rows:
            body = b"".join(map(call, fields, row))
            out += head(b"D", len(body) + 6, count)
            out += body


def _field(write: Writer) -> Writer:
    """Return the function that writes a value, or NULL, behind its length."""
    length = _length

    def field(value: Any) -> bytes:
        if value is None:
            return NULL
        data = write(value)
        return length(len(data)) + data

    return field


class RowWriters:
    """Writers of texts, for as many results as there are plans.

    A plan keeps its tuple of columns, and so does its writer: identity is the key.
    """

    def __init__(self) -> None:
        self._kept: dict[int, RowWriter] = {}

    def find(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> RowWriter:
        found = self._kept.get(id(columns))
        if found is None or found.types is not types:
            if len(self._kept) >= WRITERS_KEPT:
                self._kept.clear()
            found = self._kept[id(columns)] = RowWriter(columns, types, ALL_TEXT)
        return found


@lru_cache(maxsize=WRITERS_KEPT)
def row_writer(
    columns: tuple[str, ...], types: tuple[SqlType, ...], formats: tuple[int, ...] = ALL_TEXT
) -> RowWriter:
    return RowWriter(columns, types, formats)


def formats_of(formats: tuple[int, ...], count: int, what: str) -> tuple[int, ...]:
    """Return the format of each value."""
    if len(formats) == count:
        return formats
    if len(formats) > 1:
        raise ProtocolViolation(
            f"bind message has {len(formats)} {what} formats but {count} {what}s"
        )
    return (formats or (0,)) * count


def _description(
    columns: tuple[str, ...], types: tuple[SqlType, ...], formats: tuple[int, ...]
) -> bytes:
    parts = [Struct("!h").pack(len(columns))]
    for name, sql_type, form in zip(columns, types, formats, strict=True):
        numbers = oid_of(sql_type), size_of(sql_type), modifier_of(sql_type), form
        parts += (name.encode(), b"\0", _COLUMN.pack(0, 0, *numbers))
    return message(b"T", b"".join(parts))

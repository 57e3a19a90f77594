"""Rows as messages: RowDescription, and DataRow in the formats that the client has asked for."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any, Final

from qserver.errors import FeatureNotSupported, ProtocolViolation
from qserver.pgwire.binary_format import binary_writer
from qserver.pgwire.messages import NULL, message
from qserver.pgwire.text_format import styled_writer, text_writer
from qserver.pgwire.types import modifier_of, oid_of, size_of
from qserver.query.settings.values import TextStyle
from qserver.values.types import SqlType

BINARY: Final = 1
ALL_TEXT: Final[tuple[int, ...]] = ()
_COLUMN: Final = Struct("!IhIhih")
_ROW: Final = Struct("!cih")
_length: Final = Struct("!i").pack


class RowWriter:
    """Writes the rows of one list of columns."""

    __slots__ = ("_count", "_formats", "_styled", "_writers", "columns", "description", "types")

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
        self._writers = [
            binary_writer(sql_type) if form == BINARY else text_writer(sql_type)
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
            made._writers = [
                write if form == BINARY else styled_writer(sql_type, style)
                for write, sql_type, form in zip(
                    self._writers, self.types, self._formats, strict=True
                )
            ]
            self._styled = style, made
        return self._styled[1]

    def write(self, rows: list[Any], out: bytearray) -> None:
        """Append a DataRow for each row."""
        count, writers, head, length = self._count, self._writers, _ROW.pack, _length
        for row in rows:
            parts = []
            for value, write in zip(row, writers, strict=True):
                if value is None:
                    parts.append(NULL)
                else:
                    data = write(value)
                    parts += length(len(data)), data
            body = b"".join(parts)
            out += head(b"D", len(body) + 6, count)
            out += body


@lru_cache(maxsize=1024)
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

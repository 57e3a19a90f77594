"""Rows as messages: RowDescription, and DataRow in the formats that the client has asked for."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any, Final

from qserver.errors import ProtocolViolation
from qserver.pgwire.binary_format import binary_writer
from qserver.pgwire.messages import NULL, message
from qserver.pgwire.text_format import text_writer
from qserver.pgwire.types import modifier_of, oid_of, size_of
from qserver.values.types import SqlType

BINARY: Final = 1
ALL_TEXT: Final[tuple[int, ...]] = ()
_COLUMN: Final = Struct("!IhIhih")
_ROW: Final = Struct("!cih")
_length: Final = Struct("!i").pack


class RowWriter:
    """Writes the rows of one list of columns."""

    __slots__ = ("_count", "_writers", "columns", "description", "types")

    def __init__(
        self, columns: tuple[str, ...], types: tuple[SqlType, ...], formats: tuple[int, ...]
    ) -> None:
        """`formats`: one for each column, or one for all; none is text."""
        self.columns = columns
        self.types = types
        each = formats_of(formats, len(columns), "result")
        self.description = _description(columns, types, each)
        self._count = len(columns)
        self._writers = [
            binary_writer(sql_type) if form == BINARY else text_writer(sql_type)
            for sql_type, form in zip(types, each, strict=True)
        ]

    def write(self, rows: list[Any], out: bytearray) -> None:
        """Append a DataRow for each row."""
        count, writers, head = self._count, self._writers, _ROW.pack
        for row in rows:
            parts: list[bytes] = []
            size = 6
            for value, write in zip(row, writers, strict=True):
                if value is None:
                    parts.append(NULL)
                    size += 4
                else:
                    data = write(value)
                    length = len(data)
                    parts.append(_length(length))
                    parts.append(data)
                    size += 4 + length
            out += head(b"D", size, count)
            out += b"".join(parts)


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

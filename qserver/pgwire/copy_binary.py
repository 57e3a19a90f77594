"""COPY in binary: a header, rows of values in the binary format, a mark at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final

from qserver.errors import BadCopyFileFormat, ProgramLimitExceeded
from qserver.limits import BULK_ROW_BYTES_MAX
from qserver.pgwire.binary_format import binary_reader, binary_writer
from qserver.pgwire.messages import NULL
from qserver.values.text_output import shown_function
from qserver.values.types import SqlType

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
HEADER: Final = SIGNATURE + b"\0" * 8
TRAILER: Final = b"\xff\xff"
_COUNT: Final = Struct("!h")
_SIZE: Final = Struct("!i")
_FLAGS: Final = Struct("!Ii")
_CRITICAL: Final = 0xFFFF0000


class BinaryWriter:
    header = HEADER

    def __init__(self, types: tuple[SqlType, ...]) -> None:
        self._writers = [binary_writer(each) for each in types]

    def line(self, row: Sequence[Any]) -> bytes:
        parts = [_COUNT.pack(len(self._writers))]
        for value, write in zip(row, self._writers, strict=True):
            if value is None:
                parts.append(NULL)
            else:
                data = write(value)
                parts += (_SIZE.pack(len(data)), data)
        return b"".join(parts)


class Tuples:
    """Reads pieces that are cut anywhere; gives out rows of texts, which the table reads."""

    def __init__(self, types: tuple[SqlType, ...], table: str) -> None:
        self._readers = [binary_reader(each) for each in types]
        self._shown = [shown_function(each) for each in types]
        self._table = table
        self._rest = b""
        self._has_begun = self._has_ended = False
        self.line = 0

    def feed(self, piece: bytes, *, last: bool = False) -> Iterator[tuple[str | None, ...]]:
        """Yield the rows that are whole by now. As in PostgreSQL the end may go without saying."""
        data = self._rest + piece
        at = 0 if self._has_begun else self._begin(data)
        while not self._has_ended and self._has_begun:
            end = self._end_of_row(data, at)
            if end is None:
                break
            if not self._has_ended:
                self.line += 1
                yield self._row(data, at)
            at = end
        self._rest = data[at:]
        if self._has_ended and self._rest:
            raise BadCopyFileFormat("received copy data after EOF marker")
        if last and not self._has_ended and (self._rest or not self._has_begun):
            raise BadCopyFileFormat("unexpected EOF in COPY data")
        if len(self._rest) > BULK_ROW_BYTES_MAX:
            raise ProgramLimitExceeded(f"a row has more than {BULK_ROW_BYTES_MAX} bytes")

    def _begin(self, data: bytes) -> int:
        if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
            raise BadCopyFileFormat("COPY file signature not recognized")
        if len(data) < len(HEADER):
            return 0
        flags, more = map(int, _FLAGS.unpack_from(data, len(SIGNATURE)))
        if flags & _CRITICAL or more < 0:
            raise BadCopyFileFormat("invalid COPY file header")
        if len(data) < len(HEADER) + more:
            return 0
        self._has_begun = True
        return len(HEADER) + more

    def _end_of_row(self, data: bytes, at: int) -> int | None:
        """Return where the row at a place ends; None if it is not whole."""
        if len(data) < at + 2:
            return None
        (count,) = _COUNT.unpack_from(data, at)
        at += 2
        if count == -1:
            self._has_ended = True
            return at
        if count != len(self._readers):
            self.line += 1
            raise BadCopyFileFormat(f"row field count is {count}, expected {len(self._readers)}")
        for _ in range(count):
            if len(data) < at + 4:
                return None
            (size,) = _SIZE.unpack_from(data, at)
            if size < -1:
                raise BadCopyFileFormat("invalid field size")
            at += 4 + max(size, 0)
        return at if at <= len(data) else None

    def _row(self, data: bytes, at: int) -> tuple[str | None, ...]:
        at += 2
        row: list[str | None] = []
        for read, shown in zip(self._readers, self._shown, strict=True):
            (size,) = _SIZE.unpack_from(data, at)
            at += 4
            if size < 0:
                row.append(None)
                continue
            value = read(data[at : at + size])
            row.append(value if type(value) is str else shown(value))
            at += size
        return tuple(row)

    def where(self) -> str:
        return f"COPY {self._table}, line {self.line}"

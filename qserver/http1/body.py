"""Finds the end of a request body, by its declared length or by its chunks.

Each class takes the bytes that have arrived and returns the body's bytes and the remainder. None of
them waits or reads, so tests need no socket.

    5;note=x CRLF     size in hexadecimal digits, extensions (ignored)
    hello CRLF        that many bytes
    0 CRLF            the last chunk is empty
    Name: value CRLF  trailers (checked, then dropped)
    CRLF

As with heads, nothing is repaired: no LF alone, no spaces around sizes, no signs.
"""

from __future__ import annotations

import re

from qserver import limits
from qserver.http1.head import body_too_large, check_characters
from qserver.http1.headers import TOKEN
from qserver.http1.options import ServerOptions
from qserver.http1.refusal import Refusal

SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
TRAILER_LINE = re.compile(TOKEN + rb":.*", re.DOTALL)
CRLF = b"\r\n"


class SizedBody:
    __slots__ = ("complete", "missing")

    def __init__(self, length: int) -> None:
        self.missing: int | None = length
        self.complete = length == 0

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Split `data` into the body's bytes and what follows the body."""
        missing = self.missing or 0
        piece = data[:missing]
        self.missing = missing - len(piece)
        self.complete = self.missing == 0
        return piece, data[missing:]


class OversizedBody:
    """A body whose declared length exceeds the limit; `take` refuses all of it."""

    __slots__ = ("_options", "complete", "missing")

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self.missing: int | None = None
        self.complete = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        raise body_too_large(self._options.body_bytes_max)


class ChunkedBody:
    """A body of unknown length, in chunks."""

    __slots__ = ("_bytes", "_in_trailers", "_left", "_options", "complete", "missing")

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._bytes = 0
        self._left = 0  # bytes left of this chunk, with its CR LF
        self._in_trailers = False
        self.missing: int | None = None
        self.complete = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Split `data` into the body's bytes and the rest: a partial line, or the next request."""
        pieces: list[bytes] = []
        at = 0
        while not self.complete:
            if self._in_trailers:
                used = self._trailers(data[at:])
            elif self._left:
                used = self._chunk(data, at, pieces)
            else:
                used = self._size_line(data, at)
            if used == 0:
                break
            at += used
        return b"".join(pieces), data[at:]

    def _size_line(self, data: bytes, at: int) -> int:
        end = data.find(CRLF, at, at + limits.CHUNK_LINE_BYTES_MAX)
        if end < 0:
            line = data[at : at + limits.CHUNK_LINE_BYTES_MAX]
            if b"\n" in line or len(line) == limits.CHUNK_LINE_BYTES_MAX:
                raise Refusal(400, "the size of a chunk does not end, or not with CR LF")
            return 0
        match = SIZE_LINE.fullmatch(data, at, end)
        if match is None:
            raise Refusal(400, "the size of a chunk is not a hexadecimal number")
        size = int(match[1], 16)
        self._bytes += size
        if self._bytes > self._options.body_bytes_max:
            raise body_too_large(self._options.body_bytes_max)
        self._in_trailers = size == 0
        self._left = size + len(CRLF) if size else 0
        return end + len(CRLF) - at

    def _chunk(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        if self._left > len(CRLF):
            piece = data[at : at + self._left - len(CRLF)]
            if piece:
                pieces.append(piece)
            self._left -= len(piece)
            return len(piece)
        end = data[at : at + self._left]
        if end != CRLF[-self._left :][: len(end)]:
            raise Refusal(400, "a chunk is longer than its size says")
        self._left -= len(end)
        return len(end)

    def _trailers(self, data: bytes) -> int:
        if data[:2] == CRLF:
            self.complete = True
            return len(CRLF)
        end = data.find(b"\r\n\r\n")
        lines = data if end < 0 else data[:end]
        if len(lines) > self._options.headers_bytes_max:
            raise Refusal(431, "the trailers after the body are too large")
        check_characters(lines)
        if end < 0:
            return 0
        for line in lines.split(CRLF):
            if TRAILER_LINE.fullmatch(line) is None:
                raise Refusal(400, "a trailer after the body is malformed")
        self.complete = True
        return end + 4

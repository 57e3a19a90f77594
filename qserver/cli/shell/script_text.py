"""What a script, or standard input, still holds: text for statements, and rows for COPY.

    SELECT 1;  COPY t FROM stdin;  SELECT 2;     texts, to the end of this line
    1                                            rows
    \\\\.                                           their end
    SELECT 3;                                    texts again

Rows are read from what the splitter has not taken yet. They are bytes, which need not be UTF-8. A
piece is read when the one before is used up, and not before.
"""

from __future__ import annotations

import re
import sys
from codecs import utf_8_decode
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Final, cast

from qserver.cli.splitting import Splitter
from qserver.errors import InvalidRequest

PIECE_BYTES: Final = 64 * 1024
_END_OF_ROWS: Final = re.compile(rb"^\\\.\r?\n", re.MULTILINE)
_LAST_LINE: Final = re.compile(rb"\\\.\r?")

Read = Callable[[], bytes]


class ScriptText:
    def __init__(self, read: Read, typed: str | None = None) -> None:
        self._read = read
        self._is_typed = typed is not None
        """The text is there as a whole; only rows are read behind it."""
        self._pending = (typed or "").encode()
        """What was read, and is not in the splitter yet."""
        self._is_begun = False
        self.splitter: Splitter | None = None
        """What takes the texts; None: nothing does, as of the standard input beside a file."""
        self.bytes = 0

    def texts(self) -> Iterator[str]:
        while text := self._text(self._is_typed):
            yield text

    def rows(self, is_binary: bool) -> Iterator[bytes]:
        """The lines behind that of the statement, up to `\\.` or the end of everything."""
        data = self._behind_statement() + self._withdrawn()
        while True:
            whole = data.rfind(b"\n") + 1
            end = None if is_binary else _END_OF_ROWS.search(data, 0, whole)
            if end is not None:
                self._pending = data[end.end() :]
                yield self._counted(data[: end.end()])[: end.start()]
                return
            yield self._counted(data[:whole])
            piece = self._next()
            if not piece:
                last = data[whole:]
                yield last if is_binary or not _LAST_LINE.fullmatch(last) else b""
                return
            data = data[whole:] + piece

    def piece(self) -> bytes:
        """What comes next, for another that goes on with it; empty at the end."""
        return self._withdrawn() or self._next()

    def _behind_statement(self) -> bytes:
        if self.splitter is None:
            return b""
        return self.splitter.take_behind_line(lambda: self._text(self._is_typed)).encode()

    def _counted(self, lines: bytes) -> bytes:
        if self.splitter is not None:
            self.splitter.skip_lines(lines.count(b"\n"))
        return lines

    def _text(self, is_all: bool) -> str:
        """The next text that is whole; what is not UTF-8 waits for who takes bytes."""
        while True:
            try:
                text, used = utf_8_decode(self._pending, "strict", is_all)
            except UnicodeDecodeError as error:
                if not error.start:
                    raise InvalidRequest(f"this is not UTF-8 text: {error}") from error
                text, used = self._pending[: error.start].decode(), error.start
            self._pending = self._pending[used:]
            if text and not self._is_begun:
                self._is_begun = True
                text = text.removeprefix("\ufeff")
            if text or is_all:
                return text
            piece = self._next()
            is_all = not piece
            self._pending += piece

    def _withdrawn(self) -> bytes:
        pending, self._pending = self._pending, b""
        return pending

    def _next(self) -> bytes:
        try:
            piece = self._read()
        except OSError as error:
            raise InvalidRequest(f"cannot be read: {error.strerror}") from error
        self.bytes += len(piece)
        return piece


def read_standard_input() -> bytes:
    return cast(BufferedReader, sys.stdin.buffer).read1(PIECE_BYTES)

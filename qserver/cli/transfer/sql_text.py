"""Reads SQL text as statements, each with its lines, and the rows behind COPY … FROM stdin.

    CREATE TABLE t (a integer);        a Step
    COPY t (a) FROM stdin;             a Copy, whose rows are read from the lines below
    1
    \\.

The text arrives in pieces of any size, and at most one statement, or one piece of rows, is kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from qserver.cli.splitting import Splitter, Statement
from qserver.cli.transfer.writing import SQL_FIRST, SQL_LAST
from qserver.errors import InvalidRequest, SqlSyntaxError
from qserver.query.copying.statement import CopyStatement, read_copy
from qserver.query.copying.text import CopiedRow, Lines

PIECE_BYTES: Final = 256 * 1024
_TAIL_LENGTH: Final = 200
_END_OF_ROWS: Final = re.compile(r"^\\\.\r?(?:\n|\Z)", re.MULTILINE)
CUT_HINT: Final = "Export again. What is in the file was imported, as far as it goes."

Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Step:
    """One statement, with its first and last line in the file."""

    statement: Statement
    last_line: int

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def line(self) -> int:
        return self.statement.line

    @property
    def place(self) -> str:
        return str(self.line) if self.line == self.last_line else f"{self.line}-{self.last_line}"


@dataclass(frozen=True, slots=True)
class Copy(Step):
    """COPY … FROM stdin. Its rows are read before the next step, or skipped."""

    copy: CopyStatement
    pieces: Iterator[str]

    def rows(self, columns: tuple[str, ...]) -> Iterator[CopiedRow]:
        lines = Lines(self.copy.format, columns, self.copy.table[-1])
        for piece in self.pieces:
            yield from lines.feed(piece.encode())
        yield from lines.feed(b"", last=True)


class Cut(InvalidRequest):
    """The file's fault: it ends before the export did. What it holds was read."""


def sql_steps(read: Read) -> Iterator[Step]:
    return _SqlText(read).steps()


class _SqlText:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._splitter = Splitter()
        self._head = self._tail = ""
        self._rest = ""
        """What was read behind the rows of a COPY."""
        self._is_all = False

    def steps(self) -> Iterator[Step]:
        while not self._is_all:
            yield from self._steps_of(self._piece())
        if self._head == SQL_FIRST and SQL_LAST not in self._tail:
            raise Cut("the file is not whole: its last line is missing", hint=CUT_HINT)

    def _piece(self) -> str:
        piece = self._read(PIECE_BYTES)
        self._is_all = not piece
        try:
            text = self._decoder.decode(piece, final=self._is_all)
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"this is not UTF-8 text: {error}") from error
        self._head = self._head or text[: len(SQL_FIRST)]
        self._tail = (self._tail + text)[-_TAIL_LENGTH:]
        return text

    def _steps_of(self, text: str) -> Iterator[Step]:
        splitter = self._splitter
        while True:
            found = chain(splitter.feed(text), splitter.finish() if self._is_all else ())
            for statement in found:
                last_line = statement.line_at(len(statement.text))
                copy = _copy_from_stdin(statement)
                if copy is None:
                    yield Step(statement, last_line)
                    continue
                pieces = self._pieces_of_rows(splitter.withdraw())
                yield Copy(statement, last_line, copy, pieces)
                for _ in pieces:  # those that nobody wanted
                    pass
                text = self._rest
                break
            else:
                return

    def _pieces_of_rows(self, text: str) -> Iterator[str]:
        """The rows as whole lines, some at a time, up to the line that ends them."""
        splitter, self._rest = self._splitter, ""
        begun = splitter.skip(text[: text.find("\n") + 1])
        text = text[text.find("\n") + 1 :] if "\n" in text else self._next_line(text)
        while True:
            end = _END_OF_ROWS.search(text)
            if end is not None and (end.group().endswith("\n") or self._is_all):
                splitter.skip(text[: end.end()])
                self._rest = text[end.end() :]
                yield text[: end.start()]
                return
            whole = text.rfind("\n") + 1
            splitter.skip(text[:whole])
            yield text[:whole]
            if self._is_all:
                raise Cut(f"the rows of COPY on line {begun} have no end", hint=CUT_HINT)
            text = text[whole:] + self._piece()

    def _next_line(self, text: str) -> str:
        """Read on to the end of the line of the statement."""
        while "\n" not in text and not self._is_all:
            text += self._piece()
        self._splitter.skip(text[: text.find("\n") + 1])
        return text[text.find("\n") + 1 :]


def _copy_from_stdin(statement: Statement) -> CopyStatement | None:
    if statement.words(1) != ("copy",):
        return None
    try:
        copy = read_copy(statement.text)
    except SqlSyntaxError:
        return None
    return copy if copy.is_from and not copy.format.is_binary else None

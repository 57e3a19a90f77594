"""Splits text that arrives in pieces, cut anywhere, into statements.

    "SELECT ';'; -- a;b" + " c\\n\\\\d users\\nINS" ─► SELECT ';'   \\d users      kept: INS

The regular expression (`lexing.pieces`) is built from the lexer's parts for strings, comments and
quoted names, so the command line and the server cannot disagree about the end of a statement. A
line that begins with a backslash, between two statements, is a command of the shell.

Text is not scanned twice: the next search resumes a few words back, far enough that no cut between
two pieces can hide the start of a token. The splitter keeps at most one statement, and a statement
has a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from qserver.errors import ProgramLimitExceeded
from qserver.lexing.pieces import PIECE, after_blanks, first_words
from qserver.limits import STATEMENT_BYTES_MAX

# A cut can split `$` from `tag$`, `U&` from its quote, E'…' from its second line: two tokens.
_RESUME_PIECES: Final = 3


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement or, if it begins with a backslash, one command, and its line."""

    text: str
    first_line: int

    @property
    def is_command(self) -> bool:
        return self.text.startswith("\\")

    @property
    def line(self) -> int:
        """The line of the first word, after any comments."""
        return self.line_at(after_blanks(self.text))

    def line_at(self, offset: int) -> int:
        return self.first_line + self.text.count("\n", 0, offset)

    def words(self, count: int) -> tuple[str, ...]:
        """The first few words in lower case, without comments."""
        return first_words(self.text, count)

    def tokens(self, count: int | None = None) -> list[str]:
        """Words in lower case, and every other character, without blanks and comments; `count`
        bounds how many.
        """
        pieces = (found for found in PIECE.finditer(self.text) if found.lastgroup != "blank")
        return [found.group().lower() for found in islice(pieces, count)]


class Splitter:
    """Takes text, yields whole statements, and keeps the rest."""

    def __init__(self) -> None:
        self._text = ""
        self._start = 0
        """The offset of the incomplete statement."""
        self._resume = 0
        self._line = 1

    def feed(self, text: str) -> Iterator[Statement]:
        self._text = self._text[self._start :] + text
        self._resume, self._start = self._resume - self._start, 0
        yield from self._cut(is_all=False)
        if len(self._text) - self._start > STATEMENT_BYTES_MAX:
            first = after_blanks(self._text, self._start)
            line = self._line + self._text.count("\n", self._start, first)
            raise ProgramLimitExceeded(
                f"the statement that begins on line {line} is too long",
                detail=f"The limit is {STATEMENT_BYTES_MAX} bytes.",
                hint="Is a quote, a */ or a semicolon missing?",
            )

    def finish(self) -> Iterator[Statement]:
        """The statements left when no more text comes: the last one needs no semicolon."""
        yield from self._cut(is_all=True)
        yield from self._take(len(self._text))

    @property
    def is_between_statements(self) -> bool:
        """Is the kept text only blanks and finished comments?"""
        return after_blanks(self._text, self._start) == len(self._text)

    def withdraw(self) -> str:
        """Give back the text behind the last statement, which was not split yet."""
        rest = self._text[self._start :]
        self._text, self._start, self._resume = "", 0, 0
        return rest

    def skip(self, text: str) -> int:
        """Count the lines of a text that is no statement; return the line of its beginning."""
        line = self._line
        self._line += text.count("\n")
        return line

    def _cut(self, is_all: bool) -> Iterator[Statement]:
        solid: deque[int] = deque(maxlen=_RESUME_PIECES)
        position, begun = self._resume, self._resume > self._start
        while position < len(self._text):
            found = PIECE.match(self._text, position)
            assert found is not None, "the last alternative takes any character"
            if found.lastgroup == "end":
                yield from self._take(position, skip=1)
            elif not begun and found.group() == "\\":
                line_end = self._text.find("\n", position)
                if line_end < 0 and not is_all:
                    break
                yield from self._take(line_end if line_end >= 0 else len(self._text))
            else:
                if found.lastgroup != "blank":
                    begun = True
                    solid.append(position)
                position = found.end()
                continue
            position, begun = self._start, False
            solid.clear()
        if len(solid) == _RESUME_PIECES:
            self._resume = solid[0]

    def _take(self, end: int, skip: int = 0) -> Iterator[Statement]:
        """Cut the text at `end`; yield the statement unless it is blank."""
        taken, first_line = self._text[self._start : end], self._line
        self._start = self._resume = end + skip
        self._line += taken.count("\n")
        text = taken.lstrip()
        if after_blanks(text) < len(text):
            first_line += taken.count("\n", 0, len(taken) - len(text))
            yield Statement(text.rstrip(), first_line)


def split(text: str) -> list[Statement]:
    """The statements of a complete text."""
    splitter = Splitter()
    return [*splitter.feed(text), *splitter.finish()]


def is_whole(text: str) -> bool:
    """Can the shell run this now, or must it wait for a semicolon?"""
    splitter = Splitter()
    for _ in splitter.feed(text + "\n"):
        pass
    return splitter.is_between_statements

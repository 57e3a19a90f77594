"""Splits text that arrives in pieces, cut anywhere, into statements.

    "SELECT ';'; -- a;b" + " c\\n\\\\d users\\nINS" ─► SELECT ';'   \\d users      kept: INS

The regular expression (`lexing.pieces`) is built from the lexer's parts for strings, comments and
quoted names, so the command line and the server cannot disagree about the end of a statement. A
backslash outside of them begins a command of the shell, up to the end of its line or the next one.
One in the midst of a statement knows the text before it; some take that text (`\\gx`),
behind the others the statement goes on.

For the shell, `:name` is replaced before the text is cut, as its value may hold a semicolon, and
what is between an \\if that does not hold and its \\endif is dropped. The caller runs a statement
before it takes the next one, so both see what the statements before have set.

Text is not scanned twice: the next search resumes a few words back, far enough that no cut between
two pieces can hide the start of a token. The splitter keeps at most one statement, and a statement
has a limit.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from qserver.errors import ProgramLimitExceeded
from qserver.lexing.pieces import PIECE, after_blanks, first_words, is_blank
from qserver.limits import STATEMENT_BYTES_MAX

# A cut can split `$` from `tag$`, `U&` from its quote, E'…' from its second line: two tokens.
_RESUME_PIECES: Final = 3
VARIABLE: Final = re.compile(
    r""":(?:(?P<plain>\w+)|'(?P<literal>\w+)'|"(?P<name>\w+)"|\{\?(?P<test>\w+)\})"""
)
_COMMAND: Final = re.compile(r"\\(?:\\|[!?]|[^\s\\]*)")
_ARGUMENTS: Final = re.compile(
    r"""(?>'(?>\\.|''|[^'\\\n])*+'?|"[^"\n]*+"?|`[^`\n]*+`?|[^\\\n'"`])*+"""
)
_LINE: Final = re.compile(r"[^\n]*")
TAKES_LINE: Final = frozenset(
    ("\\!", "\\copy", "\\h", "\\help", "\\live", "\\sf", "\\sf+", "\\sv", "\\sv+")
)
"""Commands that get all of the line, whatever is in it."""
TAKES_STATEMENT: Final = frozenset(
    (
        *("\\g", "\\gx", "\\gset", "\\gexec", "\\gdesc", "\\crosstabview", "\\watch", "\\live"),
        *("\\e", "\\edit", "\\r", "\\reset"),
    )
)
"""Commands that do something with the statement before them, which ends there."""

Expand = Callable[[re.Match[str]], str | None]
"""The text in place of a `VARIABLE`; None: it stays."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement or, if it begins with a backslash, one command, and its line."""

    text: str
    first_line: int
    before: Statement | None = None
    """The beginning of a statement that a command is in."""

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

    def __init__(
        self, expand: Expand | None = None, is_active: Callable[[], bool] | None = None
    ) -> None:
        self._expand = expand
        self._is_active = is_active or (lambda: True)
        self._text = ""
        self._start = 0
        """The offset of the incomplete statement."""
        self._command_end = 0
        """The offset behind the last command in it."""
        self._resume = 0
        self._line = 1
        self._expanded: list[tuple[str, int]] = []
        """Variables whose values are being scanned, and where these end."""

    def feed(self, text: str) -> Iterator[Statement]:
        self._text = self._text[self._start :] + text
        self._resume -= self._start
        self._command_end -= self._start
        self._expanded = [(name, end - self._start) for name, end in self._expanded]
        self._start = 0
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
        self._drop_inactive(len(self._text))
        yield from self._take(len(self._text))

    @property
    def is_between_statements(self) -> bool:
        """Is the kept text only blanks and finished comments?"""
        return after_blanks(self._text, self._start) == len(self._text)

    @property
    def behind_command(self) -> str:
        """The kept text behind the last command."""
        return self._text[self._command_end :]

    def withdraw(self) -> str:
        """Give back the text behind the last statement, which was not split yet."""
        rest = self._text[self._start :]
        self._text, self._start, self._resume, self._command_end = "", 0, 0, 0
        return rest

    def take_behind_line(self, more: Callable[[], str]) -> str:
        """Take out the text behind the line of the last statement, reading on to that line's end;
        the caller has not taken the next statement yet.
        """
        while (end := self._text.find("\n", self._resume)) < 0 and (text := more()):
            self._text += text
        if end < 0:
            return ""
        rest, self._text = self._text[end + 1 :], self._text[: end + 1]
        return rest

    def skip(self, text: str) -> int:
        """Count the lines of a text that is no statement; return the line of its beginning."""
        line = self._line
        self.skip_lines(text.count("\n"))
        return line

    def skip_lines(self, count: int) -> None:
        self._line += count

    def _cut(self, is_all: bool) -> Iterator[Statement]:
        solid: deque[int] = deque(maxlen=_RESUME_PIECES)
        position = self._resume
        while position < len(self._text):
            found = PIECE.match(self._text, position)
            assert found is not None, "the last alternative takes any character"
            piece = found.group()
            if found.lastgroup == "end":
                yield from self._take_or_drop(position)
            elif self._text.startswith("\\;", position):  # psql sends what it divides together
                self._text = self._text[:position] + self._text[position + 1 :]
                self._resume = position
                solid.clear()
                continue
            elif piece == "\\":
                if not is_all and self._text.find("\n", position) < 0:
                    break
                yield from self._command(position)
            else:
                end = found.end()
                if piece == ":" and self._expand is not None:
                    if end == len(self._text) and not is_all:
                        break
                    if (after := self._without_variable(position, is_all)) is None:
                        break
                    end = after
                if found.lastgroup != "blank":
                    solid.append(position)
                position = end
                continue
            position = self._resume
            solid.clear()
        if len(solid) == _RESUME_PIECES:
            self._resume = max(solid[0], self._command_end)

    def _without_variable(self, position: int, is_all: bool) -> int | None:
        """Replace a variable at a colon; return where to go on, or None if it is cut."""
        if self._text.startswith("::", position):
            return position + 2
        found = VARIABLE.match(self._text, position)
        if found is None:
            rest = self._text[position + 1 :]
            is_cut = not is_all and re.fullmatch(r"""['"{]?\??\w*""", rest) is not None
            return None if is_cut else position + 1
        if found.end() == len(self._text) and found["plain"] and not is_all:
            return None
        self._expanded = [each for each in self._expanded if each[1] > position]
        name = found["plain"]
        is_inside = any(each[0] == name for each in self._expanded)
        assert self._expand is not None, "the caller has asked"
        value = None if is_inside or not self._is_active() else self._expand(found)
        if value is None:
            return found.end()
        self._text = self._text[:position] + value + self._text[found.end() :]
        longer = len(value) - (found.end() - position)
        self._expanded = [(each, end + longer) for each, end in self._expanded]
        if name is None:
            return position + len(value)
        self._expanded.append((name, position + len(value)))
        return position

    def _command(self, position: int) -> Iterator[Statement]:
        """Yield the command here, and remove it from the text."""
        self._drop_inactive(position)
        position = self._resume
        found = _COMMAND.match(self._text, position)
        assert found is not None, "a backslash is here"
        rest = _LINE if found.group() in TAKES_LINE else _ARGUMENTS
        arguments = rest.match(self._text, found.end())
        assert arguments is not None, "both match the empty text"
        end = found.end() if found.group() == "\\\\" else arguments.end()
        command = self._text[position:end].strip()
        line = self._line + self._text.count("\n", self._start, position)
        before = self._text[self._start : position]
        if is_blank(before):
            self._line, self._start, statement = line, end, None
        else:
            statement = self._statement(before)
            if command.split(maxsplit=1)[0] in TAKES_STATEMENT:
                self._line, self._start = line, end
            else:
                self._text = self._text[:position] + self._text[end:]
                end = position
        self._resume = self._command_end = end
        if command != "\\\\":
            yield Statement(command, line, statement)

    def _take_or_drop(self, end: int) -> Iterator[Statement]:
        if self._is_active():
            yield from self._take(end, skip=1)
        else:
            self._drop_inactive(end + 1)

    def _drop_inactive(self, end: int) -> None:
        """Drop the text since the last command, if it does not count; its lines stay."""
        self._resume = end
        if not self._is_active():
            begin = max(self._command_end, self._start)
            lines = "\n" * self._text.count("\n", begin, end)
            self._text = self._text[:begin] + lines + self._text[end:]
            self._resume = self._command_end = begin + len(lines)

    def _take(self, end: int, skip: int = 0) -> Iterator[Statement]:
        """Cut the text at `end`; yield the statement unless it is blank."""
        taken = self._text[self._start : end]
        self._start = self._resume = self._command_end = end + skip
        statement = None if is_blank(taken) else self._statement(taken)
        self._line += taken.count("\n")
        if statement is not None:
            yield statement

    def _statement(self, taken: str) -> Statement:
        text = taken.lstrip()
        first_line = self._line + taken.count("\n", 0, len(taken) - len(text))
        return Statement(text.rstrip(), first_line)


def split(text: str) -> list[Statement]:
    """The statements of a complete text."""
    splitter = Splitter()
    return [*splitter.feed(text), *splitter.finish()]


def is_whole(text: str, expand: Expand | None = None) -> bool:
    """Can the shell run this now, or must it wait for a semicolon?"""
    splitter = Splitter(expand)
    statements = list(splitter.feed(text + "\n"))
    if splitter.is_between_statements:
        return True
    # A command in the midst of a statement is run when its line ends; the statement stays.
    return bool(statements) and statements[-1].is_command and is_blank(splitter.behind_command)

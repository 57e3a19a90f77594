"""Reads a statement word by word, from its terminals, where no grammar has to know the words."""

from __future__ import annotations

from collections.abc import Collection

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import Literal
from qserver.sql.terminals import Source, Terminal

Head = tuple[str, ...]
"""The first words of a statement."""


class WordReader:
    """The words of a statement, from one of them on."""

    def __init__(self, source: Source, at: int) -> None:
        self._source = source
        self._at = at

    @property
    def position(self) -> int:
        return self._source.terminals[0].start

    @property
    def next(self) -> str | None:
        """The next word, or None at the end; a text is no word."""
        if self._at >= len(self._source.terminals):
            return None
        terminal = self._source.terminals[self._at]
        return None if isinstance(terminal.value, Literal) else str(terminal.value)

    @property
    def has_ended(self) -> bool:
        return self._at >= len(self._source.terminals)

    def unexpected(self) -> SqlSyntaxError:
        if self.has_ended:
            end = len(self._source.text)
            return SqlSyntaxError("syntax error at end of input", position=end + 1)
        terminal = self._source.terminals[self._at]
        shown = self._source.text[terminal.start : terminal.end]
        return SqlSyntaxError(f'syntax error at or near "{shown}"', position=terminal.start + 1)

    def take(self, *phrase: str) -> bool:
        """Take these words, if they are next."""
        end = self._at + len(phrase)
        found = self._source.terminals[self._at : end]
        if [str(each.value) for each in found] != list(phrase):
            return False
        self._at = end
        return True

    def expect(self, *phrase: str) -> None:
        for word in phrase:
            if not self.take(word):
                raise self.unexpected()

    def take_one(self, wanted: Collection[str]) -> str:
        """Take one of these words."""
        found = self.next
        if found is None or found not in wanted:
            raise self.unexpected()
        self._at += 1
        return found

    def name(self) -> str:
        found = self.next
        if found is None or not found:
            raise self.unexpected()
        self._at += 1
        return found

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return tuple(found)

    def text(self) -> str | None:
        """Take a text, or NULL."""
        if self.take("null"):
            return None
        if not self.has_ended:
            terminal = self._source.terminals[self._at]
            if terminal.type == "STRING":
                self._at += 1
                return self._value(terminal)
            if terminal.value is None:
                self._at += 1
                return None
        raise self.unexpected()

    def rest(self) -> tuple[str, ...]:
        """Take all words that are left."""
        found = tuple([self._value(each) for each in self._source.terminals[self._at :]])
        self._at = len(self._source.terminals)
        return found

    def end(self) -> None:
        if not self.has_ended:
            raise self.unexpected()

    def _value(self, terminal: Terminal) -> str:
        value = terminal.value
        if isinstance(value, Literal):
            return str(self._source.literals[value.index])
        return str(value)

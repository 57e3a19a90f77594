"""Python source under construction: indented lines, fresh names, known objects.

Only generated names, numbers, and our own templates go into source. Objects (functions, values,
tables) go into the namespace under generated names; a user's text is never part of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from qserver.errors import StatementTooComplex
from qserver.limits import SOURCE_LENGTH_MAX

SIMPLE = re.compile(r"\w+(\[\d+\])?")
"""Code that costs nothing and has no effect: a name, or an item of one."""


class Source:
    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self.reads_before = False
        """Whether reads must not see the statement's own changes."""
        self.functions = 0
        """The number of printed nested functions, costly calls and subqueries."""
        self._lines: list[str] = []
        self.depth = 0
        """The nesting of blocks at the next line."""
        self._length = 0
        self._counts: dict[str, int] = {}
        self._known: dict[int, str] = {}

    def line(self, text: str) -> None:
        self.lengthen(len(text))
        self._lines.append("    " * self.depth + text)

    def lengthen(self, characters: int) -> None:
        """Count printed characters; refuse a program before it is all printed."""
        self._length += characters
        if self._length > SOURCE_LENGTH_MAX:
            raise too_long(self._length)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Print a line that ends in a colon; lines printed inside the context are its block."""
        self.line(head)
        self.depth += 1
        before = len(self._lines)
        try:
            yield
        finally:
            if len(self._lines) == before:
                self.line("pass")
            self.depth -= 1

    def block_if(self, conditions: list[str]) -> AbstractContextManager[None]:
        """Print an `if` of all conditions as a block; without conditions there is no block."""
        return self.block(f"if {' and '.join(conditions)}:") if conditions else nullcontext()

    def fresh(self, prefix: str) -> str:
        count = self._counts[prefix] = self._counts.get(prefix, -1) + 1
        return f"{prefix}{count}"

    def known(self, value: Any, prefix: str) -> str:
        """Return the name of an object in generated code."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = self.fresh(f"{prefix}_")
            self.namespace[name] = value
        return name

    def name(self, name: str, value: Any) -> None:
        """Add an object under the fixed name that templates use."""
        there = self.namespace.setdefault(name, value)
        assert there is value, f"two objects want to be called {name}"

    @contextmanager
    def set_aside(self, depth: int = 1) -> Iterator[list[str]]:
        """Collect the lines printed inside, indented by `depth`, for the caller to place."""
        lines, before = self._lines, self.depth
        self._lines, self.depth = [], depth
        try:
            yield self._lines
        finally:
            self._lines, self.depth = lines, before

    def insert(self, at: int, lines: list[str]) -> None:
        self._lines[at:at] = lines

    def replace_end(self, at: int, old: str, new: str) -> None:
        self._lines[at] = self._lines[at].removesuffix(old) + new

    def place(self) -> int:
        """Return the position of the next line; see `insert`."""
        return len(self._lines)

    def length(self) -> int:
        """Return the characters printed so far, wherever they were placed."""
        return self._length

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def too_long(characters: int) -> StatementTooComplex:
    return StatementTooComplex(
        "the statement is too complex",
        detail=f"It would become a program of {characters} characters or more;"
        f" the limit is {SOURCE_LENGTH_MAX}.",
        hint="Split it into several, or use fewer expressions.",
    )


_NOT_BRACKETS = re.compile(r"[^()\[\]]+")


def brackets_of(code: str) -> int:
    deepest = depth = 0
    for bracket in _NOT_BRACKETS.sub("", code):
        depth += 1 if bracket in "([" else -1
        deepest = max(deepest, depth)
    return deepest

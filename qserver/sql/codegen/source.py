"""Python source under construction: lines with their indentation, fresh names, known objects.

Only names that are made here, numbers, and templates of our own go into source. Objects (functions,
values, tables) are put into the namespace under a name of ours; a user's text never is source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any


class Source:
    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self.reads_before = False
        """Does the statement make changes that what it reads must not show?"""
        self.functions = 0
        """How many functions have been printed that cannot yield."""
        self._lines: list[str] = []
        self.depth = 0
        """Blocks around the next line."""
        self._length = 0
        self._counts: dict[str, int] = {}
        self._known: dict[int, str] = {}

    def line(self, text: str) -> None:
        self._length += len(text)
        self._lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A line that ends in a colon, and what is below it."""
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
        """What is below an `if` of all the conditions; just what follows if there are none."""
        return self.block(f"if {' and '.join(conditions)}:") if conditions else nullcontext()

    def fresh(self, prefix: str) -> str:
        """A name that nobody has."""
        count = self._counts[prefix] = self._counts.get(prefix, -1) + 1
        return f"{prefix}{count}"

    def known(self, value: Any, prefix: str) -> str:
        """The name under which generated code finds an object."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = self.fresh(f"{prefix}_")
            self.namespace[name] = value
        return name

    def name(self, name: str, value: Any) -> None:
        """Make an object known under a fixed name, as templates ask."""
        there = self.namespace.setdefault(name, value)
        assert there is value, f"two objects want to be called {name}"

    @contextmanager
    def set_aside(self, depth: int = 1) -> Iterator[list[str]]:
        """Collect the lines that are made inside, at the outermost indentation of a function body

        or deeper, for the caller to place elsewhere.
        """
        lines, before = self._lines, self.depth
        self._lines, self.depth = [], depth
        try:
            yield self._lines
        finally:
            self._lines, self.depth = lines, before

    def insert(self, at: int, lines: list[str]) -> None:
        self._lines[at:at] = lines

    def replace_end(self, at: int, old: str, new: str) -> None:
        """Change the end of a line that has been printed."""
        self._lines[at] = self._lines[at].removesuffix(old) + new

    def place(self) -> int:
        """Where the next line goes; see `insert`."""
        return len(self._lines)

    def length(self) -> int:
        """Characters that have been printed so far, wherever they were placed."""
        return self._length

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


_NOT_BRACKETS = re.compile(r"[^()\[\]]+")


def brackets_of(code: str) -> int:
    """How deep brackets nest."""
    deepest = depth = 0
    for bracket in _NOT_BRACKETS.sub("", code):
        depth += 1 if bracket in "([" else -1
        deepest = max(deepest, depth)
    return deepest

"""Moves long expressions into functions of their own, compiled one by one.

    WHERE a = 1 OR a = 2 OR …        if apart0(r0, made) or apart1(r0, made) or …:
    CASE WHEN … WHEN …               apart0: if …: return …, line after line

Python's compiler takes about a microsecond per character and cannot be interrupted. So its input
has a bound: a longer expression is split between its operands, which also limits nesting. Such a
function gets all its free names as arguments: rows, slots, sets.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from symtable import symtable
from typing import Final

from qserver.sql.codegen.source import Source, too_long

PIECE_LENGTH = 8 * 1024
"""The approximate length of such a function, in characters."""

APART_LENGTH_MAX = 4 * 1024 * 1024
"""The length of all such functions of a statement."""

LINES_MOST = 64
"""Conditional expressions in sequence on one line: Python nests them."""

_MADE: Final = re.compile(r"made\[(\d+)\]")
_BUILTINS: Final = frozenset(dir(builtins))


class Apart:
    """The functions for parts of long expressions; `texts` has their sources by dependency."""

    def __init__(self, source: Source) -> None:
        self.texts: list[str] = []
        self.length = 0
        """The length of all texts, in characters."""
        self._source = source
        self._names: set[str] = set()

    def chain(self, codes: Sequence[str], word: str) -> str:
        """Join conditions with `and` or `or`."""
        self._check(codes)
        return word.join(
            self._call([f"return {word.join(piece)}"]) if len(piece) > 1 else piece[0]
            for piece in _pieces(codes)
        )

    def items(self, codes: Sequence[str]) -> str:
        self._check(codes)
        found = []
        for piece in _pieces(codes):
            if len(piece) == 1:
                found.append(piece[0])
            else:
                items = ", ".join(piece)
                found.append(f"*{self._call([f'return ({items},)'])}")
        return ", ".join(found)

    def first(self, choices: Sequence[tuple[str, str]], otherwise: str) -> str:
        """Return the value of the first (condition, value) whose condition is true."""
        codes = []
        name = self._source.fresh("v")
        for piece in _pieces([f"if {condition}: return {value}" for condition, value in choices]):
            call = self._call([*piece, "return NO_CHOICE"])
            codes.append(f"{name} if ({name} := {call}) is not NO_CHOICE else ")
        self._source.name("NO_CHOICE", NO_CHOICE)
        return f"({''.join(codes)}{otherwise})"

    def _check(self, codes: Sequence[str]) -> None:
        """Refuse what is too long before any of it is looked at."""
        length = self.length + sum(map(len, codes))
        if length > APART_LENGTH_MAX:
            raise too_long(length)

    def _call(self, lines: list[str]) -> str:
        """Add a function with these lines and return its call."""
        name = self._source.fresh("apart")
        body = "\n".join(["    " + line for line in lines])
        known = self._source.namespace
        given = sorted(
            each
            for each in _free_names(f"def {name}():\n{body}\n")
            if each not in known and each not in self._names and each not in _BUILTINS
        )
        given = [each for each in given if each != "NO_CHOICE"]
        self._names.add(name)
        self.texts.append(f"def {name}({', '.join(given)}):\n{body}\n")
        self.length += len(body)
        if self.length > APART_LENGTH_MAX:
            raise too_long(self.length)
        return f"{name}({', '.join(given)})"


class _NoChoice:
    """Marks that no choice applied: NULL is a value."""


NO_CHOICE: Final = _NoChoice()


def sliced(codes: list[str]) -> list[str]:
    """Merge items that are consecutive in the list of slots into slices."""
    found: list[str] = []
    first = last = -1
    for code in [*codes, ""]:
        match = _MADE.fullmatch(code)
        at = -1 if match is None else int(match[1])
        if first >= 0 and at == last + 1:
            last = at
            continue
        if first >= 0:
            found.append(f"made[{first}]" if first == last else f"*made[{first}:{last + 1}]")
        first = last = at
        if at < 0 and code:
            found.append(code)
    return found


def is_long(codes: Iterable[str]) -> bool:
    """Tell whether codes are too long for one place; a code that yields must stay in place."""
    length = 0
    for code in codes:
        if "yield" in code:
            return False
        length += len(code)
    return length > 2 * PIECE_LENGTH


def _pieces(codes: Sequence[str]) -> list[list[str]]:
    pieces: list[list[str]] = []
    length = PIECE_LENGTH
    for code in codes:
        if length >= PIECE_LENGTH:
            pieces.append([])
            length = 0
        pieces[-1].append(code)
        length += len(code)
    return pieces


def _free_names(text: str) -> set[str]:
    """Return the names that a function reads and does not make."""
    found: set[str] = set()
    waiting = symtable(text, "<apart>", "exec").get_children()
    while waiting:
        scope = waiting.pop()
        found.update(each.get_name() for each in scope.get_symbols() if each.is_global())
        waiting += scope.get_children()
    return found

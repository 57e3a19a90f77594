"""Makes a program that shows a difference as small as it can be made.

First whole statements go, then parts of statements: elements of lists, what stands in parentheses,
clauses. What is left must show a difference of the same sort; otherwise the part stays.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final

from tests.differential.comparison import Difference, Step

TOKEN: Final = re.compile(
    r"\s+|[eE]?'(?:[^']|'')*'|\"[^\"]*\"|\w+(?:\.\w+)*|::|<=|>=|<>|\|\||->>|->|#>>|#>|[^\w\s]"
)
READS: Final = re.compile(r"\(*\s*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
CHANGES: Final = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE|INTO)\b", re.IGNORECASE)
CUTS: Final = re.compile(r"\b(?:LIMIT|OFFSET|FETCH)\b", re.IGNORECASE)
QUERIES_MAX: Final = 900
PROGRAMS_MAX: Final = 120
"""How many smaller texts are tried: of a query on a schema that stands, and of whole programs."""

Attempt = Callable[[Step], Awaitable[Difference | None]]
Prepare = Callable[[list[Step]], AbstractAsyncContextManager[Attempt]]
"""Runs statements anew on both sides; within it, further ones can be tried one after another."""


class Shrinker:
    """Tries smaller programs while they still show the same sort of difference."""

    def __init__(self, prepare: Prepare, found: Difference) -> None:
        self._prepare = prepare
        self._sort = found.sort
        self.last = found
        self._programs = 0

    async def shrink(self, steps: list[Step]) -> list[Step]:
        steps = await self._fewer(steps)
        steps = await self._shorter_query(steps)
        for at in range(len(steps) - 1, -1, -1):
            steps = await self._shorter(steps, at)
        return await self._fewer(steps)

    async def _still(self, steps: list[Step]) -> bool:
        if self._programs >= PROGRAMS_MAX:
            return False
        self._programs += 1
        async with self._prepare(steps[:-1]) as attempt:
            return self._same(await attempt(steps[-1]))

    def _same(self, found: Difference | None) -> bool:
        if found is None or found.sort != self._sort:
            return False
        self.last = found
        return True

    async def _fewer(self, steps: list[Step]) -> list[Step]:
        """Without statements before the last, in halves first."""
        size = max(1, (len(steps) - 1) // 2)
        while True:
            at = 0
            while at < len(steps) - 1:
                rest = steps[:at] + steps[min(at + size, len(steps) - 1) :]
                if await self._still(rest):
                    steps = rest
                else:
                    at += size
            if size == 1:
                return steps
            size //= 2

    async def _shorter_query(self, steps: list[Step]) -> list[Step]:
        """The last statement in as few tokens as show it; as it only reads, on one schema."""
        sql, tried = steps[-1].sql, 0
        if not READS.match(sql) or CHANGES.search(sql):
            return steps
        async with self._prepare(steps[:-1]) as attempt:
            progress = True
            while progress:
                progress = False
                for shorter in _smaller(sql):
                    tried += 1
                    if tried > QUERIES_MAX:
                        break
                    if self._same(await attempt(replace(steps[-1], sql=shorter, ordered_by=()))):
                        sql, progress = shorter, True
                        break
        return [
            *steps[:-1],
            replace(steps[-1], sql=sql, ordered_by=()) if sql != steps[-1].sql else steps[-1],
        ]

    async def _shorter(self, steps: list[Step], at: int) -> list[Step]:
        progress = True
        while progress:
            progress = False
            for shorter in _smaller(steps[at].sql):
                changed = [*steps]
                changed[at] = replace(steps[at], sql=shorter, ordered_by=())
                if await self._still(changed):
                    steps, progress = changed, True
                    break
                if self._programs >= PROGRAMS_MAX:
                    return steps
        return steps


def _smaller(sql: str) -> Iterator[str]:
    """Texts with less in them, those that lose most first.

    None of them cuts its rows off: with less of its order, it would be left to chance which.
    """
    return (text for text in _texts_with_less(sql) if CUTS.search(text) is None)


def _texts_with_less(sql: str) -> Iterator[str]:
    tokens = TOKEN.findall(sql)
    spans = list(_groups(tokens))
    spans.sort(key=lambda span: span[0] - span[1])
    for start, end in spans:
        for first, last in _elements(tokens, start, end):
            yield "".join(tokens[:first] + tokens[last:])
        inside = "".join(tokens[start + 1 : end])
        if inside.strip():
            yield "".join(tokens[:start]) + inside + "".join(tokens[end + 1 :])
        begin = start - 1 if start and re.fullmatch(r"\w+", tokens[start - 1]) else start
        yield "".join(tokens[:begin]) + "NULL" + "".join(tokens[end + 1 :])
        for first, last in _elements(tokens, start, end):
            element = "".join(tokens[first:last]).strip(", ")
            if element:
                yield "".join(tokens[:begin]) + element + "".join(tokens[end + 1 :])
    for first, last in _elements(tokens, -1, len(tokens)):
        yield "".join(tokens[:first] + tokens[last:])
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    for size in (16, 8, 4, 3, 2, 1):
        for index in range(len(words) - size + 1):
            first, last = words[index], words[index + size - 1] + 1
            part = tokens[first:last]
            if part.count("(") == part.count(")"):
                yield "".join(tokens[:first] + tokens[last:])


def _groups(tokens: list[str]) -> Iterator[tuple[int, int]]:
    """Where parentheses and brackets open and close."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token in "([" and token:
            opened.append(at)
        elif token in ")]" and token and opened:
            yield opened.pop(), at


def _elements(tokens: list[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The elements of a list between `start` and `end`, each with the comma that ends it."""
    commas: list[int] = []
    depth = 0
    for at in range(start + 1, end):
        if tokens[at] in ("(", "["):
            depth += 1
        elif tokens[at] in (")", "]"):
            depth -= 1
        elif tokens[at] == "," and depth == 0:
            commas.append(at)
    if not commas:
        return
    previous = start + 1
    for comma in commas:
        yield previous, comma + 1
        previous = comma + 1
    yield commas[-1], end

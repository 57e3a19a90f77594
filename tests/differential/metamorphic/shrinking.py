"""From a case that fails to a small one that fails in the same way.

Statements are left out, then stretches of the query's tokens, ever shorter ones, for as long as
the question still has the same kind of wrong answer. A text that is no query any more is refused in
every way alike, so it is no wrong answer, and nothing here has to know the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.differential.metamorphic.cases import Case, outcome_of

ATTEMPTS_MAX: Final = 1500

_TOKEN: Final = re.compile(
    r"""'(?:[^']|'')*'(?:::\w+(?:\([0-9, ]+\))?(?:\[\])?)?"""
    r"""|/\*part\*/\ true|"[^"]*"|\w+(?:\.\w+)?|::|[<>=!|&@~^?#*/+-]+|\S"""
)
_ROWS: Final = re.compile(r"(INSERT INTO .+? VALUES )(\(.*\))", re.DOTALL)

_BY_ORDER: Final = re.compile(r"\b(LIMIT|OFFSET|FETCH|OVER|DISTINCT ON)\b")
_ORDER: Final = re.compile(r"\bORDER BY [^()]*(?:\([^()]*\)[^()]*)*")
"""An order that is cut short is not total any more, and then a LIMIT may take other rows."""


class Shrinker:
    """Makes a case smaller; `attempts` counts how often it was tried."""

    def __init__(self, attempts_most: int = ATTEMPTS_MAX) -> None:
        self.attempts = 0
        self._kind = ""
        self._most = attempts_most

    async def shrink(self, case: Case) -> Case:
        case = replace(case, changes=tuple(one for sql in case.changes for one in _single(sql)))
        self._kind = (await outcome_of(case)).kind
        if not self._kind:
            return case
        before = None
        while case != before and self.attempts < self._most:
            before = case
            case = await self._fewer_statements(case)
            case = await self._shorter(case, "text")
            case = await self._shorter(case, "predicate")
        return case

    async def _fails(self, case: Case) -> bool:
        self.attempts += 1
        return (await outcome_of(case)).kind == self._kind

    async def _fewer_statements(self, case: Case) -> Case:
        changes = await self._fewer(case.changes, lambda kept: replace(case, changes=kept))
        case = replace(case, changes=changes)
        kept = await self._fewer(case.definitions, lambda kept: replace(case, definitions=kept))
        return replace(case, definitions=kept)

    async def _fewer(
        self, items: tuple[str, ...], made: Callable[[tuple[str, ...]], Case]
    ) -> tuple[str, ...]:
        """Leave out halves, quarters, … and single items, while the case still fails."""
        length = max(1, len(items) // 2)
        while length and self.attempts < self._most:
            at = 0
            while at < len(items) and self.attempts < self._most:
                fewer = items[:at] + items[at + length :]
                if await self._fails(made(fewer)):
                    items = fewer
                else:
                    at += length
            length //= 2
        return items

    async def _shorter(self, case: Case, field: str) -> Case:
        tokens = tuple(_TOKEN.findall(getattr(case.question, field)))
        orders = _orders(" ".join(tokens))

        def made(kept: tuple[str, ...]) -> Case:
            text = " ".join(kept) or "true"
            if _BY_ORDER.search(text) and not orders.issuperset(_orders(text)):
                return case_that_holds
            question = case.question
            if field == "text":
                return replace(case, question=replace(question, text=text))
            return replace(case, question=replace(question, predicate=text))

        case_that_holds = replace(case, question=replace(case.question, text="SELECT"))

        if not await self._fails(made(tokens)):
            return case
        tokens = await self._fewer(tokens, made)
        tokens = await self._without_parentheses(tokens, made)
        return made(tokens)

    async def _without_parentheses(
        self, tokens: tuple[str, ...], made: Callable[[tuple[str, ...]], Case]
    ) -> tuple[str, ...]:
        """A pair of parentheses, or all that it holds, or a simple value instead of it."""
        at = 0
        while at < len(tokens) and self.attempts < self._most:
            if tokens[at] == "(":
                end = _closing(tokens, at)
                inside = tokens[at + 1 : end]
                for instead in ((), inside, ("NULL",), ("1",), ("true",)):
                    shorter = (*tokens[:at], *instead, *tokens[end + 1 :])
                    if len(shorter) < len(tokens) and await self._fails(made(shorter)):
                        tokens = shorter
                        break
                else:
                    at += 1
            else:
                at += 1
        return tokens


def _orders(text: str) -> set[str]:
    return set(_ORDER.findall(text))


def _closing(tokens: tuple[str, ...], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if depth == 0:
            return at
    return len(tokens) - 1


def _single(sql: str) -> list[str]:
    """An INSERT of many rows as one INSERT for each, where its rows can be told apart."""
    found = _ROWS.fullmatch(sql)
    if found is None:
        return [sql]
    rows, depth, start = [], 0, 0
    for token in re.finditer(r"'(?:[^']|'')*'|[()]", found[2]):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == "(" and depth == 1:
            start = token.start()
        if token[0] == ")" and depth == 0:
            rows.append(found[2][start : token.end()])
    return [found[1] + row for row in rows]

"""The conditions of a plan, added up: conjuncts of filters, scans and joins, and what keys hold.

A condition may move below a projection, a grouping or a set operation, where it speaks of other
columns. So that it is the same before and after, a column that such a node makes is replaced by
what the node makes it of, and a condition on a set operation counts once for each side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from random import Random
from typing import Any

from qserver.sql import expressions, plan
from qserver.sql.expressions import Column, Expression
from qserver.sql.walk import conjuncts, everything, is_plan, parts, substituted
from qserver.values.types import INTEGER

SUBQUERY = "subquery"
ROWS_TRIED = 300
LACKING = (False, None)
Term = tuple[str, tuple[Expression, ...]]
"""What is asked, and of which expressions."""


def conditions_of(statement: Any) -> Counter[str]:
    """How often each condition is demanded anywhere in a statement."""
    made_by = {
        node.source: node
        for node in everything(statement)
        if isinstance(node, plan.Project | plan.Aggregate | plan.SetOperation)
    }
    found: Counter[str] = Counter()
    for node in everything(statement):
        for symbol, operands in _terms(node):
            found.update(_text(symbol, each) for each in _resolved(operands, made_by))
    return found


def disagreements(before: Any, after: Any) -> Counter[str]:
    """Conditions whose truth, in some row, keeps that row before and drops it after, or otherwise.

    What is neither AND nor OR is true, false or NULL by chance.
    """
    chance = Random(0)
    demanded = [_demanded(each) for each in (before, after)]
    if demanded[0] == demanded[1]:
        return Counter()
    for _ in range(ROWS_TRIED):
        row = _Row(chance)
        kept = [all(row.truth(each) is True for each in every) for every in demanded]
        if kept[0] != kept[1]:
            return Counter(map(_text_of, demanded[0]))
    return Counter()


class _Row:
    """Knows which conditions hold in some row."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._share = chance.random()
        self._truths: dict[str, bool | None] = {}

    def truth(self, condition: Expression) -> bool | None:
        if not isinstance(condition, expressions.And | expressions.Or):
            lot = True if self._chance.random() < self._share else self._chance.choice(LACKING)
            return self._truths.setdefault(_text_of(condition), lot)
        found = [self.truth(each) for each in condition.operands]
        decisive = isinstance(condition, expressions.Or)
        if decisive in found:
            return decisive
        return None if None in found else not decisive


def _demanded(statement: Any) -> list[Expression]:
    return [
        condition
        for node in everything(statement)
        if isinstance(node, plan.Filter | plan.Scan | plan.Join)
        for condition in conjuncts(node.condition)
    ]


def joins_for_subqueries(statement: Any) -> int:
    """How many joins stand for an EXISTS or IN."""
    joins = (each for each in everything(statement) if isinstance(each, plan.Join))
    return sum(each.kind in ("semi", "anti") for each in joins)


def _terms(node: Any) -> Iterator[Term]:
    if isinstance(node, plan.Filter | plan.Scan | plan.Join):
        for condition in conjuncts(node.condition):
            yield _term(condition)
    if isinstance(node, plan.Scan):
        yield from _terms_of_key(node)


def _term(condition: Expression) -> Term:
    if isinstance(condition, expressions.Apply) and condition.function.comparison:
        return condition.function.comparison, condition.arguments
    if isinstance(condition, expressions.InList) and not condition.negated:
        return "IN", (condition.operand, *condition.items)
    return "", (condition,)


def _terms_of_key(scan: plan.Scan) -> Iterator[Term]:
    """The conditions that the key of a scan's access stands for."""
    columns = scan.table.primary_key if scan.access.index is None else scan.access.index.columns
    named = [Column(scan.source, position, INTEGER, True) for position in columns]
    keys = scan.access.range
    for column, value in zip(named, keys.equal, strict=False):
        yield "=", (column, value)
    following = len(keys.equal)
    if keys.choices:
        yield "IN", (named[following], *keys.choices)
    for bounded, symbol in ((keys.low, ">"), (keys.high, "<")):
        if bounded is not None:
            yield symbol + "=" * bounded[1], (named[following], bounded[0])


def _resolved(
    operands: tuple[Expression, ...], made_by: dict[int, Any]
) -> list[tuple[Expression, ...]]:
    """The operands with every column replaced by what it is made of: once, or for each side."""
    for operand in operands:
        for each in everything(operand):
            node = made_by.get(each.source) if type(each) is Column else None
            ways = [] if node is None else _ways(node, each.position)
            if ways:
                return [
                    found
                    for way in ways
                    for found in _resolved(
                        tuple(substituted(one, way) for one in operands), made_by
                    )
                ]
    return [operands]


def _ways(node: Any, position: int) -> list[dict[tuple[int, int], Expression]]:
    if isinstance(node, plan.SetOperation):
        return [
            {(node.source, at): Column(side, at, INTEGER, True) for at in range(len(node.columns))}
            for side in (node.left_source, node.right_source)
        ]
    made = node.expressions if isinstance(node, plan.Project) else node.keys
    if position >= len(made):
        return []
    return [{(node.source, at): each for at, each in enumerate(made)}]


def _text(symbol: str, operands: tuple[Expression, ...]) -> str:
    texts = [_text_of(each) for each in operands]
    if symbol in ("<", "<="):
        symbol, texts = symbol.replace("<", ">"), texts[::-1]
    if symbol in ("=", "<>"):
        texts.sort()
    return f"{symbol}({', '.join(texts)})"


def _text_of(node: Any) -> str:
    if type(node) is Column:
        return f"#{node.source}.{node.position}"
    if any(is_plan(each) for each in everything(node)):
        return SUBQUERY
    own = [
        repr(getattr(node, each.name))
        for each in fields(node)
        if each.name in ("value", "name", "negated")
    ]
    function = getattr(node, "function", None)
    words = [type(node).__name__, *own, str(getattr(function, "name", ""))]
    return f"{' '.join(words)}({', '.join(map(_text_of, parts(node)))})"

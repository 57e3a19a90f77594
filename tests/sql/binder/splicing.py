"""Statements that nobody would write: parts of others, put where they do not belong.

Texts made at random are nearly all syntax errors, which never reach the binder. So statements are
taken apart as syntax, and an expression, a table or a query is replaced by another from the same
script. Their literals are numbered through, so that each keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from random import Random
from typing import Any, get_args

from qserver.errors import QserverError
from qserver.sql import ast
from qserver.sql.parser import parse
from tests.sql.binder.golden import Script

EXPRESSIONS = tuple(kind for kind in get_args(ast.Expression) if kind not in (ast.Star, ast.Row))
SOURCES = get_args(ast.FromItem)
BODIES = (ast.Select, ast.SetOperation, ast.Values)
FUNCTIONS = ("sum", "count", "lower", "abs", "coalesce", "max", "unnest", "row_number")
SYMBOLS = ("+", "-", "=", "<>", "<", "and", "or", "||", "is distinct from", "like")


class Splicer:
    """The parts of a script's statements, and new statements made of them."""

    def __init__(self, script: Script) -> None:
        self.literals: list[Any] = []
        self.statements: list[Any] = []
        for case in script.cases:
            try:
                parsed = parse(case.sql)
            except QserverError:
                continue
            if "(" not in parsed.kinds:  # no rows that were parameterized as one literal
                self.statements.append(self._numbered(parsed.statement))
                self.literals += parsed.literals
        every = [node for statement in self.statements for node in _nodes(statement)]
        self.expressions = [node for node in every if isinstance(node, EXPRESSIONS)]
        self.sources = [node for node in every if isinstance(node, SOURCES)]
        self.bodies = [node for node in every if isinstance(node, BODIES)]

    def _numbered(self, statement: Any) -> Any:
        offset = len(self.literals)

        def change(node: Any) -> Any:
            if isinstance(node, ast.Literal):
                return replace(node, index=node.index + offset)
            return node

        return _changed(statement, change, everywhere=True)

    def spliced(self, random: Random) -> Any:
        """A statement of the script with some of its parts replaced."""
        share = random.choice((0.05, 0.1, 0.3))

        def change(node: Any) -> Any:
            if random.random() > share:
                return node
            if isinstance(node, EXPRESSIONS):
                return self._expression(node, random)
            if isinstance(node, SOURCES):
                return self._source(node, random)
            return node

        return _changed(random.choice(self.statements), change)

    def _expression(self, node: Any, random: Random) -> Any:
        other = random.choice(self.expressions)
        match random.randrange(8):
            case 0:
                return ast.Operator(random.choice(SYMBOLS), node, other)
            case 1:
                return ast.Call((random.choice(FUNCTIONS),), (node,))
            case 2:
                return ast.Case(None, ((node, other),), random.choice(self.expressions))
            case 3 if self.bodies:
                return ast.ScalarQuery(ast.Query(random.choice(self.bodies)))
            case 4:
                return ast.Row((node, other))
            case _:
                return other

    def _source(self, node: Any, random: Random) -> Any:
        other = random.choice(self.sources)
        match random.randrange(3):
            case 0:
                kind = random.choice(("inner", "left", "right", "full"))
                return ast.Join(kind, node, other, random.choice(self.expressions))
            case 1 if self.bodies:
                query = ast.Query(random.choice(self.bodies))
                return ast.SubqueryRef(query, "z", lateral=random.random() < 0.5)
            case _:
                return other


def _nodes(value: Any) -> list[Any]:
    found: list[Any] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, tuple):
            waiting.extend(each)
        elif isinstance(each, ast.Node):
            found.append(each)
            waiting.extend([getattr(each, field.name) for field in fields(each)])
    return found


def _changed(value: Any, change: Callable[[Any], Any], everywhere: bool = False) -> Any:
    """From the leaves up. Some places can hold only what is there, as far as the parser goes."""
    if isinstance(value, tuple):
        return tuple([_changed(each, change, everywhere) for each in value])
    if not isinstance(value, ast.Node):
        return value
    if not everywhere and isinstance(value, ast.TypeName):
        return value
    fixed = {"position"} if everywhere else {"position", "table", "call"}
    parts = {
        field.name: _changed(getattr(value, field.name), change, everywhere)
        for field in fields(value)
        if field.name not in fixed
    }
    return change(replace(value, **parts))

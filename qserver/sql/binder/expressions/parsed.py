"""Caches the parsed texts of definitions: a view's query, a DEFAULT's or CHECK's expression.

Each statement that uses the table needs the same texts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from qserver.sql import ast
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.parser import parse, parse_expression
from qserver.sql.step_budget import StepBudget
from qserver.values.identifiers import identifiers, stored_name

_OF_SEQUENCES: Final = frozenset({"nextval", "currval", "setval"})


ParsedQuery: TypeAlias = tuple[ast.Query, Literals]


def parsed_query(text: str, budget: StepBudget | None = None) -> ParsedQuery:
    """Parse a query; its literals are part of the definition.

    Only the first time takes steps of the budget; if they run out, that time is still to come.
    """
    place = _place_of(text)
    if not place:
        parsed = parse(text, budget=budget)
        assert isinstance(parsed.statement, ast.Query), "a view is a query"
        place.append((parsed.statement, Literals(parsed.literals, fixed=True)))
    return place[0]


@lru_cache(maxsize=1024)
def _place_of(text: str) -> list[ParsedQuery]:
    """Return where a query is kept once it has been parsed."""
    return []


@lru_cache(maxsize=4096)
def parsed_expression(text: str) -> tuple[ast.Expression, Literals]:
    """Parse an expression; a sequence that it names without a schema is in public."""
    parsed = parse_expression(text)
    for at in sequence_literals(parsed.expression):
        parts = identifiers(str(parsed.literals[at]))
        if len(parts) == 1:
            parsed.literals[at] = stored_name(parts[0])
    return parsed.expression, Literals(parsed.literals, fixed=True)


def sequence_literals(expression: ast.Expression) -> Iterator[int]:
    """Yield the literals that name sequences: `nextval('s')`."""
    for node in nodes_of(expression):
        if isinstance(node, ast.Call) and node.name[-1] in _OF_SEQUENCES and node.arguments:
            argument = node.arguments[0]
            if isinstance(argument, ast.Cast):
                argument = argument.operand
            if isinstance(argument, ast.Literal) and argument.kind == "text":
                yield argument.index

"""Caches the parsed texts of definitions: a view's query, a DEFAULT's or CHECK's expression.

Each statement that uses the table needs the same texts again.
"""

from __future__ import annotations

from functools import lru_cache

from qserver.sql import ast
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.parser import parse, parse_expression


@lru_cache(maxsize=1024)
def parsed_query(text: str) -> tuple[ast.Query, Literals]:
    """Parse a query; its literals are part of the definition."""
    parsed = parse(text)
    assert isinstance(parsed.statement, ast.Query), "a view is a query"
    return parsed.statement, Literals(parsed.literals, fixed=True)


@lru_cache(maxsize=4096)
def parsed_expression(text: str) -> tuple[ast.Expression, Literals]:
    parsed = parse_expression(text)
    return parsed.expression, Literals(parsed.literals, fixed=True)

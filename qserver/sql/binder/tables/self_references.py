"""Where a recursive CTE may name itself: once, in the recursive term, as a table of its FROM.

    FROM t, FROM (SELECT … FROM t) AS x     allowed
    a LEFT JOIN t                           refused: each iteration sees only the last rows, so a
                                            row that finds no partner now may have had one before
    EXISTS (SELECT … FROM t)                refused, and so are EXCEPT and INTERSECT ALL

As in PostgreSQL this is a matter of the text alone, and is looked at before anything is bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, TypeAlias

from qserver.errors import InvalidRecursion
from qserver.sql import ast

ALLOWED: Final = ""
START: Final = "within its non-recursive term"
SUBQUERY: Final = "within a subquery"
OUTER_JOIN: Final = "within an outer join"

_OF_QUERIES: Final = (ast.SubqueryRef, ast.SetOperation, ast.Query, ast.CommonTable)
"""What a query may stand in without being a subquery of an expression."""

_Place: TypeAlias = tuple[Any, str]
"""A node, and what is wrong with its place."""


def check_self_references(name: str, body: ast.SetOperation, query: ast.Query) -> None:
    """Raise if a recursive query names itself where it must not, or twice."""
    for position, where in self_references(name, [(body.left, START)]):
        raise _misplaced(name, where, position)
    for seen, (position, where) in enumerate(self_references(name, [(body.right, ALLOWED)])):
        if where or seen:
            raise _misplaced(name, where or "more than once", position)
    for position, where in self_references(name, [(query.common_tables, SUBQUERY)]):
        raise _misplaced(name, where, position)


def _misplaced(name: str, where: str, position: int) -> InvalidRecursion:
    return InvalidRecursion(
        f'recursive reference to query "{name}" must not appear {where}', position=position + 1
    )


def self_references(name: str, waiting: list[_Place]) -> Iterator[tuple[int, str]]:
    """Yield the position of each table of that name, in order, and what is wrong with its place."""
    while waiting:
        node, where = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend([(each, where) for each in reversed(node)])
        elif isinstance(node, ast.TableRef) and node.name == (name,):
            yield node.position, where
        elif isinstance(node, ast.Node):
            waiting.extend(reversed(list(_parts(node, where, name))))


def _parts(node: ast.Node, where: str, name: str) -> Iterator[_Place]:
    match node:
        case ast.Query() if name in (names := [each.name for each in node.common_tables]):
            # Further inside, the name means another table.
            seen = 0 if node.recursive else names.index(name) + 1
            yield node.common_tables[:seen], where
        case ast.Join():
            yield node.left, OUTER_JOIN if node.kind in ("right", "full") else where
            yield node.right, OUTER_JOIN if node.kind in ("left", "full") else where
            yield node.condition, where
        case ast.SetOperation(kind="intersect" | "except"):
            refused = f"within {node.kind.upper()}"
            yield node.left, refused if node.is_all else where
            yield node.right, refused if node.is_all or node.kind == "except" else where
        case _:
            of_queries = isinstance(node, _OF_QUERIES)
            for field in fields(node):
                part = getattr(node, field.name)
                yield part, where if of_queries or not isinstance(part, ast.Query) else SUBQUERY

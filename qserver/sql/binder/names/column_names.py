"""Derives PostgreSQL's name for a result column without an alias.

A column has its own name, a call the function's, a cast its operand's or else its type's, CASE the
name of its ELSE; arithmetic and comparisons have none: `?column?`. Names have strengths: a cast
keeps a strong name (`a::text` is `a`) and replaces a weak one.
"""

from __future__ import annotations

from qserver.sql import ast
from qserver.sql.binder.names.type_names import internal_name

NAMELESS = "?column?"

_NONE, _WEAK, _STRONG = 0, 1, 2


def column_name(node: ast.Expression) -> str:
    return _name(node)[0]


def _name(node: ast.Expression) -> tuple[str, int]:
    match node:
        case ast.Name():
            return node.parts[-1], _STRONG
        case ast.Field() if node.name != "*":
            return node.name, _STRONG
        case ast.Star() if node.table:
            return node.table[-1], _STRONG
        case ast.Call():
            return node.name[-1], _STRONG
        case ast.Cast():
            name, strength = _name(node.operand)
            if strength < _STRONG:
                return _type_name(node.type), _WEAK
            return name, strength
        case ast.Case():
            name, strength = (NAMELESS, _NONE)
            if node.otherwise is not None:
                name, strength = _name(node.otherwise)
            return (name, strength) if strength == _STRONG else ("case", _WEAK)
        case ast.Collate() | ast.Subscript():
            return _name(node.operand)
        case ast.ArrayItems() | ast.ArrayQuery():
            return "array", _STRONG
        case ast.Row():
            return "row", _STRONG
        case ast.Exists():
            return "exists", _STRONG
        case ast.ScalarQuery():
            return _first_name(node.query), _STRONG
        case _:
            return NAMELESS, _NONE


def _first_name(query: ast.QueryBody) -> str:
    """Return the name of a subquery's only column."""
    while not isinstance(query, ast.Select):
        match query:
            case ast.Query():
                query = query.body
            case ast.SetOperation():
                query = query.left
            case ast.Values():
                return "column1"
    if not query.targets:
        return NAMELESS
    target = query.targets[0]
    return target.alias or column_name(target.expression)


def _type_name(node: ast.TypeName) -> str:
    """Return the name that a cast to the type gives a column: `int4` for integer."""
    return node.name if node.quoted or node.schemas else internal_name(node.name)

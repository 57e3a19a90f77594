"""A type that stands in a text, as regtype reads it."""

from __future__ import annotations

from qserver.errors import SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.names.type_names import FindType, bind_type
from qserver.sql.parser import parse_expression
from qserver.values.types import SqlType


def type_of_text(text: str, find_type: FindType) -> SqlType:
    """Return the type that a text names, and nothing else."""
    parsed = parse_expression(f"CAST(NULL AS {text})")
    match parsed.expression:
        case ast.Cast(operand=ast.Constant(value=None), type=name):
            return bind_type(name, Literals(parsed.literals, fixed=True), find_type)
    raise SqlSyntaxError(f'invalid type name "{text}"')

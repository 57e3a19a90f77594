"""Negative numbers: a minus and a literal are one value, not a computation.

So an index look-up works for -1 as for 1, and the smallest integers are integers although their
magnitude is too large for one: -2147483648 is an INTEGER, -9223372036854775808 a BIGINT.
"""

from __future__ import annotations

from decimal import Decimal

from qserver.sql import ast
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Constant, Expression, Slot
from qserver.values.types import BIGINT, INTEGER, NUMERIC

_TYPES = {"integer": INTEGER, "bigint": BIGINT, "numeric": NUMERIC}
_SMALLEST = {"bigint": (2**31, INTEGER), "numeric": (2**63, BIGINT)}


def negative_literal(scope: Scope, node: ast.Literal) -> Expression | None:
    """Return the negated literal; None if it is not a number."""
    sql_type = _TYPES.get(node.kind)
    if sql_type is None:
        return None
    literals, convert = scope.literals, _negative
    if node.kind in _SMALLEST:
        magnitude, narrower = _SMALLEST[node.kind]
        if literals.is_worth(node.index, magnitude):
            sql_type, convert = narrower, _negative_integer
    if literals.fixed:
        return Constant(convert(literals.value(node.index)), sql_type)
    return Slot(node.index, sql_type, convert, node.nullable)


def _negative(value: int | Decimal) -> int | Decimal:
    """Negate exactly; zero has no sign."""
    if isinstance(value, Decimal):
        return value.copy_negate() if value else value
    return -value


def _negative_integer(value: int | Decimal) -> int:
    return -int(value)

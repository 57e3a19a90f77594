"""Tells whether a bound expression depends on the session's time zone."""

from __future__ import annotations

from typing import Final

from qserver.sql.expressions import Apply, Cast, Expression
from qserver.sql.walk import everything
from qserver.values.types import Kind, SqlType

_ZONED: Final = frozenset({Kind.TIMESTAMPTZ, Kind.TIMETZ})
_ZONED_PATHS: Final = frozenset(
    f"jsonb_path_{name}_tz" for name in ("exists", "match", "query", "query_array", "query_first")
)
"""They compare dates and times of a document in the session's zone."""


def depends_on_zone(expression: Expression) -> bool:
    """Tell whether it may read or print a time in the session's zone.

    Columns and comparisons do not.
    """
    for node in everything(expression):
        if isinstance(node, Cast):
            if _is_zoned(node.type) != _is_zoned(node.operand.type):
                return True
        elif isinstance(node, Apply):
            if node.function.name in _ZONED_PATHS:
                return True
            types = (*node.function.parameters, node.function.returns)
            if node.function.comparison is None and any(map(_is_zoned, types)):
                return True
    return False


def _is_zoned(sql_type: SqlType) -> bool:
    return (sql_type.element or sql_type).kind in _ZONED

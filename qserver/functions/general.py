"""Functions of no type: GREATEST and LEAST, user and version."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.values.types import NAME, TEXT, SqlType

VERSION: Final = "PostgreSQL 15.0 (qserver)"
"""Clients read this to identify the dialect."""


def extreme(name: str, sql_type: SqlType, count: int, less: Callable[[Any, Any], bool]) -> Function:
    """Return GREATEST or LEAST of `count` values, ordered by `less`; NULLs are ignored."""
    better = less if name == "least" else lambda left, right: less(right, left)

    def choose(*values: Any) -> Any:
        best = None
        for value in values:
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return Function(name, (sql_type,) * count, sql_type, choose, strict=False, gives_null=True)


# --- user and version ----------------------------------------------------------------------------

_user = operator.attrgetter("user")
_database = operator.attrgetter("database")


def _constant(name: str, value: str, sql_type: SqlType = NAME) -> Function:
    return Function(name, (), sql_type, lambda: value)


FUNCTIONS: Final = (
    *(
        Function(name, (), NAME, _user, needs_context=True)
        for name in ("current_user", "session_user", "current_role", "user")
    ),
    *(
        Function(name, (), NAME, _database, needs_context=True)
        for name in ("current_database", "current_catalog")
    ),
    _constant("version", VERSION, TEXT),
)

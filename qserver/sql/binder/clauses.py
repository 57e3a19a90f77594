"""The clauses of a statement, and what each refuses, in PostgreSQL's wording."""

from __future__ import annotations

from enum import Enum
from typing import Final

from qserver.errors import FeatureNotSupported, GroupingError, QserverError, WindowingError


class Clause(Enum):
    """The place of an expression. The value is its name in errors."""

    TARGETS = "SELECT"
    WHERE = "WHERE"
    ON = "JOIN conditions"
    FROM = "FROM clause of their own query level"
    FUNCTION_IN_FROM = "functions in FROM"
    GROUP_BY = "GROUP BY"
    HAVING = "HAVING"
    ORDER_BY = "ORDER BY"
    DISTINCT_ON = "DISTINCT ON"
    LIMIT = "LIMIT"
    OFFSET = "OFFSET"
    FILTER = "FILTER"
    WINDOW = "window definitions"
    FRAME = "window definitions, in a frame"
    VALUES = "VALUES"
    RETURNING = "RETURNING"
    UPDATE = "UPDATE"
    MERGE_WHEN = "MERGE WHEN conditions"
    DEFAULT = "DEFAULT expressions"
    CHECK = "check constraints"
    GENERATED = "column generation expressions"
    INDEX = "index expressions"
    INDEX_PREDICATE = "index predicates"
    TRANSFORM = "transform expressions"

    __hash__ = object.__hash__


_AGGREGATES_ALLOWED: Final = frozenset(
    {
        Clause.TARGETS,
        Clause.HAVING,
        Clause.ORDER_BY,
        Clause.DISTINCT_ON,
        Clause.WINDOW,
        Clause.FRAME,
    }
)
_WINDOWS_ALLOWED: Final = frozenset({Clause.TARGETS, Clause.ORDER_BY, Clause.DISTINCT_ON})
_ROWS_ALLOWED: Final = frozenset(
    {
        Clause.TARGETS,
        Clause.ORDER_BY,
        Clause.GROUP_BY,
        Clause.DISTINCT_ON,
        Clause.FUNCTION_IN_FROM,
        Clause.WINDOW,
    }
)
_OF_DEFINITIONS: Final = {
    Clause.DEFAULT: "DEFAULT expression",
    Clause.CHECK: "check constraint",
    Clause.GENERATED: "column generation expression",
    Clause.INDEX: "index expression",
    Clause.INDEX_PREDICATE: "index predicate",
    Clause.TRANSFORM: "transform expression",
}


def refuse_aggregate(clause: Clause) -> QserverError | None:
    """Return the error for an aggregate whose query is in the clause, or None; likewise below."""
    if clause in _AGGREGATES_ALLOWED:
        return None
    return GroupingError(f"aggregate functions are not allowed in {clause.value}")


def refuse_grouping(clause: Clause) -> QserverError | None:
    if clause in _AGGREGATES_ALLOWED:
        return None
    return GroupingError(f"grouping operations are not allowed in {clause.value}")


def refuse_window(clause: Clause) -> QserverError | None:
    if clause in _WINDOWS_ALLOWED:
        return None
    return WindowingError(f"window functions are not allowed in {_named(clause)}")


def refuse_rows(clause: Clause) -> QserverError | None:
    if clause in _ROWS_ALLOWED:
        return None
    return FeatureNotSupported(f"set-returning functions are not allowed in {_named(clause)}")


def _named(clause: Clause) -> str:
    named = Clause.WINDOW if clause is Clause.FRAME else clause
    return str(named.value)


def refuse_subquery(clause: Clause) -> QserverError | None:
    """Return the error for a subquery, which only definitions refuse, or None."""
    if clause not in _OF_DEFINITIONS:
        return None
    return FeatureNotSupported(f"cannot use subquery in {_OF_DEFINITIONS[clause]}")


def refuse_column(clause: Clause) -> QserverError | None:
    if clause is not Clause.DEFAULT:
        return None
    return FeatureNotSupported("cannot use column reference in DEFAULT expression")

"""Recursive CTEs.

    WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)
                         start              again, on the rows that the last iteration added

The start determines names and types. The recursive term must have the same types, and name the
table exactly once; its columns are nullable whatever the start says, because later rows may be
NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qserver.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    QserverError,
    SqlSyntaxError,
)
from qserver.functions.resolve import common_type
from qserver.sql import ast
from qserver.sql.binder.expressions.prepared import Finished
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.tables.search_cycle import written_out
from qserver.sql.binder.tables.self_references import (
    ALLOWED,
    check_self_references,
    self_references,
)
from qserver.sql.plan import Aggregate, CommonTable, CommonTableScan, OutputColumn
from qserver.sql.walk import everything
from qserver.values.types import SqlType


class Entry:
    """One CTE: not yet begun, begun (its columns may be known), or bound."""

    __slots__ = ("begun", "columns", "named", "node", "number", "table")

    def __init__(self, node: ast.CommonTable, number: int) -> None:
        self.node = node
        self.number = number
        self.begun = False
        self.columns: tuple[OutputColumn, ...] | None = None
        self.table: CommonTable | None = None
        self.named = 0


def named_columns(
    node: ast.CommonTable, columns: Sequence[OutputColumn]
) -> tuple[OutputColumn, ...]:
    given = node.column_aliases
    if len(given) > len(columns):
        raise InvalidColumnReference(
            f'WITH query "{node.name}" has {len(columns)} columns available but '
            f"{len(given)} columns specified",
            position=node.position + 1,
        )
    names = [*given, *[column.name for column in columns[len(given) :]]]
    return tuple([replace(column, name=name) for column, name in zip(columns, names, strict=True)])


def bind_recursive(scope: Scope, entry: Entry, query: ast.Query) -> None:
    node, binding = entry.node, scope.binding
    body = query.body
    if not isinstance(body, ast.SetOperation) or body.kind != "union":
        raise InvalidRecursion(
            f'recursive query "{node.name}" does not have the form '
            "non-recursive-term UNION [ALL] recursive-term",
            position=node.position + 1,
        )
    check_self_references(node.name, body, query)
    _refuse_around_recursion(query)
    if node.search is not None or node.cycle is not None:
        own = binding.prepare_query(scope, _as_query(body.left)).finish().columns
        body = written_out(node, body, [column.name for column in named_columns(node, own)])
    prepared = binding.prepare_query(scope, _as_query(body.left))
    places = [column.position for column in prepared.columns]
    start = prepared.finish()
    columns = named_columns(node, start.columns)
    entry.columns = tuple([replace(column, nullable=True) for column in columns])
    again = _bind_again(scope, entry, body, start, places)
    entry.table = CommonTable(
        entry.number,
        node.name,
        start.plan,
        start.source,
        again.plan,
        again.source,
        body.is_all,
    )


def _bind_again(
    scope: Scope,
    entry: Entry,
    body: ast.SetOperation,
    start: Finished,
    places: Sequence[int],
) -> Finished:
    """Bind the recursive term, with the types of the start."""
    prepared = scope.binding.prepare_query(scope, _as_query(body.right))
    if len(prepared.columns) != len(start.columns):
        raise SqlSyntaxError(
            "each UNION query must have the same number of columns",
            position=body.right.position + 1,
        )
    types = [column.type for column in start.columns]
    for at, (column, wanted) in enumerate(zip(prepared.columns, types, strict=True), 1):
        _check_type(entry.node.name, at, wanted, column.type, places[at - 1])
    again = prepared.finish(types)
    for each in everything(again.plan):
        if type(each) is Aggregate and any(
            type(below) is CommonTableScan and below.number == entry.number
            for below in everything(each.input)
        ):
            raise InvalidRecursion(
                "aggregate functions are not allowed in a recursive query's recursive term",
                position=body.right.position + 1,
            )
    return again


def _check_type(name: str, at: int, start: SqlType, again: SqlType, position: int) -> None:
    try:
        overall = common_type([start, again], "UNION")
    except QserverError as error:
        error.position = position + 1
        raise
    if overall.bare != start.bare:
        raise DatatypeMismatch(
            f'recursive query "{name}" column {at} has type {start} in non-recursive term '
            f"but type {overall} overall",
            hint="Cast the output of the non-recursive term to the correct type.",
            position=position + 1,
        )


def _refuse_around_recursion(query: ast.Query) -> None:
    for what, given in (
        ("ORDER BY", query.order_by),
        ("OFFSET", query.offset),
        ("LIMIT", query.limit),
    ):
        if given:
            raise FeatureNotSupported(
                f"{what} in a recursive query is not implemented", position=query.position + 1
            )


def _as_query(body: ast.QueryBody) -> ast.Query:
    return body if isinstance(body, ast.Query) else ast.Query(body, position=body.position)


def mentions(node: Any, name: str) -> bool:
    """Tell whether a table of that name is in FROM, anywhere inside."""
    return any(True for _ in self_references(name, [(node, ALLOWED)]))

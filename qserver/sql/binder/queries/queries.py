"""Binds queries: SELECT, VALUES and set operations, with WITH, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.expressions.prepared import Finished, Prepared
from qserver.sql.binder.expressions.value_lists import prepare_values
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.queries.select import prepare_select
from qserver.sql.binder.queries.set_operations import prepare_around, prepare_set_operation
from qserver.sql.binder.tables.common_tables import with_common_tables, with_tables
from qserver.sql.binder.tables.locking import check_locking
from qserver.values.types import SqlType

DEPTH_OF_QUERY = 4
"""A nested query takes as much stack as this many nested expressions."""


def prepare_query(around: Scope, query: ast.Query) -> Prepared:
    """Bind a query in a scope, whose columns it may name."""
    binding = around.binding
    for _ in range(DEPTH_OF_QUERY):
        binding.enter()
    scope = with_common_tables(around, query.common_tables, query.recursive)
    prepared = _prepare_body(scope, query)
    for _ in range(DEPTH_OF_QUERY):
        binding.leave()
    if scope is around:
        return prepared

    def complete(wanted: Sequence[SqlType | None]) -> Finished:
        finished = prepared.finish(wanted)
        return replace(finished, plan=with_tables(scope, finished.plan))

    return Prepared(prepared.columns, complete)


def _prepare_body(scope: Scope, query: ast.Query) -> Prepared:
    body = query.body
    check_locking(query)
    if isinstance(body, ast.Select):
        return prepare_select(scope.inside(), body, query)
    if isinstance(body, ast.Values):
        inner = prepare_values(scope.inside(), body)
        return prepare_around(scope, inner, query, only_outputs=False)
    if isinstance(body, ast.SetOperation):
        inner = prepare_set_operation(scope, body)
        return prepare_around(scope, inner, query, only_outputs=True)
    _refuse_twice(body, query)
    merged = replace(
        body,
        order_by=body.order_by or query.order_by,
        limit=body.limit or query.limit,
        offset=body.offset or query.offset,
        with_ties=body.with_ties or query.with_ties,
        locking=(*body.locking, *query.locking),
    )
    return prepare_query(scope, merged)


def _refuse_twice(inner: ast.Query, outer: ast.Query) -> None:
    """Refuse duplicate clauses: (SELECT …) ORDER BY a belongs to the query in parentheses."""
    for what, one, other in (
        ("ORDER BY", inner.order_by, outer.order_by),
        ("LIMIT", inner.limit, outer.limit),
        ("OFFSET", inner.offset, outer.offset),
        ("WITH", inner.common_tables, outer.common_tables),
    ):
        if one and other:
            raise SqlSyntaxError(
                f"multiple {what} clauses not allowed", position=outer.position + 1
            )

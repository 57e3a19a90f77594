"""Binds UNION, INTERSECT and EXCEPT.

Each column gets the common type of both sides; a column of unknown type gets the other side's. A
loop combines two at a time, as PostgreSQL does: of 1 UNION 2 UNION 3.5 the first two are integers.
"""

from __future__ import annotations

from qserver.errors import FeatureNotSupported, SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import shared_type, type_of_values
from qserver.sql.binder.expressions.operands import Unknown
from qserver.sql.binder.expressions.prepared import Finished, Prepared, PreparedColumn
from qserver.sql.binder.expressions.subqueries import column_at, retyped
from qserver.sql.binder.names.relations import relation_of_query
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import sort_key
from qserver.sql.binder.queries.ordering import bind_bounds, check_comparable, check_sortable
from qserver.sql.binder.queries.outputs import Output, find_output
from qserver.sql.binder.tables.locking import not_with_set_operations
from qserver.sql.expressions import Expression, SortKey
from qserver.sql.plan import OutputColumn, SetOperation, Sort
from qserver.values.types import SqlType


def prepare_set_operation(scope: Scope, node: ast.SetOperation) -> Prepared:
    chain: list[ast.SetOperation] = []
    first: ast.QueryBody = node
    while isinstance(first, ast.SetOperation):
        chain.append(first)
        first = first.left
    result = _member(scope, first)
    for operation in reversed(chain):
        result = _combined(scope, operation, result, _member(scope, operation.right))
    return result


def _member(scope: Scope, body: ast.QueryBody) -> Prepared:
    query = body if isinstance(body, ast.Query) else ast.Query(body, position=body.position)
    for each in query.locking:
        raise not_with_set_operations(each)
    return scope.binding.prepare_query(scope, query)


def _shared(scope: Scope, one: PreparedColumn, other: PreparedColumn, word: str) -> SqlType:
    if isinstance(one.operand, Unknown) and isinstance(other.operand, Unknown):
        return type_of_values(scope.binding, [one.operand, other.operand], word)
    return shared_type([one.type, other.type], word, [one.position, other.position])


def _combined(scope: Scope, node: ast.SetOperation, left: Prepared, right: Prepared) -> Prepared:
    word = node.kind.upper()
    if len(left.columns) != len(right.columns):
        place = right.columns[0].position if right.columns else node.right.position
        raise SqlSyntaxError(
            f"each {word} query must have the same number of columns", position=place + 1
        )
    types = [
        _shared(scope, one, other, word)
        for one, other in zip(left.columns, right.columns, strict=True)
    ]
    if not (node.kind == "union" and node.is_all):
        for sql_type, column in zip(types, right.columns, strict=True):
            check_comparable(sql_type, column.position)
    one, other = left.finish(types), right.finish(types)
    source = scope.binding.new_source()
    columns = tuple(
        [
            OutputColumn(first.name, sql_type, _nullable(node.kind, first, second))
            for sql_type, first, second in zip(types, one.columns, other.columns, strict=True)
        ]
    )
    plan = SetOperation(
        node.kind, node.is_all, one.plan, other.plan, source, columns, one.source, other.source
    )
    positions = [column.position for column in left.columns]
    return prepared(scope, Finished(plan, source, columns), positions)


def _nullable(kind: str, left: OutputColumn, right: OutputColumn) -> bool:
    if kind == "intersect":
        return left.nullable and right.nullable
    return left.nullable or (kind == "union" and right.nullable)


def prepared(scope: Scope, query: Finished, positions: list[int]) -> Prepared:
    """Prepare a finished query again; other types are cast to afterwards."""
    prepared_columns = [
        PreparedColumn(column.name, column.type, position)
        for column, position in zip(query.columns, positions, strict=True)
    ]

    def complete(wanted: object) -> Finished:
        assert isinstance(wanted, list | tuple)
        types = [
            target or column.type for target, column in zip(wanted, query.columns, strict=True)
        ]
        return retyped(scope, query, types)

    return Prepared(tuple(prepared_columns), complete)


def prepare_around(scope: Scope, inner: Prepared, node: ast.Query, only_outputs: bool) -> Prepared:
    """Add ORDER BY and LIMIT to a query other than a plain SELECT.

    Only its columns are visible; with `only_outputs` keys are column names, not expressions.
    """
    if not (node.order_by or node.limit or node.offset):
        return inner
    query = inner.finish()
    relation = relation_of_query("", query.source, query.columns).seen(False, True)
    inside = scope.inside().with_relations((relation,))
    inside.level.sources.add(query.source)
    outputs = [
        Output(column.name, column_at(query, at), node.position)
        for at, column in enumerate(query.columns)
    ]
    keys = [_key(inside, outputs, item, only_outputs) for item in node.order_by]
    level = inside.level
    if level.calls or level.windows or level.row_functions:
        raise FeatureNotSupported(
            "only columns of the result can be used in this ORDER BY",
            position=node.order_by[0].position + 1,
        )
    bounds = bind_bounds(inside, node)
    plan = query.plan
    if keys:
        plan = Sort(plan, tuple(keys))
    plan = bounds.around(scope.binding, plan, keys)
    positions = [column.position for column in inner.columns]
    return prepared(scope, Finished(plan, query.source, query.columns), positions)


def _key(scope: Scope, outputs: list[Output], item: ast.OrderItem, only_outputs: bool) -> SortKey:
    found = find_output(scope, outputs, item.expression, Clause.ORDER_BY)
    if isinstance(found, int):
        operand = outputs[found].operand
        assert isinstance(operand, Expression)
        expression: Expression = operand
    elif only_outputs:
        raise FeatureNotSupported(
            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            detail="Only result column names can be used, not expressions or functions.",
            hint="Add the expression/function to every SELECT, or move the UNION "
            "into a FROM clause.",
            position=leftmost(item.expression) + 1,
        )
    else:
        expression = found
    check_sortable(expression.type, leftmost(item.expression))
    return sort_key(item, expression)

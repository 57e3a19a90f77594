"""Binds subqueries in expressions: scalar, EXISTS, IN, ANY, ALL, ARRAY.

A subquery is correlated if its plan names a source that it does not produce; nothing else marks it.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.errors import DatatypeMismatch, QserverError, SqlSyntaxError
from qserver.functions.resolve import Resolved, resolve_operator
from qserver.sql import ast
from qserver.sql.binder.clauses import refuse_subquery
from qserver.sql.binder.expressions.calling import require_schema
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.membership import over_array, over_items
from qserver.sql.binder.expressions.operands import Operand, RowValue, located
from qserver.sql.binder.expressions.prepared import Finished
from qserver.sql.binder.expressions.rows import compare
from qserver.sql.binder.expressions.scalars import bind_item
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import (
    ArrayQuery,
    Case,
    Column,
    Constant,
    Exists,
    Expression,
    InQuery,
    IsNull,
    IsTruth,
    Quantified,
    ScalarQuery,
)
from qserver.sql.plan import Filter, OutputColumn, Project
from qserver.values.types import BOOLEAN, Kind, SqlType, array_of


def bind_scalar_query(scope: Scope, node: ast.ScalarQuery) -> Expression:
    query = _one_column(scope, node.query, node.position)
    return ScalarQuery(query.plan, query.columns[0].type)


def bind_exists(scope: Scope, node: ast.Exists) -> Expression:
    return Exists(_query(scope, node.query, node.position).plan)


def bind_array_query(scope: Scope, node: ast.ArrayQuery) -> Expression:
    query = _one_column(scope, node.query, node.position)
    return ArrayQuery(query.plan, array_of(query.columns[0].type))


def bind_in_query(scope: Scope, node: ast.InQuery) -> Expression:
    operand = scope.bind(node.operand)
    query = _query(scope, node.query, node.position)
    return _in_query(scope, operand, query, node.negated, node.position)


def bind_quantified(scope: Scope, node: ast.Quantified) -> Expression:
    operand = scope.bind(node.operand)
    require_schema(scope.binding, node.symbol, node.position)
    source = node.source
    if isinstance(source, ast.Query):
        return _over_query(scope, node, operand, _query(scope, source, node.position))
    if isinstance(source, ast.ArrayQuery) and not isinstance(operand, RowValue):
        query = _one_column(scope, source.query, source.position)
        if query.columns[0].type.kind not in (Kind.ARRAY, Kind.RECORD):
            return _over_query(scope, node, operand, query)  # which can find keys
    return _over_values(scope, node, operand, source)


def _over_query(
    scope: Scope, node: ast.Quantified, operand: Operand, query: Finished
) -> Expression:
    if node.symbol == "=" and not node.is_all:
        return _in_query(scope, operand, query, False, node.position)
    if node.symbol in ("<>", "!=") and node.is_all:
        return _in_query(scope, operand, query, True, node.position)
    if isinstance(operand, RowValue):
        assert isinstance(node.source, ast.Query)
        return _over_rows(scope, node, operand, node.source)
    (operand,) = _operands(operand, query, node.position)
    resolved = _comparison(node.symbol, operand, query.columns[0].type, node.position)
    if resolved.returns != BOOLEAN:
        raise DatatypeMismatch(
            f"operator {node.symbol} must return type boolean, not type {resolved.returns}",
            position=node.position + 1,
        )
    left, right = resolved.parameters
    query = retyped(scope, query, [right])
    operand = implicit(scope.binding, operand, left, node.position)
    return Quantified(operand, resolved.function, node.is_all, query.plan)


def _over_rows(
    scope: Scope, node: ast.Quantified, operand: RowValue, source: ast.Query
) -> Expression:
    """Compare a row with the rows of a query: EXISTS a decisive row, else EXISTS an undecided one.

    (a, b) < ANY (query) is true if it is true for one row, else NULL if it is NULL for one row.
    """

    def exists(wanted: bool | None) -> Expression:
        query = _query(scope, source, node.position)
        items = [column_at(query, at) for at in range(len(query.columns))]
        _operands(operand, query, node.position)
        other = RowValue(tuple(items), node.position)
        value = again(scope.binding, operand)
        found = compare(scope.binding, node.symbol, value, other, node.position)
        test = IsNull(found) if wanted is None else IsTruth(found, wanted)
        return Exists(Filter(query.plan, test))

    decisive = not node.is_all
    whens: tuple[tuple[Expression, Expression], ...] = (
        (exists(decisive), Constant(decisive, BOOLEAN)),
        (exists(None), Constant(None, BOOLEAN)),
    )
    return Case(whens, Constant(node.is_all, BOOLEAN), BOOLEAN)


def _over_values(
    scope: Scope, node: ast.Quantified, operand: Operand, source: ast.Expression
) -> Expression:
    binding = scope.binding
    if isinstance(source, ast.ArrayItems) and not any(
        isinstance(item, ast.ArrayItems) for item in source.items
    ):
        items = [bind_item(scope, item) for item in source.items]
        found = over_items(binding, node.symbol, operand, items, node.is_all, node.position)
        if found is not None:
            return found
    array = scope.bind(source)
    return over_array(binding, node.symbol, operand, array, node.is_all, node.position)


def _in_query(
    scope: Scope, operand: Operand, query: Finished, negated: bool, position: int
) -> Expression:
    if (
        isinstance(operand, RowValue)
        and len(operand.items) != len(query.columns) == 1
        and query.columns[0].type.kind is Kind.RECORD
    ):
        operand = settled(scope.binding, operand)  # the query's only column has rows as values
    operands = _operands(operand, query, position)
    resolved = [
        _comparison("=", each, column.type, position)
        for each, column in zip(operands, query.columns, strict=True)
    ]
    query = retyped(scope, query, [each.parameters[1] for each in resolved])
    return InQuery(
        tuple(
            [
                implicit(scope.binding, each, found.parameters[0], position)
                for each, found in zip(operands, resolved, strict=True)
            ]
        ),
        query.plan,
        tuple([each.function for each in resolved]),
        negated,
    )


def row_query(scope: Scope, node: ast.ScalarQuery, count: int) -> RowValue:
    """Return the one row of a query as a row value: one scalar query for each column.

    The query is bound again for each, because no two plans of a statement produce the same source.
    """
    items: list[Operand] = []
    for at in range(max(count, 1)):
        query = _query(scope, node.query, node.position)
        if len(query.columns) != count:
            many = "many" if len(query.columns) > count else "few"
            raise SqlSyntaxError(f"subquery has too {many} columns", position=node.position + 1)
        if count:
            items.append(ScalarQuery(_column_alone(scope, query, at).plan, query.columns[at].type))
    return RowValue(tuple(items), node.position)


# --- parts ---------------------------------------------------------------------------------------


def _query(scope: Scope, node: ast.Query, position: int) -> Finished:
    error = refuse_subquery(scope.level.clause)
    if error is not None:
        raise located(error, position)
    return scope.binding.prepare_query(scope, node).finish()


def _one_column(scope: Scope, node: ast.Query, position: int) -> Finished:
    query = _query(scope, node, position)
    if len(query.columns) != 1:
        raise SqlSyntaxError("subquery must return only one column", position=position + 1)
    return query


def _operands(operand: Operand, query: Finished, position: int) -> tuple[Operand, ...]:
    """Return as many operands as the query has columns, or raise."""
    operands = operand.items if isinstance(operand, RowValue) else (operand,)
    if len(operands) != len(query.columns):
        many = "many" if len(query.columns) > len(operands) else "few"
        raise SqlSyntaxError(f"subquery has too {many} columns", position=position + 1)
    return operands


def _comparison(symbol: str, left: Operand, right: SqlType, position: int) -> Resolved:
    try:
        return resolve_operator(symbol, left.type, right)
    except QserverError as error:
        raise located(error, position) from None


def retyped(scope: Scope, query: Finished, types: Sequence[SqlType]) -> Finished:
    """Cast the query's columns to the types, if they have others."""
    if all(
        wanted in (column.type, column.type.bare)
        for column, wanted in zip(query.columns, types, strict=True)
    ):
        return query
    return projected(scope, query, types)


def projected(scope: Scope, query: Finished, types: Sequence[SqlType]) -> Finished:
    source = scope.binding.new_source()
    expressions = tuple(
        [implicit(scope.binding, column_at(query, at), wanted) for at, wanted in enumerate(types)]
    )
    columns = tuple(
        [
            OutputColumn(column.name, each.type, each.nullable)
            for column, each in zip(query.columns, expressions, strict=True)
        ]
    )
    return Finished(Project(query.plan, source, expressions, columns), source, columns)


def column_at(query: Finished, at: int) -> Column:
    column = query.columns[at]
    return Column(query.source, at, column.type, column.nullable, column.name)


def _column_alone(scope: Scope, query: Finished, at: int) -> Finished:
    source = scope.binding.new_source()
    columns = (query.columns[at],)
    return Finished(Project(query.plan, source, (column_at(query, at),), columns), source, columns)

"""Binds ORDER BY, DISTINCT ON, LIMIT and OFFSET.

A sort key is an item of the select list or another expression. If all keys are items, rows are
sorted after the projection; otherwise before it, when the rows of FROM are available.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qserver.errors import (
    CannotCoerce,
    DatatypeMismatch,
    InvalidColumnReference,
    QserverError,
    SqlSyntaxError,
    UndefinedFunction,
)
from qserver.functions.resolve import resolve_operator
from qserver.sql import ast
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import assigned
from qserver.sql.binder.expressions.copies import copied
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.expressions.same import Alike
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import sort_key
from qserver.sql.binder.queries.outputs import Output, find_output, typed
from qserver.sql.expressions import Column, Expression, SortKey
from qserver.sql.plan import Limit, OutputColumn, Plan
from qserver.sql.walk import everything
from qserver.values.types import BIGINT, SqlType


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A sort key: an item of the select list (`output`), or an expression."""

    item: ast.OrderItem
    output: int | None
    expression: Expression


@dataclass(frozen=True, slots=True)
class Bounds:
    limit: Expression | None
    offset: Expression | None
    with_ties: bool

    def around(self, binding: Binding, plan: Plan, keys: Sequence[SortKey]) -> Plan:
        """Wrap the plan in a Limit; `keys` are its sort keys."""
        if self.limit is None and self.offset is None:
            return plan
        ties: tuple[SortKey, ...] = ()
        if self.with_ties:
            ties = tuple([replace(key, expression=copied(binding, key.expression)) for key in keys])
        return Limit(plan, self.limit, self.offset, ties)


def bind_order(
    scope: Scope, items: Sequence[ast.OrderItem], outputs: Sequence[Output]
) -> list[OrderKey]:
    keys: list[OrderKey] = []
    expressions: list[Expression] = []
    alike = Alike()
    for item in items:
        found = find_output(scope, outputs, item.expression, Clause.ORDER_BY)
        if isinstance(found, int):
            key = OrderKey(item, found, typed(scope, outputs[found]))
        else:
            key = OrderKey(item, None, found)
        check_sortable(key.expression.type, leftmost(item.expression))
        if alike.position(key.expression, expressions) is None:
            keys.append(key)
            expressions.append(key.expression)
    return keys


def check_sortable(sql_type: SqlType, position: int) -> None:
    try:
        resolve_operator("<", sql_type, sql_type)
    except UndefinedFunction:
        raise UndefinedFunction(
            f"could not identify an ordering operator for type {sql_type.bare}",
            hint="Use an explicit ordering operator or modify the query.",
            position=position + 1,
        ) from None
    except QserverError as error:
        raise located(error, position) from None


def check_comparable(sql_type: SqlType, position: int) -> None:
    """Require an equality for the type, as DISTINCT does."""
    try:
        resolve_operator("=", sql_type, sql_type)
    except UndefinedFunction:
        raise located(
            UndefinedFunction(f"could not identify an equality operator for type {sql_type.bare}"),
            position,
        ) from None
    except QserverError as error:
        raise located(error, position) from None


def keys_for_distinct(
    scope: Scope, keys: Sequence[OrderKey], outputs: Sequence[Output]
) -> list[OrderKey]:
    """Return the keys as items: after DISTINCT only items are available."""
    expressions = [typed(scope, output) for output in outputs]
    found: list[OrderKey] = []
    alike = Alike(scope.literals)
    for key in keys:
        at = key.output
        if at is None:
            at = alike.position(key.expression, expressions)
        if at is None:
            raise InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=leftmost(key.item.expression) + 1,
            )
        found.append(OrderKey(key.item, at, key.expression))
    return found


def bind_distinct_on(
    scope: Scope, nodes: Sequence[ast.Expression], outputs: Sequence[Output]
) -> list[tuple[int | None, Expression]]:
    """Bind the expressions of DISTINCT ON, each with the number of its item, if it is one."""
    found: list[tuple[int | None, Expression]] = []
    for node in nodes:
        each = find_output(scope, outputs, node, Clause.DISTINCT_ON)
        if isinstance(each, int):
            found.append((each, typed(scope, outputs[each])))
        else:
            found.append((None, each))
    return found


def check_distinct_on(
    scope: Scope,
    on: Sequence[tuple[int | None, Expression]],
    keys: Sequence[OrderKey],
    nodes: Sequence[ast.Expression],
) -> None:
    """Require that ORDER BY begins with the expressions of DISTINCT ON: groups are contiguous."""
    expressions = [expression for _, expression in on]
    other_seen = False
    matched: set[int] = set()
    alike = Alike(scope.literals)
    for key in keys:
        at = alike.position(key.expression, expressions)
        if at is None:
            other_seen = True
            continue
        matched.add(at)
        if other_seen:
            raise _mismatch(nodes[at])
    missing = [at for at in range(len(expressions)) if at not in matched]
    if other_seen and missing:
        raise _mismatch(nodes[missing[0]])


def _mismatch(node: ast.Expression) -> InvalidColumnReference:
    return InvalidColumnReference(
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        position=leftmost(node) + 1,
    )


def output_keys(
    keys: Sequence[OrderKey], source: int, columns: Sequence[OutputColumn]
) -> list[SortKey]:
    found: list[SortKey] = []
    for key in keys:
        assert key.output is not None
        column = columns[key.output]
        named = Column(source, key.output, column.type, column.nullable, column.name)
        found.append(sort_key(key.item, named))
    return found


# --- LIMIT ---------------------------------------------------------------------------------------


def bind_bounds(scope: Scope, query: ast.Query) -> Bounds:
    if query.with_ties and not query.order_by:
        raise SqlSyntaxError(
            "WITH TIES cannot be specified without ORDER BY clause", position=query.position + 1
        )
    offset = _bound(scope, query.offset, Clause.OFFSET)
    limit = _bound(scope, query.limit, Clause.LIMIT)
    return Bounds(limit, offset, query.with_ties)


def _bound(scope: Scope, node: ast.Expression | None, clause: Clause) -> Expression | None:
    """Bind a number of rows, which may name no column."""
    if node is None:
        return None
    position = leftmost(node)
    operand = scope.bind_in(clause, node)
    try:
        expression = assigned(scope.binding, operand, BIGINT, "", position)
    except (CannotCoerce, DatatypeMismatch):
        raise DatatypeMismatch(
            f"argument of {clause.value} must be type bigint, not type {operand.type.bare}",
            position=position + 1,
        ) from None
    for each in everything(expression):
        if type(each) is Column and each.source in scope.level.sources:
            raise InvalidColumnReference(
                f"argument of {clause.value} must not contain variables", position=position + 1
            )
    return expression

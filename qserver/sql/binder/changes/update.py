"""UPDATE and DELETE: a plan that finds the rows, and for UPDATE the new rows.

The plan's rows hold the old row (`old_source`) and those of FROM or USING. The new row is complete:
a column without an assignment keeps its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import FeatureNotSupported, SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.changes.current import is_current
from qserver.sql.binder.changes.targets import (
    Target,
    assigned_twice,
    bind_returning,
    find_target,
    refuse_value,
)
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import assigned, condition
from qserver.sql.binder.expressions.operands import Operand, RowValue
from qserver.sql.binder.expressions.part_assignment import (
    Part,
    part_type,
    refuse_default,
    with_part,
)
from qserver.sql.binder.expressions.subqueries import row_query
from qserver.sql.binder.names.relations import AnyRelation
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.tables.common_tables import with_common_tables, with_tables
from qserver.sql.binder.tables.joins import bind_from
from qserver.sql.binder.tables.sources import check_names, scan_table
from qserver.sql.binder.tables.table_expressions import (
    default_of,
    generated_values,
    has_generated,
    old_values,
)
from qserver.sql.expressions import Expression
from qserver.sql.plan import Delete, Filter, Join, Plan, Update
from qserver.values.schema import Column, Table


def bind_update(around: Scope, node: ast.Update) -> Update:
    outer = with_common_tables(around, node.common_tables, node.recursive)
    binding = outer.binding
    target = find_target(outer, node.table, "update")
    table = target.table
    plan, scope, old = _found_rows(outer, target, node.table, node.sources)
    plan = _filtered(scope, plan, node.where, target, old)
    new = binding.new_source()
    relations = (target.relation(new), *scope.relations[1:])
    returning = bind_returning(outer, node.returning, relations)
    assigned_values = bind_assignments(scope, target, old, node.assignments)
    values = whole_row(table, old, assigned_values)
    changed = frozenset(assigned_values)
    if has_generated(table):
        values = generated_values(binding, table, values)
        changed |= {at for at, column in enumerate(table.columns) if column.generated is not None}
    if outer is not around:  # last: only now it is known which CTEs are named
        plan = with_tables(outer, plan)
    return Update(
        table,
        plan,
        old,
        values,
        new,
        changed,
        target.checks(binding, new, changed),
        returning,
    )


def bind_delete(around: Scope, node: ast.Delete) -> Delete:
    outer = with_common_tables(around, node.common_tables, node.recursive)
    target = find_target(outer, node.table, "delete from")
    plan, scope, old = _found_rows(outer, target, node.table, node.sources)
    plan = _filtered(scope, plan, node.where, target, old)
    returning = bind_returning(outer, node.returning, scope.relations)
    if outer is not around:
        plan = with_tables(outer, plan)
    return Delete(target.table, plan, old, returning)


def _found_rows(
    outer: Scope, target: Target, node: ast.TableRef, sources: Sequence[ast.FromItem]
) -> tuple[Plan, Scope, int]:
    """Return the table's rows joined to those of FROM or USING; the table's relation is first."""
    inner = outer.inside()
    scan, plain = scan_table(inner, target.table, node)
    old = plain.source
    inner.level.sources.add(old)
    relation = plain if target.view is None else target.relation(old)
    relations: tuple[AnyRelation, ...] = (relation,)
    plan: Plan = scan
    chosen = None if target.view is None else target.view.condition_over(old)
    if chosen is not None:
        plan = Filter(plan, chosen)
    if sources:
        others, scope = bind_from(inner, sources)
        check_names(relations, scope.relations, sources[0].position)
        plan = Join("inner", plan, others)
        relations = (relation, *scope.relations)
    inner.level.entries.append(relation)
    return plan, inner.with_relations(relations), old


def _filtered(
    scope: Scope,
    plan: Plan,
    where: ast.Expression | ast.CurrentOf | None,
    target: Target,
    old: int,
) -> Plan:
    if where is None:
        return plan
    if isinstance(where, ast.CurrentOf):
        return Filter(plan, is_current(scope.binding, target, old, where))
    operand = scope.bind_in(Clause.WHERE, where)
    return Filter(plan, condition(scope.binding, operand, "WHERE", leftmost(where)))


# --- SET -----------------------------------------------------------------------------------------


def bind_assignments(
    scope: Scope, target: Target, old: int, assignments: Sequence[ast.Assignment]
) -> dict[int, Expression]:
    """Return the new value of each assigned column, by position; `old` is the old row."""
    table = target.table
    before = old_values(table, old)
    values: dict[int, Expression] = {}
    whole: set[int] = set()
    for assignment in assignments:
        stand = assignment.places or (assignment.position,) * len(assignment.columns)
        targets = [
            target.position(name, place)
            for name, place in zip(assignment.columns, stand, strict=True)
        ]
        part = assignment.target
        for at, (node, operand) in zip(targets, _operands(scope, assignment), strict=True):
            if at in whole or (at in values and part is None):
                raise assigned_twice(table.columns[at], assignment.position)
            if part is None:
                whole.add(at)
                values[at] = _value(scope, target, at, node, operand)
            else:
                value = _part(scope, table.columns[at], part, node, operand)
                values[at] = with_part(scope, values.get(at, before[at]), part, value)
    return values


def _part(
    scope: Scope, column: Column, part: Part, node: ast.Expression, operand: Operand | None
) -> Expression:
    wanted = part_type(column, part)
    if operand is None:
        raise refuse_default(leftmost(node))
    refuse_value(column, leftmost(node), inserting=False)
    return assigned(scope.binding, operand, wanted, column.name, leftmost(node))


def _operands(
    scope: Scope, assignment: ast.Assignment
) -> list[tuple[ast.Expression, Operand | None]]:
    """Return one operand for each column; None for DEFAULT."""
    node, count = assignment.expression, len(assignment.columns)
    if not assignment.places:
        return [(node, _operand(scope, node))]
    if isinstance(node, ast.ScalarQuery):
        row = row_query(scope, node, count)
        return [(node, item) for item in row.items]
    if isinstance(node, ast.Row):
        if any(isinstance(item, ast.Star) for item in node.items):
            whole = scope.bind_in(Clause.UPDATE, node)
            if isinstance(whole, RowValue) and len(whole.items) == count:
                return [(node, item) for item in whole.items]
        if len(node.items) != count:
            raise SqlSyntaxError(
                "number of columns does not match number of values", position=node.position + 1
            )
        return [(item, _operand(scope, item)) for item in node.items]
    raise FeatureNotSupported(
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        position=leftmost(node) + 1,
    )


def _operand(scope: Scope, node: ast.Expression) -> Operand | None:
    if isinstance(node, ast.Default):
        return None
    return scope.bind_in(Clause.UPDATE, node)


def _value(
    scope: Scope, target: Target, at: int, node: ast.Expression, operand: Operand | None
) -> Expression:
    """What is assigned to a column. DEFAULT is that of the view, if there is one, else NULL."""
    column = target.table.columns[at]
    if operand is None and target.view is None:
        return default_of(scope.binding, column)
    refuse_value(column, leftmost(node), inserting=False)
    if operand is None:
        assert target.view is not None
        text = target.view.own_defaults.get(at)
        return default_of(
            scope.binding, replace(column, default=text, identity=None, sequence=None)
        )
    assert not isinstance(operand, RowValue) or operand.items
    return assigned(scope.binding, operand, column.type, column.name, leftmost(node))


def whole_row(
    table: Table, old_source: int, assigned_values: dict[int, Expression]
) -> tuple[Expression, ...]:
    """Return the assigned values, and the old ones for the rest."""
    values = old_values(table, old_source)
    for at, value in assigned_values.items():
        values[at] = value
    return tuple(values)

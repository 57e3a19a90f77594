"""INSERT … ON CONFLICT: which unique key must conflict, and the action.

In DO UPDATE the table's name is the conflicting row, and `excluded` is the proposed row, the
Insert's `new_source`. The updated row takes that source over: CHECKs and RETURNING apply to
whichever row was written.
"""

from __future__ import annotations

from qserver.errors import (
    InvalidColumnReference,
    NotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.sql import ast
from qserver.sql.binder.changes.targets import Target
from qserver.sql.binder.changes.update import bind_assignments, whole_row
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import condition, settled
from qserver.sql.binder.expressions.same import same
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.tables.table_expressions import (
    defined_expression,
    generated_values,
    has_generated,
)
from qserver.sql.expressions import Expression
from qserver.sql.plan import ConflictAction
from qserver.sql.walk import conjuncts
from qserver.values.schema import Index, Table, is_predicate, predicate_text


def bind_conflict(scope: Scope, target: Target, new: int, node: ast.OnConflict) -> ConflictAction:
    binding, table = scope.binding, target.table
    arbiters = _arbiters(scope, target, node)
    old = binding.new_source()
    if not node.assignments:
        return ConflictAction(arbiters, old)
    if not node.columns and node.constraint is None:
        raise SqlSyntaxError(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=node.position + 1,
        )
    relations = (target.relation(old), target.relation(new, "excluded"))
    inner = scope.inside().with_relations(relations)
    assigned_values = bind_assignments(inner, target, old, node.assignments)
    where = None
    if node.assignments_where is not None:
        operand = inner.bind_in(Clause.WHERE, node.assignments_where)
        where = condition(binding, operand, "WHERE", leftmost(node.assignments_where))
    values = whole_row(table, old, assigned_values)
    if has_generated(table):
        values = generated_values(binding, table, values)
    checks = target.checks(binding, new)
    return ConflictAction(arbiters, old, values, where, new, checks)


def _arbiters(scope: Scope, target: Target, node: ast.OnConflict) -> tuple[Index | None, ...]:
    """Return the unique indexes that count; None is the primary key. See `require_arbiters`."""
    table = target.table
    if node.constraint is not None:
        return (_named(table, node.constraint, node.position),)
    if not node.columns:
        for index in table.indexes:
            _refuse_waiting(index)
        return ()
    source = scope.binding.new_source()
    inner = scope.inside().with_relations((target.relation(source),))
    wanted = {_element(inner, target, source, each) for each in node.columns}
    found: list[Index | None] = []
    if set(table.primary_key) == wanted:
        found.append(None)
    for index in table.indexes:
        is_key = index.unique or index.deferral
        if is_key and _is_meant(inner, table, source, index, wanted, node.where):
            _refuse_waiting(index)
            found.append(index)
    return tuple(found)


def require_arbiters(node: ast.OnConflict, action: ConflictAction) -> None:
    """Require a unique index on the named columns. PostgreSQL checks this after everything else."""
    if node.columns and not action.arbiters:
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )


def _is_meant(
    scope: Scope,
    table: Table,
    source: int,
    index: Index,
    wanted: set[int],
    where: ast.Expression | None,
) -> bool:
    """Tell whether the index is over the named columns, and over all rows or those of WHERE.

    For a partial index, WHERE must contain all its conditions, as written or equal; there is no
    proof that one condition implies another.
    """
    predicates = {at for at in index.columns if is_predicate(table.columns[at])}
    if set(index.columns) - predicates != wanted:
        return False
    given: tuple[Expression, ...] = ()
    if predicates and where is not None:
        operand = scope.bind_in(Clause.INDEX_PREDICATE, where)
        given = conjuncts(condition(scope.binding, operand, "WHERE", leftmost(where)))
    return all(
        any(same(each, needed, scope.literals) for each in given)
        for at in predicates
        for needed in conjuncts(
            defined_expression(scope.binding, predicate_text(table.columns[at]), table, source)
        )
    )


def _element(scope: Scope, target: Target, source: int, node: ast.Expression) -> int:
    """Return the position of a column, or of the hidden column of an indexed expression.

    -1 if no index has it.
    """
    if isinstance(node, ast.Collate):
        node = node.operand
    if isinstance(node, ast.Name) and len(node.parts) == 1:
        return _column(target, node)
    binding, table = scope.binding, target.table
    expression = settled(binding, scope.bind_in(Clause.INDEX, node))
    for at, column in enumerate(table.columns):
        if column.hidden and column.generated is not None and not is_predicate(column):
            defined = defined_expression(binding, column.generated, table, source)
            if same(expression, defined, scope.literals):
                return at
    return -1


def _refuse_waiting(index: Index) -> None:
    """Refuse a unique key that may wait: nobody knows yet whether it is one."""
    if index.deferral:
        raise NotInPrerequisiteState(
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as"
            " arbiters"
        )


def _named(table: Table, name: str, position: int) -> Index | None:
    if not table.has_row_id and name == table.primary_key_name:
        return None
    for index in table.indexes:
        if index.name == name and index.constraint:
            _refuse_waiting(index)
            return index
    raise UndefinedObject(
        f'constraint "{name}" for table "{table.name}" does not exist', position=position + 1
    )


def _column(target: Target, node: ast.Name) -> int:
    name = node.parts[0]
    if name not in target.relation(0).positions:
        raise UndefinedColumn(
            f'column "{name}" does not exist', position=node.position + 1, column=name
        )
    return target.position(name, node.position)

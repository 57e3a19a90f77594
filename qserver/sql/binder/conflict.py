"""INSERT … ON CONFLICT: which unique key must be in the way, and what to do then.

In DO UPDATE the table's name is the row in the way, and `excluded` is the row that was to be
inserted, which is the Insert's own `new_source`. The updated row takes that source over: CHECKs and
RETURNING are about whichever row was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.errors import (
    InvalidColumnReference,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.sql import syntax
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.coercion import condition
from qserver.sql.binder.scope import Scope, leftmost
from qserver.sql.binder.table_expressions import generated_values, has_generated
from qserver.sql.binder.targets import Target
from qserver.sql.binder.update import bind_assignments, whole_row
from qserver.sql.plan import ConflictAction
from qserver.values.schema import Index, Table


def bind_conflict(
    scope: Scope, target: Target, new: int, node: syntax.OnConflict
) -> ConflictAction:
    binding, table = scope.binding, target.table
    arbiters = _arbiters(target, node)
    old = binding.new_source()
    if not node.assignments:
        return ConflictAction(arbiters, old)
    if not arbiters:
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


def _arbiters(target: Target, node: syntax.OnConflict) -> tuple[Index | None, ...]:
    """The unique indexes that count; None is the primary key."""
    table = target.table
    if node.constraint is not None:
        return (_named(table, node.constraint, node.position),)
    if not node.columns:
        return ()
    wanted = {_column(target, each) for each in node.columns}
    found: list[Index | None] = []
    if set(table.primary_key) == wanted:
        found.append(None)
    found += [index for index in _unique_indexes(table) if set(index.columns) == wanted]
    if not found:
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )
    return tuple(found)


def _unique_indexes(table: Table) -> Sequence[Index]:
    """Those over plain columns and all rows."""
    return [
        index
        for index in table.indexes
        if index.unique
        and not getattr(index, "expressions", ())
        and not getattr(index, "predicate", None)
    ]


def _named(table: Table, name: str, position: int) -> Index | None:
    if not table.has_row_id and name == table.primary_key_name:
        return None
    for index in _unique_indexes(table):
        if index.name == name and index.constraint:
            return index
    raise UndefinedObject(
        f'constraint "{name}" for table "{table.name}" does not exist', position=position + 1
    )


def _column(target: Target, node: syntax.Expression) -> int:
    if isinstance(node, syntax.Collate):
        node = node.operand
    if isinstance(node, syntax.Name) and len(node.parts) == 1:
        name = node.parts[0]
        if name not in target.relation(0).positions:
            raise UndefinedColumn(
                f'column "{name}" does not exist', position=node.position + 1, column=name
            )
        return target.position(name, node.position)
    raise InvalidColumnReference(
        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        position=node.position + 1,
    )

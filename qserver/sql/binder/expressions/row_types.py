"""Casts to row types: `NULL::record`, and `ROW(1, 'a')::t` for the rows of a table.

A table's name is a type only in casts. No column can have it, because rows are never stored as
values.
"""

from __future__ import annotations

from qserver.errors import CannotCoerce, QserverError
from qserver.sql import ast
from qserver.sql.binder.expressions.coercion import explicit, settled
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Constant
from qserver.values.types import RECORD, Kind, SqlType, record_of


def row_type(scope: Scope, node: ast.TypeName) -> SqlType | None:
    """Return the row type of a name that is no other type's."""
    if node.array_dimensions or node.arguments:
        return None
    if node.parts in (("record",), ("pg_catalog", "record")):
        return RECORD
    table = scope.binding.catalog.find_table(node.parts)
    if table is None:
        return None
    scope.binding.use_table(table)
    columns = [(name, table.columns[at].type) for name, at in table.positions.items()]
    return record_of(tuple(columns))


def as_row(scope: Scope, operand: Operand, target: SqlType, position: int) -> Operand:
    binding = scope.binding
    if isinstance(operand, Unknown):
        if operand.name is None:
            return Constant(None, target)
        return explicit(binding, operand, target, position)
    if isinstance(operand, RowValue):
        if not target.columns:
            return operand
        if len(operand.items) != len(target.columns):
            raise _cannot(operand.type, position)
        items = [
            explicit(binding, item, sql_type, position)
            for item, (_, sql_type) in zip(operand.items, target.columns, strict=True)
        ]
        names = tuple([name for name, _ in target.columns])
        return RowValue(tuple(items), operand.position, names, operand.may_be_missing)
    value = settled(binding, operand)
    if value.type.kind is not Kind.RECORD or (target.columns and value.type != target):
        raise _cannot(value.type, position)
    return value


def _cannot(given: SqlType, position: int) -> QserverError:
    return CannotCoerce(f"cannot cast type {given.bare} to a row type", position=position + 1)

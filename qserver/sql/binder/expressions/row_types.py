"""Casts to row types: `NULL::record`, and `ROW(1, 'a')::t` for the rows of a table.

A table's name is a type only in casts. No column can have it, because rows are never stored as
values.
"""

from __future__ import annotations

from qserver.errors import CannotCoerce, QserverError
from qserver.sql import ast
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.coercion import explicit, settled
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Cast
from qserver.values.casts import unchanged
from qserver.values.numbering import row_type_oid
from qserver.values.types import RECORD, STRING_KINDS, Kind, SqlType, array_of, record_of


def row_type(scope: Scope, node: ast.TypeName) -> SqlType | None:
    """Return the row type of a name that is no other type's, or its array."""
    if node.arguments:
        return None
    found = _row_type(scope, node.parts)
    return array_of(found) if found is not None and node.array_dimensions else found


def _row_type(scope: Scope, name: tuple[str, ...]) -> SqlType | None:
    binding = scope.binding
    if name in (("record",), ("pg_catalog", "record")):
        return RECORD
    table = binding.catalog.find_table(name)
    if table is not None:
        binding.use_table(table)
        columns = [(name, table.columns[at].type) for name, at in table.positions.items()]
        return record_of(tuple(columns), row_type_oid(table))
    view = binding.catalog.find_view(name)
    if view is None:
        return None
    binding.views[view.key] = view
    return record_of(view.columns, row_type_oid(view))


def as_row(scope: Scope, operand: Operand, target: SqlType, position: int) -> Operand:
    binding = scope.binding
    if isinstance(operand, Unknown):
        return explicit(binding, operand, target, position)
    if isinstance(operand, RowValue):
        if target.kind is not Kind.RECORD:
            raise _cannot(operand.type, position)
        return _row_as(binding, operand, target, position)
    value = settled(binding, operand)
    row = value.type.element or value.type
    wanted = target.element or target
    is_array = value.type.element is not None
    if row.kind is not Kind.RECORD or is_array != (target.element is not None):
        if value.type.kind in STRING_KINDS and wanted.oid:
            return explicit(binding, value, target, position)
        raise _cannot(value.type, position)
    if not wanted.columns or row == wanted:
        return value
    if row.columns != wanted.columns:
        raise _cannot(value.type, position)
    return Cast(value, unchanged, target)


def _row_as(binding: Binding, row: RowValue, target: SqlType, position: int) -> RowValue:
    if not target.columns:
        return row
    if len(row.items) != len(target.columns):
        raise _cannot(row.type, position)
    items = [
        explicit(binding, item, sql_type, position)
        for item, (_, sql_type) in zip(row.items, target.columns, strict=True)
    ]
    names = tuple([name for name, _ in target.columns])
    return RowValue(tuple(items), row.position, names, row.may_be_missing, oid=target.oid)


def _cannot(given: SqlType, position: int) -> QserverError:
    return CannotCoerce(f"cannot cast type {given.bare} to a row type", position=position + 1)

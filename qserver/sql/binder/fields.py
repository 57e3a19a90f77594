"""Binds fields of rows: `(t).a`, `(t).*`, and those of record values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from qserver.errors import FeatureNotSupported, UndefinedColumn, WrongObjectType
from qserver.sql import ast
from qserver.sql.binder.coercion import settled
from qserver.sql.binder.operands import Operand, RowValue
from qserver.sql.binder.scope import Scope, leftmost
from qserver.sql.expressions import Apply
from qserver.sql.functions.registry import Function
from qserver.values.types import Kind, SqlType


def bind_field(scope: Scope, node: ast.Field) -> Operand:
    if node.name == "*":
        raise FeatureNotSupported(
            'row expansion via "*" is not supported here', position=node.position + 1
        )
    for name, operand in fields_of(scope, node):
        if name == node.name:
            return operand
    raise UndefinedColumn(
        f'column "{node.name}" not found in data type record', position=node.position + 1
    )


def fields_of(scope: Scope, node: ast.Field) -> list[tuple[str, Operand]]:
    operand = scope.bind(node.operand)
    if isinstance(operand, RowValue):
        names = operand.names or [f"f{at + 1}" for at in range(len(operand.items))]
        return list(zip(names, operand.items, strict=True))
    value = settled(scope.binding, operand)
    if value.type.kind is not Kind.RECORD:
        raise WrongObjectType(
            f"column notation .{node.name} applied to type {value.type.bare}, "
            "which is not a composite type",
            position=leftmost(node) + 1,
        )
    return [
        (name, Apply(_field_function(value.type, at), (value,), sql_type, nullable=True))
        for at, (name, sql_type) in enumerate(value.type.columns)
    ]


@lru_cache(maxsize=1024)
def _field_function(record: SqlType, at: int) -> Function:
    """Return the function for a field of a record; cached, so that equal fields are equal."""

    def field(row: tuple[Any, ...]) -> Any:
        return row[at]

    return Function(
        "field", (record,), record.columns[at][1], field, inline=f"{{0}}[{at}]", gives_null=True
    )

"""Binds fields of rows: `(t).a`, `(t).*`, and those of record values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from qserver.errors import FeatureNotSupported, UndefinedColumn, WrongObjectType
from qserver.functions.registry import Function
from qserver.sql import ast
from qserver.sql.binder.expressions.coercion import settled
from qserver.sql.binder.expressions.operands import Operand, RowValue
from qserver.sql.binder.names.names import column_of, named
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.expressions import Apply
from qserver.values.types import TEXT, Kind, SqlType


def bind_field(scope: Scope, node: ast.Field) -> Operand:
    if node.name == "*":
        raise FeatureNotSupported(
            'row expansion via "*" is not supported here', position=node.position + 1
        )
    row = scope.bind(node.operand)
    if isinstance(row, RowValue) and row.relation is not None:
        return column_of(scope, row.relation, node.name, node.position)
    for name, operand in _fields(scope, node, row):
        if name == node.name:
            return operand
    raise UndefinedColumn(
        f'column "{node.name}" not found in data type record', position=node.position + 1
    )


def fields_of(scope: Scope, node: ast.Field) -> list[tuple[str, Operand]]:
    """Return the fields of `(row).*`."""
    row = scope.bind(node.operand)
    if isinstance(row, RowValue) and row.relation is not None:
        relation = row.relation
        return [
            (name, named(scope, relation.expression(at), node.position))
            for at, name in enumerate(relation.names)
        ]
    return _fields(scope, node, row)


def _fields(scope: Scope, node: ast.Field, operand: Operand) -> list[tuple[str, Operand]]:
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
        (name, Apply(_field_function(value.type, at), (value,), _known(sql_type), nullable=True))
        for at, (name, sql_type) in enumerate(value.type.columns)
    ]


def _known(sql_type: SqlType) -> SqlType:
    return TEXT if sql_type.kind is Kind.UNKNOWN else sql_type


@lru_cache(maxsize=1024)
def _field_function(record: SqlType, at: int) -> Function:
    """Return the function for a field of a record; cached, so that equal fields are equal."""

    def field(row: tuple[Any, ...]) -> Any:
        return row[at]

    return Function(
        "field",
        (record,),
        _known(record.columns[at][1]),
        field,
        inline=f"{{0}}[{at}]",
        gives_null=True,
    )

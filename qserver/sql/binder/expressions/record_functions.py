"""Binds functions whose columns the statement determines.

    FROM json_to_recordset('[…]') AS t(a int, b text)      by a column definition list
    SELECT jsonb_populate_record(t, '{"a": 5}') FROM t     by the type of the row argument

The two may both be given; then they must agree.
"""

from __future__ import annotations

from qserver.errors import DatatypeMismatch, QserverError, SqlSyntaxError, UndefinedFunction
from qserver.functions.json.json_records import (
    POPULATING,
    RECORD_FUNCTIONS,
    Columns,
    populate_function,
    record_function,
)
from qserver.functions.registry import TableFunction
from qserver.sql import ast
from qserver.sql.binder.clauses import refuse_rows
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.operands import Operand, RowValue, located
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.names.type_names import bind_type
from qserver.sql.expressions import Apply, Column, Expression
from qserver.sql.plan import FunctionScan, OutputColumn
from qserver.values.types import JSON, JSONB, Kind, SqlType


def wants_columns(item: ast.FunctionRef) -> bool:
    """Tell whether an item of FROM needs `record_scan`."""
    name = item.call.name[-1]
    return bool(item.column_types) or name in RECORD_FUNCTIONS or name in POPULATING


def record_scan(scope: Scope, item: ast.FunctionRef) -> FunctionScan:
    name, position = item.call.name[-1], item.position
    find_type = scope.binding.catalog.find_type
    types = [bind_type(each, scope.literals, find_type) for each in item.column_types]
    listed = tuple(zip(item.column_aliases, types, strict=True)) if types else ()
    if listed and name not in RECORD_FUNCTIONS and name not in POPULATING:
        raise SqlSyntaxError(
            'a column definition list is only allowed for functions returning "record"',
            position=position + 1,
        )
    operands = [scope.bind(argument) for argument in item.call.arguments]
    if name in POPULATING:
        base = _base(scope, item.call, operands)
        _check_columns(base.type.columns, listed, position)
        return _populating(scope, item.call, base, operands[1], listed or base.type.columns)
    if not listed:
        raise _needs_columns(position)
    if len(operands) != 1:
        raise _no_such_function(item.call, operands)
    made = record_function(name, listed)
    return _scan(scope, made, (_json(scope, item.call, operands[0]),))


def bind_populating(scope: Scope, node: ast.Call) -> Operand:
    """Bind json_populate_record and json_populate_recordset as expressions."""
    name = node.name[-1]
    operands = [scope.bind(argument) for argument in node.arguments]
    base = _base(scope, node, operands)
    if name.endswith("recordset"):
        error = refuse_rows(scope.level.clause)
        if error is not None:
            raise located(error, node.position)
        scan = _populating(scope, node, base, operands[1], base.type.columns)
        scope.level.row_functions.append(scan)
        items = [
            Column(scan.source, at, column.type, True, name)
            for at, column in enumerate(scan.columns)
        ]
        for item in items:
            scope.binding.remember(item, node.position)
        names = tuple([column.name for column in scan.columns])
        return RowValue(tuple(items), node.position, names)
    if not base.type.columns:
        raise _unknown_row_type(node)
    arguments = (base, _json(scope, node, operands[1]))
    made = populate_function(name, base.type)
    return Apply(made, arguments, base.type, nullable=True)


def _base(scope: Scope, node: ast.Call, operands: list[Operand]) -> Expression:
    if len(operands) != 2:
        raise _no_such_function(node, operands)
    base = settled(scope.binding, operands[0])
    if base.type.kind is not Kind.RECORD:
        raise DatatypeMismatch(
            f"first argument of {node.name[-1]} must be a row type", position=node.position + 1
        )
    return base


def _populating(
    scope: Scope, node: ast.Call, base: Expression, value: Operand, columns: Columns
) -> FunctionScan:
    if not columns:
        raise _unknown_row_type(node)
    made = record_function(node.name[-1], columns, base.type)
    return _scan(scope, made, (base, _json(scope, node, value)))


def _json(scope: Scope, node: ast.Call, operand: Operand) -> Expression:
    own: SqlType = JSONB if node.name[-1].startswith("jsonb") else JSON
    try:
        return implicit(scope.binding, operand, own, node.position)
    except DatatypeMismatch:
        raise _no_such_function(node, [operand]) from None


def _scan(scope: Scope, made: TableFunction, arguments: tuple[Expression, ...]) -> FunctionScan:
    columns = tuple([OutputColumn(*column) for column in made.columns])
    return FunctionScan(scope.binding.new_source(), made, arguments, columns)


def _check_columns(given: Columns, listed: Columns, position: int) -> None:
    """Refuse a row argument whose columns differ from the column definition list."""
    if not given or not listed:
        return
    detail = None
    if len(given) != len(listed):
        noun = "attribute" if len(given) == 1 else "attributes"
        detail = f"Returned row contains {len(given)} {noun}, but query expects {len(listed)}."
    for at, ((_, own), (_, wanted)) in enumerate(zip(given, listed, strict=False), 1):
        if detail is None and own.bare != wanted.bare:
            detail = (
                f"Returned type {own.bare} at ordinal position {at}, but query expects"
                f" {wanted.bare}."
            )
    if detail is not None:
        raise DatatypeMismatch(
            "function return row and query-specified return row do not match",
            detail=detail,
            position=position + 1,
        )


# --- errors --------------------------------------------------------------------------------------


def _needs_columns(position: int) -> QserverError:
    return SqlSyntaxError(
        'a column definition list is required for functions returning "record"',
        position=position + 1,
    )


def _unknown_row_type(node: ast.Call) -> QserverError:
    return DatatypeMismatch(
        f"could not determine row type for result of {node.name[-1]}",
        hint="Provide a non-null record argument, or call the function in the FROM clause"
        " using a column definition list.",
        position=node.position + 1,
    )


def _no_such_function(node: ast.Call, operands: list[Operand]) -> QserverError:
    types = ", ".join(str(each.type.bare) for each in operands)
    return UndefinedFunction(
        f"function {node.name[-1]}({types}) does not exist", position=node.position + 1
    )

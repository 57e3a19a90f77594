"""Binds calls by name: selects the kind of function, and handles special forms.

    COALESCE, NULLIF, GREATEST, LEAST, GROUPING     have rules of their own
    f(…) OVER …                                     `windows`
    an aggregate                                    `aggregates`
    a set-returning function in SELECT's list       `row_functions`
    int4(x), text(x)                                a cast, if no function of that name fits

Everything else is an ordinary function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from qserver.errors import (
    DatatypeMismatch,
    QserverError,
    SqlSyntaxError,
    WrongObjectType,
)
from qserver.functions.column_sizes import size_function
from qserver.functions.json.json_records import POPULATING
from qserver.functions.registry import Function
from qserver.functions.resolve import (
    is_aggregate,
    is_function,
    is_table_function,
    is_window_function,
    resolve_function,
    resolve_operator,
)
from qserver.sql import ast
from qserver.sql.binder.expressions.calling import function, is_built_in, not_in_schema
from qserver.sql.binder.expressions.coercion import alike, explicit, implicit, settled
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.named_arguments import arguments_of
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown, located
from qserver.sql.binder.expressions.record_functions import bind_populating
from qserver.sql.binder.expressions.row_functions import bind_row_function, refuse_rows_within
from qserver.sql.binder.expressions.rows import compare
from qserver.sql.binder.expressions.variadic import variadic_call
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import bind_aggregate, bind_grouping
from qserver.sql.binder.queries.hypothetical import HYPOTHETICAL, bind_hypothetical
from qserver.sql.binder.queries.windows import bind_window_call
from qserver.sql.expressions import Apply, Case, Coalesce, Column, Constant, Expression
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import (
    DATETIME_KINDS,
    INTEGER,
    INTEGER_KINDS,
    REG_KINDS,
    REGTYPE,
    STRING_KINDS,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
)


def bind_call(scope: Scope, node: ast.Call) -> Operand:
    if not is_built_in(node.name):
        raise not_in_schema(scope.binding, node.name, arguments_of(scope, node), node.position)
    name = node.name[-1]
    special = _SPECIAL.get(name)
    if special is not None and (len(node.name) == 1 or name not in _CONSTRUCTS):
        if node.variadic:
            raise SqlSyntaxError(
                f"VARIADIC is not allowed in {name.upper()}", position=node.position + 1
            )
        return special(scope, node)
    if node.over is not None:
        if not (is_aggregate(name) or is_window_function(name)):
            raise _only_for_aggregates(scope, node, "OVER", " nor a window function")
        return bind_window_call(scope, node, name)
    if is_aggregate(name) and (node.within_group or not is_window_function(name)):
        return bind_aggregate(scope, node, name)
    if name in HYPOTHETICAL and node.within_group:
        return bind_hypothetical(scope, node, name)
    if is_window_function(name):
        raise WrongObjectType(
            f"window function {name} requires an OVER clause", position=node.position + 1
        )
    _refuse_what_only_aggregates_have(scope, node)
    operands = arguments_of(scope, node)
    if node.variadic and not (operands[-1].type.kind is Kind.ARRAY and is_table_function(name)):
        return variadic_call(scope.binding, name, operands, node.position)
    if is_table_function(name) and not is_function(name):
        return bind_row_function(scope, node, name, operands)
    return _plain_call(scope, name, operands, node.position)


def _plain_call(scope: Scope, name: str, operands: list[Operand], position: int) -> Operand:
    target = _cast_by_name(scope, name, operands)
    if target is not None:
        return explicit(scope.binding, operands[0], target, position)
    return function(scope.binding, name, operands, position)


def _cast_by_name(scope: Scope, name: str, operands: list[Operand]) -> SqlType | None:
    """Return the type that regclass('users'), or mood('sad'), casts to."""
    if is_function(name) or len(operands) != 1:
        return None
    given = operands[0].type
    found = TYPES_BY_NAME.get(name) or scope.binding.catalog.find_type((name,))
    if found is None or found.kind is Kind.RECORD:
        return None
    is_text = given == UNKNOWN or given.kind in STRING_KINDS
    is_number = found.kind in REG_KINDS and given.kind in (*INTEGER_KINDS, Kind.OID)
    return found if is_text or is_number or given == found else None


# --- special forms -------------------------------------------------------------------------------


def _coalesce(scope: Scope, node: ast.Call) -> Expression:
    before = len(scope.level.row_functions)
    operands, target = _alike(scope, node, "COALESCE")
    refuse_rows_within(scope, before, "COALESCE")
    return Coalesce(operands, target) if len(operands) > 1 else operands[0]


def _nullif(scope: Scope, node: ast.Call) -> Expression:
    """Return NULL if both are equal, else the first, cast as the comparison casts it.

    A date beside a timestamp stays a date: in PostgreSQL an operator of its own compares them.
    """
    if len(node.arguments) != 2:
        raise SqlSyntaxError("NULLIF takes two arguments", position=node.position + 1)
    left, right = [scope.bind(argument) for argument in node.arguments]
    equal = compare(scope.binding, "=", left, right, node.position)
    first = settled(scope.binding, again(scope.binding, left))
    if not isinstance(left, RowValue) and not _are_moments(left, right):
        taken = resolve_operator("=", left.type, right.type).parameters[0]
        first = implicit(scope.binding, first, taken)
    return Case(((equal, Constant(None, first.type)),), first, first.type)


def _are_moments(*operands: Operand) -> bool:
    return all(operand.type.kind in DATETIME_KINDS for operand in operands)


def _greatest_or_least(scope: Scope, node: ast.Call) -> Expression:
    name = node.name[-1]
    operands, target = _alike(scope, node, name.upper())
    chosen = function(scope.binding, name, operands, node.position)
    return replace(chosen, type=target) if isinstance(chosen, Apply) else chosen


def _type_of(scope: Scope, node: ast.Call) -> Expression:
    """pg_typeof: known now, whatever the value is. It is computed all the same, and may fail."""
    if len(node.arguments) != 1:
        return function(scope.binding, "pg_typeof", arguments_of(scope, node), node.position)
    operand = scope.bind(node.arguments[0])
    if isinstance(operand, Unknown) and isinstance(operand.name, str):
        operand = settled(scope.binding, operand)
    name: Expression
    if isinstance(operand, Unknown | RowValue | Column | Constant):
        name = Constant(_type_text(operand.type.bare), TEXT)
    else:
        name = Apply(_type_name(operand.type.bare), (operand,), TEXT, nullable=False)
    return explicit(scope.binding, name, REGTYPE, node.position)


def _collation_of(scope: Scope, node: ast.Call) -> Expression:
    """pg_collation_for: that of the type."""
    if len(node.arguments) != 1:
        return function(scope.binding, "pg_collation_for", arguments_of(scope, node), node.position)
    operand = settled(scope.binding, scope.bind(node.arguments[0]))
    if operand.type.kind not in STRING_KINDS:
        raise DatatypeMismatch(
            f"collations are not supported by type {operand.type.bare}", position=node.position + 1
        )
    return Constant('"C"' if operand.type.kind is Kind.NAME else '"default"', TEXT)


def _column_size(scope: Scope, node: ast.Call) -> Expression:
    """pg_column_size: by the type, and by the length of what has one."""
    if len(node.arguments) != 1:
        return function(scope.binding, "pg_column_size", arguments_of(scope, node), node.position)
    operand = settled(scope.binding, scope.bind(node.arguments[0]))
    return Apply(size_function(operand.type.bare), (operand,), INTEGER, nullable=operand.nullable)


def _type_text(sql_type: SqlType) -> str:
    """Return what regtype reads as the type: that of a relation's rows has a number."""
    if sql_type.oid:
        return str(sql_type.oid)
    element = sql_type.element
    return str(element.oid + 1) if element is not None and element.oid else str(sql_type)


@lru_cache(maxsize=1024)
def _type_name(sql_type: SqlType) -> Function:
    name = _type_text(sql_type)
    return Function("pg_typeof", (sql_type,), TEXT, lambda _: name, strict=False)


def _alike(scope: Scope, node: ast.Call, construct: str) -> tuple[tuple[Expression, ...], SqlType]:
    operands = [scope.bind(argument) for argument in node.arguments]
    if not operands:
        raise SqlSyntaxError(f"{construct} takes arguments", position=node.position + 1)
    places = [leftmost(argument) for argument in node.arguments]
    return alike(scope.binding, operands, construct, places)


_SPECIAL: Final[dict[str, Callable[[Scope, ast.Call], Operand]]] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _greatest_or_least,
    "least": _greatest_or_least,
    "grouping": bind_grouping,
    "pg_typeof": _type_of,
    "pg_collation_for": _collation_of,
    "pg_column_size": _column_size,
    **dict.fromkeys(POPULATING, bind_populating),
}
_CONSTRUCTS: Final = frozenset({"coalesce", "nullif", "greatest", "least", "grouping"})
"""Those that are no functions: a schema cannot stand before them."""


# --- errors --------------------------------------------------------------------------------------


def _refuse_what_only_aggregates_have(scope: Scope, node: ast.Call) -> None:
    if node.star:
        raise _only_for_aggregates(scope, node, f"{node.name[-1]}(*)", "")
    for given, words in (
        (node.within_group, "WITHIN GROUP"),
        (node.distinct, "DISTINCT"),
        (node.order_by, "ORDER BY"),
        (node.filter is not None, "FILTER"),
    ):
        if given:
            raise _only_for_aggregates(scope, node, words, "")


def _only_for_aggregates(scope: Scope, node: ast.Call, words: str, more: str) -> QserverError:
    """Return the error; a function that does not exist comes first."""
    name = node.name[-1]
    if not is_table_function(name):
        operands = [scope.bind(argument) for argument in node.arguments]
        try:
            resolve_function(name, [each.type for each in operands])
        except QserverError as error:
            return located(error, node.position)
    message = f"{words} specified, but {name} is not an aggregate function"
    if more:
        message = (
            f"{words} specified, but {name} is not a window function nor an aggregate function"
        )
    return WrongObjectType(message, position=node.position + 1)

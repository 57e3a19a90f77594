"""Set-returning functions in the select list: SELECT unnest(tags) FROM t.

    SELECT a, f(a), g(b) FROM t     t ⋈ lateral (f(a) with ordinality ⟗ g(b) with ordinality)

The query's rows are repeated, once for each row of the function: a lateral join. Several functions
of one list advance together, and the shorter ones are padded with NULL: a full join by row number.
A function inside another one's arguments comes before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from qserver.errors import FeatureNotSupported, UndefinedFunction
from qserver.functions.resolve import ResolvedTableFunction, resolve_table_function
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause, refuse_rows
from qserver.sql.binder.expressions.calling import operator, resolved_by, whole
from qserver.sql.binder.expressions.coercion import implicit
from qserver.sql.binder.expressions.operands import Operand, RowValue, located
from qserver.sql.binder.expressions.same import same
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Coalesce, Column, Expression, WindowCall
from qserver.sql.plan import FunctionScan, Join, OutputColumn, Plan, Project
from qserver.sql.walk import sources_named
from qserver.values.types import BIGINT, SqlType


def bind_row_function(
    scope: Scope, node: ast.Call, name: str, operands: Sequence[Operand]
) -> Operand:
    """Return the column of the function, or its columns as a row.

    The query joins the function's rows when it is complete.
    """
    level = scope.level
    error = refuse_rows(level.clause)
    if level.clause is Clause.FUNCTION_IN_FROM:
        error = FeatureNotSupported("set-returning functions must appear at top level of FROM")
    if error is not None:
        raise located(error, node.position)
    if name == "unnest" and len(operands) > 1:  # as in PostgreSQL, FROM alone has that
        types = ", ".join([str(each.type) for each in operands])
        missing = UndefinedFunction(
            f"function unnest({types}) does not exist",
            hint="In FROM, unnest takes several arrays.",
        )
        raise located(missing, node.position)
    scan = function_scan(scope, name, operands, node.position)
    level.row_functions.append(scan)
    values = [
        Column(scan.source, at, column.type, True, name) for at, column in enumerate(scan.columns)
    ]
    for value in values:
        scope.binding.remember(value, node.position)
    if len(values) == 1:
        return values[0]
    names = tuple([column.name for column in scan.columns])
    return RowValue(tuple(values), node.position, names, may_be_missing=True)


def refuse_rows_within(scope: Scope, before: int, construct: str) -> None:
    """Refuse functions that came since there were `before`: CASE cannot decide on their rows."""
    if len(scope.level.row_functions) > before:
        raise FeatureNotSupported(
            f"set-returning functions are not allowed in {construct}",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
        )


def function_scan(
    scope: Scope, name: str, operands: Sequence[Operand], position: int
) -> FunctionScan:
    def resolve(types: Sequence[SqlType]) -> ResolvedTableFunction:
        return resolve_table_function(name, types)

    operands = [whole(scope.binding, each) for each in operands]
    resolved = resolved_by(scope.binding, resolve, operands, position)
    if resolved.function.reads_catalog:
        scope.binding.catalog.read_definitions()
    arguments = tuple(
        [
            implicit(scope.binding, operand, parameter, position)
            for operand, parameter in zip(operands, resolved.parameters, strict=True)
        ]
    )
    columns = tuple([OutputColumn(*column) for column in resolved.function.columns])
    return FunctionScan(scope.binding.new_source(), resolved.function, arguments, columns)


def join_row_functions(scope: Scope, plan: Plan, functions: Sequence[FunctionScan]) -> Plan:
    waiting = list(functions)
    while waiting:
        later = {each.source for each in waiting}
        ready = [
            each
            for each in waiting
            if not any(sources_named(argument) & later for argument in each.arguments)
        ]
        assert ready, "no function is inside its own arguments"
        plan = Join("inner", plan, _in_step(scope, ready), None, lateral=True)
        waiting = [each for each in waiting if each not in ready]
    return plan


def functions_named(
    nodes: Iterable[Any], functions: Sequence[FunctionScan]
) -> tuple[list[FunctionScan], list[FunctionScan]]:
    """Split functions: those that the nodes name, with those in their arguments; and the others."""
    named: set[int] = set()
    for node in nodes:
        named |= sources_named(node)
    for each in reversed(functions):  # functions in its arguments come before it
        if each.source in named:
            for argument in each.arguments:
                named |= sources_named(argument)
    first = [each for each in functions if each.source in named]
    return first, [each for each in functions if each.source not in named]


def functions_of_windows(
    scope: Scope, windows: Sequence[WindowCall], functions: Sequence[FunctionScan]
) -> tuple[list[FunctionScan], list[FunctionScan], dict[tuple[int, int], Expression]]:
    """Split functions: those that windows go by, and the others.

    One of the others that is equal to one of the first is the same: the columns to take instead.
    """
    first, others = functions_named(windows, functions)
    late: list[FunctionScan] = []
    shared: dict[tuple[int, int], Expression] = {}
    for each in others:
        twin = next((one for one in first if _is_twin(scope, one, each)), None)
        if twin is None:
            late.append(each)
            continue
        for at, column in enumerate(twin.columns):
            shared[each.source, at] = Column(twin.source, at, column.type, True, column.name)
    return first, late, shared


def _is_twin(scope: Scope, one: FunctionScan, other: FunctionScan) -> bool:
    return one.function is other.function and same(one.arguments, other.arguments, scope.literals)


def _in_step(scope: Scope, functions: Sequence[FunctionScan]) -> Plan:
    if len(functions) == 1:
        return functions[0]
    return side_by_side(scope, [with_ordinality(each) for each in functions])[0]


def side_by_side(
    scope: Scope, numbered: Sequence[FunctionScan | Project]
) -> tuple[Plan, Expression]:
    """Join rows by their numbers, which are the last columns; return also the number."""
    first, *others = numbered
    joined: Plan = first
    number = _row_number(first)
    for other in others:
        condition = operator(scope.binding, "=", number, _row_number(other), -1)
        joined = Join("full", joined, other, condition)
        number = Coalesce((number, _row_number(other)), BIGINT)
    return joined, number


def with_ordinality(scan: FunctionScan) -> FunctionScan:
    columns = (*scan.columns, OutputColumn("ordinality", BIGINT, nullable=False))
    return replace(scan, columns=columns, ordinality=True)


def _row_number(scan: FunctionScan | Project) -> Expression:
    return Column(scan.source, len(scan.columns) - 1, BIGINT, True, "ordinality")

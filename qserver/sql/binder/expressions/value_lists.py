"""Binds VALUES as a query: rows of expressions, each column of one type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qserver.errors import SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import implicit, shared_type, type_of_values
from qserver.sql.binder.expressions.literals import RepeatedLiterals
from qserver.sql.binder.expressions.operands import Operand, Unknown
from qserver.sql.binder.expressions.prepared import Finished, Prepared, PreparedColumn
from qserver.sql.binder.expressions.scalars import LITERAL_TYPES
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.expressions import Constant, Expression, RunRefused, Slot
from qserver.sql.plan import OutputColumn, Values
from qserver.values.types import UNKNOWN, SqlType


def check_lengths(node: ast.Values) -> None:
    length = len(node.rows[0])
    for row in node.rows:
        if len(row) != length:
            place = leftmost(row[0]) if row else node.position
            raise SqlSyntaxError("VALUES lists must all be the same length", position=place + 1)


def for_rows(scope: Scope, node: ast.Values) -> Scope:
    return replace(scope, literals=RepeatedLiterals()) if node.repeated else scope


def slot_of(node: ast.Values) -> int | range | None:
    """Return the literal that has the repeated rows, or the numbers of their parameters."""
    if not isinstance(node.slot, ast.Run):
        return node.slot
    first = node.slot.first
    assert isinstance(first, ast.Parameter) and isinstance(first.name, int)
    return range(first.name, first.name + node.slot.count)


def parameters_of_rows(binding: Binding, row: Sequence[Expression], names: range) -> list[Slot]:
    """Return the row of a repeated VALUES whose items are parameters: the first ones of `names`.

    All parameters of a column have the type of the first.
    """
    found: list[Slot] = []
    for at, item in enumerate(row):
        of_column = names[at :: len(row)]
        if type(item) is not Slot or item.name != f"${of_column[0]}":
            raise RunRefused
        binding.inferred.update(dict.fromkeys(of_column, binding.inferred[of_column[0]]))
        found.append(replace(item, name=at))
    return found


def prepare_values(scope: Scope, node: ast.Values) -> Prepared:
    if isinstance(node.slot, ast.Run):
        raise RunRefused  # each of the parameters may have another type
    check_lengths(node)
    scope.level.clause = Clause.VALUES
    if node.repeated and scope.literals.fixed:
        rows = _spelled_out(scope, node)
        node = replace(node, rows=node.rows * len(rows), repeated=False, slot=None)
    else:
        inner = for_rows(scope, node)
        rows = [[inner.bind(item) for item in row] for row in node.rows]
    places = [[leftmost(item) for item in row] for row in node.rows]
    prepared_columns: list[PreparedColumn] = []
    for at in range(len(rows[0])):
        types = [row[at].type for row in rows]
        shared = UNKNOWN
        if any(each != UNKNOWN for each in types):
            shared = shared_type(types, "VALUES", [row[at] for row in places])
        prepared_columns.append(PreparedColumn(f"column{at + 1}", shared, places[0][at]))

    def complete(wanted: Sequence[SqlType | None]) -> Finished:
        return _finished(scope, node, rows, prepared_columns, wanted)

    return Prepared(tuple(prepared_columns), complete)


def _spelled_out(scope: Scope, node: ast.Values) -> list[list[Operand]]:
    """Return all rows of a definition, whose literals are known."""
    assert isinstance(node.slot, int), "rows of literals have a slot"
    kinds = [item for item in node.rows[0] if isinstance(item, ast.Literal)]
    assert len(kinds) == len(node.rows[0]), "and are made of literals only"
    return [
        [_known(kind, value) for kind, value in zip(kinds, row, strict=True)]
        for row in scope.literals.value(node.slot)
    ]


def _known(node: ast.Literal, value: Any) -> Operand:
    if value is None:
        return Unknown(None, node.position)
    if node.kind == "text":
        return Unknown(node.index, node.position, value, nullable=False)
    return Constant(value, LITERAL_TYPES[node.kind])


def _finished(
    scope: Scope,
    node: ast.Values,
    rows: list[list[Operand]],
    prepared_columns: list[PreparedColumn],
    wanted: Sequence[SqlType | None],
) -> Finished:
    """Cast each item to the column's own type first, then to the wanted one."""
    binding = scope.binding
    targets = [
        [each for each in (column.type, target) if each is not None and each != UNKNOWN]
        or [type_of_values(binding, [row[at] for row in rows], "VALUES")]
        for at, (column, target) in enumerate(zip(prepared_columns, wanted, strict=True))
    ]
    items: list[tuple[Expression, ...]] = []
    for row in rows:
        values: list[Expression] = []
        for operand, steps in zip(row, targets, strict=True):
            value = implicit(binding, operand, steps[0])
            values.append(implicit(binding, value, steps[-1]))
        items.append(tuple(values))
    columns = tuple(
        [
            OutputColumn(column.name, steps[-1], any(row[at].nullable for row in items))
            for at, (column, steps) in enumerate(zip(prepared_columns, targets, strict=True))
        ]
    )
    source = binding.new_source()
    return Finished(
        Values(source, tuple(items), columns, node.repeated, float(len(items)), slot_of(node)),
        source,
        columns,
    )

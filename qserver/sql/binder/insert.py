"""INSERT: rows from VALUES or a query become whole rows of the table.

    INSERT INTO t (b) VALUES ('x'), (DEFAULT)

    plan      Values(source 1: one column, each item already of b's type)
    values    a: its default    b: 1.0    row_id: Slot("row_id")

What the statement has no value for gets its default. Values are assigned, so what does not fit is
an error; NOT NULL is looked after when rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.errors import DuplicateColumn, SqlSyntaxError
from qserver.sql import syntax
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.coercion import assigned
from qserver.sql.binder.common_tables import with_common_tables, with_tables
from qserver.sql.binder.conflict import bind_conflict
from qserver.sql.binder.relations import relation_of_table
from qserver.sql.binder.scope import Scope, leftmost
from qserver.sql.binder.subqueries import column_at
from qserver.sql.binder.table_expressions import (
    checks_of,
    default_of,
    generated_values,
    has_generated,
)
from qserver.sql.binder.targets import Target, bind_returning, find_target, refuse_value
from qserver.sql.binder.value_lists import check_lengths, for_rows
from qserver.sql.bound import Column, Expression
from qserver.sql.plan import Insert, OneRow, OutputColumn, Plan, Project, Values
from qserver.values.schema import Table
from qserver.values.types import UNKNOWN


def bind_insert(around: Scope, node: syntax.Insert) -> Insert:
    scope = with_common_tables(around, node.common_tables, node.recursive)
    binding = scope.binding
    target = find_target(scope, node.table, "insert into")
    table = target.table
    positions = _target_positions(target, node)
    plan, given = _source(scope, table, node, positions)
    values = [
        given[at] if at in given else default_of(binding, column)
        for at, column in enumerate(table.columns)
    ]
    if has_generated(table):
        plan, values = _with_generated(scope, table, plan, values)
    new = binding.new_source()
    on_conflict = None
    if node.on_conflict is not None:
        on_conflict = bind_conflict(scope, target, new, node.on_conflict)
    returning = bind_returning(scope, node.returning, (target.relation(new),))
    if scope is not around:  # last: only now it is known which common tables are named
        plan = with_tables(scope, plan)
    return Insert(
        table,
        plan,
        tuple(values),
        new,
        checks_of(binding, table, new),
        on_conflict,
        returning,
    )


def _target_positions(target: Target, node: syntax.Insert) -> list[int]:
    """The columns that the statement has values for, in its order."""
    if not node.columns:
        return target.positions()
    place = node.table.position
    positions = [target.position(name, place, "insert into") for name in node.columns]
    for name in node.columns:
        if node.columns.count(name) > 1:
            raise DuplicateColumn(
                f'column "{name}" specified more than once', position=place + 1, column=name
            )
    return positions


def _source(
    scope: Scope, table: Table, node: syntax.Insert, positions: Sequence[int]
) -> tuple[Plan, dict[int, Expression]]:
    """The plan, and the value of each column that it has one for."""
    query = node.source
    if query is None:
        return OneRow(), {}
    plain = not (query.order_by or query.limit or query.offset or query.common_tables)
    if isinstance(query.body, syntax.Values) and plain:
        return _from_values(scope, table, node, query.body, positions)
    return _from_query(scope, table, node, query, positions)


def _from_values(
    scope: Scope,
    table: Table,
    node: syntax.Insert,
    rows: syntax.Values,
    positions: Sequence[int],
) -> tuple[Plan, dict[int, Expression]]:
    check_lengths(rows)
    first = rows.rows[0]
    _check_count(table, node, positions, len(first), [leftmost(item) for item in first])
    inner = for_rows(scope.inside(), rows)
    inner.level.entries.append(relation_of_table(table.name, 0, table))  # to explain errors only
    targets = positions[: len(first)]
    items = tuple(
        [
            tuple(
                [_item(inner, table, node, item, at) for item, at in zip(row, targets, strict=True)]
            )
            for row in rows.rows
        ]
    )
    source = scope.binding.new_source()
    columns = tuple(
        [
            OutputColumn(
                table.columns[at].name,
                table.columns[at].type,
                any(row[n].nullable for row in items),
            )
            for n, at in enumerate(targets)
        ]
    )
    plan = Values(source, items, columns, rows.repeated, float(len(items)), rows.slot)
    given: dict[int, Expression] = {
        at: Column(source, n, column.type, column.nullable, column.name)
        for n, (at, column) in enumerate(zip(targets, columns, strict=True))
    }
    return plan, given


def _item(
    scope: Scope, table: Table, node: syntax.Insert, item: syntax.Expression, at: int
) -> Expression:
    column = table.columns[at]
    if isinstance(item, syntax.Default) or (node.overriding == "user" and column.identity):
        return default_of(scope.binding, column)
    if not (node.overriding == "system" and column.identity):
        refuse_value(column, leftmost(item), inserting=True)
    operand = scope.bind_in(Clause.VALUES, item)
    return assigned(scope.binding, operand, column.type, column.name, leftmost(item))


def _from_query(
    scope: Scope,
    table: Table,
    node: syntax.Insert,
    query: syntax.Query,
    positions: Sequence[int],
) -> tuple[Plan, dict[int, Expression]]:
    """Columns of unknown type become what the table's columns are."""
    prepared = scope.binding.prepare_query(scope, query)
    places = [outline.position for outline in prepared.outlines]
    _check_count(table, node, positions, len(places), places)
    wanted = [
        table.columns[at].type.bare if outline.type == UNKNOWN else None
        for outline, at in zip(prepared.outlines, positions, strict=False)
    ]
    finished = prepared.finish(wanted)
    given: dict[int, Expression] = {}
    for n, at in enumerate(positions[: len(places)]):
        column = table.columns[at]
        if node.overriding == "user" and column.identity:
            continue
        if not (node.overriding == "system" and column.identity):
            refuse_value(column, places[n], inserting=True)
        value = column_at(finished, n)
        given[at] = assigned(scope.binding, value, column.type, column.name, places[n])
    return finished.plan, given


def _check_count(
    table: Table,
    node: syntax.Insert,
    positions: Sequence[int],
    count: int,
    places: Sequence[int],
) -> None:
    if count > len(positions):
        raise SqlSyntaxError(
            "INSERT has more expressions than target columns",
            position=places[len(positions)] + 1,
        )
    if count < len(positions) and node.columns:
        raise SqlSyntaxError(
            "INSERT has more target columns than expressions", position=node.table.position + 1
        )


def _with_generated(
    scope: Scope, table: Table, plan: Plan, values: list[Expression]
) -> tuple[Plan, list[Expression]]:
    """Values are computed once before other values are computed from them."""
    source = scope.binding.new_source()
    columns = tuple(
        [
            OutputColumn(column.name, value.type, value.nullable)
            for column, value in zip(table.columns, values, strict=True)
        ]
    )
    plan = Project(plan, source, tuple(values), columns)
    known: list[Expression] = [
        Column(source, at, column.type, column.nullable, column.name)
        for at, column in enumerate(columns)
    ]
    return plan, list(generated_values(scope.binding, table, known))

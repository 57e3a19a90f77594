"""INSERT: turns rows of VALUES or of a query into whole rows of the table.

    INSERT INTO t (b) VALUES ('x'), (DEFAULT)

    plan      Values(source 1: one column, each item already of b's type)
    values    a: its default    b: 1.0    row_id: Slot("row_id")

A column without a value gets its default. Values are assigned, so a value that does not fit is an
error; NOT NULL is checked when rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qserver.errors import SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.changes.conflict import bind_conflict, require_arbiters
from qserver.sql.binder.changes.targets import (
    Target,
    assigned_twice,
    bind_returning,
    find_target,
    refuse_twice,
    refuse_value,
)
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import assigned
from qserver.sql.binder.expressions.part_assignment import (
    Part,
    part_type,
    refuse_default,
    with_part,
)
from qserver.sql.binder.expressions.subqueries import column_at
from qserver.sql.binder.expressions.value_lists import (
    check_lengths,
    for_rows,
    parameters_of_rows,
    slot_of,
)
from qserver.sql.binder.names.relations import relation_of_table
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.tables.common_tables import with_common_tables, with_tables
from qserver.sql.binder.tables.table_expressions import (
    generated_values,
    has_generated,
)
from qserver.sql.expressions import Column, Constant, Expression, RunRefused
from qserver.sql.folding import is_constant
from qserver.sql.plan import Insert, OneRow, OutputColumn, Plan, Project, Values
from qserver.sql.walk import is_volatile
from qserver.values.schema import Table
from qserver.values.types import UNKNOWN, SqlType


def bind_insert(around: Scope, node: ast.Insert) -> Insert:
    scope = with_common_tables(around, node.common_tables, node.recursive)
    binding = scope.binding
    target = find_target(scope, node.table, "insert into")
    table = target.table
    refuse_twice(target, node.columns, node.targets, node.places)
    plan, places, found = _source(scope, target, node)
    given = _whole_columns(scope, table, places, found)
    values = [
        given[at] if at in given else target.default(binding, at, node.overriding)
        for at in range(len(table.columns))
    ]
    if has_generated(table):
        plan, values = _with_generated(scope, table, plan, values)
    new = binding.new_source()
    on_conflict = None
    if node.on_conflict is not None:
        on_conflict = bind_conflict(scope, target, new, node.on_conflict)
    returning = bind_returning(scope, node.returning, (target.relation(new),))
    if node.on_conflict is not None and on_conflict is not None:
        require_arbiters(node.on_conflict, on_conflict)
    if scope is not around:  # last: only now it is known which CTEs are named
        plan = with_tables(scope, plan)
    return Insert(
        table,
        plan,
        tuple(values),
        new,
        target.checks(binding, new),
        on_conflict,
        returning,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """The destination of a value, a column or a part of one, and its type."""

    at: int
    type: SqlType
    part: Part | None = None


def _places(
    target: Target, node: ast.Insert, positions: Sequence[int], defaults: frozenset[int]
) -> list[_Place]:
    """Return the destinations of the statement's values, which stand at `positions`, in order.

    `defaults` are the numbers of those that are DEFAULT: a column may have these beside another.
    """
    columns = target.table.columns
    names = node.columns or target.names
    _check_count(node, len(names), positions)
    stand = node.places or (node.table.position,) * len(names)
    parts = node.targets or (None,) * len(names)
    places: list[_Place] = []
    whole: set[int] = set()
    for n, (name, part, position) in enumerate(zip(names, parts, stand, strict=True)):
        if n == len(positions):
            break
        at = target.position(name, position if node.columns else -1, "insert into")
        column = columns[at]
        if at in whole and n not in defaults:
            raise assigned_twice(column, -1)
        if n not in defaults and part is None:
            whole.add(at)
        places.append(_Place(at, column.type if part is None else part_type(column, part), part))
    return places


def _whole_columns(
    scope: Scope, table: Table, places: Sequence[_Place], found: dict[int, Expression]
) -> dict[int, Expression]:
    """Return the value of each column, by position, from the values of the places, by number."""
    given: dict[int, Expression] = {}
    for n, value in found.items():
        place = places[n]
        if place.part is None:
            given[place.at] = value
        else:
            empty = Constant(None, table.columns[place.at].type)
            given[place.at] = with_part(scope, given.get(place.at, empty), place.part, value)
    return given


Given = tuple[Plan, list[_Place], dict[int, Expression]]


def _source(scope: Scope, target: Target, node: ast.Insert) -> Given:
    """Return the plan, the places that it has values for, and these values, by number."""
    query = node.source
    if query is None:
        return OneRow(), [], {}
    plain = not (query.order_by or query.limit or query.offset or query.common_tables)
    if isinstance(query.body, ast.Values) and plain:
        return _from_values(scope, target, node, query.body)
    return _from_query(scope, target, node, query)


def _from_values(scope: Scope, target: Target, node: ast.Insert, rows: ast.Values) -> Given:
    check_lengths(rows)
    table = target.table
    first = rows.rows[0]
    defaults = frozenset(
        n for n in range(len(first)) if all(isinstance(row[n], ast.Default) for row in rows.rows)
    )
    targets = _places(target, node, [leftmost(item) for item in first], defaults)
    slot = slot_of(rows)
    if isinstance(slot, range) and not all(
        scope.binding.parameters_alike(slot[at :: len(first)]) for at in range(len(first))
    ):
        raise RunRefused
    inner = for_rows(scope.inside(), rows)
    inner.level.entries.append(relation_of_table(table.name, 0, table))  # for errors only
    items = tuple(
        [
            tuple(
                [
                    _item(inner, target, node, item, place)
                    for item, place in zip(row, targets, strict=True)
                ]
            )
            for row in rows.rows
        ]
    )
    if isinstance(slot, range):
        items = (tuple(parameters_of_rows(scope.binding, items[0], slot)),)
    source = scope.binding.new_source()
    columns = tuple(
        [
            OutputColumn(
                table.columns[place.at].name, place.type, any(row[n].nullable for row in items)
            )
            for n, place in enumerate(targets)
        ]
    )
    plan = Values(source, items, columns, rows.repeated, float(len(items)), slot)
    valued = {place.at for n, place in enumerate(targets) if n not in defaults}
    found: dict[int, Expression] = {
        n: Column(source, n, column.type, column.nullable, column.name)
        for n, column in enumerate(columns)
        if n not in defaults or targets[n].at not in valued
    }
    return plan, targets, found


def _item(
    scope: Scope, target: Target, node: ast.Insert, item: ast.Expression, place: _Place
) -> Expression:
    column = target.table.columns[place.at]
    if isinstance(item, ast.Default) and place.part is not None:
        raise refuse_default(leftmost(item))
    if isinstance(item, ast.Default) or (node.overriding == "user" and column.identity):
        return target.default(scope.binding, place.at, node.overriding)
    if not (node.overriding == "system" and column.identity):
        refuse_value(column, leftmost(item), inserting=True)
    operand = scope.bind_in(Clause.VALUES, item)
    return assigned(scope.binding, operand, place.type, column.name, leftmost(item))


def _from_query(scope: Scope, target: Target, node: ast.Insert, query: ast.Query) -> Given:
    """Bind a query as the source; columns of unknown type get the types of the table's columns."""
    prepared = scope.binding.prepare_query(scope, query)
    positions = [column.position for column in prepared.columns]
    places = _places(target, node, positions, frozenset())
    wanted = [
        place.type.bare if column.type == UNKNOWN else None
        for column, place in zip(prepared.columns, places, strict=True)
    ]
    finished = prepared.finish(wanted)
    constants = _constant_columns(finished.plan) if prepared.plain else {}
    found: dict[int, Expression] = {}
    for n, place in enumerate(places):
        column = target.table.columns[place.at]
        if node.overriding == "user" and column.identity:
            continue
        if not (node.overriding == "system" and column.identity):
            refuse_value(column, positions[n], inserting=True)
        value = constants.get(n) or column_at(finished, n)
        found[n] = assigned(scope.binding, value, place.type, column.name, positions[n])
    return finished.plan, places, found


def _constant_columns(plan: Plan) -> dict[int, Expression]:
    """Return the columns that are constant: as in PostgreSQL, they must fit also if no row comes.

    A volatile column keeps PostgreSQL from looking into the query.
    """
    if not isinstance(plan, Project) or any(map(is_volatile, plan.expressions)):
        return {}
    return {n: each for n, each in enumerate(plan.expressions) if is_constant(each)}


def _check_count(node: ast.Insert, targets: int, positions: Sequence[int]) -> None:
    count = len(positions)
    if count > targets:
        raise SqlSyntaxError(
            "INSERT has more expressions than target columns", position=positions[targets] + 1
        )
    if count < targets and node.columns:
        raise SqlSyntaxError(
            "INSERT has more target columns than expressions",
            position=(node.places[count] if node.places else node.table.position) + 1,
        )


def _with_generated(
    scope: Scope, table: Table, plan: Plan, values: list[Expression]
) -> tuple[Plan, list[Expression]]:
    """Compute the values once, before generated columns are computed from them."""
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

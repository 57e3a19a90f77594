"""Binds the items of FROM: tables, views, CTEs, subqueries, functions.

Each becomes a plan that produces rows of one source, and a relation that names its columns. A
LATERAL query, and every function, sees the relations to its left. `joins` combines the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qserver.errors import (
    DuplicateAlias,
    InvalidColumnReference,
    QserverError,
    SqlSyntaxError,
    UndefinedObject,
    UndefinedTable,
)
from qserver.functions.arrays.rows import is_array_of_rows, unnest_rows
from qserver.functions.resolve import is_table_function
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.calling import function, is_built_in, operator
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.named_arguments import arguments_of
from qserver.sql.binder.expressions.operands import RowValue
from qserver.sql.binder.expressions.prepared import Finished
from qserver.sql.binder.expressions.record_functions import record_scan, wants_columns
from qserver.sql.binder.expressions.row_functions import (
    function_scan,
    side_by_side,
    with_ordinality,
)
from qserver.sql.binder.names.relations import (
    AnyRelation,
    Relation,
    relation_of_query,
    relation_of_table,
    renamed,
)
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.tables.common_tables import scan_common_table
from qserver.sql.binder.tables.views import bind_view
from qserver.sql.expressions import Column, Constant, Expression
from qserver.sql.plan import Filter, FunctionScan, OneRow, OutputColumn, Plan, Project, Scan
from qserver.values.schema import Table
from qserver.values.types import BIGINT, BOOLEAN, DOUBLE


@dataclass(frozen=True, slots=True)
class Sources:
    """A part of FROM: its plan, and its visible relations."""

    plan: Plan
    relations: tuple[AnyRelation, ...]


def bind_item(scope: Scope, item: ast.FromItem) -> Sources:
    """Bind one item; a lateral item may name the relations of `scope`."""
    level = scope.level
    outer, level.clause = level.clause, Clause.FROM
    match item:
        case ast.TableRef():
            plan, relation = _bind_table(scope, item)
        case ast.SubqueryRef():
            plan, relation = _bind_subquery(scope, item)
        case ast.FunctionRef():
            plan, relation = _bind_function(scope, item)
        case ast.RowsFrom():
            plan, relation = _bind_rows_from(scope, item)
        case _:
            raise AssertionError("joins are bound by `joins`")
    if scope.binding.marks_rows and relation.table is None and not relation.scalar:
        plan, relation = _marked(scope, plan, relation)
    level.clause = outer
    level.sources.add(relation.source)
    level.entries.append(relation)
    return Sources(plan, (relation,))


def _marked(scope: Scope, plan: Plan, relation: Relation) -> tuple[Plan, Relation]:
    """Add a column that is true, so that a row of NULLs can be told from a missing one."""
    marked = replace(relation, source=scope.binding.new_source(), marked=True)
    values = [relation.expression(at) for at in range(len(relation.fields))]
    columns = [OutputColumn(each.name, each.type, each.nullable) for each in relation.fields]
    mark = OutputColumn("", BOOLEAN, nullable=False)
    outputs = (*values, Constant(True, BOOLEAN)), (*columns, mark)
    return Project(plan, marked.source, *outputs), marked


def check_names(left: Sequence[AnyRelation], right: Sequence[AnyRelation], position: int) -> None:
    """Refuse two visible relations with one name, unless their schemas tell them apart."""
    named = {each.name: each for each in left if each.by_name and each.name}
    for each in right:
        other = named.get(each.name) if each.by_name else None
        if other is None:
            continue
        if (
            other.aliased
            or each.aliased
            or None in (each.path, other.path)
            or (each.path == other.path)
        ):
            raise DuplicateAlias(
                f'table name "{each.name}" specified more than once', position=position + 1
            )


# --- tables --------------------------------------------------------------------------------------


def _bind_table(scope: Scope, item: ast.TableRef) -> tuple[Plan, Relation]:
    found = scan_common_table(scope, item) if len(item.name) == 1 else None
    if found is not None:
        return found[0], aliased(found[1], item.alias, item.column_aliases, item.position)
    table = scope.binding.catalog.find_table(item.name)
    if table is not None:
        scope.binding.note_schema(item.name, table.schema, item.position)
        scan, relation = scan_table(scope, table, item)
        return (scan if item.sample is None else _sampled(scope, scan, item.sample)), relation
    catalog = scope.binding.catalog
    view = catalog.find_view(item.name) or catalog.sequence_as_view(item.name)
    if view is None:
        raise missing_table(item.name, item.position)
    scope.binding.note_schema(item.name, view.schema, item.position)
    query = bind_view(scope, view, item.locking)
    relation = relation_of_query(view.name, query.source, query.columns, view)
    return query.plan, aliased(relation, item.alias, item.column_aliases, item.position)


def scan_table(scope: Scope, table: Table, item: ast.TableRef) -> tuple[Scan, Relation]:
    binding = scope.binding
    binding.use_table(table)
    source = binding.new_source()
    relation = relation_of_table(table.name, source, table)
    relation = aliased(relation, item.alias, item.column_aliases, item.position)
    rows = float(binding.catalog.statistics.row_count(table))
    return Scan(source, table, alias=relation.name, rows=rows), relation


def _sampled(scope: Scope, scan: Scan, sample: ast.TableSample) -> Plan:
    """TABLESAMPLE: selects rows at random. A seed has no effect: randomness comes from outside."""
    binding, method = scope.binding, sample.method[-1]
    if method not in ("bernoulli", "system"):
        raise UndefinedObject(
            f"tablesample method {method} does not exist", position=sample.position + 1
        )
    if len(sample.arguments) != 1:
        raise SqlSyntaxError(
            f"tablesample method {method} requires 1 argument, not {len(sample.arguments)}",
            position=sample.position + 1,
        )
    percent = implicit(binding, scope.bind(sample.arguments[0]), DOUBLE, sample.position)
    share = operator(binding, "/", percent, Constant(100.0, DOUBLE), -1)
    chance = function(binding, "random", [], -1)
    return Filter(scan, operator(binding, "<", chance, share, -1))


def missing_table(name: tuple[str, ...], position: int) -> QserverError:
    return UndefinedTable(
        f'relation "{".".join(name)}" does not exist', position=position + 1, table=name[-1]
    )


def aliased(
    relation: Relation, alias: str | None, column_aliases: Sequence[str], position: int
) -> Relation:
    if len(column_aliases) > len(relation.names):
        raise InvalidColumnReference(
            f'table "{alias or relation.name}" has {len(relation.names)} columns available but '
            f"{len(column_aliases)} columns specified",
            position=position + 1,
        )
    if alias is None and not column_aliases:
        return relation
    return renamed(relation, alias or relation.name, column_aliases)


# --- subqueries and functions --------------------------------------------------------------------


def _bind_subquery(scope: Scope, item: ast.SubqueryRef) -> tuple[Plan, Relation]:
    if item.alias is None:
        values = isinstance(item.query.body, ast.Values)
        what, example = ("VALUES", "VALUES ...") if values else ("subquery", "SELECT ...")
        raise SqlSyntaxError(
            f"{what} in FROM must have an alias",
            hint=f"For example, FROM ({example}) [AS] foo.",
            position=item.position + 1,
        )
    around = scope if item.lateral else scope.with_relations(())
    query: Finished = scope.binding.prepare_query(around, item.query).finish()
    relation = relation_of_query(item.alias, query.source, query.columns)
    return query.plan, aliased(relation, item.alias, item.column_aliases, item.position)


def _bind_function(scope: Scope, item: ast.FunctionRef) -> tuple[Plan, Relation]:
    plan, scalar = _function_rows(scope, item)
    name = item.alias or item.call.name[-1]
    relation = relation_of_query(name, plan.source, plan.columns)
    if isinstance(plan, FunctionScan) and not item.ordinality:
        relation = replace(relation, row_oid=plan.function.row_oid)
    relation = replace(relation, scalar=scalar and not item.ordinality)
    return plan, aliased(relation, item.alias, item.column_aliases, item.position)


def _bind_rows_from(scope: Scope, item: ast.RowsFrom) -> tuple[Plan, Relation]:
    """Bind functions whose rows stand side by side; NULL fills up the shorter ones."""
    each = [_function_rows(scope, replace(one, ordinality=True))[0] for one in item.functions]
    joined, number = side_by_side(scope, each)
    columns = [replace(column, nullable=True) for plan in each for column in plan.columns[:-1]]
    values: list[Expression] = [
        Column(plan.source, at, column.type, True, column.name)
        for plan in each
        for at, column in enumerate(plan.columns[:-1])
    ]
    if item.ordinality:
        columns.append(OutputColumn("ordinality", BIGINT, nullable=False))
        values.append(number)
    plan = Project(joined, scope.binding.new_source(), tuple(values), tuple(columns))
    name = item.alias or item.functions[0].call.name[-1]
    relation = relation_of_query(name, plan.source, plan.columns)
    return plan, aliased(relation, item.alias, item.column_aliases, item.position)


def _function_rows(scope: Scope, item: ast.FunctionRef) -> tuple[FunctionScan | Project, bool]:
    """Bind a function; return also whether its rows are single values.

    The alias names a single column: generate_series(1, 3) AS n.
    """
    name, scalar = item.call.name[-1], False
    plan: FunctionScan | Project
    if not is_built_in(item.call.name):
        plan, scalar = _one_row_of(scope, item), True
    elif wants_columns(item):
        scope.level.clause = Clause.FUNCTION_IN_FROM
        listed = record_scan(scope, item)
        plan = with_ordinality(listed) if item.ordinality else listed
    elif is_table_function(name):
        scope.level.clause = Clause.FUNCTION_IN_FROM
        operands = arguments_of(scope, item.call)
        scan, spread = _spread(function_scan(scope, name, operands, item.call.position))
        scalar = len(scan.columns) == 1 and not spread
        if scalar and scan.columns[0].name == name and item.alias is not None:
            scan = replace(scan, columns=(replace(scan.columns[0], name=item.alias),))
        if item.ordinality:
            scan = with_ordinality(scan)
        plan = scan
    else:
        plan, scalar = _one_row_of(scope, item), True
    return plan, scalar


def _spread(scan: FunctionScan) -> tuple[FunctionScan, bool]:
    """Give each field of rows that unnest returns a column; return also whether there are any."""
    types = tuple([each.type for each in scan.arguments])
    if scan.function.name != "unnest" or not any(map(is_array_of_rows, types)):
        return scan, False
    function = unnest_rows(types)
    columns = tuple([OutputColumn(*column) for column in function.columns])
    return replace(scan, function=function, columns=columns), True


def _one_row_of(scope: Scope, item: ast.FunctionRef) -> Project:
    """Bind an ordinary function as one row with one column."""
    scope.level.clause = Clause.FUNCTION_IN_FROM
    operand = scope.bind(item.call)
    assert not isinstance(operand, RowValue), "a call is no row"
    value = settled(scope.binding, operand)
    columns = [OutputColumn(item.alias or item.call.name[-1], value.type, value.nullable)]
    expressions: list[Expression] = [value]
    if item.ordinality:
        expressions.append(Constant(1, BIGINT))
        columns.append(OutputColumn("ordinality", BIGINT, nullable=False))
    return Project(OneRow(), scope.binding.new_source(), tuple(expressions), tuple(columns))

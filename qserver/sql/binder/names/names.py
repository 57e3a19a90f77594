"""Resolves column names: from `a`, `t.a` or `public.t.a` to an expression.

The innermost scope that knows the name decides. A name that is no column may be a relation's: `t`
alone is the row of t. Errors explain as much as possible: the table may exist under an alias, or
not be visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from qserver.errors import (
    AmbiguousAlias,
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    QserverError,
    UndefinedColumn,
    UndefinedTable,
)
from qserver.functions.catalog_functions import ROW_VERSION
from qserver.functions.row_marks import ROW_MARKS, row_mark
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause, refuse_column
from qserver.sql.binder.expressions.operands import Operand, RowValue
from qserver.sql.binder.names.relations import (
    AMBIGUOUS,
    AnyRelation,
    Path,
    Relation,
    key_of_row,
    sources_of,
)
from qserver.sql.binder.names.scope import Level, Scope
from qserver.sql.expressions import Apply, Case, Column, Constant, Expression, IsNull
from qserver.sql.walk import everything
from qserver.values.schema import Table
from qserver.values.types import OID, XID, Kind, SqlType

SEARCHED: Final = ("public", "pg_catalog")
"""The schemas of names that are written without one."""


def bind_name(scope: Scope, node: ast.Name) -> Operand:
    error = refuse_column(scope.level.clause)
    if error is not None:
        error.position = node.position + 1
        raise error
    parts = node.parts
    if len(parts) == 1:
        return _bare(scope, parts[0], node.position)
    if len(parts) > 3:
        parts = _in_this_database(scope, parts, node.position)
    relation = find_relation(scope, parts[:-1], node.position)
    if relation is None:
        raise missing_relation(scope, parts[:-1], node.position)
    return column_of(scope, relation, parts[-1], node.position)


def _in_this_database(scope: Scope, parts: tuple[str, ...], position: int) -> tuple[str, ...]:
    try:
        scope.binding.catalog.check_database(parts[:3])
    except FeatureNotSupported:
        raise FeatureNotSupported(
            f"cross-database references are not implemented: {'.'.join(parts)}",
            position=position + 1,
        ) from None
    return parts[1:]


def column_of(scope: Scope, relation: AnyRelation, name: str, position: int) -> Expression:
    at = relation.positions.get(name)
    if at is None:
        hidden = _system_column(scope, [relation], name)
        if hidden is not None:
            return hidden
        raise UndefinedColumn(
            f"column {relation.name}.{name} does not exist", position=position + 1, column=name
        )
    if at == AMBIGUOUS:
        raise ambiguous(name, position)
    return named(scope, relation.expression(at), position)


def named(scope: Scope, expression: Expression, position: int) -> Expression:
    """Record where the columns were named, in case grouping refuses them later."""
    if isinstance(expression, Column):
        scope.binding.remember(expression, position)
    else:
        for each in everything(expression):
            if isinstance(each, Column):
                scope.binding.remember(each, position)
    return expression


def _bare(scope: Scope, name: str, position: int) -> Operand:
    around: Scope | None = scope
    while around is not None:
        found = find_in(around, name, position)
        if found is not None:
            relation, at = found
            return named(scope, relation.expression(at), position)
        around = around.parent
    relation_of_that_name = find_relation(scope, (name,), position)
    if relation_of_that_name is not None:
        return whole_row(scope, relation_of_that_name, position)
    hidden = _system_column(scope, [each for each in scope.relations if each.by_column], name)
    if hidden is not None:
        return hidden
    raise _missing_column(scope.level, name, position)


_NOBODY: Final = Constant(0, OID)
_SYSTEM_COLUMNS: Final[Mapping[str, Expression]] = {
    "tableoid": _NOBODY,
    "xmin": Apply(ROW_VERSION, (), ROW_VERSION.returns, nullable=False),
    "xmax": Constant(0, XID),
    "cmin": Constant(0, SqlType(Kind.CID)),
    "cmax": Constant(0, SqlType(Kind.CID)),
}


_WITHOUT_MARKS: Final[Mapping[Clause | None, str]] = {
    Clause.CHECK: 'system column "{}" reference in check constraint is invalid',
    Clause.GENERATED: 'cannot use system column "{}" in column generation expression',
}
"""What is kept of a row may not follow from what changes with it."""


def _system_column(scope: Scope, relations: Sequence[AnyRelation], name: str) -> Expression | None:
    """Return a hidden column of a table. `tableoid` is its oid; that of the catalog is a tree."""
    tables = [each.table for each in relations if each.table is not None]
    if len(tables) != 1 or len(relations) != 1:
        return None
    (table,) = tables
    if table.id >= 0 and name in ROW_MARKS:
        if scope.level.clause in _WITHOUT_MARKS:
            shown = _WITHOUT_MARKS[scope.level.clause].format(name)
            raise InvalidColumnReference(shown)
        return _mark(relations[0], table, name)
    if name != "tableoid":
        return _SYSTEM_COLUMNS.get(name)
    return Constant(-table.id if table.id < 0 else table.oid, OID)


def _mark(relation: AnyRelation, table: Table, name: str) -> Expression:
    """Return what stands for a row's version or place; NULL where an outer join has no row."""
    (source,) = sources_of(relation)
    places = table.primary_key if name == "ctid" else range(len(table.columns))
    about = [(at, table.columns[at]) for at in places]
    shown = f"{relation.name}.{name}"
    items = tuple([Column(source, at, each.type, each.nullable, shown) for at, each in about])
    function = row_mark(name, tuple([each.type for _, each in about]))
    mark = Apply(function, items, function.returns, nullable=False)
    key = key_of_row(relation) if relation.nullable else None
    if key is None:
        return mark
    nothing = Constant(None, function.returns)
    return Case(((IsNull(key), nothing),), mark, function.returns)


def find_in(scope: Scope, name: str, position: int) -> tuple[AnyRelation, int] | None:
    """Return the relation of one scope that has a column of that name, and its position."""
    found: tuple[AnyRelation, int] | None = None
    for relation in scope.relations:
        if relation.by_column:
            at = relation.positions.get(name)
            if at is not None:
                if found is not None or at == AMBIGUOUS:
                    raise ambiguous(name, position)
                found = relation, at
    return found


def find_relation(scope: Scope | None, name: tuple[str, ...], position: int) -> AnyRelation | None:
    """Return the visible relation of a name, which may have its schema in front."""
    if scope is not None and len(name) > 2:
        name = _in_this_database(scope, name, position)
    while scope is not None:
        if len(name) == 1:
            found = [each for each in scope.relations if each.by_name and each.name == name[0]]
        else:
            found = [
                each
                for each in scope.relations
                if each.by_name and not each.aliased and each.path == name
            ]
        if len(found) > 1:
            raise AmbiguousAlias(
                f'table reference "{name[-1]}" is ambiguous', position=position + 1
            )
        if found:
            return found[0]
        scope = scope.parent
    return None


def whole_row(scope: Scope, relation: AnyRelation, position: int) -> Operand:
    if isinstance(relation, Relation) and relation.scalar:
        return named(scope, relation.expression(0), position)
    items = tuple(
        [named(scope, _as_part_of_row(relation, at), position) for at in range(len(relation.names))]
    )
    key = key_of_row(relation) if relation.nullable else None
    present = None if key is None else named(scope, key, position)
    names = tuple(relation.row_names)
    about = relation.nullable, relation, present, relation.row_oid
    return RowValue(items, position, names, *about)


def _as_part_of_row(relation: AnyRelation, at: int) -> Expression:
    """Return a column that errors name by its row."""
    expression = relation.expression(at)
    if isinstance(expression, Column):
        return replace(expression, name=f"{relation.name}.*")
    return expression


# --- errors --------------------------------------------------------------------------------------


def ambiguous(name: str, position: int) -> AmbiguousColumn:
    return AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position + 1)


def missing_relation(scope: Scope, name: tuple[str, ...], position: int) -> QserverError:
    """Return the error for a name without a visible relation; there may be an invisible one."""
    last = name[-1]
    level: Level | None = scope.level
    while level is not None:
        for relation in level.entries:
            if relation.path is not None and relation.aliased and _may_mean(name, relation.path):
                return UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{last}"',
                    hint=f'Perhaps you meant to reference the table alias "{relation.name}".',
                    position=position + 1,
                )
            if relation.name == last:
                return UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{last}"',
                    hint=f'There is an entry for table "{last}", but it cannot be referenced '
                    "from this part of the query.",
                    position=position + 1,
                )
        level = level.parent
    return UndefinedTable(f'missing FROM-clause entry for table "{last}"', position=position + 1)


def _may_mean(name: tuple[str, ...], path: Path) -> bool:
    return name == path or (len(name) == 1 and path[0] in SEARCHED and name[0] == path[1])


def _missing_column(level: Level | None, name: str, position: int) -> UndefinedColumn:
    hint = None
    while level is not None and hint is None:
        for relation in level.entries:
            if name in relation.positions:
                hint = (
                    f'There is a column named "{name}" in table "{relation.name}", '
                    "but it cannot be referenced from this part of the query."
                )
                break
        level = level.parent
    return UndefinedColumn(
        f'column "{name}" does not exist', hint=hint, position=position + 1, column=name
    )

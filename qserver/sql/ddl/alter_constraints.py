"""ALTER TABLE … ADD, DROP and RENAME CONSTRAINT."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from qserver.errors import InvalidTableDefinition, UndefinedObject, WrongObjectType
from qserver.sql import ast
from qserver.sql.ddl.constraints import (
    deferral_of,
    key_columns,
    referenced_index,
    require_new_constraint,
    with_check,
    with_foreign_key,
    with_unique,
)
from qserver.sql.ddl.create_table import check_definition
from qserver.sql.ddl.dependencies import (
    Dependent,
    foreign_key_dependent,
    require_no_dependents,
    view_dependent,
    with_hanging,
)
from qserver.sql.ddl.names import choose_relation_name, constraint_names, require_free
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.rewrite import (
    build_index,
    name_of,
    require_check,
    require_no_null,
    reshaped,
    rewrite,
    with_new_trees,
)
from qserver.sql.ddl.view_texts import is_unharmed, views_using
from qserver.values.constraints import ForeignKey
from qserver.values.identifiers import catalog_key
from qserver.values.schema import Index, Table


def add_constraint(
    work: DdlPort, table: Table, constraint: ast.Constraint, column: str | None = None
) -> DdlSteps:
    """Add a constraint; `column` is the column that it is part of, if any."""
    match constraint.kind:
        case "primary key":
            columns = constraint.columns or ((column,) if column is not None else ())
            yield from _add_primary_key(work, table, constraint, columns)
        case "unique":
            columns = constraint.columns or ((column,) if column is not None else ())
            new, index = with_unique(work, table, constraint, columns)
            yield from build_index(work, new, index)
            work.transaction.define(table.key, new)
        case "check":
            assert constraint.expression is not None
            new, check = with_check(work, table, constraint, column)
            work.transaction.define(table.key, new)
            yield from check_definition(work, new)
            if "not valid" not in constraint.attributes:
                yield from require_check(work, new, check.name, constraint.expression)
        case "foreign key":
            new, key = with_foreign_key(work, table, constraint, column)
            work.transaction.define(table.key, new)
            if "not valid" not in constraint.attributes:
                work.require_read(new)
                yield from work.statements.check_foreign_key(new, key)
        case kind:
            raise AssertionError(f"{kind} is no constraint of a table")
    return 0


def _add_primary_key(
    work: DdlPort, table: Table, constraint: ast.Constraint, columns: tuple[str, ...]
) -> DdlSteps:
    """Move the rows to a tree whose key is the primary key."""
    if not table.has_row_id:
        raise InvalidTableDefinition(
            f'multiple primary keys for table "{table.name}" are not allowed', table=table.name
        )
    positions = key_columns(table.columns, columns, "primary key", table.name)
    if constraint.name is not None:
        require_new_constraint(table, constraint.name)
        require_free(work, catalog_key(table.schema, constraint.name))
    name = constraint.name or choose_relation_name(work, table.schema, (table.name,), "pkey")
    for column in columns:
        yield from require_no_null(work, table, column)
    visible = tuple(
        replace(column, nullable=column.nullable and at not in positions)
        for at, column in enumerate(table.columns[:-1])
    )
    new = with_new_trees(
        work, replace(table, columns=visible, primary_key=positions, primary_key_name=name)
    )
    yield from _build_key(work, table, new)
    kept = [(column.name, name_of(column.name)) for column in visible if column.generated is None]
    yield from rewrite(work, table, new, kept)
    return 0


def _build_key(work: DdlPort, table: Table, new: Table) -> DdlSteps:
    """Refuse a key that is not unique with CREATE INDEX's error, before rows are moved."""
    number = work.transaction.next_tree(table.schema)
    index = Index(number, new.primary_key_name, new.primary_key, unique=True)
    yield from build_index(work, table.with_index(index), index)
    work.transaction.drop_trees(index.id)
    return 0


# --- DROP and RENAME CONSTRAINT ------------------------------------------------------------------


def drop_constraint(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    name = action.name
    if name not in constraint_names(table):
        if action.if_exists:
            work.skip(_missing(table, name).message)
            return 0
        raise _missing(table, name)
    checks = tuple(each for each in table.checks if each.name != name)
    keys = tuple(each for each in table.foreign_keys if each.name != name)
    if checks != table.checks or keys != table.foreign_keys:
        work.transaction.define(table.key, replace(table, checks=checks, foreign_keys=keys))
        return 0
    yield from _release(work, table, name, action.cascade)
    table = work.table_now(table.key)
    if name == table.primary_key_name:
        yield from drop_primary_key(work, table)
    else:
        work.transaction.drop_trees(table.index(name).id)
        work.transaction.define(table.key, table.without_index(name))
    return 0


def _release(work: DdlPort, table: Table, name: str, cascade: bool) -> DdlSteps:
    """Refuse or drop the foreign keys and views that depend on this constraint."""
    found = []
    if name == table.primary_key_name:
        found += yield from _grouped_by_key(work, table)
    for other in work.transaction.catalog.definitions():
        if isinstance(other, Table):
            for key in other.foreign_keys:
                if key.table == table.key and _guard(table, key) == name:
                    dependent = foreign_key_dependent(other, key.name)
                    found.append(replace(dependent, on=f"index {name}"))
    require_no_dependents(work, f"constraint {name} on table {table.name}", found, cascade)
    return 0


def _grouped_by_key(work: DdlPort, table: Table) -> Generator[Any, Any, list[Dependent]]:
    """Return the views that GROUP BY the primary key, and name other columns: each is tried."""
    found = []
    keyless = reshaped(table, table.columns, lambda at: at, keyless=True)
    work.transaction.define(table.key, keyless)
    for view in views_using(work, table.key):
        if not (yield from is_unharmed(work, view)):
            found.append(view_dependent(view))
    work.transaction.define(table.key, table)
    return with_hanging(work, found)


def _guard(table: Table, key: ForeignKey) -> str | None:
    """Return the name of the constraint that makes the referenced columns unique."""
    found = referenced_index(table, key.referenced)
    if isinstance(found, Index):
        return found.name
    return None if found is None else table.primary_key_name


def drop_primary_key(work: DdlPort, table: Table) -> DdlSteps:
    """Replace the key by a hidden row id; the columns stay NOT NULL."""
    new = reshaped(table, table.columns, lambda at: at, keyless=True)
    kept = [
        (column.name, name_of(column.name)) for column in table.columns if column.generated is None
    ]
    yield from rewrite(work, table, with_new_trees(work, new), kept)
    return 0


def validate_constraint(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    """Check the existing rows against a CHECK or a FOREIGN KEY that was added NOT VALID."""
    _require_constraint(table, action.name)
    for check in table.checks:
        if check.name == action.name:
            condition = work.statements.parse_expression(check.text)
            yield from require_check(work, table, check.name, *condition)
            checks = [replace(each, valid=each.valid or each is check) for each in table.checks]
            work.transaction.define(table.key, replace(table, checks=tuple(checks)))
    for key in table.foreign_keys:
        if key.name == action.name:
            work.require_read(table)
            yield from work.statements.check_foreign_key(table, key)
    return 0


def alter_constraint(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    """Change when a foreign key is checked; others hold at the end of each statement."""
    _require_constraint(table, action.name)
    assert action.constraint is not None
    deferral = deferral_of(action.constraint.attributes)
    if deferral == "deferred" and all(key.name != action.name for key in table.foreign_keys):
        raise WrongObjectType(
            f'constraint "{action.name}" of relation "{table.name}" is not a foreign key constraint'
        )
    keys = tuple(
        replace(each, deferral=deferral) if each.name == action.name else each
        for each in table.foreign_keys
    )
    if keys != table.foreign_keys:
        work.transaction.define(table.key, replace(table, foreign_keys=keys))
    return 0
    yield


def _require_constraint(table: Table, name: str) -> None:
    if name not in constraint_names(table):
        raise _missing(table, name)


def rename_constraint(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    old, new = action.name, action.new_name
    if old not in constraint_names(table):
        raise _missing(table, old)
    require_new_constraint(table, new)
    work.transaction.define(table.key, _renamed(work, table, old, new))
    return 0
    yield


def _renamed(work: DdlPort, table: Table, old: str, new: str) -> Table:
    key = catalog_key(table.schema, new)
    if old == table.primary_key_name:
        require_free(work, key)
        return replace(table, primary_key_name=new)
    if any(index.name == old for index in table.indexes):
        require_free(work, key)
    return replace(
        table,
        checks=tuple(
            replace(each, name=new) if each.name == old else each for each in table.checks
        ),
        foreign_keys=tuple(
            replace(each, name=new) if each.name == old else each for each in table.foreign_keys
        ),
        indexes=tuple(
            replace(each, name=new) if each.name == old else each for each in table.indexes
        ),
    )


def _missing(table: Table, name: str) -> UndefinedObject:
    return UndefinedObject(
        f'constraint "{name}" of relation "{table.name}" does not exist', table=table.name
    )

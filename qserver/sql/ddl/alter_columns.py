"""ALTER TABLE … ADD, DROP, RENAME and ALTER COLUMN."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from qserver.errors import (
    CannotCoerce,
    DatatypeMismatch,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidColumnDefinition,
    InvalidTableDefinition,
    NotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
)
from qserver.sql import ast
from qserver.sql.ddl.alter_constraints import add_constraint
from qserver.sql.ddl.columns import (
    check_generated,
    define_column,
    require_counting_type,
    sequence_for,
    with_default,
)
from qserver.sql.ddl.constraints import check_referenced, require_order
from qserver.sql.ddl.create_table import check_definition
from qserver.sql.ddl.dependencies import drop_definition, owned_sequences
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.removal import drop_column_of, needs_column
from qserver.sql.ddl.rewrite import (
    Moved,
    name_of,
    require_no_null,
    reshaped,
    rewrite,
    try_default,
    with_new_trees,
)
from qserver.sql.ddl.sequences import alter_sequence
from qserver.sql.ddl.texts import mentions, rename_column_in
from qserver.sql.ddl.view_texts import follow_added, follow_column
from qserver.sql.ddl.words import kept_collation
from qserver.values.casts import assignment_function
from qserver.values.relations import Sequence, View
from qserver.values.schema import Column, Table
from qserver.values.types import SqlType


def add_column(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    node = action.column
    assert node is not None
    if node.name in table.positions:
        if action.if_exists:
            work.skip(_exists(table, node.name).message, _exists(table, node.name).code)
            return 0
        raise _exists(table, node.name)
    defined = define_column(work, table.schema, table.name, node)
    column = defined.column
    for constraint in node.constraints:
        if constraint.kind == "generated":
            check_generated((*table.columns, column), column.name, constraint.expression)
    if column.generated is not None:
        work.require_read(table)
    visible = [each for each in table.columns if not each.hidden]
    hidden = [each for each in table.columns if each.hidden]
    kept = [each.name for each in visible if each.generated is None]
    at = len(visible)
    columns = (*visible, column, *hidden)
    new = with_new_trees(work, reshaped(table, columns, lambda was: was + (was >= at)))
    rows = yield from rewrite(work, table, new, [(name, name_of(name)) for name in kept])
    if rows == 0 and column.default is not None and "nextval" not in column.default:
        yield from try_default(work, table.schema, column)
    yield from check_definition(work, new)
    for constraint in defined.constraints:
        yield from add_constraint(work, work.table_now(table.key), constraint, column.name)
    known = [each.name for each in visible]
    yield from follow_added(work, work.table_now(table.key), known, column.name)
    return 0


def drop_column(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    if action.name not in table.positions:
        if action.if_exists:
            work.skip(_missing(table, action.name).message)
            return 0
        raise _missing(table, action.name)
    yield from drop_column_of(work, table, action.name, action.cascade)
    return 0


def rename_column(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    old, new = action.name, action.new_name
    if old not in table.positions:
        raise UndefinedColumn(f'column "{old}" does not exist', table=table.name, column=old)
    at = table.positions[old]
    if new in table.positions:
        raise _exists(table, new)
    renamed = rename_column_in(replace_column(table, at, name=new), old, new)
    work.transaction.define(table.key, renamed)
    for other in work.transaction.catalog.definitions():
        if isinstance(other, Table):
            _rename_referenced(work, other, table.key, old, new)
        elif isinstance(other, Sequence) and other.owner == (table.key, old):
            work.transaction.define(other.key, replace(other, owner=(table.key, new)))
    yield from follow_column(work, renamed, old, new)
    yield from check_definition(work, work.table_now(table.key))
    return 0
    yield


def _rename_referenced(work: DdlPort, other: Table, table: str, old: str, new: str) -> None:
    keys = tuple(
        replace(key, referenced=tuple(new if each == old else each for each in key.referenced))
        if key.table == table
        else key
        for key in other.foreign_keys
    )
    if keys != other.foreign_keys:
        work.transaction.define(other.key, replace(other, foreign_keys=keys))


# --- ALTER COLUMN --------------------------------------------------------------------------------


def set_default(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at = _position(table, action.name)
    column = table.columns[at]
    _require_plain(table, column)
    columns = list(table.columns)
    columns[at] = with_default(work, column, action.expression, action.text)
    changed = replace(table, columns=tuple(columns))
    work.transaction.define(table.key, changed)
    yield from check_definition(work, changed)
    return 0
    yield


def drop_default(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at = _position(table, action.name)
    _require_plain(table, table.columns[at])
    work.transaction.define(table.key, replace_column(table, at, default=None, sequence=None))
    return 0
    yield


def _require_plain(table: Table, column: Column) -> None:
    """Refuse a DEFAULT for an identity or generated column."""
    if column.identity is not None:
        raise SqlSyntaxError(
            f'column "{column.name}" of relation "{table.name}" is an identity column'
        )
    if column.generated is not None:
        raise SqlSyntaxError(
            f'column "{column.name}" of relation "{table.name}" is a generated column'
        )


def set_not_null(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at = _position(table, action.name)
    yield from require_no_null(work, table, action.name)
    work.transaction.define(table.key, replace_column(table, at, nullable=False))
    return 0


def drop_not_null(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at = _position(table, action.name)
    if at in table.primary_key:
        raise InvalidTableDefinition(
            f'column "{action.name}" is in a primary key', table=table.name, column=action.name
        )
    if table.columns[at].identity is not None:
        raise SqlSyntaxError(
            f'column "{action.name}" of relation "{table.name}" is an identity column'
        )
    work.transaction.define(table.key, replace_column(table, at, nullable=True))
    return 0
    yield


def change_type(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    """Rewrite every row, with the column cast or computed by USING."""
    assert action.type is not None
    at = _position(table, action.name)
    sql_type = work.column_type(action.type)
    identity = table.columns[at].identity is not None
    if identity:
        require_counting_type(sql_type)
    _require_cast(table.columns[at], sql_type, action)
    yield from _check_using(work, table, table.columns[at], sql_type, action)
    _check_default(table.columns[at], sql_type)
    yield from _require_unused(work, table, action.name)
    collation = kept_collation(action.collation, sql_type)
    changed = replace_column(table, at, type=sql_type, collation=collation)
    if sql_type == table.columns[at].type and action.expression is None:
        if changed != table:
            work.transaction.define(table.key, changed)
        return 0
    work.require_read(table)
    new = with_new_trees(work, changed)
    _check_foreign_keys(work, new)
    moved: list[Moved] = [
        (column.name, name_of(column.name))
        for column in table.columns
        if not column.hidden and column.generated is None
    ]
    if action.expression is not None:
        moved = [
            (name, action.expression if name == action.name else expression)
            for name, expression in moved
        ]
    try:
        yield from rewrite(work, table, new, moved)
    except DatatypeMismatch:
        raise _no_automatic_cast(table.columns[at], str(sql_type), action) from None
    if at in new.primary_key or any(at in index.columns for index in new.indexes):
        require_order(new.columns[at])
    yield from check_definition(work, new)
    if identity:
        for sequence in owned_sequences(work, table.key, action.name):
            alter_sequence(work, sequence, (("as", action.type),))
    return 0


def _require_cast(column: Column, sql_type: SqlType, action: ast.AlterAction) -> None:
    """Require that the values can be assigned to the new type, if USING does not make others."""
    if action.expression is not None:
        if column.generated is not None:
            raise InvalidColumnDefinition(
                "cannot specify USING when altering type of generated column",
                detail=f'Column "{column.name}" is a generated column.',
            )
        return
    try:
        assignment_function(column.type, sql_type)
    except CannotCoerce:
        raise _no_automatic_cast(column, str(sql_type), action) from None


def _check_using(
    work: DdlPort, table: Table, column: Column, sql_type: SqlType, action: ast.AlterAction
) -> Generator[Any, Any, None]:
    """Raise the errors of USING: they come before those of what depends on the column."""
    using = action.expression
    if using is None:
        return
    assert action.type is not None
    if _lacks_type(using):
        using = ast.Cast(using, action.type)
    select = ast.Select((ast.Target(ast.Transform(using)),), (ast.TableRef(table.path),))
    made = yield from work.statements.columns_of(ast.Query(select), work.literals)
    try:
        assignment_function(made[0].type, sql_type)
    except CannotCoerce:
        raise _no_automatic_cast(column, str(sql_type), action) from None


def _lacks_type(node: ast.Expression) -> bool:
    """Whether it is a quoted literal or NULL, which is read as the type of its place."""
    if isinstance(node, ast.Literal):
        return node.kind == "text"
    return isinstance(node, ast.Constant) and node.value is None


def _check_default(column: Column, sql_type: SqlType) -> None:
    """Require that the default can be assigned to the new type."""
    if column.default is None:
        return
    try:
        assignment_function(column.type, sql_type)
    except CannotCoerce:
        raise DatatypeMismatch(
            f'default for column "{column.name}" cannot be cast automatically to type {sql_type}'
        ) from None


def _check_foreign_keys(work: DdlPort, new: Table) -> None:
    """Require that foreign keys to and from the table still compare comparable types."""
    for other in work.transaction.catalog.definitions():
        if isinstance(other, Table):
            table = new if other.key == new.key else other
            for key in table.foreign_keys:
                target = new if key.table == new.key else work.table_now(key.table)
                if new in (table, target):
                    check_referenced(table, target, key)


def _no_automatic_cast(column: Column, sql_type: str, action: ast.AlterAction) -> DatatypeMismatch:
    if action.expression is not None:
        return DatatypeMismatch(
            f'result of USING clause for column "{column.name}" cannot be cast automatically'
            f" to type {sql_type}",
            hint="You might need to add an explicit cast.",
        )
    return DatatypeMismatch(
        f'column "{column.name}" cannot be cast automatically to type {sql_type}',
        hint=f'You might need to specify "USING {column.name}::{sql_type}".',
    )


def _require_unused(work: DdlPort, table: Table, column: str) -> Generator[Any, Any, None]:
    for each in table.columns:
        if each.hidden or each.generated is None or not mentions(each.generated, column):
            continue  # what an index computes follows the type
        raise FeatureNotSupported(
            "cannot alter type of a column used by a generated column",
            detail=f'Column "{column}" is used by generated column "{each.name}".',
        )
    for other in work.transaction.catalog.definitions():
        if not isinstance(other, View) or table.key not in other.uses:
            continue
        if (yield from needs_column(work, other, table, column)):
            raise FeatureNotSupported(
                "cannot alter type of a column used by a view or rule",
                detail=f'view {other.name} depends on column "{column}"',
            )


# --- identity and generation ---------------------------------------------------------------------


def add_identity(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at, constraint = _position(table, action.name), action.constraint
    column = table.columns[at]
    assert constraint is not None
    what = f'column "{column.name}" of relation "{table.name}"'
    if column.nullable:
        raise NotInPrerequisiteState(
            f"{what} must be declared NOT NULL before identity can be added"
        )
    if column.identity is not None:
        raise NotInPrerequisiteState(f"{what} is already an identity column")
    if column.default is not None:
        raise NotInPrerequisiteState(f"{what} already has a default value")
    sequence = sequence_for(
        work, table.schema, table.name, column.name, column.type, constraint.options
    )
    identity = constraint.kind.removeprefix("identity ")
    changed = replace_column(table, at, identity=identity, sequence=sequence.key)
    work.transaction.define(table.key, changed)
    return 0
    yield


def alter_identity(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    """Change when an identity column takes a number, and the options of its sequence."""
    at = _position(table, action.name)
    column = table.columns[at]
    if column.identity is None or column.sequence is None:
        raise _no_identity(table, action.name)
    if action.text:
        work.transaction.define(table.key, replace_column(table, at, identity=action.text))
    if action.options:
        sequence = work.find(column.sequence)
        assert isinstance(sequence, Sequence)
        alter_sequence(work, sequence, action.options)
    return 0
    yield


def _no_identity(table: Table, column: str) -> NotInPrerequisiteState:
    return NotInPrerequisiteState(
        f'column "{column}" of relation "{table.name}" is not an identity column'
    )


def drop_identity(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    at = _position(table, action.name)
    if table.columns[at].identity is None:
        if action.if_exists:
            work.skip(_no_identity(table, action.name).message)
            return 0
        raise _no_identity(table, action.name)
    changed = replace_column(table, at, identity=None, sequence=None)
    work.transaction.define(table.key, changed)
    for sequence in owned_sequences(work, table.key, action.name):
        drop_definition(work, sequence.key)
    return 0
    yield


def drop_expression(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    """Turn a generated column into an ordinary one, which keeps its values."""
    at = _position(table, action.name)
    if table.columns[at].generated is None:
        text = f'column "{action.name}" of relation "{table.name}" is not a stored generated column'
        if action.if_exists:
            work.skip(text)
            return 0
        raise NotInPrerequisiteState(text)
    work.transaction.define(table.key, replace_column(table, at, generated=None))
    return 0
    yield


# --- shared --------------------------------------------------------------------------------------


def replace_column(table: Table, at: int, **changes: object) -> Table:
    columns = list(table.columns)
    columns[at] = replace(columns[at], **changes)  # type: ignore[arg-type]
    return replace(table, columns=tuple(columns))


def _position(table: Table, name: str) -> int:
    if name not in table.positions:
        raise _missing(table, name)
    return table.positions[name]


def _missing(table: Table, name: str) -> UndefinedColumn:
    return UndefinedColumn(
        f'column "{name}" of relation "{table.name}" does not exist',
        table=table.name,
        column=name,
    )


def _exists(table: Table, name: str) -> DuplicateColumn:
    return DuplicateColumn(
        f'column "{name}" of relation "{table.name}" already exists',
        table=table.name,
        column=name,
    )

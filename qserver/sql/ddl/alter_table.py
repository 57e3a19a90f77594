"""ALTER TABLE: runs its actions in order; also RENAME and SET SCHEMA of any relation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from qserver.errors import (
    DuplicateTable,
    FeatureNotSupported,
    UndefinedTable,
    WrongObjectType,
)
from qserver.sql import ast
from qserver.sql.ddl.alter_columns import (
    add_column,
    add_identity,
    alter_identity,
    change_type,
    drop_column,
    drop_default,
    drop_expression,
    drop_identity,
    drop_not_null,
    rename_column,
    set_default,
    set_not_null,
)
from qserver.sql.ddl.alter_constraints import (
    add_constraint,
    alter_constraint,
    drop_constraint,
    rename_constraint,
    validate_constraint,
)
from qserver.sql.ddl.alter_types import alter_type
from qserver.sql.ddl.constraints import require_new_constraint
from qserver.sql.ddl.dependencies import owned_sequences
from qserver.sql.ddl.named_in_texts import with_other_name
from qserver.sql.ddl.names import (
    is_taken,
    missing,
    new_place,
    require_free,
    require_schema,
)
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.sequences import alter_sequence
from qserver.sql.ddl.switches import cluster_on, replica_index, set_place, switch
from qserver.sql.ddl.view_texts import follow_column, follow_relation, views_using
from qserver.sql.ddl.views import rename_view_column, set_view_default, set_view_options
from qserver.sql.ddl.words import check_table_options
from qserver.values.enumeration import Enumeration
from qserver.values.extensions import Extension
from qserver.values.identifiers import catalog_key, qualified
from qserver.values.relations import Definition, Schema, Sequence, View, kind_of
from qserver.values.schema import Table
from qserver.values.shared_comments import SharedComment
from qserver.values.temporary import TEMPORARY

Relation = Table | View | Sequence
Moved = Generator[Any, Any, Relation]
Action = Callable[[DdlPort, Any, ast.AlterAction], DdlSteps | None]
"""Given the relation as it is now; None if all is done at once."""


def alter_table(work: DdlPort, node: ast.AlterTable) -> DdlSteps:
    if node.what == "type":
        return (yield from _alter_type(work, node, work.find(work.key(node.name))))
    if node.what == "schema":
        return _alter_schema(work, node)
    key = work.key(node.name)
    if node.what == "index" or _is_index(work, key):
        return (yield from _alter_index(work, node))
    definition = work.find(key)
    if definition is None or isinstance(
        definition, Enumeration | Extension | Schema | SharedComment
    ):
        if node.if_exists:
            return _skipped(work, node)
        raise _missing(node)
    _require_kind(definition, node.what)
    for action in node.actions:
        now = work.find(definition.key)
        assert isinstance(now, Table | View | Sequence)
        if action.kind in _MOVES:
            definition = yield from _MOVES[action.kind](work, now, action)
        else:
            act = _OF_ALL.get(action.kind) or _OF_KIND[type(now)].get(action.kind)
            if act is None:
                raise _not_for(now, action)
            steps = act(work, now, action)
            if steps is not None:
                yield from steps
        yield  # each action visits all columns, and may plan and run a statement
    return 0


def _alter_type(work: DdlPort, node: ast.AlterTable, definition: Definition | None) -> DdlSteps:
    if not isinstance(definition, Enumeration):
        raise missing("type", node.name)
    for action in node.actions:
        yield from alter_type(work, definition, action)
        yield
    return 0


def _alter_schema(work: DdlPort, node: ast.AlterTable) -> int:
    """Accept an owner, as dumps have it; every object belongs to the one role."""
    require_schema(work, node.name[-1])
    if any(action.kind != "owner" for action in node.actions):
        raise FeatureNotSupported("ALTER SCHEMA can only change the owner")
    return 0


def _set_options(
    work: DdlPort, definition: Table | View | Sequence, action: ast.AlterAction
) -> DdlSteps:
    """Accept storage options of a table without effect; a view's check_option has one."""
    if isinstance(definition, View) and action.kind == "reset options":
        if any(name == "check_option" for name, _ in action.words):
            raise FeatureNotSupported(
                "the CHECK OPTION of a view cannot be reset", hint="Use CREATE OR REPLACE VIEW."
            )
    elif isinstance(definition, View):
        yield from set_view_options(work, definition, action.words)
    else:
        check_table_options(action.words)
    return 0


def _without_effect(work: DdlPort, relation: Relation, action: ast.AlterAction) -> None:
    """What is about PostgreSQL's storage or users."""


def _alter_sequence(work: DdlPort, sequence: Sequence, action: ast.AlterAction) -> None:
    alter_sequence(work, sequence, action.options)


def _rename_view_column(work: DdlPort, view: View, action: ast.AlterAction) -> DdlSteps:
    renamed = rename_view_column(work, view, action)
    yield from follow_column(work, renamed, action.name, action.new_name)
    return 0


def _add_constraint(work: DdlPort, table: Table, action: ast.AlterAction) -> DdlSteps:
    assert action.constraint is not None
    return (yield from add_constraint(work, table, action.constraint))


def _options_of_table(work: DdlPort, table: Table, action: ast.AlterAction) -> None:
    raise WrongObjectType(f'"{table.name}" is not a sequence')


_OF_TABLE: Final[Mapping[str, Action]] = {
    "add column": add_column,
    "drop column": drop_column,
    "rename column": rename_column,
    "set default": set_default,
    "drop default": drop_default,
    "set not null": set_not_null,
    "drop not null": drop_not_null,
    "type": change_type,
    "cluster on": cluster_on,
    "replica index": replica_index,
    "add constraint": _add_constraint,
    "drop constraint": drop_constraint,
    "rename constraint": rename_constraint,
    "validate constraint": validate_constraint,
    "alter constraint": alter_constraint,
    "add identity": add_identity,
    "alter identity": alter_identity,
    "drop identity": drop_identity,
    "drop expression": drop_expression,
    "options": _options_of_table,
}
_OF_SEQUENCE: Final[Mapping[str, Action]] = {"options": _alter_sequence}
_OF_VIEW: Final[Mapping[str, Action]] = {
    "rename column": _rename_view_column,
    "set default": set_view_default,
    "drop default": set_view_default,
}
_OF_KIND: Final = {Table: _OF_TABLE, Sequence: _OF_SEQUENCE, View: _OF_VIEW}
_OF_ALL: Final[Mapping[str, Action]] = {
    "nothing": _without_effect,
    "owner": _without_effect,
    "set options": _set_options,
    "reset options": _set_options,
    "set place": set_place,
    "switch": switch,
}


def _skipped(work: DdlPort, node: ast.AlterTable) -> int:
    work.skip(f'relation "{node.name[-1]}" does not exist')
    return 0


def _missing(node: ast.AlterTable) -> UndefinedTable:
    return UndefinedTable(f'relation "{".".join(node.name)}" does not exist', table=node.name[-1])


def _require_kind(definition: Definition, what: str) -> None:
    """Refuse ALTER VIEW or ALTER SEQUENCE of another kind; ALTER TABLE accepts any relation."""
    if what in ("view", "sequence") and kind_of(definition) != what:
        raise WrongObjectType(f'"{definition.name}" is not a {what}')


def _not_for(definition: Definition, action: ast.AlterAction) -> WrongObjectType:
    return WrongObjectType(
        f'ALTER action {action.kind.upper()} cannot be performed on relation "{definition.name}"',
        detail=f"This operation is not supported for {kind_of(definition)}s.",
    )


# --- RENAME --------------------------------------------------------------------------------------


def _move(
    work: DdlPort, old: Relation, schema: str, name: str, *, is_rename: bool = False
) -> Moved:
    """Give a relation another name or another schema, and update all references to it."""
    new = replace(old, schema=schema, name=name)
    if schema == old.schema and name == old.name and not is_rename:
        return old
    if schema != old.schema:
        _require_room(work, new)
    else:
        require_free(work, new.key)
    users = views_using(work, old.key)
    work.transaction.define(old.key, None)
    work.transaction.define(new.key, new)
    for other in list(work.transaction.catalog.definitions()):
        if isinstance(old, Sequence) and isinstance(other, Table | View):
            _follow_sequence(work, other, old, new)
        elif isinstance(other, Table):
            _follow_in_table(work, other, old, new)
        elif isinstance(other, Sequence) and other.owner is not None and other.owner[0] == old.key:
            work.transaction.define(other.key, replace(other, owner=(new.key, other.owner[1])))
    if isinstance(old, Table | View) and isinstance(new, Table | View):
        yield from follow_relation(work, users, old, new)
    if schema != old.schema:
        for sequence in owned_sequences(work, new.key):
            yield from _move(work, sequence, schema, sequence.name)
    return new


def _rename(work: DdlPort, relation: Relation, action: ast.AlterAction) -> Moved:
    return _move(work, relation, relation.schema, action.new_name, is_rename=True)


def _set_schema(work: DdlPort, relation: Relation, action: ast.AlterAction) -> Moved:
    if TEMPORARY in (action.new_name, relation.schema) and action.new_name != relation.schema:
        raise FeatureNotSupported("cannot move objects into or out of temporary schemas")
    if isinstance(relation, Sequence) and relation.owner is not None:
        raise FeatureNotSupported(
            "cannot move an owned sequence into another schema",
            detail=f'Sequence "{relation.name}" is linked to a table, and moves with it.',
        )
    schema, _ = new_place(work, (action.new_name, relation.name))
    return _move(work, relation, schema, relation.name)


_MOVES: Final = {"rename": _rename, "set schema": _set_schema}


def _require_room(work: DdlPort, relation: Relation) -> None:
    """Require that the relation's name and its indexes' names are free in the new schema."""
    names = [relation.name]
    if isinstance(relation, Table):
        names += [relation.primary_key_name, *(index.name for index in relation.indexes)]
    for name in filter(None, names):
        if is_taken(work, catalog_key(relation.schema, name)):
            raise DuplicateTable(
                f'relation "{name}" already exists in schema "{relation.schema}"', table=name
            )


def _follow_in_table(work: DdlPort, table: Table, old: Relation, new: Relation) -> None:
    """Update a table's references to a renamed relation."""
    changed = table
    if isinstance(new, Table):
        keys = tuple(
            replace(key, table=new.key) if key.table == old.key else key
            for key in table.foreign_keys
        )
        changed = replace(changed, foreign_keys=keys)
    if changed != table:
        work.transaction.define(table.key, changed)


def _follow_sequence(work: DdlPort, user: Table | View, old: Sequence, new: Relation) -> None:
    """Write the new name of a sequence where the texts of a table or view name it."""
    written = qualified(new.schema, new.name).replace("'", "''")
    changed = with_other_name(work.statements, user, old, f"'{written}'")
    if isinstance(changed, View):
        defaults = tuple(
            (name, text, new.key if owner == old.key else owner)
            for name, text, owner in changed.defaults
        )
        changed = replace(changed, defaults=defaults)
    else:
        columns = tuple(
            replace(column, sequence=new.key) if column.sequence == old.key else column
            for column in changed.columns
        )
        changed = replace(changed, columns=columns)
    if changed != user:
        work.transaction.define(user.key, changed)


# --- indexes -------------------------------------------------------------------------------------


def _is_index(work: DdlPort, key: str) -> bool:
    return work.find(key) is None and work.transaction.catalog.index_owner(key) is not None


def _alter_index(work: DdlPort, node: ast.AlterTable) -> DdlSteps:
    name = node.name[-1]
    table = work.transaction.catalog.index_owner(work.key(node.name))
    if table is None:
        if node.if_exists:
            return _skipped(work, node)
        raise _missing(node) if node.what == "index" else missing(node.what, node.name)
    for action in node.actions:
        if action.kind in ("nothing", "owner", "set options", "reset options"):
            continue
        if action.kind == "set place":
            set_place(work, table, action)
            continue
        if action.kind != "rename":
            raise FeatureNotSupported(f"ALTER INDEX … {action.kind.upper()} is not supported")
        require_free(work, catalog_key(table.schema, action.new_name))
        if table.primary_key_name == name or table.index(name).constraint:
            require_new_constraint(table, action.new_name)
        if table.primary_key_name == name:
            renamed = replace(table, primary_key_name=action.new_name)
        else:
            index = table.index(name)
            indexes = tuple(
                replace(each, name=action.new_name) if each is index else each
                for each in table.indexes
            )
            renamed = replace(table, indexes=indexes)
        work.transaction.define(table.key, renamed)
    return 0
    yield

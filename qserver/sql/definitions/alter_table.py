"""ALTER TABLE: its actions one after the other, and RENAME for whatever has a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from qserver.errors import FeatureNotSupported, UndefinedSchema, UndefinedTable, WrongObjectType
from qserver.sql import syntax
from qserver.sql.definitions.alter_columns import (
    add_column,
    add_identity,
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
from qserver.sql.definitions.alter_constraints import (
    add_constraint,
    alter_constraint,
    drop_constraint,
    rename_constraint,
    validate_constraint,
)
from qserver.sql.definitions.alter_types import alter_type
from qserver.sql.definitions.columns import next_of
from qserver.sql.definitions.names import known_name, missing, require_free
from qserver.sql.definitions.port import Steps, Work
from qserver.sql.definitions.sequences import alter_sequence
from qserver.sql.definitions.view_texts import follow_table, views_using
from qserver.sql.definitions.views import rename_view_column
from qserver.values.enumeration import Enumeration
from qserver.values.relations import Definition, NamedQuery, Sequence, kind_of
from qserver.values.schema import Table

Action = Callable[[Work, Table, syntax.AlterAction], Steps]


def alter_table(work: Work, node: syntax.AlterTable) -> Steps:
    name = known_name(node.name)
    if node.what == "index" or (name is not None and _is_index(work, name)):
        return (yield from _alter_index(work, node))
    definition = None if name is None else work.find(name)
    if node.what == "type":
        return (yield from _alter_type(work, node, definition))
    if definition is None or isinstance(definition, Enumeration):
        if node.if_exists:
            return 0
        raise _missing(node)
    _require_kind(definition, node.what)
    for action in node.actions:
        now = work.find(definition.name)
        assert now is not None
        if action.kind == "rename":
            _rename(work, now, action.new_name)
            definition = work.find(action.new_name) or definition
        elif action.kind == "set schema":
            _require_public(action)
        elif action.kind in WITHOUT_EFFECT:
            continue
        elif isinstance(now, Table):
            yield from _ACTIONS[action.kind](work, now, action)
        elif isinstance(now, Sequence) and action.kind == "options":
            alter_sequence(work, now, action.options)
        elif isinstance(now, NamedQuery) and action.kind == "rename column":
            rename_view_column(work, now, action)
        else:
            raise _not_for(now, action)
    return 0


def _alter_type(work: Work, node: syntax.AlterTable, definition: Definition | None) -> Steps:
    if not isinstance(definition, Enumeration):
        raise missing("type", node.name)
    for action in node.actions:
        yield from alter_type(work, definition, action)
    return 0


def _add_constraint(work: Work, table: Table, action: syntax.AlterAction) -> Steps:
    assert action.constraint is not None
    return (yield from add_constraint(work, table, action.constraint))


def _options_of_table(work: Work, table: Table, action: syntax.AlterAction) -> Steps:
    raise WrongObjectType(f'"{table.name}" is not a sequence')
    yield


_ACTIONS: Final[Mapping[str, Action]] = {
    "add column": add_column,
    "drop column": drop_column,
    "rename column": rename_column,
    "set default": set_default,
    "drop default": drop_default,
    "set not null": set_not_null,
    "drop not null": drop_not_null,
    "type": change_type,
    "add constraint": _add_constraint,
    "drop constraint": drop_constraint,
    "rename constraint": rename_constraint,
    "validate constraint": validate_constraint,
    "alter constraint": alter_constraint,
    "add identity": add_identity,
    "drop identity": drop_identity,
    "drop expression": drop_expression,
    "options": _options_of_table,
}
WITHOUT_EFFECT: Final = frozenset({"nothing", "owner"})
"""What concerns PostgreSQL's storage or its users."""


def _missing(node: syntax.AlterTable) -> UndefinedTable:
    return UndefinedTable(f'relation "{".".join(node.name)}" does not exist', table=node.name[-1])


def _require_kind(definition: Definition, what: str) -> None:
    """ALTER TABLE will do for anything, ALTER VIEW only for a view."""
    if what in ("view", "sequence") and kind_of(definition) != what:
        raise WrongObjectType(f'"{definition.name}" is not a {what}')


def _require_public(action: syntax.AlterAction) -> None:
    if (action.new_name or action.name) != "public":
        raise UndefinedSchema(f'schema "{action.new_name or action.name}" does not exist')


def _not_for(definition: Definition, action: syntax.AlterAction) -> WrongObjectType:
    return WrongObjectType(
        f'ALTER action {action.kind.upper()} cannot be performed on relation "{definition.name}"',
        detail=f"This operation is not supported for {kind_of(definition)}s.",
    )


# --- RENAME --------------------------------------------------------------------------------------


def _rename(work: Work, definition: Definition, new: str) -> None:
    old = definition.name
    require_free(work, new)
    users = views_using(work, old)
    work.transaction.define(old, None)
    work.transaction.define(new, replace(definition, name=new))
    for other in list(work.transaction.catalog.definitions()):
        if isinstance(other, Table):
            _follow_in_table(work, other, definition, new)
        elif isinstance(other, Sequence) and other.owner is not None and other.owner[0] == old:
            work.transaction.define(other.name, replace(other, owner=(new, other.owner[1])))
    follow_table(work, users, old, new)


def _follow_in_table(work: Work, table: Table, definition: Definition, new: str) -> None:
    """What a table says about something that has another name now."""
    old = definition.name
    changed = table
    if isinstance(definition, Table):
        keys = tuple(
            replace(key, table=new) if key.table == old else key for key in table.foreign_keys
        )
        changed = replace(changed, foreign_keys=keys)
    elif isinstance(definition, Sequence):
        columns = tuple(
            replace(
                column,
                sequence=new,
                default=next_of(new) if column.default is not None else None,
            )
            if column.sequence == old
            else column
            for column in table.columns
        )
        changed = replace(changed, columns=columns)
    if changed != table:
        work.transaction.define(table.name, changed)


# --- indexes -------------------------------------------------------------------------------------


def _is_index(work: Work, name: str) -> bool:
    return work.find(name) is None and work.transaction.catalog.index_owner(name) is not None


def _alter_index(work: Work, node: syntax.AlterTable) -> Steps:
    name = known_name(node.name)
    table = None if name is None else work.transaction.catalog.index_owner(name)
    if table is None or name is None:
        if node.if_exists:
            return 0
        raise _missing(node) if node.what == "index" else missing(node.what, node.name)
    for action in node.actions:
        if action.kind != "rename":
            raise FeatureNotSupported(f"ALTER INDEX … {action.kind.upper()} is not supported")
        require_free(work, action.new_name)
        if table.primary_key_name == name:
            renamed = replace(table, primary_key_name=action.new_name)
        else:
            index = table.index(name)
            indexes = tuple(
                replace(each, name=action.new_name) if each is index else each
                for each in table.indexes
            )
            renamed = replace(table, indexes=indexes)
        work.transaction.define(table.name, renamed)
    return 0
    yield

"""CREATE TYPE … AS ENUM, CREATE SCHEMA, COMMENT ON."""

from __future__ import annotations

from collections.abc import Sequence as ManyOf
from dataclasses import replace

from qserver.errors import (
    DuplicateObject,
    DuplicateSchema,
    FeatureNotSupported,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UniqueViolation,
)
from qserver.sql import syntax
from qserver.sql.definitions.names import (
    PUBLIC,
    constraint_names,
    find_relation,
    find_table,
    known_name,
    missing,
    new_name,
    wrong_kind,
)
from qserver.sql.definitions.port import Steps, Work
from qserver.values.enumeration import Enumeration, enumeration_of
from qserver.values.relations import NamedQuery, Sequence, kind_of
from qserver.values.schema import Table, check_name


def create_enum(work: Work, node: syntax.CreateEnum) -> Steps:
    name = new_name(node.name)
    check_name(name)
    if work.find(name) is not None:
        raise DuplicateObject(f'type "{name}" already exists')
    labels = tuple(str(work.value(label)) for label in node.labels)
    for at, label in enumerate(labels):
        if label in labels[:at]:
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumlabel)=({label}) already exists.",
            )
    work.transaction.define(name, enumeration_of(name, labels))
    return 0
    yield


def create_schema(work: Work, node: syntax.CreateSchema) -> Steps:
    if node.name == PUBLIC:
        if not node.if_not_exists:
            raise DuplicateSchema(f'schema "{node.name}" already exists')
        return 0
    raise FeatureNotSupported(
        f'schema "{node.name}" cannot be created: {PUBLIC} is the only one',
        hint="Use another database, or a prefix in the names of tables.",
    )
    yield


# --- COMMENT ON ----------------------------------------------------------------------------------


def comment_on(work: Work, node: syntax.CommentOn) -> Steps:
    """Comments are kept with what they are about, so they go and move with it."""
    text = None if node.text is None else str(work.value(node.text)) or None
    match node.kind:
        case "column":
            _comment_on_column(work, node.name, text)
        case "constraint":
            _comment_on_constraint(work, node.name, text)
        case "index":
            _comment_on_index(work, node.name, text)
        case "schema" | "database":
            if node.kind == "schema" and node.name[-1] != PUBLIC:
                raise UndefinedSchema(f'schema "{node.name[-1]}" does not exist')
        case "type":
            name = known_name(node.name)
            if name is None or not isinstance(work.find(name), Enumeration):
                raise UndefinedObject(f'type "{".".join(node.name)}" does not exist')
        case _:
            _comment_on_relation(work, node, text)
    return 0
    yield


def _comment_on_relation(work: Work, node: syntax.CommentOn, text: str | None) -> None:
    definition = find_relation(work, node.name)
    if kind_of(definition) != node.kind:
        error = wrong_kind(node.kind, definition)
        error.hint = None
        raise error
    _set(work, definition, "", text)


def _comment_on_column(work: Work, name: tuple[str, ...], text: str | None) -> None:
    definition = find_relation(work, name[:-1])
    columns: ManyOf[str] = ()
    if isinstance(definition, Table):
        columns = tuple(definition.positions)
    elif isinstance(definition, NamedQuery):
        columns = [column for column, _ in definition.columns]
    if name[-1] not in columns:
        raise UndefinedColumn(
            f'column "{name[-1]}" of relation "{definition.name}" does not exist',
            table=definition.name,
            column=name[-1],
        )
    _set(work, definition, f"column {name[-1]}", text)


def _comment_on_constraint(work: Work, name: tuple[str, ...], text: str | None) -> None:
    """The name is the table's, then the constraint's."""
    table = find_table(work, name[:-1])
    if name[-1] not in constraint_names(table):
        raise UndefinedObject(f'constraint "{name[-1]}" for table "{table.name}" does not exist')
    _set(work, table, f"constraint {name[-1]}", text)


def _comment_on_index(work: Work, name: tuple[str, ...], text: str | None) -> None:
    last = known_name(name)
    table = None if last is None else work.transaction.catalog.index_owner(last)
    if table is None:
        raise missing("index", name)
    _set(work, table, f"index {last}", text)


def _set(work: Work, definition: object, what: str, text: str | None) -> None:
    assert isinstance(definition, Table | NamedQuery | Sequence)
    kept = tuple(pair for pair in definition.comments if pair[0] != what)
    comments = kept if text is None else (*kept, (what, text))
    work.transaction.define(definition.name, replace(definition, comments=comments))

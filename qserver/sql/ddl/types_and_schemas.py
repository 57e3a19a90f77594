"""CREATE TYPE … AS ENUM, CREATE SCHEMA, COMMENT ON."""

from __future__ import annotations

from collections.abc import Sequence as ManyOf
from dataclasses import replace

from qserver.errors import (
    DuplicateObject,
    DuplicateSchema,
    ReservedName,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UniqueViolation,
)
from qserver.sql import ast
from qserver.sql.ddl.names import (
    constraint_names,
    find_relation,
    find_table,
    missing,
    new_place,
    wrong_kind,
)
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.values.enumeration import Enumeration, enumeration_of
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.relations import Schema, Sequence, View, kind_of
from qserver.values.schema import Table, check_name


def create_enum(work: DdlPort, node: ast.CreateEnum) -> DdlSteps:
    schema, name = new_place(work, node.name)
    check_name(name)
    if work.find(catalog_key(schema, name)) is not None:
        raise DuplicateObject(f'type "{name}" already exists')
    labels = tuple(str(work.value(label)) for label in node.labels)
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumlabel)=({label}) already exists.",
            )
        seen.add(label)
    enumeration = enumeration_of(name, labels, schema)
    work.transaction.define(enumeration.key, enumeration)
    return 0
    yield


def create_schema(work: DdlPort, node: ast.CreateSchema) -> DdlSteps:
    schema = Schema(node.name)
    if node.name == PUBLIC or work.find(schema.key) is not None:
        error = DuplicateSchema(f'schema "{node.name}" already exists')
        if not node.if_not_exists:
            raise error
        work.skip(error.message, error.code)
        return 0
    if node.name.startswith("pg_"):
        raise ReservedName(
            f'unacceptable schema name "{node.name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
    work.transaction.define(schema.key, schema)
    return 0
    yield


# --- COMMENT ON ----------------------------------------------------------------------------------


def comment_on(work: DdlPort, node: ast.CommentOn) -> DdlSteps:
    """Set or remove a comment, which is stored in the definition and moves with it."""
    text = None if node.text is None else str(work.value(node.text)) or None
    match node.kind:
        case "column":
            _comment_on_column(work, node.name, text)
        case "constraint":
            _comment_on_constraint(work, node.name, text)
        case "index":
            _comment_on_index(work, node.name, text)
        case "schema" | "database":
            schema = work.find(catalog_key(node.name[-1], ""))
            if schema is not None and node.kind == "schema":
                _set(work, schema, "", text)
            elif node.kind == "schema" and node.name[-1] != PUBLIC:
                raise UndefinedSchema(f'schema "{node.name[-1]}" does not exist')
        case "type":
            enumeration = work.find(work.key(node.name))
            if not isinstance(enumeration, Enumeration):
                raise UndefinedObject(f'type "{".".join(node.name)}" does not exist')
            _set(work, enumeration, "", text)
        case _:
            _comment_on_relation(work, node, text)
    return 0
    yield


def _comment_on_relation(work: DdlPort, node: ast.CommentOn, text: str | None) -> None:
    definition = find_relation(work, node.name)
    if kind_of(definition) != node.kind:
        error = wrong_kind(node.kind, definition)
        error.hint = None
        raise error
    _set(work, definition, "", text)


def _comment_on_column(work: DdlPort, name: tuple[str, ...], text: str | None) -> None:
    definition = find_relation(work, name[:-1])
    columns: ManyOf[str] = ()
    if isinstance(definition, Table):
        columns = tuple(definition.positions)
    elif isinstance(definition, View):
        columns = [column for column, _ in definition.columns]
    if name[-1] not in columns:
        raise UndefinedColumn(
            f'column "{name[-1]}" of relation "{definition.name}" does not exist',
            table=definition.name,
            column=name[-1],
        )
    _set(work, definition, f"column {name[-1]}", text)


def _comment_on_constraint(work: DdlPort, name: tuple[str, ...], text: str | None) -> None:
    """Comment on a constraint; the name is the table's, then the constraint's."""
    table = find_table(work, name[:-1])
    if name[-1] not in constraint_names(table):
        raise UndefinedObject(f'constraint "{name[-1]}" for table "{table.name}" does not exist')
    _set(work, table, f"constraint {name[-1]}", text)


def _comment_on_index(work: DdlPort, name: tuple[str, ...], text: str | None) -> None:
    table = work.transaction.catalog.index_owner(work.key(name))
    if table is None:
        raise missing("index", name)
    _set(work, table, f"index {name[-1]}", text)


def _set(work: DdlPort, definition: object, what: str, text: str | None) -> None:
    assert isinstance(definition, Table | View | Sequence | Enumeration | Schema)
    kept = tuple(pair for pair in definition.comments if pair[0] != what)
    comments = kept if text is None else (*kept, (what, text))
    work.transaction.define(definition.key, replace(definition, comments=comments))

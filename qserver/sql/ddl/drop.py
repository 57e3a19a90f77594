"""DROP and TRUNCATE."""

from __future__ import annotations

from collections.abc import Collection

from qserver.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    UndefinedSchema,
    WrongObjectType,
)
from qserver.sql import ast
from qserver.sql.ddl.dependencies import (
    USE_CASCADE,
    drop_definition,
    needs_type,
    owned_sequences,
)
from qserver.sql.ddl.names import (
    described,
    find_table,
    missing,
    wrong_kind,
)
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.removal import (
    drop_column_of,
    unused_hidden_columns,
    without_columns,
)
from qserver.sql.ddl.rewrite import with_new_trees
from qserver.sql.ddl.sequences import restart_sequence
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import PUBLIC, catalog_key, quote_identifier
from qserver.values.relations import (
    Definition,
    Schema,
    Sequence,
    kind_of,
)
from qserver.values.schema import Table
from qserver.values.shared_comments import SharedComment
from qserver.values.temporary import TEMPORARY


def drop(work: DdlPort, node: ast.Drop) -> DdlSteps:
    if node.kind == "index":
        for name in node.names:
            yield from _drop_index(work, node, name)
    elif node.kind == "schema":
        yield from _drop_schemas(work, node)
    else:
        yield from _drop_definitions(work, node)
    return 0


def _drop_definitions(work: DdlPort, node: ast.Drop) -> DdlSteps:
    """Drop all at once: dependents that are dropped by the same statement do not matter."""
    going: dict[str, None] = {}
    for name in node.names:
        definition = _find(work, node, name)
        if definition is not None:
            going[definition.key] = None
    for last in going:
        definition = work.find(last)
        if definition is None:
            continue
        if isinstance(definition, Sequence):
            _require_not_identity(work, definition)
        if isinstance(definition, Enumeration) and node.cascade:
            yield from _drop_columns_of(work, definition, going)
        drop_definition(work, last, going, node.cascade)
        yield  # it visits all definitions
    return 0


def _drop_columns_of(work: DdlPort, enumeration: Enumeration, going: Collection[str]) -> DdlSteps:
    for table in work.transaction.catalog.definitions():
        if isinstance(table, Table):
            for at, column in enumerate(table.columns):
                if not needs_type(work, column, enumeration):
                    continue
                if column.hidden:
                    for index in [each for each in table.indexes if at in each.columns]:
                        work.cascaded[f"index {index.name}"] = None
                        yield from _drop_index_of(work, work.table_now(table.key), index.name)
                    continue
                if table.key not in going:
                    work.cascaded[f"column {column.name} of {described(table)}"] = None
                now = work.table_now(table.key)
                if column.name in now.positions:  # not gone with another column
                    yield from drop_column_of(work, now, column.name)
    return 0


def _find(work: DdlPort, node: ast.Drop, name: tuple[str, ...]) -> Definition | None:
    key = work.key(name)
    definition = work.find(key)
    if definition is None:
        owner = work.transaction.catalog.index_owner(key)
        if owner is not None and node.kind != "type":
            raise WrongObjectType(
                f'"{name[-1]}" is not a {node.kind}', hint="Use DROP INDEX to remove an index."
            )
        if not node.if_exists:
            if len(name) > 1 and not work.statements.names.has_schema(name[-2]):
                raise UndefinedSchema(f'schema "{name[-2]}" does not exist')
            raise missing(node.kind, name)
        _skip(work, node.kind, name)
        return None
    if kind_of(definition) != node.kind:
        if node.kind == "type":
            raise missing("type", name)
        raise wrong_kind(node.kind, definition)
    return definition


def _skip(work: DdlPort, kind: str, name: tuple[str, ...]) -> None:
    if len(name) > 1 and not work.statements.names.has_schema(name[-2]):
        work.skip(f'schema "{name[-2]}" does not exist')
    else:
        shown = ".".join(name) if kind == "type" else name[-1]
        work.skip(f'{kind} "{shown}" does not exist')


def _require_not_identity(work: DdlPort, sequence: Sequence) -> None:
    table = None if sequence.owner is None else work.find(sequence.owner[0])
    if isinstance(table, Table) and sequence.owner is not None:
        column = table.column(sequence.owner[1])
        if column.identity is not None:
            place = f"column {column.name} of table {table.name}"
            raise DependentObjectsStillExist(
                f"cannot drop sequence {sequence.name} because {place} requires it",
                hint=f"You can drop {place} instead.",
            )


def _drop_index(work: DdlPort, node: ast.Drop, name: tuple[str, ...]) -> DdlSteps:
    last, key = name[-1], work.key(name)
    table = work.transaction.catalog.index_owner(key)
    if table is None:
        definition = work.find(key)
        if definition is not None and kind_of(definition) != "type":
            raise wrong_kind("index", definition)
        if not node.if_exists:
            raise missing("index", name)
        _skip(work, "index", name)
        return 0
    if last == table.primary_key_name or table.index(last).constraint:
        raise DependentObjectsStillExist(
            f"cannot drop index {last} because constraint {last} on table {table.name} requires it",
            hint=f"You can drop constraint {last} on table {table.name} instead.",
        )
    yield from _drop_index_of(work, table, last)
    return 0


def _drop_index_of(work: DdlPort, table: Table, name: str) -> DdlSteps:
    if name not in [index.name for index in table.indexes]:
        return 0  # gone with a column
    work.transaction.drop_trees(table.index(name).id)
    bare = table.without_index(name)
    work.transaction.define(table.key, bare)
    unused = unused_hidden_columns(bare)
    if unused:
        yield from without_columns(work, bare, unused)
    return 0


def _drop_schemas(work: DdlPort, node: ast.Drop) -> DdlSteps:
    for name in node.names:
        if name[-1] == PUBLIC:
            raise FeatureNotSupported("the schema public cannot be dropped")
        if name[-1] == TEMPORARY:
            raise UndefinedSchema(
                f'schema "{TEMPORARY}" does not exist', hint="Send DISCARD TEMP to empty it."
            )
        schema = work.find(catalog_key(name[-1], ""))
        if not isinstance(schema, Schema):
            if not node.if_exists:
                raise UndefinedSchema(f'schema "{name[-1]}" does not exist')
            _skip(work, "schema", name)
            continue
        inside = [
            each
            for each in work.transaction.catalog.definitions()
            if not isinstance(each, Schema | SharedComment) and each.schema == schema.name
        ]
        loose = [each for each in inside if not isinstance(each, Sequence) or each.owner is None]
        if loose and not node.cascade:
            what = f"schema {quote_identifier(schema.name)}"
            raise DependentObjectsStillExist(
                f"cannot drop {what} because other objects depend on it",
                detail="\n".join(f"{described(each)} depends on {what}" for each in loose),
                hint=USE_CASCADE,
            )
        work.cascaded.update(dict.fromkeys(described(each) for each in loose))
        going = [each.key for each in inside]
        for each in inside:
            if isinstance(each, Enumeration):
                yield from _drop_columns_of(work, each, going)
            drop_definition(work, each.key, going, cascade=True)
        work.transaction.define(schema.key, None)
        yield
    return 0


# --- TRUNCATE ------------------------------------------------------------------------------------


def truncate(work: DdlPort, node: ast.Truncate) -> DdlSteps:
    """Give each table new, empty trees, which takes constant time."""
    tables = {table.key: table for table in (find_table(work, name) for name in node.names)}
    _add_referencing(work, tables, node.cascade)
    for table in tables.values():
        work.transaction.drop_trees(table.id, *(index.id for index in table.indexes))
        work.transaction.define(table.key, with_new_trees(work, table))
        if node.restart_identity:
            for sequence in owned_sequences(work, table.key):
                restart_sequence(work, sequence, sequence.start)
    return 0
    yield


def _add_referencing(work: DdlPort, tables: dict[str, Table], cascade: bool) -> None:
    """Add tables with foreign keys to these tables, which needs CASCADE."""
    waiting: list[Table] = list(tables.values())
    while waiting:
        table = waiting.pop()
        for other in work.transaction.catalog.definitions():
            if not isinstance(other, Table) or other.key in tables:
                continue
            if any(key.table == table.key for key in other.foreign_keys):
                if not cascade:
                    raise FeatureNotSupported(
                        "cannot truncate a table referenced in a foreign key constraint",
                        detail=f'Table "{other.name}" references "{table.name}".',
                        hint=f'Truncate table "{other.name}" at the same time,'
                        " or use TRUNCATE ... CASCADE.",
                    )
                work.tell(f'truncate cascades to table "{other.name}"')
                tables[other.key] = other
                waiting.append(other)

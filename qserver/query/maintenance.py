"""LOCK, VACUUM, ANALYZE, REINDEX, CLUSTER, CHECKPOINT, GRANT, REVOKE.

They ask for what is so anyway, or for what nothing here depends on. So they check what they name,
as PostgreSQL does, and have no other effect:

    LOCK                 every transaction is serializable, and nobody waits for a lock
    VACUUM, CLUSTER …    no row is dead, indexes are in order, plans follow the sizes of tables
    GRANT, REVOKE        there is one role, which may do everything; keys say who may do what
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from qserver.errors import (
    ActiveTransaction,
    FeatureNotSupported,
    InvalidGrant,
    NoActiveTransaction,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    UnknownDatabase,
    WrongObjectType,
)
from qserver.query.catalog import roles
from qserver.query.cursor import Cursor, StatementSteps, rows_at_once
from qserver.query.statement_port import StatementPort
from qserver.sql import ast
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import catalog_key
from qserver.values.relations import Sequence as SqlSequence
from qserver.values.relations import View
from qserver.values.schema import Table

ROLES: Final = frozenset({"public", "current_user", "current_role", "session_user", *roles.ROLES})
_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "vacuum": frozenset(
        {
            *("full", "freeze", "verbose", "analyze", "analyse", "disable_page_skipping"),
            *("skip_locked", "index_cleanup", "process_toast", "truncate", "parallel"),
        }
    ),
    "analyze": frozenset({"verbose", "skip_locked"}),
    "reindex": frozenset({"concurrently", "tablespace", "verbose"}),
    "cluster": frozenset({"verbose"}),
    "checkpoint": frozenset(),
}
_PRIVILEGES: Final[Mapping[str, frozenset[str]]] = {
    "table": frozenset(
        {"select", "insert", "update", "delete", "truncate", "references", "trigger"}
    ),
    "sequence": frozenset({"usage", "select", "update"}),
    "schema": frozenset({"create", "usage"}),
    "database": frozenset({"create", "connect", "temp", "temporary"}),
    "type": frozenset({"usage"}),
}
_OF_ALL: Final = {"tables": "table", "sequences": "sequence"}


def _found(run: StatementPort, name: tuple[str, ...]) -> Any:
    """Return a relation, and note that the transaction has seen its definition."""
    names = run.names
    names.check_database(name)
    if len(name) > 1 and not names.has_schema(name[-2]):
        raise UndefinedSchema(f'schema "{name[-2]}" does not exist')
    found = names.find_table(name) or names.find_view(name) or names.find(name)
    for key in names.found:
        run.transaction.find_definition(key)
    return found


def _table(run: StatementPort, name: tuple[str, ...], kinds: tuple[type, ...], what: str) -> Any:
    found = _found(run, name)
    shown = ".".join(name)
    if found is None:
        if _index_of(run, name) is None:
            raise UndefinedTable(f'relation "{shown}" does not exist')
        raise WrongObjectType(f'"{name[-1]}" is not {what}')
    if not isinstance(found, kinds):
        raise WrongObjectType(f'"{name[-1]}" is not {what}')
    return found


def _index_of(run: StatementPort, name: tuple[str, ...]) -> Table | None:
    """Return the table of an index."""
    for schema in name[-2:-1] or run.path:
        owner = run.transaction.catalog.index_owner(catalog_key(schema, name[-1]))
        if owner is not None:
            return owner
    return None


def check_schema(run: StatementPort, name: str) -> None:
    if not run.names.has_schema(name):
        raise UndefinedSchema(f'schema "{name}" does not exist')


def check_database(run: StatementPort, name: str) -> None:
    if name != run.context.database:
        raise UnknownDatabase(f'database "{name}" does not exist')


# --- LOCK -----------------------------------------------------------------------------------------


def lock(run: StatementPort, node: ast.Lock, literals: Sequence[Any]) -> Cursor:
    return Cursor(_lock(run, node), run.context)


def _lock(run: StatementPort, node: ast.Lock) -> StatementSteps:
    if not run.is_in_block:
        raise NoActiveTransaction(
            "LOCK TABLE can only be used in transaction blocks",
            hint="Open a transaction, with BEGIN or POST /v1/transaction/open.",
        )
    run.check_read()
    for name in node.tables:
        _table(run, name, (Table, View), "a table or view")
    return (yield from rows_at_once([]))


# --- care for tables ------------------------------------------------------------------------------


def maintain(run: StatementPort, node: ast.Maintain, literals: Sequence[Any]) -> Cursor:
    return Cursor(_maintain(run, node), run.context)


def _maintain(run: StatementPort, node: ast.Maintain) -> StatementSteps:
    word = node.kind.upper()
    for written in node.options:
        option = written.split()[0]
        if option not in _OPTIONS[node.kind]:
            raise SqlSyntaxError(f'unrecognized {word} option "{option}"')
        if option == "tablespace":
            raise FeatureNotSupported("tablespaces are not supported")
    if node.kind == "vacuum" and run.is_in_block:
        raise ActiveTransaction("VACUUM cannot run inside a transaction block")
    run.check_read()
    for name, columns in node.tables:
        _check_maintained(run, node, name, columns)
    return (yield from rows_at_once([]))


def _check_maintained(
    run: StatementPort, node: ast.Maintain, name: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    if node.what in ("database", "system"):
        check_database(run, name[-1])
    elif node.what == "schema":
        check_schema(run, name[-1])
    elif node.what == "index":
        if _index_of(run, name) is None:
            if _found(run, name) is not None:
                raise WrongObjectType(f'"{name[-1]}" is not an index')
            raise UndefinedTable(f'relation "{".".join(name)}" does not exist')
    else:
        _check_columns(node, _table(run, name, (Table,), "a table"), columns)


def _check_columns(node: ast.Maintain, table: Table, columns: tuple[str, ...]) -> None:
    known = [column.name for column in table.columns if not column.hidden]
    for column in columns:
        if column not in known:
            raise UndefinedColumn(f'column "{column}" of relation "{table.name}" does not exist')
    if node.index is not None:
        names = [table.primary_key_name, *(index.name for index in table.indexes)]
        if node.index not in names:
            raise UndefinedObject(f'index "{node.index}" for table "{table.name}" does not exist')


# --- rights ---------------------------------------------------------------------------------------


def grant(run: StatementPort, node: ast.Grant, literals: Sequence[Any]) -> Cursor:
    return Cursor(_grant(run, node), run.context)


def _grant(run: StatementPort, node: ast.Grant) -> StatementSteps:
    run.check_define()
    for role in node.roles:
        check_role(role)
    if node.kind == "role":
        for role, _ in node.privileges:
            check_role(role)
    else:
        kind = _OF_ALL.get(node.kind, node.kind)
        for privilege, columns in node.privileges:
            check_privilege(kind, privilege, columns)
        for name in node.names:
            _check_granted(run, node.kind, name, [each for _, each in node.privileges])
    return (yield from rows_at_once([]))


def check_role(name: str) -> None:
    if name not in ROLES:
        raise UndefinedObject(
            f'role "{name}" does not exist',
            hint="There is one role, qserver. What a client may do, its key says.",
        )


def check_privilege(kind: str, privilege: str, columns: tuple[str, ...]) -> None:
    if privilege in ("all", "all privileges"):
        return
    if not any(privilege in each for each in _PRIVILEGES.values()):
        raise SqlSyntaxError(f'unrecognized privilege type "{privilege}"')
    known = _PRIVILEGES[kind] | (_PRIVILEGES["sequence"] if kind == "table" else frozenset())
    if privilege not in known:
        raise InvalidGrant(f"invalid privilege type {privilege.upper()} for {kind}")
    if columns and kind != "table":
        raise InvalidGrant("column privileges are only valid for relations")


def _check_granted(
    run: StatementPort, kind: str, name: tuple[str, ...], columns: Sequence[tuple[str, ...]]
) -> None:
    if kind in ("schema", *_OF_ALL):
        check_schema(run, name[-1])
    elif kind == "database":
        check_database(run, name[-1])
    elif kind == "type":
        if run.names.find_type(name) is None and not isinstance(_found(run, name), Enumeration):
            raise UndefinedObject(f'type "{".".join(name)}" does not exist')
    elif kind == "sequence":
        _table(run, name, (SqlSequence,), "a sequence")
    else:
        found = _table(run, name, (Table, View, SqlSequence), "a table")
        named = found.columns if isinstance(found, Table) else ()
        known = {column.name for column in named}
        for column in (each for listed in columns for each in listed):
            if isinstance(found, Table) and column not in known:
                raise UndefinedColumn(f'column "{column}" of relation "{name[-1]}" does not exist')

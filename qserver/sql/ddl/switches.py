"""ALTER TABLE … ENABLE, DISABLE, FORCE, SET and CLUSTER of what a table has nothing of here.

There are no triggers or rules of users, no row security and no other places for tables. What leaves
that so is accepted, as dumps and tools send it; what would mean something is refused.
"""

from __future__ import annotations

from qserver.errors import FeatureNotSupported, UndefinedObject, WrongObjectType
from qserver.sql import ast
from qserver.sql.ddl.port import DdlPort
from qserver.values.identifiers import catalog_key
from qserver.values.relations import Definition
from qserver.values.schema import Index, Table, is_predicate

ROW_SECURITY = "row level security"


def switch(work: DdlPort, table: Definition, action: ast.AlterAction) -> None:
    """ENABLE or DISABLE of triggers, rules and row security."""
    if not isinstance(table, Table):
        raise WrongObjectType(f'"{table.name}" is not a table')
    what = action.text
    if what.endswith(ROW_SECURITY):
        if what in (f"enable {ROW_SECURITY}", f"force {ROW_SECURITY}"):
            raise FeatureNotSupported(
                "row level security is not supported: there is one role, which may see all rows",
                hint="Keys may have scopes, databases and named queries.",
            )
    elif action.name:
        kind, of = ("rule", "relation") if what.endswith("rule") else ("trigger", "table")
        raise UndefinedObject(f'{kind} "{action.name}" for {of} "{table.name}" does not exist')
    elif what == "disable trigger" and action.new_name == "all" and _has_keys(work, table):
        raise FeatureNotSupported(
            f'the foreign keys of "{table.name}" cannot be disabled',
            hint="Load the tables in the order of their keys, or make the keys DEFERRABLE.",
        )


def _has_keys(work: DdlPort, table: Table) -> bool:
    """Return whether foreign keys are checked when the rows of a table change."""
    return bool(table.foreign_keys) or any(
        key.table == table.key
        for other in work.transaction.catalog.definitions()
        if isinstance(other, Table)
        for key in other.foreign_keys
    )


def cluster_on(work: DdlPort, table: Table, action: ast.AlterAction) -> None:
    """Check the index that the rows would be ordered by: they are in the order of their key."""
    index = _index_named(work, table, action.name)
    if index is not None and _is_partial(table, index):
        raise FeatureNotSupported(f'cannot cluster on partial index "{index.name}"')


def replica_index(work: DdlPort, table: Table, action: ast.AlterAction) -> None:
    """Check the index that would tell rows apart for replication."""
    index = _index_named(work, table, action.name)
    if index is None:
        return
    not_unique = not index.unique and not index.deferral
    for is_so, what, error in (
        (not_unique, "non-unique", WrongObjectType),
        (bool(index.deferral), "non-immediate", FeatureNotSupported),
        (_is_partial(table, index), "partial", FeatureNotSupported),
        (any(table.columns[at].hidden for at in index.columns), "expression", FeatureNotSupported),
    ):
        if is_so:
            raise error(f'cannot use {what} index "{index.name}" as replica identity')
    for column in (table.columns[at] for at in index.columns):
        if column.nullable:
            raise WrongObjectType(
                f'index "{index.name}" cannot be used as replica identity because column'
                f' "{column.name}" is nullable'
            )


def _index_named(work: DdlPort, table: Table, name: str) -> Index | None:
    """Return an index of the table; None for its primary key."""
    if name == table.primary_key_name and not table.has_row_id:
        return None
    for index in table.indexes:
        if index.name == name:
            return index
    if work.transaction.catalog.index_owner(catalog_key(table.schema, name)) is not None:
        raise WrongObjectType(f'"{name}" is not an index for table "{table.name}"')
    raise UndefinedObject(f'index "{name}" for table "{table.name}" does not exist')


def _is_partial(table: Table, index: Index) -> bool:
    return any(is_predicate(table.columns[at]) for at in index.columns)


def set_place(work: DdlPort, relation: Definition, action: ast.AlterAction) -> None:
    """SET TABLESPACE: there is one."""
    if action.name != "pg_default":
        raise UndefinedObject(f'tablespace "{action.name}" does not exist')

"""ALTER TABLE … ENABLE, DISABLE, FORCE and SET of what a table has nothing of here.

There are no triggers or rules of users, no row security and no other places for tables. What leaves
that so is accepted, as dumps and tools send it; what would mean something is refused.
"""

from __future__ import annotations

from qserver.errors import FeatureNotSupported, UndefinedObject, WrongObjectType
from qserver.sql import ast
from qserver.sql.ddl.port import DdlPort
from qserver.values.relations import Definition
from qserver.values.schema import Table

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


def set_place(action: ast.AlterAction) -> None:
    """SET TABLESPACE: there is one."""
    if action.name != "pg_default":
        raise UndefinedObject(f'tablespace "{action.name}" does not exist')

"""Empties a database: drops all its definitions in one commit.

The reset changes the catalog, without DROP statements: when everything goes there are no dependents
to look for, no order to keep and no names to quote. The database itself, its history and its log
stay.
"""

from __future__ import annotations

from qserver.control.owners import Owners
from qserver.control.records import Grant, ResetReport
from qserver.control.requests import require
from qserver.control.store import Store
from qserver.durability.records import Definitions
from qserver.engine.sequence_states import leave_position
from qserver.errors import Forbidden
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence


class Reset:
    def __init__(self, store: Store, owners: Owners) -> None:
        self._store = store
        self._owners = owners

    async def reset(self, grant: Grant, request_id: str | None = None) -> ResetReport:
        """Empty every database of the organization, one after the other."""
        require(grant, "admin")
        if grant.database_ids is not None:
            raise Forbidden(
                "this key is limited to some databases and cannot reset the organization",
                hint="Use a key that is not limited.",
            )
        rows = await self._store.rows(
            "select id, family from databases where organization_id = $1 and state = 'ready'"
            " order by id",
            grant.organization_id,
        )
        databases = tables = deleted = 0
        for database_id, family in rows:
            wiped = await self._owners.ask_owner(family, "wipe", database_id, request_id)
            if wiped is not None:  # it was not deleted meanwhile
                databases += 1
                tables += wiped[0]
                deleted += wiped[1]
        return ResetReport(databases, tables, deleted)


def wipe(transaction: Transaction) -> tuple[int, int]:
    """Remove every definition; return the number of tables and of their rows."""
    rows = 0
    catalog = transaction.catalog
    for name, definition in catalog.others.items():
        transaction.define(name, None)
        if isinstance(definition, Sequence):
            leave_position(transaction, definition)
    for name, table in catalog.tables.items():
        rows += transaction.snapshot.count(table.id)
        transaction.drop_table(name)
    if names := list(transaction.catalog_changes.definitions):
        transaction.note_for_log(Definitions("-- reset", names))
    return len(catalog.tables), rows

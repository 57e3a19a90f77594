"""What a process does with its databases for requests that another process serves.

A request moves to the owner of its database. Some requests concern databases of several owners, or
one that has no request of its own: they ask the owners. Arguments and results are plain values,
because they may come from another process.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio

from qserver.control.access import Access, no_database
from qserver.control.databases import Databases, OpenDatabase
from qserver.control.describing import describe_in
from qserver.control.owners import Owners
from qserver.control.reset import wipe


class OwnedDatabases:
    """Answers the calls of `owners`."""

    def __init__(self, owners: Owners, access: Access, databases: Databases) -> None:
        self._access = access
        self._databases = databases
        for method in (self.open, self.remove, self.facts, self.describe, self.wipe):
            owners.answer(method.__name__, method)

    async def open(self, database_id: str) -> None:
        """Prove that a new database can be used: from here on its log exists."""
        (await self._databases.use(database_id)).release()

    async def remove(self, database_id: str) -> None:
        """Close a database whose record is marked, and remove its files."""
        await self._databases.remove(database_id)

    async def facts(self, database_id: str, seconds: float) -> list[int]:
        """Return the version, the tables, the rows, the bytes and the seconds of history."""
        deadline = trio.current_time() + seconds
        with await self._use(database_id) as opened:
            snapshot = await opened.database.wait_durable_snapshot(deadline)
            tables = snapshot.catalog.tables.values()
            rows = sum(snapshot.count(table.id) for table in tables)
            size_bytes = self._databases.logs.size_bytes(database_id)
            history = int(self._databases.history_of(database_id))
            return [snapshot.version, len(tables), rows, size_bytes, history]

    async def describe(
        self, database_id: str, name: str, statements: Mapping[str, str], seconds: float
    ) -> str:
        """Return statements as they are in a database, as they are stored in a key."""
        with await self._use(database_id) as opened:
            return await describe_in(opened.sql, name, statements, seconds)

    async def wipe(self, database_id: str, request_id: str | None) -> list[int] | None:
        """Empty a database; return how many tables and rows it had, None if it is gone."""
        opened = await self._access.whole(database_id)
        if opened is None:
            return None
        with opened:
            outcome = await opened.database.transact(wipe, request_id=request_id)
            return list(outcome.result)

    async def _use(self, database_id: str) -> OpenDatabase:
        opened = await self._access.whole(database_id)
        if opened is None:
            raise no_database(database_id)
        return opened

    def __repr__(self) -> str:
        return f"the calls for {self._databases!r}"

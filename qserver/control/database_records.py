"""Databases as records: made, listed, renamed, deleted.

    creating ─── its log can be opened ──► ready ─── delete ──► deleting ─── log removed ──► (gone)
        └─────── it cannot: undone ────────────────────────────────▲

A record changes state before files do, and after: so the record shows what a crash cut short, and
the next start and every sweep finish it. A name is taken until its database is gone. Any database
may be deleted, `main` too; a request that names none then gets 404 until there is a `main` again.

A key that is limited to some databases sees and changes only those, and makes none: it could not
use what it made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from qserver.control.access import Access, no_database, not_among_its_databases
from qserver.control.background_tasks import BackgroundTasks
from qserver.control.databases import Databases
from qserver.control.records import TIERS, DatabaseFacts, DatabaseRecord, DatabaseState, Grant
from qserver.control.requests import Page, checked_name, require
from qserver.control.space import Space
from qserver.control.store import Store
from qserver.control.tokens import Mint
from qserver.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    QserverError,
    TooManyDatabases,
    UniqueViolation,
)
from qserver.limits import STATEMENT_SECONDS_MAX
from qserver.query.sql_database import Statement

_COLUMNS: Final = "d.id, o.name, d.organization_id, d.name, d.state, d.created_at, d.history"
_FROM: Final = "from databases d join organizations o on o.id = d.organization_id"
_SET_STATE: Final = "update databases set state = $2 where id = $1"


class DatabaseRecords:
    def __init__(
        self,
        store: Store,
        access: Access,
        databases: Databases,
        background_tasks: BackgroundTasks,
        mint: Mint,
        report: Callable[[str, Exception], None],
        space: Space,
    ) -> None:
        self._store = store
        self._access = access
        self._databases = databases
        self._background_tasks = background_tasks
        self._mint = mint
        self._report = report
        self._space = space
        self._under_way: set[str] = set()
        """Databases that are being made or deleted now; grows only under the store's lock."""

    # --- reading ---

    async def list_page(
        self, grant: Grant, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[DatabaseRecord], str | None]:
        """Return a page of the key's databases, oldest first, and the next cursor."""
        require(grant, "databases")
        page = Page("db", cursor, limit)
        parameters: list[Any] = [grant.organization_id, page.after, page.length + 1]
        only = ""
        if grant.database_ids is not None:
            only = "and d.id = any($4)"
            parameters.append(sorted(grant.database_ids))
        rows = await self._store.rows(
            f"select {_COLUMNS} {_FROM} where d.organization_id = $1 and d.id > $2 {only}"
            " order by d.id limit $3",
            *parameters,
        )
        return page.cut(rows, record_of)

    async def find(self, grant: Grant, name_or_id: str) -> tuple[DatabaseRecord, DatabaseFacts]:
        """Return a database by name or id, and its own figures; it is opened for that."""
        require(grant, "databases")
        record = await self._find(grant, name_or_id)
        if record.state != "ready":
            return record, DatabaseFacts(history=int(self._databases.history_of(record.id)))
        return record, await self._facts(grant, record)

    async def _facts(self, grant: Grant, record: DatabaseRecord) -> DatabaseFacts:
        with await self._access.database(grant, record.id) as opened:
            snapshot = await opened.database.wait_durable_snapshot(
                trio.current_time() + STATEMENT_SECONDS_MAX
            )
            tables = snapshot.catalog.tables.values()
            rows = sum(snapshot.count(table.id) for table in tables)
            size_bytes = self._databases.size_bytes(record.id)
            history = int(self._databases.history_of(record.id))
            return DatabaseFacts(snapshot.version, len(tables), rows, size_bytes, history)

    async def _find(self, grant: Grant, name_or_id: str) -> DatabaseRecord:
        for column in ("name", "id"):
            rows = await self._store.rows(
                f"select {_COLUMNS} {_FROM} where d.organization_id = $1 and d.{column} = $2",
                grant.organization_id,
                name_or_id,
            )
            if rows:
                record = record_of(rows[0])
                if not grant.may_use(record.id):
                    raise not_among_its_databases(name_or_id)
                return record
        raise no_database(name_or_id)

    async def _find_ready(self, grant: Grant, name_or_id: str) -> DatabaseRecord:
        record = await self._find(grant, name_or_id)
        if record.state == "deleting":
            raise no_database(name_or_id)
        if record.state == "creating":
            raise DatabaseUnavailable(
                f"the database {record.name!r} is still being made", hint="Try again."
            )
        return record

    # --- changing ---

    async def create(self, grant: Grant, name: str) -> DatabaseRecord:
        """Make a database; raise AlreadyExists if the name is taken."""
        require(grant, "databases")
        if grant.database_ids is not None:
            raise Forbidden(
                "this key is limited to some databases and cannot make another",
                hint="Use a key that is not limited.",
            )
        checked_name("a database", name)
        return await self._background_tasks.run(lambda: self._create(grant, name))

    async def _create(self, grant: Grant, name: str) -> DatabaseRecord:
        statement, record = self.insertion(grant.organization_id, grant.organization, name)
        async with self._store.changing(grant):
            await self._check_room(grant)
            try:
                await self._store.write(statement)
            except UniqueViolation:
                raise AlreadyExists(f"there is a database {name!r} already") from None
            self._under_way.add(record.id)
        try:
            return await self._finish_creation(record)
        except QserverError:
            await self._delete(record)
            raise
        finally:
            self._under_way.remove(record.id)

    async def _check_room(self, grant: Grant) -> None:
        count = await self._store.count(
            "select count(*) from databases where organization_id = $1", grant.organization_id
        )
        most = TIERS[grant.tier].databases
        if count >= most:
            raise TooManyDatabases(
                f"an organization of the tier {grant.tier} has at most {most} databases",
                hint="Delete one that is not needed.",
            )
        await self._space.check_room(grant.organization_id)

    def insertion(
        self, organization_id: str, organization: str, name: str
    ) -> tuple[Statement, DatabaseRecord]:
        now = self._store.now()
        database_id = self._mint.id("db", now.timestamp())
        statement = Statement(
            "insert into databases (id, organization_id, name, state, created_at)"
            " values ($1, $2, $3, 'creating', $4)",
            [database_id, organization_id, name, now],
        )
        return statement, DatabaseRecord(
            database_id, organization, organization_id, name, "creating", now
        )

    async def open_once(self, record: DatabaseRecord) -> None:
        """Prove that the database can be used: from here on its log exists."""
        (await self._databases.use(record.id)).release()

    async def _finish_creation(self, record: DatabaseRecord) -> DatabaseRecord:
        await self.open_once(record)
        await self._store.write(Statement(_SET_STATE, [record.id, "ready"]))
        return with_state(record, "ready")

    async def rename(self, grant: Grant, name_or_id: str, name: str) -> DatabaseRecord:
        """Give a database another name; its id and everything keyed by it stay."""
        require(grant, "databases")
        checked_name("a database", name)
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            try:
                await self._store.write(
                    Statement("update databases set name = $2 where id = $1", [record.id, name])
                )
            except UniqueViolation:
                raise AlreadyExists(f"there is a database {name!r} already") from None
            return await self._find(grant, record.id)

    async def change(
        self,
        grant: Grant,
        name_or_id: str,
        *,
        name: str | None = None,
        history: float | None = None,
    ) -> DatabaseRecord:
        """Rename a database, or have its older versions kept for so many seconds."""
        require(grant, "databases")
        if name is None and history is None:
            raise InvalidRequest("there is nothing to change", hint="Send a name or a history.")
        if name is not None:
            record = await self.rename(grant, name_or_id, name)
            name_or_id = record.id
        if history is not None:
            async with self._store.changing(grant):
                record = await self._find_ready(grant, name_or_id)
                text = "update databases set history = $2 where id = $1"
                await self._store.write(Statement(text, [record.id, history]))
                self._databases.keep_history(record.id, history)
        return await self._find(grant, name_or_id)

    async def load_histories(self) -> None:
        """Tell the databases which of them have a history of their own length."""
        text = "select id, history from databases where history is not null"
        for database_id, history in await self._store.rows(text):
            self._databases.keep_history(database_id, history)

    async def delete(self, grant: Grant, name_or_id: str) -> None:
        """Delete a database with all it holds; requests that use it have a moment to end."""
        require(grant, "databases")
        await self._background_tasks.run(lambda: self._mark_and_delete(grant, name_or_id))

    async def _mark_and_delete(self, grant: Grant, name_or_id: str) -> None:
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            await self._store.write(Statement(_SET_STATE, [record.id, "deleting"]))
            self._under_way.add(record.id)
        try:
            await self._remove(record)
        finally:
            self._under_way.remove(record.id)

    async def _delete(self, record: DatabaseRecord) -> None:
        """Delete a database that could not be made."""
        await self._store.write(Statement(_SET_STATE, [record.id, "deleting"]))
        await self._remove(record)

    async def _remove(self, record: DatabaseRecord) -> None:
        await self._databases.remove(record.id)
        self._space.forget(record.organization_id, record.id)
        await self._store.write(Statement("delete from databases where id = $1", [record.id]))

    # --- what was cut short ---

    async def finish_cut_short(self) -> None:
        """Go on where a crash, or a disk that failed, has left off."""
        rows = await self._store.rows(
            f"select {_COLUMNS} {_FROM} where d.state in ('creating', 'deleting')"
        )
        for record in map(record_of, rows):
            if await self._claim(record):
                try:
                    await self._finish(record)
                except QserverError as error:
                    self._report(f"database {record.id} stays {record.state}", error)
                finally:
                    self._under_way.remove(record.id)

    async def _claim(self, record: DatabaseRecord) -> bool:
        """Claim the record, unless its state has changed or another task works on it."""
        async with self._store.changing():
            states = await self._store.rows("select state from databases where id = $1", record.id)
            if states != [(record.state,)] or record.id in self._under_way:
                return False
            self._under_way.add(record.id)
            return True

    async def _finish(self, record: DatabaseRecord) -> None:
        if record.state == "creating":
            await self._finish_creation(record)
        else:
            await self._remove(record)

    async def undo(self, organization_id: str) -> None:
        """Remove all databases of an organization whose creation was cut short."""
        rows = await self._store.rows(
            f"select {_COLUMNS} {_FROM} where d.organization_id = $1", organization_id
        )
        for record in map(record_of, rows):
            await self._delete(record)


def record_of(row: tuple[Any, ...]) -> DatabaseRecord:
    return DatabaseRecord(*row)


def with_state(record: DatabaseRecord, state: DatabaseState) -> DatabaseRecord:
    return DatabaseRecord(
        record.id,
        record.organization,
        record.organization_id,
        record.name,
        state,
        record.created_at,
    )

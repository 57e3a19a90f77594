"""Databases as records: made, listed, renamed, deleted.

    creating ─── its log can be opened ──► ready ─── delete ──► deleting ─── log removed ──► (gone)
        └─────── it cannot: undone ─────────┬──────────────────────▲
                                            └─ delete, with branches ─► deleted ─ none is left ─┘

A record changes state before files do, and after: so the record shows what a crash cut short, and
the next start and every sweep finish it. A name is taken until its database is gone. Any database
may be deleted, `main` too; a request that names none then gets 404 until there is a `main` again.

Files of an organization are made and removed for one database at a time: each is synced several
times, and others' commits would wait for the syncs of as many as one organization asks for.

A key that is limited to some databases sees and changes only those, and makes none: it could not
use what it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
import trio

from qserver.control.access import Access, no_database, not_among_its_databases
from qserver.control.background_tasks import BackgroundTasks
from qserver.control.branches import Branches, Origin
from qserver.control.databases import Databases, OpenDatabase
from qserver.control.owners import Owners
from qserver.control.records import DatabaseFacts, DatabaseRecord, DatabaseState, Grant
from qserver.control.requests import Page, checked_name, require
from qserver.control.space import Space
from qserver.control.store import Store
from qserver.control.tokens import Mint
from qserver.durability.handing_over import Handover
from qserver.errors import (
    AlreadyExists,
    ChangeUnconfirmed,
    DatabaseMoved,
    DatabaseUnavailable,
    DiskFull,
    Forbidden,
    InvalidRequest,
    NotFound,
    QserverError,
    UniqueViolation,
)
from qserver.limits import BRANCH_SECONDS, NAME_LENGTH_MAX, PROCESSES_MAX
from qserver.query.sql_database import Statement

_COLUMNS: Final = (
    "d.id, o.name, d.organization_id, d.name, d.state, d.created_at,"
    " d.branch_of, p.name, d.branch_version, d.expires_at, d.history, d.family, d.replicas"
)
_FROM: Final = (
    "from databases d join organizations o on o.id = d.organization_id"
    " left join databases p on p.id = d.branch_of"
)
_ADVANCE: Final = "update databases set state = $2 where id = $1 and state = any($3)"
_SET_STATE: Final = "update databases set state = $2 where id = $1"


class DatabaseRecords:
    def __init__(
        self,
        store: Store,
        access: Access,
        databases: Databases,
        owners: Owners,
        background_tasks: BackgroundTasks,
        mint: Mint,
        report: Callable[[str, Exception], None],
        space: Space,
    ) -> None:
        self._store = store
        self._access = access
        self._databases = databases
        self._owners = owners
        self._background_tasks = background_tasks
        self._mint = mint
        self._report = report
        self._space = space
        self._branches = Branches(store, access, databases)
        self._under_way: set[str] = set()
        """Databases that are being made or deleted now; grows only under the store's lock."""
        self._turns: WeakValueDictionary[str, trio.Lock] = WeakValueDictionary()

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
            " and d.state <> 'deleted' order by d.id limit $3",
            *parameters,
        )
        return page.cut(rows, record_of)

    async def find(self, grant: Grant, name_or_id: str) -> tuple[DatabaseRecord, DatabaseFacts]:
        """Return a database by name or id, with its statistics, for which it is opened."""
        require(grant, "databases")
        record = await self._find(grant, name_or_id)
        if record.state != "ready":
            return record, DatabaseFacts(history=int(self._databases.history_of(record.id)))
        left = grant.deadline() - trio.current_time()
        found = await self._owners.ask_owner(record.family, "facts", record.id, left)
        return record, DatabaseFacts(*found)

    async def _find(self, grant: Grant, name_or_id: str) -> DatabaseRecord:
        for column in ("name", "id"):
            rows = await self._store.rows(
                f"select {_COLUMNS} {_FROM} where d.organization_id = $1 and d.{column} = $2"
                " and d.state <> 'deleted'",
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
        """Find it under the lock; it may not be the one that `_check_here` has found."""
        record = await self._find(grant, name_or_id)
        self._owners.check_here(record.family)
        if record.state == "deleting":
            raise no_database(name_or_id)
        if record.state == "creating":
            raise DatabaseUnavailable(
                f"the database {record.name!r} is still being made", hint="Try again."
            )
        return record

    async def _check_here(self, grant: Grant, name_or_id: str) -> None:
        """Raise OwnedElsewhere, before anything changes, if another process owns the database."""
        if not self._owners.is_alone:
            self._owners.check_here((await self._find(grant, name_or_id)).family)

    # --- changing ---

    async def create(self, grant: Grant, name: str, origin: Origin | None = None) -> DatabaseRecord:
        """Make a database, or a branch of one; raise AlreadyExists if the name is taken."""
        require(grant, "databases")
        if origin is not None:
            require(grant, "data:read")
        if grant.database_ids is not None:
            raise Forbidden(
                "this key is limited to some databases and cannot make another",
                hint="Use a key that is not limited.",
            )
        checked_name("a database", name)
        if origin is not None:
            await self._check_here(grant, origin.database)
        else:
            process = self._owners.process_for(grant.organization_id, name)
            self._owners.check_process(process)
        return await self._background_tasks.run(lambda: self._create(grant, name, origin))

    async def create_for_transaction(self, grant: Grant, database: str | None) -> DatabaseRecord:
        """Make a branch for the changes of one transaction; it expires unless it is kept."""
        parent = await self._find(grant, database or grant.database)
        suffix = f"-branch-{self._mint.id('', self._store.now().timestamp())[-8:]}"
        name = parent.name[: NAME_LENGTH_MAX - len(suffix)] + suffix
        return await self.create(grant, name, Origin(parent.id, seconds=BRANCH_SECONDS))

    async def _create(self, grant: Grant, name: str, origin: Origin | None) -> DatabaseRecord:
        async with self._store.changing(grant):
            await self._check_room(grant, is_branch=origin is not None)
            parent = None if origin is None else await self._find_ready(grant, origin.database)
            statement, record = self.insertion(
                grant.organization_id, grant.organization, name, parent, origin
            )
            try:
                await self._store.write(statement)
            except UniqueViolation:
                raise AlreadyExists(f"there is a database {name!r} already") from None
            self._under_way.add(record.id)
        try:
            async with self._turn_of(record):
                return await self._fill(record, parent, origin)
        except ChangeUnconfirmed:
            raise  # it may be ready, and in use: a sweep goes on from what it is
        except QserverError:
            with suppress(NotFound):
                await self._delete(await self._read_again(record))
            raise
        finally:
            self._under_way.remove(record.id)

    async def _fill(
        self, record: DatabaseRecord, parent: DatabaseRecord | None, origin: Origin | None
    ) -> DatabaseRecord:
        handover = None
        if parent is not None and origin is not None:
            handover = await self._branches.fill(record, origin)
            record = await self._read_again(record)
            if record.parent_id != parent.id:
                await self._remove_needless(parent.id)
        if record.history is not None:
            self._databases.keep_history(record.id, record.history)
        made = await self._finish_creation(record, handover)
        if record.parent_id is not None:
            self._branches.shorten_log(record.parent_id)
        return made

    def _turn_of(self, record: DatabaseRecord) -> trio.Lock:
        """Return what is held while files of its organization are made or removed."""
        return self._turns.setdefault(record.organization_id, trio.Lock())

    async def _read_again(self, record: DatabaseRecord) -> DatabaseRecord:
        """Return the present record; a branch may have got another parent."""
        rows = await self._store.rows(f"select {_COLUMNS} {_FROM} where d.id = $1", record.id)
        if not rows:
            raise no_database(record.name)
        return record_of(rows[0])

    async def _check_room(self, grant: Grant, *, is_branch: bool) -> None:
        if is_branch and await self.count_branches(grant.organization_id) >= grant.limits.branches:
            raise DiskFull(
                f"the organization has at most {grant.limits.branches} branches",
                hint="Delete one that is not needed.",
            )
        count = await self._store.count(
            "select count(*) from databases where organization_id = $1 and state <> 'deleted'",
            grant.organization_id,
        )
        most = grant.limits.databases
        if count >= most:
            raise DiskFull(
                f"the organization has at most {most} databases",
                hint="Delete one that is not needed.",
            )
        await self._space.check_room(grant.organization_id)

    async def count_branches(self, organization_id: str) -> int:
        return await self._store.count(
            "select count(*) from databases where organization_id = $1 and state <> 'deleted'"
            " and branch_of is not null",
            organization_id,
        )

    def insertion(
        self,
        organization_id: str,
        organization: str,
        name: str,
        parent: DatabaseRecord | None = None,
        origin: Origin | None = None,
        process: int | None = None,
    ) -> tuple[Statement, DatabaseRecord]:
        """Return a new record, and what inserts it; `process` owns it, by default this one."""
        now = self._store.now()
        seconds = None if origin is None else origin.seconds
        expires_at = None if seconds is None else now + timedelta(seconds=seconds)
        process = self._owners.process if process is None else process
        new_id = self._owners.new_id(self._mint, now.timestamp(), process)
        record = DatabaseRecord(
            new_id,
            organization,
            organization_id,
            name,
            "creating",
            now,
            None if parent is None else parent.id,
            None if parent is None else parent.name,
            None,
            expires_at,
            None if parent is None else parent.history,
            new_id if parent is None else parent.family,
        )
        statement = Statement(
            "insert into databases (id, organization_id, name, state, created_at, branch_of,"
            " expires_at, history, family) values ($1, $2, $3, 'creating', $4, $5, $6, $7, $8)",
            [
                record.id,
                organization_id,
                name,
                now,
                record.parent_id,
                expires_at,
                record.history,
                record.family,
            ],
        )
        return statement, record

    async def open_once(self, record: DatabaseRecord, handover: Handover | None = None) -> None:
        """Prove that the database can be used: from here on its log exists."""
        if handover is None:
            await self._owners.ask_owner(record.family, "open", record.id)
        else:
            (await self._databases.use(record.id, handover)).release()

    async def _finish_creation(
        self, record: DatabaseRecord, handover: Handover | None = None
    ) -> DatabaseRecord:
        await self.open_once(record, handover)
        if await self._advance(record, ("creating",), "ready"):
            return with_state(record, "ready")
        raise DatabaseMoved(
            f"another node has removed {record.name!r} while it was made", hint="Try again."
        )

    async def _advance(
        self, record: DatabaseRecord, states: Sequence[str], state: DatabaseState
    ) -> bool:
        """Set a record's state if it is one of these, and return whether it is that now.

        Another node, which owned the family before or since, may have been faster.
        """
        await self._store.write(Statement(_ADVANCE, [record.id, state, list(states)]))
        found = await self._store.rows("select state from databases where id = $1", record.id)
        return [tuple(each) for each in found] == [(state,)]

    async def keep(self, grant: Grant, name_or_id: str) -> DatabaseRecord:
        """Keep a branch that would expire."""
        require(grant, "databases")
        await self._check_here(grant, name_or_id)
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            await self._store.write(
                Statement("update databases set expires_at = null where id = $1", [record.id])
            )
            return await self._find(grant, record.id)

    async def rename(self, grant: Grant, name_or_id: str, name: str) -> DatabaseRecord:
        """Give a database another name; its id and everything keyed by it stay."""
        require(grant, "databases")
        checked_name("a database", name)
        await self._check_here(grant, name_or_id)
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            try:
                await self._store.write(
                    Statement("update databases set name = $2 where id = $1", [record.id, name])
                )
            except UniqueViolation:
                raise AlreadyExists(f"there is a database {name!r} already") from None
            return await self._find(grant, record.id)

    async def keep_history(self, grant: Grant, name_or_id: str, history: float) -> None:
        """Set for how many seconds the older versions of a database are kept."""
        require(grant, "databases")
        await self._check_here(grant, name_or_id)
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            text = "update databases set history = $2 where id = $1"
            await self._store.write(Statement(text, [record.id, history]))
            self._databases.keep_history(record.id, history)

    async def set_replicas(self, grant: Grant, name_or_id: str, replicas: int | None) -> None:
        """Set how many other processes may follow a database; None: as the service does."""
        require(grant, "databases")
        if replicas is not None and not 0 <= replicas < PROCESSES_MAX:
            raise InvalidRequest(f"replicas is from 0 to {PROCESSES_MAX - 1}, or null")
        await self._check_here(grant, name_or_id)
        async with self._store.changing(grant):
            record = await self._find_ready(grant, name_or_id)
            text = "update databases set replicas = $2 where id = $1"
            await self._store.write(Statement(text, [record.id, replicas]))

    async def load_histories(self) -> None:
        """Load the databases' own settings of history."""
        text = "select id, history from databases where history is not null"
        for database_id, history in await self._store.rows(text):
            self._databases.keep_history(database_id, history)

    async def delete(self, grant: Grant, name_or_id: str) -> None:
        """Delete a database with its contents; requests that use it have a moment to end."""
        require(grant, "databases")
        await self._check_here(grant, name_or_id)
        await self._background_tasks.run(lambda: self._mark_and_delete(grant, name_or_id))

    async def _mark_and_delete(self, grant: Grant, name_or_id: str) -> None:
        async with self._store.changing(grant):
            record = await self._begin_deletion(await self._find_ready(grant, name_or_id))
            self._under_way.add(record.id)
        try:
            await self._databases.close(record.id)
            async with self._turn_of(record):
                await self._finish(record)
        finally:
            self._under_way.remove(record.id)

    async def _begin_deletion(self, record: DatabaseRecord) -> DatabaseRecord:
        """Mark a database, under the lock; frees its name if branches still need its file."""
        if await self._branches.count(record.id):
            await self._store.write(
                Statement(
                    "update databases set state = 'deleted', name = id, history = 0 where id = $1",
                    [record.id],
                )
            )
            return with_state(record, "deleted")
        await self._store.write(Statement(_SET_STATE, [record.id, "deleting"]))
        return with_state(record, "deleting")

    async def _delete(self, record: DatabaseRecord) -> None:
        """Delete a database whose creation failed, unless another node has finished it."""
        if await self._advance(record, ("creating", "deleting"), "deleting"):
            await self._remove(record)

    async def _remove(self, record: DatabaseRecord) -> None:
        """Remove the files, then unpin the parent's pages, then delete the record."""
        await self._owners.ask_owner(record.family, "remove", record.id)
        self._space.forget(record.organization_id, record.id)
        if record.parent_id is not None:
            await self._branches.unpin(record.parent_id, record.id)
        await self._store.write(Statement("delete from databases where id = $1", [record.id]))
        if record.parent_id is not None:
            await self._remove_needless(record.parent_id)

    async def _remove_needless(self, database_id: str) -> None:
        """Remove a deleted database that no branch needs any more."""
        async with self._store.changing():
            rows = await self._store.rows(
                f"select {_COLUMNS} {_FROM} where d.id = $1 and d.state = 'deleted'", database_id
            )
            if not rows or database_id in self._under_way:
                return
            if await self._branches.count(database_id):
                return
            record = with_state(record_of(rows[0]), "deleting")
            await self._store.write(Statement(_SET_STATE, [database_id, "deleting"]))
            self._under_way.add(database_id)
        try:
            await self._remove(record)
        finally:
            self._under_way.remove(database_id)

    # --- what was cut short ---

    async def finish_cut_short(self) -> None:
        """Finish what a crash, or a failed disk, interrupted."""
        rows = await self._store.rows(
            f"select {_COLUMNS} {_FROM} where d.state <> 'ready' and o.state = 'ready'"
            " order by d.id desc"
        )
        records = self._of_this_process(rows)
        for record in records:
            if await self._claim(record):
                try:
                    await self._finish(record)
                except QserverError as error:
                    self._report(f"database {record.id} stays {record.state}", error)
                finally:
                    self._under_way.discard(record.id)
        for record in records:
            if record.state == "deleted":
                await self._remove_needless(record.id)

    async def delete_expired(self) -> None:
        """Delete branches that have expired."""
        rows = await self._store.rows(
            f"select {_COLUMNS} {_FROM} where d.state = 'ready' and d.expires_at <= $1",
            self._store.now(),
        )
        for record in self._of_this_process(rows):
            if await self._claim(record):
                try:
                    async with self._store.changing():
                        marked = await self._begin_deletion(record)
                    await self._finish(marked)
                except QserverError as error:
                    self._report(f"branch {record.id} is not deleted yet", error)
                finally:
                    self._under_way.discard(record.id)

    def _of_this_process(self, rows: Iterable[tuple[Any, ...]]) -> list[DatabaseRecord]:
        records = map(record_of, rows)
        return [each for each in records if self._owners.is_here(each.family)]

    async def take_back_records(self) -> None:
        """Let databases forget records that they keep only for branches."""
        for each in self._databases.all_open():
            if each.database.held_by:
                parent = self._databases.use_nowait(each.id)
                if parent is not None:
                    with parent:
                        await self._take_back(parent)

    async def _take_back(self, parent: OpenDatabase) -> None:
        try:
            await self._branches.take_back_records(parent)
        except QserverError as error:
            self._report(f"database {parent.id} keeps records for its branches", error)

    async def _claim(self, record: DatabaseRecord) -> bool:
        """Claim the record, unless its state has changed or another task works on it."""
        async with self._store.changing():
            states = await self._store.rows("select state from databases where id = $1", record.id)
            if states != [(record.state,)] or record.id in self._under_way:
                return False
            self._under_way.add(record.id)
            return True

    async def _finish(self, record: DatabaseRecord) -> None:
        if record.state == "creating" and record.parent_id is None:
            await self._finish_creation(record)
        elif record.state == "deleted":
            await self._branches.empty(record.id)
        elif record.state == "creating":  # nobody knows how much of a branch is there
            await self._delete(record)
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
    return msgspec.structs.replace(record, state=state)

"""Branches: databases that begin as a version of another one, and share its pages.

    record: creating ─► the parent's checkpoint is pinned ─► the branch's log is written ─► ready
    record: deleting ─► the branch's log is removed ─► the checkpoint is unpinned ─► no record

The pin's name is the id of the branch, so each step can be repeated. The record exists before the
pin and longer than it: a crash leaves a record that says what to undo, never an unknown pin, and
never a branch without its pin.

A branch of a branch may begin at a version from before its parent was made. That version is in the
log of the grandparent, so the grandparent becomes the parent; the record says so before anything is
pinned there.

A parent that is deleted before its branches keeps its file, with only the pages that they need: a
commit drops everything, and a checkpoint forgets the other pages. Its bytes still count for its
organization. The last branch to be deleted removes it.

A branch borrows the log after the shared checkpoint from its parent (`durability.branch_log`). It
does not replay the log if it begins with the newest version: its parent hands over what it has in
memory (`durability.handing_over`). So making a branch waits for no checkpoint, and takes as long
after a thousand commits as after one. If the log is long, the parent begins a checkpoint
afterwards: the next branches have less to save a second time.

Records are lent until the branch needs them no longer. A parent that keeps them for its branches
alone takes them back: the branches copy what they need, or save a checkpoint.
"""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.control.access import Access
from qserver.control.databases import Databases, OpenDatabase
from qserver.control.records import DatabaseRecord
from qserver.control.reset import wipe
from qserver.control.store import Store
from qserver.durability.handing_over import Handover
from qserver.engine.history import AsOf
from qserver.errors import HistoryTooOld
from qserver.query.sql_database import Statement

LOG_SHORT_BYTES: Final = 256 * 1024
"""So much log may be behind a checkpoint of which branches are made: some thousand rows."""


class Origin(msgspec.Struct, frozen=True):
    """The database and version that a branch is made from."""

    database: str
    """The parent's name or id."""
    as_of: AsOf | None = None
    """A version or a time; None: the newest."""
    seconds: float | None = None
    """How long it lives unless somebody keeps it; None: until it is deleted."""


class Branches:
    def __init__(self, store: Store, access: Access, databases: Databases) -> None:
        self._store = store
        self._access = access
        self._databases = databases

    async def count(self, database_id: str) -> int:
        """Count the branches that need a database's file."""
        return await self._store.count(
            "select count(*) from databases where branch_of = $1", database_id
        )

    async def fill(self, record: DatabaseRecord, origin: Origin) -> Handover | None:
        """Make the log of a branch that has a record; return what it begins with, if known."""
        parent_id, wanted = record.parent_id, None
        assert parent_id is not None
        if origin.as_of is not None:
            with await self._databases.use(parent_id) as parent:
                wanted = await parent.database.version_at(origin.as_of)
        made = None
        while made is None:
            try:
                with await self._databases.use(parent_id) as parent:
                    made = await self._written(record.id, parent, wanted)
            except HistoryTooOld:
                elder = None if wanted is None else await self._parent_of(parent_id, wanted)
                if elder is None:
                    raise
                parent_id = elder
                await self._set(record.id, "branch_of", elder)
        version, handover = made
        await self._set(record.id, "branch_version", version)
        return handover

    async def _set(self, branch_id: str, column: str, value: str | int) -> None:
        statement = f"update databases set {column} = $2 where id = $1"
        await self._store.write(Statement(statement, [branch_id, value]))

    async def _parent_of(self, branch_id: str, version: int) -> str | None:
        """Return the parent of a branch, if the two share a version."""
        rows = await self._store.rows(
            "select branch_of from databases where id = $1 and branch_version >= $2",
            branch_id,
            version,
        )
        return rows[0][0] if rows else None

    async def _written(
        self, branch_id: str, parent: OpenDatabase, wanted: int | None
    ) -> tuple[int, Handover | None]:
        """Write the log of a branch; return its version, and what it begins with if known."""
        database = parent.database
        if wanted is None:
            await database.make_room_for_branch()
        newest = await database.wait_durable_snapshot()
        version = newest.version if wanted is None else wanted
        kept = await database.pin_checkpoint(branch_id, version)
        if kept is None:
            raise HistoryTooOld(
                f"version {version} is not kept any more", hint="Name a newer version, or none."
            )
        handover = database.hand_over(newest, kept) if version == newest.version else None
        logs = self._databases.logs
        await logs.branch(branch_id, parent.id, database.log, kept, version)
        return version, handover

    async def take_back_records(self, parent: OpenDatabase) -> None:
        """Take back the records that a parent keeps for its branches alone.

        A branch that is being made or deleted now has its turn later.
        """
        held_by = parent.database.held_by
        for branch_id in held_by:
            branch = await self._access.whole(branch_id)
            if branch is not None:
                with branch:
                    await branch.database.stop_borrowing()
                await parent.database.take_back_records(branch_id)
        if held_by:
            parent.database.save_soon()

    def shorten_log(self, parent_id: str) -> None:
        """Let a parent begin a checkpoint, if its log is long; nobody waits for it."""
        parent = self._databases.use_nowait(parent_id)
        if parent is not None:
            with parent:
                parent.database.save_long_log(LOG_SHORT_BYTES)

    async def unpin(self, parent_id: str, branch_id: str) -> None:
        """Unpin the checkpoint of its parent that a branch has needed."""
        with await self._databases.use(parent_id) as parent:
            await parent.database.wait_durable_snapshot()
            await parent.database.unpin_checkpoint(branch_id)
            parent.database.save_soon()

    async def empty(self, database_id: str) -> None:
        """Forget everything of a deleted database that no branch needs, with its history.

        The database is closed first, like one that is removed, so nobody uses it any more.
        """
        await self._databases.close(database_id)
        self._databases.keep_history(database_id, 0.0)
        with await self._databases.use(database_id) as opened:
            snapshot = await opened.database.wait_durable_snapshot()
            if snapshot.catalog.tables or snapshot.catalog.others:
                await opened.database.transact(wipe)
            del snapshot
            await opened.database.checkpoint()
            if opened.database.held_by:
                await self.take_back_records(opened)
                await opened.database.checkpoint()

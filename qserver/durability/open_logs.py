"""The open logs, each opened once: a branch also uses those of its ancestors.

    acquire branch ─► its own file ─► its base names main ─► acquire main ─► BranchLog
    release branch ─► its own file closed ─► release main ─► closed, unless somebody else uses it

So a branch can load pages of a parent that is open, closed, or deleted except for its file, and no
file is ever opened twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import trio

from qserver.durability.branch_log import BranchLog, begin_branch, read_base
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.port import Log

Own = TypeVar("Own", bound=Log)


class OpenLogs(Generic[Own]):
    def __init__(
        self,
        open_one: Callable[[str, bool], Awaitable[Own]],
        close_one: Callable[[str, Own], Awaitable[None]],
    ) -> None:
        """`open_one` receives a name, and whether it may create the log."""
        self._open_one = open_one
        self._close_one = close_one
        self._entries: dict[str, _Entry[Own]] = {}

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        """Open the log of a database; only one caller at a time has it open so."""
        async with self._held(name, may_make=True) as entry:
            assert not entry.is_used, f"the log {name} is open already"
            entry.is_used = True
            try:
                assert entry.log is not None
                yield entry.log
            finally:
                entry.is_used = False

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        """Make the log of a branch, of a parent that has pinned a checkpoint for it."""
        async with self.hold(name, may_make=True) as (own, _):
            await begin_branch(own, parent_log, parent, kept, version)

    @asynccontextmanager
    async def hold(self, name: str, *, may_make: bool = False) -> AsyncIterator[tuple[Own, Log]]:
        """Hold a log that others may have open, too: its own part, and with its ancestors'."""
        async with self._held(name, may_make) as entry:
            assert entry.own is not None and entry.log is not None
            yield entry.own, entry.log

    @asynccontextmanager
    async def _held(self, name: str, may_make: bool) -> AsyncIterator[_Entry[Own]]:
        entry = await self._acquire(name, may_make)
        try:
            yield entry
        finally:
            with trio.CancelScope(shield=True):
                await self._release(entry)

    def own(self, name: str) -> Own | None:
        """Return the log's own part, if it is open."""
        entry = self._entries.get(name)
        return None if entry is None else entry.own

    def is_open(self, name: str) -> bool:
        return name in self._entries

    async def _acquire(self, name: str, may_make: bool) -> _Entry[Own]:
        entry = self._entries.setdefault(name, _Entry(name))
        entry.users += 1
        try:
            async with entry.lock:
                if entry.log is None:
                    await self._open(entry, may_make)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._release(entry)
            raise
        return entry

    async def _open(self, entry: _Entry[Own], may_make: bool) -> None:
        if entry.own is None:
            entry.own = await self._open_one(entry.name, may_make)
            entry.own.borrowed.clear()
        base = read_base(entry.own)
        if base is None:
            entry.log = entry.own
            return
        entry.parent = await self._acquire(base.parent, may_make=False)
        assert entry.parent.log is not None
        entry.log = BranchLog(entry.own, base, entry.parent.log)

    async def _release(self, entry: _Entry[Own]) -> None:
        entry.users -= 1
        async with entry.lock:
            if entry.users:
                return
            own, parent = entry.own, entry.parent
            entry.own = entry.parent = entry.log = None
            try:
                if own is not None:
                    await self._close_one(entry.name, own)
            finally:
                if not entry.users:
                    self._entries.pop(entry.name, None)
                if parent is not None:
                    await self._release(parent)

    def __repr__(self) -> str:
        return f"{len(self._entries)} open logs"


class _Entry(Generic[Own]):
    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0
        """The database, and branches of it; those that wait for it to open are among them."""
        self.is_used = False
        """Whether the database itself is among them."""
        self.lock = trio.Lock()
        """Held while it is opened or closed."""
        self.own: Own | None = None
        self.log: Log | None = None
        self.parent: _Entry[Own] | None = None

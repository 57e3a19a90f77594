"""A process of a family of branches, see `branches`: its logs and databases, until it crashes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import trio

from qserver.durability.handing_over import Handover
from qserver.durability.open_logs import OpenLogs
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.mailbox import Mailbox
from qserver.errors import DatabaseUnavailable, LogFailed, LogTaken
from simulations.branch_members import Member
from simulations.disk import Disk, DiskHandle
from simulations.faults import Profile
from simulations.world import ACTOR, SimulatedWorld


class FamilyWorld(SimulatedWorld):
    def mailbox(self, name: str, capacity: int) -> Any:
        return Mailbox[Any](name, capacity)

    async def stand_at_await_point(self) -> None:
        if ACTOR.get() in self._actors:
            await super().stand_at_await_point()
        else:  # a client pins, unpins or copies
            self.let_pages_go()
            await trio.lowlevel.checkpoint()


class ProcessCrashed(Exception):
    """The process that a client used has crashed."""


class OpensLogs(Protocol):
    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        """Open the log of a database for the length of a block."""


class Process:
    """One life: open logs, and the databases that run on them."""

    def __init__(
        self,
        profile: Profile,
        world: SimulatedWorld,
        members: dict[str, Member],
        disk: Callable[[str, bool], Disk],
    ) -> None:
        """`disk` returns that of a database; it may make one if it is told so."""
        self._profile = profile
        self._world = world
        self._members = members
        self._disk = disk
        self.handles: list[tuple[Disk, DiskHandle]] = []
        self.scope = trio.CancelScope()
        self.requests: set[trio.CancelScope] = set()
        self.up = trio.Event()
        self.databases: dict[str, Database] = {}
        self.opening: dict[str, trio.Event] = {}
        """Set when it is open, or could not be opened."""
        self.endings: dict[str, tuple[trio.CancelScope, trio.Event]] = {}
        self.logs: OpensLogs = OpenLogs(self._open_one, self._close_one)
        self.nursery: trio.Nursery | None = None

    async def _open_one(self, name: str, may_make: bool) -> DiskHandle:
        await trio.lowlevel.checkpoint()
        disk = self._disk(name, may_make)
        handle = disk.connect()
        self.handles.append((disk, handle))
        return handle

    async def _close_one(self, name: str, handle: DiskHandle) -> None:
        """Leave the disk to the next handle, whose operations wait for those under way."""
        await trio.lowlevel.checkpoint()

    async def open(self, name: str, handover: Handover | None = None) -> Database:
        if name not in self.opening:
            assert self.nursery is not None
            self.opening[name] = trio.Event()
            self.nursery.start_soon(self._host, name, self.opening[name], handover)
        await self.opening[name].wait()
        if name not in self.databases:
            raise DatabaseUnavailable(f"{name} could not be opened")
        return self.databases[name]

    async def _host(self, name: str, opened: trio.Event, handover: Handover | None) -> None:
        world = self._world
        scope, ended = self.endings[name] = (trio.CancelScope(), trio.Event())
        try:
            with scope:
                async with self.logs.open(name) as log:
                    database = self.databases[name] = Database(
                        log,
                        world,
                        name=name,
                        shards=2,
                        policy=self.policy_of(name),
                        cache=world.cache,
                        handover=handover,
                        followed=self._followed(name),
                    )
                    handover = None
                    opened.set()
                    await database.run()
        except (LogFailed, LogTaken):
            pass  # the next who wants it tries again
        finally:
            self.databases.pop(name, None)
            del self.opening[name]
            opened.set()
            ended.set()

    def policy_of(self, name: str) -> CheckpointPolicy:
        profile, member = self._profile, self._members.get(name)
        is_gone = member is None or member.state == "deleted"
        return CheckpointPolicy(
            profile.checkpoint_log_bytes,
            profile.checkpoint_seconds,
            profile.checkpoint_pages_at_once,
            history=0.0 if is_gone else profile.history,
        )

    def _followed(self, name: str) -> Recovered | None:
        """Return what this process has followed of a database, if it did."""
        return None

    async def close(self, name: str) -> None:
        if name in self.opening:
            await self.opening[name].wait()
        if name in self.databases:
            scope, ended = self.endings[name]
            scope.cancel()
            await ended.wait()

"""A database that another process owns: applies its records here, for readers.

    messages of `following` ─► record ─► the next snapshot ─► shown, watches and waiters woken
                            └► base ───► a snapshot of its own pages, in place of everything before

It is a `ReadableDatabase` without a writer. It never goes back, and never leaves a version out: a
message that does not continue what it has is refused, and whoever reads the stream asks for a new
one, from `version` on. While there is none it goes on showing the version that it has.

Pages are its own: a base brings them into a log in memory, as bytes, from where they are loaded on
demand like those of a file; and a checkpointer saves new ones there. So memory has a page packed
once, and the shared cache decides what is unpacked. The log has no records: who loses this process
loses nothing, and an older version than the newest can be read where the database is owned.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.pauses import in_steps
from qserver.durability.port import Log, StoredRecord
from qserver.durability.recovery import RECORD_BYTES_LONG, Recovered, recover
from qserver.engine.catch_up import append_of
from qserver.engine.checkpointer import Checkpointer, CheckpointPolicy
from qserver.engine.following import Message
from qserver.engine.freshness import FreshSnapshots
from qserver.engine.history import AsOf
from qserver.engine.observers import Observer
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.versions import EngineRestarted, Versions
from qserver.engine.watches import Watches, WatchesStatistics
from qserver.engine.work import FOREVER, before
from qserver.engine.world import World
from qserver.engine.yielding import yield_to_others
from qserver.errors import DatabaseUnavailable, HistoryTooOld
from qserver.limits import SHARDS_DEFAULT
from qserver.storage.snapshot import Snapshot
from qserver.values.steps import at_once


class DoesNotFollow(Exception):  # for whoever reads the stream, not for users
    """A message does not continue what the follower has: ask for a stream from `version` on."""


class FollowerStatistics(msgspec.Struct, frozen=True):
    name: str
    version: int | None
    records: int
    """Records that were applied."""
    bases: int
    page_loads: int
    watches: WatchesStatistics


class FollowedDatabase(FreshSnapshots):
    """Start `run` in a nursery, and give the messages of one stream after the other to `follow`."""

    writer = None

    def __init__(
        self,
        world: World,
        *,
        name: str = "main",
        shards: int = SHARDS_DEFAULT,
        policy: CheckpointPolicy | None = None,
        cache: PageCache | None = None,
    ) -> None:
        """`policy`: when new pages are packed and may be evicted."""
        self.name = name
        self.page_cache = PageCache() if cache is None else cache
        self.snapshots = SnapshotSource()
        self.watches = Watches(self.snapshots)
        self._observers: tuple[Observer, ...] = (self.watches,)
        self._world = world
        self._shards = shards
        self._policy = policy or CheckpointPolicy()
        self._checkpointer: Checkpointer | None = None
        """Has the snapshot and the pages, from the first base on."""
        self._life = trio.CancelScope()
        self._checkpoints = trio.CancelScope()
        """Ends with the base that the checkpointer saves."""
        self._changed = trio.Event()
        self._applying = trio.Lock()
        self._records = self._bases = 0

    async def run(self) -> None:
        """Save pages, until closed or cancelled."""
        try:
            with self._life:
                while True:
                    checkpointer = self._checkpointer
                    if checkpointer is None:
                        await self._changed.wait()
                        continue
                    try:
                        with trio.CancelScope() as self._checkpoints:
                            await checkpointer.run()
                    finally:
                        self._let_go(checkpointer)
        finally:
            self.close()

    def close(self) -> None:
        """Show nothing from now on, and let `run` end."""
        self._life.cancel()
        self.snapshots.shut()
        if self._checkpointer is not None:
            self._let_go(self._checkpointer)
            self._close_pages(self._checkpointer.saved.store)
        self._tell()
        for observer in self._observers:
            observer.changed()

    @property
    def version(self) -> int | None:
        """The version that was applied last; None before the first base."""
        return None if self._checkpointer is None else self._checkpointer.versions.durable.version

    async def wait_applied(self, version: int = 0) -> None:
        """Wait until a version was applied, whether or not it may be shown."""
        while self.version is None or self.version < version:
            self._check_open()
            await self._changed.wait()

    # --- messages ---

    async def follow(self, messages: AsyncGenerator[Message, None]) -> None:
        """Apply the messages of a stream until it ends, and close it.

        Raises DoesNotFollow, and what the stream raises.
        """
        log, pages = None, 0
        async with aclosing(messages):
            async for message in messages:
                async with self._applying:
                    if message[0] == "pages":
                        if message[1][0][0] != pages + 1:
                            raise DoesNotFollow(f"page {message[1][0][0]} comes after {pages}")
                        log = log or self._new_log()
                        await log.save_pages(message[1])
                        pages = message[1][-1][0]
                    elif message[0] == "base":
                        log = log or self._new_log()
                        await log.save_checkpoint(message[1], message[2])
                        await self._begin(log, message[1], pages)
                        log, pages = None, 0
                    else:
                        await self._keep(message[1])
                        for record in message[1]:
                            await self._apply(record)
                            await trio.lowlevel.checkpoint()

    def _new_log(self) -> Log:
        """Return a log for the pages of the next base."""
        return MemoryLog()

    def _pages_of(self, log: Log) -> LoggedPages:
        return LoggedPages(log, self.page_cache, self._world.report)

    async def _keep(self, records: list[StoredRecord]) -> None:
        """Called with records before they are applied: this follower keeps none."""

    async def _begin(self, log: Log, version: int, pages: int) -> None:
        """Begin anew with a base; `pages`: the last one that came."""
        if self.version is not None and version < self.version:
            raise DoesNotFollow(f"version {version} is older than {self.version}")
        recovered = await recover(log, self._shards, self._pages_of(log))
        if recovered.saved.count != pages:
            self.page_cache.close(recovered.saved.store)
            raise DoesNotFollow(f"a base has {recovered.saved.count} pages, and {pages} came")
        self._begin_with(log, recovered)
        self._bases += 1

    def _begin_with(self, log: Log, recovered: Recovered) -> None:
        versions = Versions(recovered.snapshot, self._world.now)
        self._check_open()
        if self._checkpointer is not None:
            for observer in self._observers:
                observer.restarting(self._checkpointer.versions.durable)
            self._let_go(self._checkpointer)
        report = self._world.report
        self._checkpointer = Checkpointer(log, versions, recovered, self._policy, report)
        self.snapshots.follow(versions)
        self._tell()

    async def _apply(self, stored: StoredRecord) -> None:
        checkpointer = self._checkpointer
        if checkpointer is None or stored[0] != checkpointer.versions.durable.version + 1:
            raise DoesNotFollow(f"version {stored[0]} does not follow {self.version}")
        versions = checkpointer.versions
        was = versions.durable
        steps = append_of(was, stored)
        if len(stored[1]) <= RECORD_BYTES_LONG:
            append = at_once(steps)
        else:
            append = await in_steps(steps, yield_to_others)
        self._check_open()
        lease = versions.durable.lease  # it may have been renewed meanwhile
        snapshot = msgspec.structs.replace(append.snapshot, lease=lease)
        versions.publish(snapshot)
        versions.mark_durable(snapshot.version)
        self._records += 1
        checkpointer.note_logged(len(stored[1]))
        for observer in self._observers:
            observer.committed(was, append)
        self._tell()

    def _let_go(self, checkpointer: Checkpointer) -> None:
        """Save nothing more; readers of earlier snapshots can still load their pages."""
        self._checkpoints.cancel()
        checkpointer.end(EngineRestarted())
        self._drop_pages(checkpointer.saved.store)

    def _drop_pages(self, store: LoggedPages) -> None:
        self.page_cache.close(store)

    def _close_pages(self, store: LoggedPages) -> None:
        store.close()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _check_open(self) -> None:
        if self._life.cancel_called:
            raise DatabaseUnavailable(f"database {self.name} is closed")

    # --- for readers ---

    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        """Return the newest snapshot; wait until its version is at least `version`."""
        snapshot: Snapshot = await before(deadline, self._snapshot, version)
        return snapshot

    async def _snapshot(self, version: int) -> Snapshot:
        while (snapshot := self.snapshots.take()) is None or snapshot.version < version:
            del snapshot  # or its pages could not be forgotten while this waits
            self.snapshots.check_guard()
            self._check_open()
            await self._changed.wait()
        return snapshot

    async def snapshot_at(self, as_of: AsOf, deadline: float = FOREVER) -> Snapshot:
        """Return the newest snapshot if it is of that version, for which this waits."""
        version = as_of if isinstance(as_of, int) else -1
        snapshot = await self.wait_durable_snapshot(deadline, version)
        if snapshot.version != version:
            raise HistoryTooOld(
                f"this process follows the database, and has only version {snapshot.version}",
                hint="Ask the process that writes this database.",
            )
        return snapshot

    def statistics(self) -> FollowerStatistics:
        return FollowerStatistics(
            self.name,
            self.version,
            self._records,
            self._bases,
            0 if self._checkpointer is None else self._checkpointer.saved.store.loads,
            self.watches.statistics(),
        )

    def __repr__(self) -> str:
        return f"a follower of database {self.name} at version {self.version}"

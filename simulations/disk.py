"""A disk that may be slow, may fail to sync, and forgets or tears what was not synced.

    append ─► written: in the cache, lost or torn by a crash ─► synced: there for ever

It keeps the bytes of framed records, as a file would. After a crash some unsynced bytes may be
there, cut anywhere; `read` drops a torn frame at the end, as a real log does (SQLite's write-ahead
log, by its own checksums). A failed sync leaves some whole records or none, and does not say which.
Checkpoints lie on a `Shelf` beside the records.

The device outlives processes. Operations run one at a time, in the order of the calls, each in a
task of the device: killing an actor does not stop its operation, just as a thread in a system call
is not stopped; only a crash of the process does. So a reader after a kill waits for what is still
being written, and can never be surprised by it later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any, Final
from zlib import crc32

import trio

from qserver.durability.column_numbers import PENDING, page_of
from qserver.durability.leases import Leases
from qserver.durability.memory import MemoryScratch
from qserver.durability.port import (
    NO_PARTS,
    CheckpointParts,
    Ended,
    Scratch,
    ends_with,
)
from qserver.errors import LogFailed, LogTaken, QserverError
from simulations.operations import Appending, Operation
from simulations.shelf import Shelf
from simulations.world import SimulatedWorld

_HEADER: Final = Struct(">QII")  # version, length, checksum


class Disk:
    """The device. A process uses it through a `DiskHandle` of its own."""

    @property
    def handles(self) -> type[DiskHandle]:
        return DiskHandle

    def __init__(self, world: SimulatedWorld, nursery: trio.Nursery) -> None:
        self.world = world
        self._nursery = nursery
        self._synced = bytearray()
        self._cache = bytearray()
        self._records: list[tuple[int, bytes]] = []
        self.shelf = world.shelf = Shelf()
        self.owner: DiskHandle | None = None
        """The handle that has fenced the log last: no other may append."""
        self.keeper: DiskHandle | None = None
        """The handle that has read the checkpoint last: no other may save one, or forget."""
        self._left = 0
        """The last page of a process that left columns to the next one."""
        self._last: Operation | None = None
        """The operation that the next one has to wait for."""

    def connect(self) -> DiskHandle:
        """Return a handle for a process that starts; reads again what a crash left behind."""
        self._records = self._read_frames()
        return self.handles(self)

    def crash(self, handle: DiskHandle, *, lose_all: bool = False) -> None:
        """Crash the process: of the unsynced bytes none, some or all stay on the disk."""
        handle.die()
        world = self.world
        if self._cache:
            world.reach("the process crashed with unsynced records")
            if not lose_all and world.faults.strikes("tail_kept"):
                size = len(self._cache)
                kept = world.delays.choice((size, world.delays.randrange(size + 1)))
                world.record("fault", f"{kept} of {len(self._cache)} unsynced bytes survive")
                self._synced += self._cache[:kept]
        self._cache.clear()
        self._crash_shelf(lose_all)
        self._last = self.owner = self.keeper = None

    def _crash_shelf(self, lose_all: bool) -> None:
        world, shelf = self.world, self.shelf
        if shelf.coming is not None:
            world.reach("the process crashed while it saved a checkpoint")
            if not lose_all and world.faults.strikes("tail_kept"):
                world.record("fault", "the unsynced checkpoint survives")
                shelf.sync()
        elif shelf.unsynced:
            world.reach("the process crashed between the pages of a checkpoint")
            if not lose_all and world.faults.strikes("tail_kept"):
                kept = shelf.keep_some(world.delays)
                world.record("fault", f"{kept} unsynced pages survive")
        shelf.forget_unsynced()

    def _read_frames(self) -> list[tuple[int, bytes]]:
        """Return all whole frames; cut off what follows the last of them."""
        records, position = [], 0
        while position + _HEADER.size <= len(self._synced):
            version, length, checksum = _HEADER.unpack_from(self._synced, position)
            data = bytes(self._synced[position + _HEADER.size :][:length])
            if len(data) < length or crc32(data) != checksum:
                break
            records.append((version, data))
            position += _HEADER.size + length
        if position < len(self._synced):
            self.world.reach("a torn tail was cut")
            self.world.record("recover", f"{len(self._synced) - position} torn bytes are cut")
            del self._synced[position:]
        if len(records) > len(self._records):
            self.world.reach("unsynced records survived a crash")
        return records

    def versions(self) -> list[int]:
        return [version for version, _ in self._records]

    def perform(self, operation: Callable[[], Awaitable[Any]]) -> Operation:
        """Start an operation in the device's own task, after those before it."""
        started = Operation(self._last)
        self._last = started
        self._nursery.start_soon(started.run, operation)
        return started

    async def write(self, handle: DiskHandle, records: Sequence[tuple[int, bytes]]) -> None:
        if handle.dead:
            return
        world = self.world
        self._begin_write(handle, records)
        slow = world.faults.strikes("sync_slow")
        if slow:
            world.record("fault", "the sync is slow", actor="disk")
        await trio.sleep(world.delays.uniform(0.0, 0.2 if slow else 0.004))
        self._end_write(records)

    def write_here(self, handle: DiskHandle, records: Sequence[tuple[int, bytes]]) -> Ended:
        """Write and sync before anybody else runs."""
        self.world.reach("a group was synced before anybody else ran")
        try:
            self._begin_write(handle, records)
            self._end_write(records)
        except QserverError as error:
            return Ended(error)
        return Ended()

    @property
    def is_idle(self) -> bool:
        return self._last is None or self._last.done.is_set()

    def _begin_write(self, handle: DiskHandle, records: Sequence[tuple[int, bytes]]) -> None:
        world = self.world
        self._check(self.owner, handle, records[0][0])
        if not world.two_publish and world.faults.strikes("log_taken"):
            world.record("fault", "another process takes over", actor="disk")
            world.successor_wanted.set()
        self._cache += b"".join(frame(*record) for record in records)
        world.record("sync", f"{len(records)} records are written", actor="disk")

    def _end_write(self, records: Sequence[tuple[int, bytes]]) -> None:
        world = self.world
        if world.faults.strikes("sync_fails"):
            self._fail_sync(records)
        self._synced += self._cache
        self._cache.clear()
        self._records.extend(records)
        if len(records) > 1:
            world.reach("several rounds were synced as one group")
        world.record("durable", f"version {records[-1][0]} is durable", actor="disk")

    def _fail_sync(self, records: Sequence[tuple[int, bytes]]) -> None:
        world = self.world
        self._cache.clear()
        if self.shelf.unsynced:
            world.reach("a sync failed between the pages of a checkpoint and its record")
            lost = self.shelf.lose_some(world.delays)
            world.record("fault", f"{lost} unsynced pages are lost", actor="disk")
        kept = world.delays.randrange(len(records) + 1)
        for version, data in records[:kept]:
            self._synced += frame(version, data)
            self._records.append((version, data))
        world.record("fault", f"the sync fails, {kept} records are there", actor="disk")
        world.reach("a sync failed")
        raise LogFailed("the sync failed")

    async def save_pages(self, handle: DiskHandle, pages: Sequence[tuple[int, bytes]]) -> None:
        if handle.dead:
            return
        world = self.world
        self._check(self.keeper, handle)
        self.shelf.put(pages)
        world.record("sync", f"{len(pages)} pages are written", actor="disk")
        of_columns = [page_of(number) for number, _ in pages if page_of(number) != number]
        if of_columns:
            world.reach("columns were saved")
            if min(of_columns) <= self._left:
                world.reach("columns of an earlier process were made")
        await trio.sleep(world.delays.uniform(0.0, 0.004))
        if world.faults.strikes("checkpoint_fails"):
            world.record("fault", "saving pages fails", actor="disk")
            raise LogFailed("the pages cannot be saved")

    async def sync_pages(self, handle: DiskHandle) -> None:
        if handle.dead:
            return
        world = self.world
        self._check(self.keeper, handle)
        await trio.sleep(world.delays.uniform(0.0, 0.004))
        self._check_that_none_is_lost()
        if world.faults.strikes("checkpoint_fails"):
            world.record("fault", "the sync of pages fails", actor="disk")
            raise LogFailed("the pages cannot be synced")
        self.shelf.sync_pages()
        world.record("durable", "the pages of a long log are", actor="disk")
        world.reach("pages of a long log were saved before a checkpoint")

    def _check_that_none_is_lost(self) -> None:
        """Raise if a sync has failed: such a connection is given up."""
        if self.shelf.lost:
            self.shelf.forget_unsynced()
            raise LogFailed("pages of the checkpoint are lost")

    def _before_a_checkpoint(self) -> None:
        """Called where checkpoints begin to change: all records are synced here already."""

    async def save_checkpoint(
        self,
        handle: DiskHandle,
        version: int,
        data: bytes,
        parts: CheckpointParts,
        after: int,
    ) -> None:
        if handle.dead:
            return
        self._before_a_checkpoint()
        world = self.world
        self._check(self.keeper, handle)
        self.shelf.coming = partial(self.shelf.checkpoints.save, version, data, parts, after)
        slow = world.faults.strikes("sync_slow")
        await trio.sleep(world.delays.uniform(0.0, 0.2 if slow else 0.004))
        self._check_that_none_is_lost()
        fails = world.faults.strikes("checkpoint_fails")
        if not fails or world.delays.random() < 0.5:
            self.shelf.sync()
            world.record("durable", f"the checkpoint of version {version} is", actor="disk")
            world.reach("a checkpoint was saved")
            if self._records and self._records[-1][0] > version:
                world.reach("commits went on while a checkpoint was saved")
        self.shelf.coming = None
        if fails:
            world.record("fault", "nobody is told whether the checkpoint is there", actor="disk")
            world.reach("a checkpoint failed")
            raise LogFailed("the checkpoint cannot be saved")

    async def change_checkpoints(
        self,
        handle: DiskHandle,
        dropped: Sequence[int],
        changed: Sequence[tuple[int, CheckpointParts]],
    ) -> None:
        if handle.dead:
            return
        self._before_a_checkpoint()
        world = self.world
        self._check(self.keeper, handle)
        early = world.delays.random() < 0.5
        if early:  # a crash that comes now finds it done
            self.shelf.checkpoints.change(dropped, changed)
        await trio.sleep(world.delays.uniform(0.0, 0.004))
        fails = world.faults.strikes("checkpoint_fails")
        if not early and not (fails and world.delays.random() < 0.5):
            self.shelf.checkpoints.change(dropped, changed)
        world.record("sync", f"drops the checkpoints of versions {list(dropped)}", actor="disk")
        if dropped:
            world.reach("a kept checkpoint was dropped")
        if fails:
            world.record("fault", "nobody is told whether they are dropped", actor="disk")
            raise LogFailed("the checkpoints cannot be changed")

    async def save_records(self, handle: DiskHandle, records: Sequence[tuple[int, bytes]]) -> None:
        if handle.dead:
            return
        world = self.world
        self._check(self.owner, handle)
        early = world.delays.random() < 0.5
        if early:  # a crash that comes now finds them there
            self._put(records)
        await trio.sleep(world.delays.uniform(0.0, 0.004))
        fails = world.faults.strikes("sync_fails")
        if not early and not (fails and world.delays.random() < 0.5):
            self._put(records)
        world.record("sync", f"{len(records)} records are copied", actor="disk")
        if fails:
            world.record("fault", "nobody is told whether they are there", actor="disk")
            raise LogFailed("the records cannot be saved")

    def _put(self, records: Sequence[tuple[int, bytes]]) -> None:
        self._records = sorted((dict(self._records) | dict(records)).items())
        self._synced = bytearray(b"".join(frame(*record) for record in self._records))

    async def forget(self, handle: DiskHandle, version: int, pages: Sequence[int]) -> None:
        if handle.dead:
            return
        world = self.world
        self._check(self.keeper, handle)
        early = world.delays.random() < 0.5
        if early:  # a crash that comes now finds it done
            self._forget(version, pages)
        await trio.sleep(world.delays.uniform(0.0, 0.004))
        self._forget(version, pages)
        world.record("sync", f"forgets up to {version}, and {len(pages)} pages", actor="disk")
        if pages:
            world.reach("pages of an old checkpoint were forgotten")

    def _forget(self, version: int, pages: Sequence[int]) -> None:
        self.shelf.remove(pages)
        self._records = [record for record in self._records if record[0] > version]
        self._synced = bytearray(b"".join(frame(*record) for record in self._records))

    def _check(self, allowed: DiskHandle | None, handle: DiskHandle, version: int = 0) -> None:
        if allowed is not None and allowed is not handle:
            self.world.record("fail", "a process that was replaced is refused", actor="disk")
            self.world.reach("a process whose log was taken over was refused")
            raise LogTaken("another process writes the log", version=version)

    async def load_checkpoint(
        self, handle: DiskHandle, version: int | None
    ) -> tuple[int, bytes] | None:
        await self._begin_reading()
        self._check_claim(handle)
        if version is not None:
            return self.shelf.checkpoints.get(version)
        if handle.has_fenced:  # a newer process may have claimed the checkpoint already
            self._check(self.keeper, handle)
        self.keeper = handle
        if self.shelf.checkpoint is not None:
            self.world.reach("recovery began with a checkpoint")
            if self._records:
                self.world.reach("recovery read the log behind a checkpoint")
        return self.shelf.checkpoint

    async def load_outlines(self, handle: DiskHandle) -> list[tuple[int, bytes]]:
        await self._begin_reading()
        self._check_claim(handle)
        return self.shelf.checkpoints.outlines()

    async def load_parts(self, handle: DiskHandle, version: int) -> CheckpointParts | None:
        await self._begin_reading()
        self._check_claim(handle)
        return self.shelf.checkpoints.parts(version)

    async def load_pages(self, after: int, most: int) -> list[tuple[int, bytes]]:
        await trio.sleep(self.world.delays.uniform(0.0, 0.001))
        return self.shelf.after(after, most)

    async def last_page(self) -> int:
        await trio.sleep(self.world.delays.uniform(0.0, 0.001))
        return self.shelf.last()

    def load(self, handle: DiskHandle, numbers: Sequence[int]) -> dict[int, bytes]:
        """Read pages at once, whatever is under way: slowly, not at all, or something else."""
        world = self.world
        self._check_claim(handle)
        world.reach("pages were loaded")
        if world.faults.strikes("page_slow"):
            world.record("fault", "pages are read slowly", actor="disk")
            world.spend(world.delays.uniform(0.0, 0.05))
        if world.faults.strikes("page_fails"):
            world.record("fault", "pages cannot be read", actor="disk")
            world.reach("a page could not be read")
            raise LogFailed("the pages cannot be read")
        found = self.shelf.get(numbers)
        if PENDING in found:
            world.reach("a process ended before all columns were there")
            self._left = self.shelf.last()
        if found and handle.is_serving() and world.faults.strikes("page_torn"):
            number = world.delays.choice(sorted(found))
            found[number] = found[number][: world.delays.randrange(len(found[number]))]
            world.record("fault", f"page {number} is torn when it is read", actor="disk")
            world.reach("a page was torn")
            world.pages_torn += 1
        return found

    async def read(self, handle: DiskHandle, after: int, most: int) -> list[tuple[int, bytes]]:
        await self._begin_reading()
        self._check_claim(handle)
        rest = [record for record in self._records if record[0] > after]
        if len(rest) > most:
            self.world.reach("recovery read the log in several pieces")
        return rest[:most]

    async def fence(self, handle: DiskHandle, version: int) -> bool:
        await trio.sleep(self.world.delays.uniform(0.0, 0.001))
        self._check_claim(handle)
        last = self._records[-1][0] if self._records else 0
        saved = 0 if self.shelf.checkpoint is None else self.shelf.checkpoint[0]
        ends = ends_with(max(last, saved), version, "the log")
        if ends:
            self.owner = handle
            handle.has_fenced = True
            self.shelf.lost = False  # recovery has read all; a mere reader would not know
        else:
            self.world.reach("a fence was refused, and recovery read on")
        return ends

    def _check_claim(self, handle: DiskHandle) -> None:
        """Refuse a handle that has lost the log, also when it reads."""
        if handle.has_fenced:
            self._check(self.owner, handle)

    async def _begin_reading(self) -> None:
        world = self.world
        if world.faults.strikes("recovery_crashes"):
            world.record("fault", "the process will crash while it recovers", actor="disk")
            world.reach("the process crashed while it recovered")
            world.crash_wanted.set()
        await trio.sleep(world.delays.uniform(0.0, 0.01))
        if world.faults.strikes("read_fails"):
            world.record("fault", "reading the log fails", actor="disk")
            world.reach("reading the log failed")
            raise LogFailed("the log cannot be read")

    def __repr__(self) -> str:
        return f"a disk with {len(self._records)} records, {len(self._cache)} bytes unsynced"


class DiskHandle:
    """The log of one process. After a crash it can do nothing any more."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._begun: list[Operation] = []
        self.dead = False
        self.has_fenced = False
        self.borrowed = Leases()
        self.is_serving: Callable[[], bool] = lambda: False
        """Whether damage is met by a statement, and not by recovery, which would refuse it."""

    def append(self, records: Sequence[tuple[int, bytes]]) -> Awaitable[None]:
        """Begin at once on an eager disk, as a thread does; else when it is awaited.

        A group of a batch may end at once, too; or its end is noticed without a task.
        """
        world = self._disk.world
        if world.batch.is_active and not self.dead and self._disk.is_idle:
            if world.arrivals.random() < world.syncing_here:
                return self._disk.write_here(self, records)
            if world.profile.eager_log:
                begun = self._begin(lambda: self._disk.write(self, records))
                return Appending(partial(self._append, records, begun), begun, world)
            world.reach("a group that began at the end of a batch was awaited")
        if self.dead or not world.profile.eager_log:
            return self._append(records, None)
        if not world.log_rested:
            world.reach("the next group was on its way before the answers of the last had left")
        return self._append(records, self._begin(lambda: self._disk.write(self, records)))

    async def _append(self, records: Sequence[tuple[int, bytes]], begun: Operation | None) -> None:
        world = self._disk.world
        await world.stand_at_await_point()
        await self._perform(lambda: self._disk.write(self, records), begun)
        world.log_rested = False

    async def save_pages(self, pages: Sequence[tuple[int, bytes]]) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.save_pages(self, pages))

    async def sync_pages(self) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.sync_pages(self))

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.save_checkpoint(self, version, data, parts, after))

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.change_checkpoints(self, dropped, changed))

    async def save_records(self, records: Sequence[tuple[int, bytes]]) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.save_records(self, records))

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        await self._disk.world.stand_at_await_point()
        await self._perform(lambda: self._disk.forget(self, version, pages))

    async def load_checkpoint(self, version: int | None = None) -> tuple[int, bytes] | None:
        result: tuple[int, bytes] | None = await self._perform(
            lambda: self._disk.load_checkpoint(self, version)
        )
        return result

    async def load_outlines(self) -> list[tuple[int, bytes]]:
        result: list[tuple[int, bytes]] = await self._perform(
            lambda: self._disk.load_outlines(self)
        )
        return result

    async def load_parts(self, version: int) -> CheckpointParts | None:
        result: CheckpointParts | None = await self._perform(
            lambda: self._disk.load_parts(self, version)
        )
        return result

    async def load_pages(self, after: int, most: int) -> list[tuple[int, bytes]]:
        result: list[tuple[int, bytes]] = await self._perform(
            lambda: self._disk.load_pages(after, most)
        )
        return result

    async def last_page(self) -> int:
        result: int = await self._perform(self._disk.last_page)
        return result

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return self._disk.load(self, numbers)

    def scratch(self) -> Scratch:
        return SimulatedScratch(self._disk.world)

    async def read(self, after: int, most: int) -> list[tuple[int, bytes]]:
        result: list[tuple[int, bytes]] = await self._perform(
            lambda: self._disk.read(self, after, most)
        )
        return result

    async def fence(self, version: int) -> bool:
        result: bool = await self._perform(lambda: self._disk.fence(self, version))
        return result

    async def _perform(
        self, operation: Callable[[], Awaitable[Any]], begun: Operation | None = None
    ) -> Any:
        """Wait for an operation, which may have begun before."""
        if not self.dead:
            started = begun or self._begin(operation)
            with trio.CancelScope(shield=True):
                await started.done.wait()
            if not started.abandoned:
                return started.outcome()
        return await self._wait_for_the_end()

    async def _wait_for_the_end(self) -> Any:
        """The process is gone, and this task with it."""
        await trio.sleep_forever()

    def _begin(self, operation: Callable[[], Awaitable[Any]]) -> Operation:
        self._begun = [each for each in self._begun if not each.done.is_set()]
        started = self._disk.perform(operation)
        self._begun.append(started)
        return started

    def die(self) -> None:
        self.dead = True
        for operation in self._begun:
            operation.abandon()


class SimulatedScratch(MemoryScratch):
    """Pages that die with their process; saving them takes a moment."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__()
        self._world = world

    async def save_pages(self, pages: Sequence[tuple[int, bytes]]) -> None:
        await self._world.stand_at_await_point()
        await super().save_pages(pages)
        self._world.reach("an older version was saved in a scratch")


def frame(version: int, data: bytes) -> bytes:
    return _HEADER.pack(version, len(data), crc32(data)) + data

"""A disk with a local copy of a replicated log: appends are there at once, and synced later.

    append ─► in the cache: a crash loses it, or its end ─► synced with whatever is synced next

What is synced, or survives a crash, is in the order in which it was written, as in SQLite's
write-ahead log: no page outlives a record that was written before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from qserver.errors import LogFailed
from simulations.disk import Disk, DiskHandle, frame


class CopyDisk(Disk):
    @property
    def handles(self) -> type[DiskHandle]:
        return CopyHandle

    def _end_write(self, records: Sequence[tuple[int, bytes]]) -> None:
        world = self.world
        if world.faults.strikes("sync_fails"):
            kept = world.delays.randrange(len(records) + 1)
            written = len(b"".join(frame(*record) for record in records))
            del self._cache[len(self._cache) - written :]
            self._cache += b"".join(frame(*record) for record in records[:kept])
            self._records.extend(records[:kept])
            world.record("fault", f"the file cannot be written, {kept} records are", actor="disk")
            world.reach("a local copy could not be written")
            raise LogFailed("the file cannot be written")
        self._records.extend(records)

    def sync(self) -> None:
        """Sync all records; a file that is closed has done so."""
        self._synced += self._cache
        self._cache.clear()

    def crash(self, handle: DiskHandle, *, lose_all: bool = False) -> None:
        if self._cache:
            self.world.reach("a local copy lost its end")
        if self.shelf.unsynced and not lose_all and self.world.faults.strikes("tail_kept"):
            self.sync()
        else:
            self.shelf.forget_unsynced()
        super().crash(handle, lose_all=lose_all)

    async def sync_pages(self, handle: DiskHandle) -> None:
        if not handle.dead:
            await super().sync_pages(handle)
            self.sync()

    def _before_a_checkpoint(self) -> None:
        self.sync()  # a crash that comes now may find the checkpoint done

    def _put(self, records: Sequence[tuple[int, bytes]]) -> None:
        super()._put(records)
        self._cache.clear()  # all are synced now

    def _forget(self, version: int, pages: Sequence[int]) -> None:
        super()._forget(version, pages)
        self._cache.clear()

    @property
    def records(self) -> list[tuple[int, bytes]]:
        """What a process reads of it now."""
        return self._records

    async def close(self, handle: DiskHandle) -> None:
        """Sync all when no operation is under way, and leave the file to the next who opens it."""
        while self._last is not None and not self._last.done.is_set():
            await self._last.done.wait()
        await trio.lowlevel.checkpoint()
        self.sync()
        self.shelf.sync_pages()
        self.owner = self.keeper = None
        handle.die()


class CopyHandle(DiskHandle):
    """A handle whose user writes down how far it is when it is closed, which nothing can cancel."""

    async def _wait_for_the_end(self) -> Any:
        await trio.lowlevel.checkpoint()
        raise LogFailed("the process is gone")

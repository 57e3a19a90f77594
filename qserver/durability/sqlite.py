"""The log of a database in one SQLite file: implements the engine's port with threads.

`SqliteFile` does the work and blocks; a `SerialQueue` has it done one call after the other, away
from the event loop. This module decides only where an append runs.

Each append is one SQLite transaction with one sync, however many records it holds. While it syncs
in a thread, the log writer gathers the next group, and pages are loaded. While syncs are short, the
event loop waits for those of small groups (`sync_times`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import trio

from qserver.durability.leases import Leases
from qserver.durability.port import (
    APPENDED,
    NO_PARTS,
    CheckpointParts,
    Ended,
    Scratch,
    StoredPage,
    StoredRecord,
)
from qserver.durability.scratch_file import ScratchFile
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite_file import SqliteFile
from qserver.durability.sync_times import SyncTimes
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import LogFailed

SYNC_HERE_BYTES_MAX: Final = 65_536
"""The loop waits for no longer append."""


def never_alone() -> bool:
    return False


async def open_log(
    path: Path,
    threads: ThreadPool | None = None,
    *,
    syncs_appends: bool = True,
    is_alone: Callable[[], bool] = never_alone,
) -> SqliteLog:
    """Open the log in a file, and make it if necessary. Close it with `aclose`, or use `with`.

    Logs that are open at the same time should share their threads. Without `syncs_appends` a power
    failure may make the file older, up to the last `sync_pages`. `is_alone` returns whether just
    one request has arrived since it was last asked: then nobody else waits while the loop appends.

    Raises DataUnknown (a stranger's file, or one of a newer release), DataCorrupted, DataInUse (a
    second process) or LogFailed (the disk is full, read-only or broken), each with a hint.
    """
    file = SqliteFile(path, syncs_appends=syncs_appends)
    queue = SerialQueue(threads or ThreadPool(), path.name, file.rest)
    file.freely = queue.freely
    log = SqliteLog(file, queue, is_alone)
    try:
        await log.open()
    except BaseException:
        await log.aclose()
        raise
    return log


class SqliteLog:
    """Made by `open_log`. After a failure each call tries the file again."""

    def __init__(self, file: SqliteFile, queue: SerialQueue, is_alone: Callable[[], bool]) -> None:
        self._file = file
        self._queue = queue
        self._is_alone = is_alone
        self.borrowed = Leases()
        self.sync_times = SyncTimes(perf_counter)

    @property
    def path(self) -> Path:
        return self._file.path

    async def open(self) -> None:
        await self._queue.run(self._file.open)

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        """Append in this thread if that is quick, else in one of the pool.

        Either way a failure is raised where the append is awaited.
        """
        is_alone = self._is_alone() and len(records) == 1
        if (
            self.sync_times.may_wait(is_alone)
            and self._file.is_open
            and sum([len(data) for _, data in records]) <= SYNC_HERE_BYTES_MAX
        ):
            try:
                if self._queue.run_here(self._append, records, True, is_alone):
                    return APPENDED
            except Exception as error:
                return Ended(error)
        return self._queue.begin(partial(self._append, records, False, is_alone))

    def _append(self, records: Sequence[StoredRecord], here: bool, is_alone: bool) -> None:
        """Append, and note how long it took; `here`: without a thread."""
        file, began = self._file, perf_counter()
        file.append(records)
        self.sync_times.note(perf_counter() - began, here, is_alone)
        if file.has_to_rest:
            self._queue.idle_soon()

    async def save_records(self, records: Sequence[StoredRecord]) -> None:
        await self._queue.run(lambda: self._file.save_records(records))

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        return await self._queue.run(lambda: self._file.read(after, most))

    async def fence(self, version: int) -> bool:
        return await self._queue.run(lambda: self._file.fence(version))

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        await self._queue.run(lambda: self._file.save_pages(pages))

    async def sync_pages(self) -> None:
        if not self._file.syncs_appends:  # otherwise each of our transactions is durable
            await self._queue.run(self._file.sync)

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        await self._queue.run(lambda: self._file.save_checkpoint(version, data, parts, after))

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        return await self._queue.run(lambda: self._file.load_checkpoint(version))

    async def load_outlines(self) -> list[StoredRecord]:
        return await self._queue.run(self._file.load_outlines)

    async def load_parts(self, version: int) -> CheckpointParts | None:
        return await self._queue.run(lambda: self._file.load_parts(version))

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        await self._queue.run(lambda: self._file.change_checkpoints(dropped, changed))

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        return await self._queue.run(lambda: self._file.load_pages(after, most))

    async def page_sizes(self, after: int, most: int) -> list[tuple[int, int]]:
        """Return the next pages with a number greater than `after`, each with its bytes."""
        return await self._queue.run(lambda: self._file.page_sizes(after, most))

    async def last_page(self) -> int:
        return await self._queue.run(self._file.last_page)

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Read pages in this thread, which never opens the file: that may take long."""
        return self._queue.run_between(lambda: self._load(numbers))

    def _load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        if self._file.can_load:
            return self._file.load(numbers)
        self._queue.post(self._file.open)
        raise LogFailed(
            f"{self.path} is being opened again after a failure", hint="Try again in a moment."
        )

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        done = await self._queue.run(lambda: self._file.forget(version, pages))
        while not done:  # waiting appends come in between
            done = await self._queue.run(lambda: self._file.forget(version, ()))

    def scratch(self) -> Scratch:
        return ScratchFile(self.path.parent, self._queue)

    async def shrink(self) -> None:
        """Give free pages of the file back to the file system; waiting appends come in between."""
        while await self._queue.run(self._file.shrink):
            pass

    @asynccontextmanager
    async def copied(self) -> AsyncIterator[StillCopy]:
        """Have a copy of the file as it is now, for the length of a block; appends go on."""
        try:
            yield StillCopy(self, await self._queue.run(self._file.hold_still))
        finally:
            with trio.CancelScope(shield=True):
                await self._queue.run(self._file.release_still)

    async def read_still(self, at: int, size: int) -> bytes:
        return await self._queue.run(lambda: self._file.read_still(at, size))

    async def troubles(self) -> list[str]:
        return await self._queue.run(self._file.troubles)

    async def aclose(self) -> None:
        """Write everything into the one file and close it."""
        await self._queue.aclose(self._file.end)

    async def __aenter__(self) -> SqliteLog:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"a log in {self._file!r}"


class StillCopy:
    """The bytes of a file as it was, read piece by piece; waiting appends come in between."""

    def __init__(self, log: SqliteLog, size: int) -> None:
        self.size = size
        self._log = log

    async def read(self, at: int, size: int) -> bytes:
        return await self._log.read_still(at, min(size, self.size - at))

"""A data folder: one SQLite file for each log, and a few threads for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import trio

from qserver.durability.data_file import MADE, remove_file
from qserver.durability.files import (
    Disk,
    beside,
    disk_of,
    make_folder,
    new_file,
    publish_file,
    remove_files,
    size_of_files,
)
from qserver.durability.high_water_mark import ENDING
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.open_logs import OpenLogs
from qserver.durability.port import Log, StoredPage
from qserver.durability.reserve import Reserve
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite import SqliteLog, StillCopy, never_alone, open_log
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import DataCorrupted, LogFailed

Run: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]

SUFFIX: Final = ".qserver"
COMPANIONS: Final = ("", "-wal", "-shm", "-journal", ENDING)
"""The endings of a file and of the files kept beside it."""
UNFINISHED: Final = tuple(f"{MADE}{each}" for each in COMPANIONS)
"""The same of a file that was not made to its end."""
STAGED: Final = ".staged"
"""The ending of a whole file that is to replace another."""


class DataFolder:
    """The logs in a folder, by name. The user of a DataFolder has locked it, see `folder`."""

    def __init__(
        self,
        path: Path,
        *,
        syncs_appends: bool = True,
        is_alone: Callable[[], bool] = never_alone,
    ) -> None:
        """Without `syncs_appends` its files are copies of a replicated log, see `open_log`."""
        self._path = path
        self._syncs_appends = syncs_appends
        self._is_alone = is_alone
        self._threads = ThreadPool()
        self._logs = OpenLogs(self.open_file, self.close_file)
        self._reserve = Reserve(path)

    def file_of(self, name: str) -> Path:
        assert name and not set(name) & {"/", "\\", "\0", "."}, "names of logs are our own"
        return self._path / f"{name}{SUFFIX}"

    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        """Open a log for the length of a block; a branch with the logs that it shares pages of."""
        return self._logs.open(name)

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        """Make the log of a branch."""
        await self._logs.branch(name, parent, parent_log, kept, version)

    async def has_file(self, name: str) -> bool:
        return await trio.Path(self.file_of(name)).exists()

    async def open_file(self, name: str, may_make: bool) -> SqliteLog:
        """Open the file of a log, without those that it shares pages of."""
        path = self.file_of(name)
        if not may_make and not await self.has_file(name):
            raise DataCorrupted(
                f"{path} is missing, and a branch has pages in it",
                hint="Put the file back, or restore a backup of the whole folder.",
            )
        return await open_log(
            path, self._threads, syncs_appends=self._syncs_appends, is_alone=self._is_alone
        )

    async def close_file(self, name: str, log: Log) -> None:
        assert isinstance(log, SqliteLog)
        await log.aclose()

    async def shrink(self, name: str) -> None:
        """Return the free space in the files of an open log to the file system."""
        log = self._logs.own(name)
        if log is not None:
            await log.shrink()

    async def remove(self, name: str) -> None:
        """Remove a log's files durably: after this no power failure brings them back.

        The companions go first: the file is whole without them, they are nothing without it.
        """
        assert not self._logs.is_open(name), f"the log {name} is open"
        path = self.file_of(name)
        paths = [beside(path, each) for each in (*UNFINISHED, *reversed(COMPANIONS))]
        async with self._changing(path, "removed") as run:
            await run(lambda: remove_files(paths))

    # --- whole files ---

    def copy_of(self, log: Log) -> AbstractAsyncContextManager[StillCopy]:
        """Have a copy of an open file as it is now, for the length of a block."""
        assert isinstance(log, SqliteLog)
        return log.copied()

    async def stage(
        self, name: str, pieces: AsyncIterator[bytes], page: StoredPage | None = None
    ) -> None:
        """Write a whole file, which has no name yet: `place` gives it one.

        `page` takes the place of that page of it.
        """
        path = beside(self.file_of(name), STAGED)
        async with self._changing(path, "written") as run:
            await run(lambda: _begin(path))
            async for piece in pieces:
                await run(partial(_add, path, piece))
        if page is not None:
            async with await open_log(path, self._threads, syncs_appends=False) as log:
                await log.save_pages([page])

    async def place(self, name: str) -> None:
        """Give a file that was staged its name, in place of one that is not open, if any."""
        path = self.file_of(name)
        before = [beside(path, each) for each in reversed(COMPANIONS)]
        async with self._changing(path, "replaced") as run:
            await run(lambda: remove_files(before))
            await run(lambda: publish_file(beside(path, STAGED), path))

    async def discard(self, name: str) -> None:
        """Remove a file that was staged, if there is one."""
        path = beside(self.file_of(name), STAGED)
        async with self._changing(path, "removed") as run:
            await run(lambda: remove_files(beside(path, each) for each in reversed(COMPANIONS)))

    @asynccontextmanager
    async def _changing(self, path: Path, done: str) -> AsyncIterator[Run]:
        """Change files in a thread; raise LogFailed if that cannot be done."""
        queue = SerialQueue(self._threads, path.name)
        try:
            yield queue.run
        except OSError as error:
            raise LogFailed(
                f"{path} cannot be {done}: {error.strerror}",
                hint="Let qserver write to its data folder, and see to it that there is room.",
            ) from error
        finally:
            await queue.aclose(_nothing)

    def size_bytes(self, name: str) -> int:
        return size_of_files(self.file_of(name), COMPANIONS)

    def disk(self) -> Disk | None:
        return disk_of(self._path)

    @property
    def reserved_bytes(self) -> int:
        return self._reserve.size

    def hold_reserve(self, size: int) -> None:
        """Keep so many bytes of the disk for what removes rows; 0 gives them up."""
        with suppress(OSError):  # it is tried again
            self._reserve.hold(size)

    def names(self) -> list[str]:
        return sorted(each.name.removesuffix(SUFFIX) for each in self._path.glob(f"*{SUFFIX}"))

    def all_names(self) -> list[str]:
        """Return the names of all logs, also of those whose files are not whole yet."""
        return sorted({name_of(each) for each in self._path.glob(f"*{SUFFIX}*")})

    def __repr__(self) -> str:
        return f"the data folder {self._path}"


def name_of(path: Path) -> str:
    """Return the name of the log in a file, whatever follows it; names have no dots."""
    return path.name.partition(".")[0]


def _begin(path: Path) -> None:
    make_folder(path.parent)
    remove_file(path)
    new_file(path)


def _add(path: Path, piece: bytes) -> None:
    with path.open("ab") as file:
        file.write(piece)


def _nothing() -> None:
    """The last job of a queue that has nothing to end."""

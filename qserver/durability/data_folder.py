"""A data folder: one SQLite file for each log, and a few threads for all of them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Final

import trio

from qserver.durability.data_file import MADE
from qserver.durability.files import Disk, beside, disk_of, remove_files, size_of_files
from qserver.durability.high_water_mark import ENDING
from qserver.durability.open_logs import OpenLogs
from qserver.durability.port import Log
from qserver.durability.reserve import Reserve
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import DataCorrupted, LogFailed

SUFFIX: Final = ".qserver"
COMPANIONS: Final = ("", "-wal", "-shm", "-journal", ENDING)
"""The endings of a file and of the files kept beside it."""
UNFINISHED: Final = tuple(f"{MADE}{each}" for each in COMPANIONS)
"""The same of a file that was not made to its end."""


class DataFolder:
    """The logs in a folder, by name. The user of a DataFolder has locked it, see `folder`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPool()
        self._logs = OpenLogs(self._open_one, _close_one)
        self._reserve = Reserve(path)

    def file_of(self, name: str) -> Path:
        assert name and not set(name) & {"/", "\\", "\0", "."}, "names of logs are our own"
        return self._path / f"{name}{SUFFIX}"

    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        """Open a log for the length of a block; a branch with the logs that it shares pages of."""
        return self._logs.open(name)

    async def _open_one(self, name: str, may_make: bool) -> SqliteLog:
        path = self.file_of(name)
        if not may_make and not await trio.Path(path).exists():
            raise DataCorrupted(
                f"{path} is missing, and a branch has pages in it",
                hint="Put the file back, or restore a backup of the whole folder.",
            )
        return await open_log(path, self._threads)

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
        queue = SerialQueue(self._threads, path.name)
        try:
            await queue.run(lambda: remove_files(paths))
        except OSError as error:
            raise LogFailed(
                f"{path} cannot be removed: {error.strerror}",
                hint="Let qserver write to its data folder.",
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

    def __repr__(self) -> str:
        return f"the data folder {self._path}"


def name_of(path: Path) -> str:
    """Return the name of the log in a file, whatever follows it; names have no dots."""
    return path.name.partition(".")[0]


def _nothing() -> None:
    """The last job of a queue that has nothing to end."""


async def _close_one(name: str, log: SqliteLog) -> None:
    await log.aclose()

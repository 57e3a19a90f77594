"""Machines with files in memory, on one replicated log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pickle import dumps, loads
from typing import NoReturn

import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.pinning import pin_in_log
from qserver.durability.port import Log, StoredPage, StoredRecord
from qserver.errors import DataCorrupted
from qserver.replication.copies import FileCopy
from qserver.replication.port import Bounds, LogNodes, Message, Refused, Stream, Unanswered
from qserver.replication.replicated_logs import ReplicatedLogs
from simulations.whole_files import BytesCopy


class MemoryFiles:
    """Local files that last as long as this object."""

    def __init__(self) -> None:
        self.logs: dict[str, MemoryLog] = {}
        self.staged: dict[str, bytes] = {}
        self.copied: list[str] = []
        """The files of which copies were made, in order."""

    async def open_file(self, name: str, may_make: bool) -> Log:
        if not may_make and name not in self.logs:
            raise DataCorrupted(f"{name} is missing")
        log = self.logs.setdefault(name, MemoryLog())
        vars(log).pop("append", None)
        return log

    async def close_file(self, name: str, log: Log) -> None:
        """Leave it as it is; but nobody may write it."""
        vars(log)["append"] = _is_closed

    async def has_file(self, name: str) -> bool:
        return name in self.logs

    async def remove(self, name: str) -> None:
        self.logs.pop(name, None)

    def all_names(self) -> list[str]:
        return sorted({*self.logs, *self.staged})

    def size_bytes(self, name: str) -> int:
        return len(_bytes_of(self.logs[name])) if name in self.logs else 0

    @asynccontextmanager
    async def copy_of(self, log: Log) -> AsyncIterator[FileCopy]:
        self.copied += [name for name, each in self.logs.items() if each is log]
        assert isinstance(log, MemoryLog)
        yield BytesCopy(_bytes_of(log))

    async def stage(
        self, name: str, pieces: AsyncIterator[bytes], page: StoredPage | None = None
    ) -> None:
        self.staged[name] = b""
        async for piece in pieces:
            self.staged[name] += piece
        if page is not None:
            records, pages, *rest = loads(self.staged[name])
            self.staged[name] = dumps((records, pages | dict([page]), *rest))

    async def place(self, name: str) -> None:
        self.logs[name] = log = MemoryLog()
        log._records, log._pages, log._checkpoints, log._last = loads(self.staged.pop(name))

    async def discard(self, name: str) -> None:
        self.staged.pop(name, None)


def _is_closed(records: object) -> NoReturn:
    raise AssertionError("the log is closed")


def _bytes_of(log: MemoryLog) -> bytes:
    return dumps((log._records, log._pages, log._checkpoints, log._last))


class Machine:
    def __init__(
        self, name: str, nodes: LogNodes, files: MemoryFiles | None = None, seconds: float = 2.0
    ) -> None:
        self.name = name
        self.files = MemoryFiles() if files is None else files
        self.roots: dict[str, str] = {}
        self.reports: list[str] = []
        numbers = count(1)
        self.logs = ReplicatedLogs(
            self.files,
            nodes,
            lambda: f"{name}.{next(numbers)}",
            lambda text, error: self.reports.append(text),
            append_seconds=seconds,
        )
        self.logs.root_of = self._root_of

    async def _root_of(self, name: str) -> str:
        return self.roots.get(name, name)


@asynccontextmanager
async def running(*machines: Machine) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for machine in machines:
            await nursery.start(machine.logs.run)
        yield
        nursery.cancel_scope.cancel()


class Troubled:
    """A stream whose next calls go wrong as told; it is used in place of the real one."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.leader = "n1"
        self.troubles: list[str] = []
        self.appends = 0

    @property
    def name(self) -> str:
        return self._stream.name

    async def append(self, data: bytes, expected: int) -> int:
        self.appends += 1
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "not sent":
            raise Unanswered
        if trouble == "refused by itself":
            raise Refused(expected + 1)
        sequence = await self._stream.append(data, expected)
        if trouble == "answer lost":
            raise Unanswered
        return sequence

    async def read(self, first: int, most: int) -> Sequence[Message]:
        return await self._stream.read(first, most)

    async def bounds(self) -> Bounds:
        """Say so, too, if another node leads by now."""
        self.leader = "n2"
        return await self._stream.bounds()

    async def purge(self, until: int) -> None:
        await self._stream.purge(until)


async def make_branch(machine: Machine, log: Log, name: str, version: int) -> None:
    """Make a branch of the database `a`, whose log it is, as the control plane does."""
    kept = await pin_in_log(log, name, version)
    assert kept is not None
    await machine.logs.branch(name, "a", log, kept, version)


def records(first: int, last: int, text: str = "") -> list[StoredRecord]:
    return [(each, f"{text}{each}".encode()) for each in range(first, last + 1)]


async def all_of(log: Log) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    while some := await log.read(found[-1][0] if found else 0, 1000):
        found += some
    return found


async def content_of(machine: Machine, name: str) -> list[StoredRecord]:
    """What a machine has of a database, once it has opened it."""
    async with machine.logs.open(name) as log:
        return await all_of(log)

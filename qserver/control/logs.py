"""The port to the logs of all databases, by name, and its implementation in memory.

A log has one user at a time: `open` gives the only access to it until its block ends. The caller
must not open a log twice, see `databases`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from qserver.durability.files import Disk
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.memory import MemoryLog
from qserver.durability.open_logs import OpenLogs
from qserver.durability.port import Log


class Logs(Protocol):
    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        """Open the log of that name for the length of a block; make it if necessary."""

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        """Make the log of a branch, see `begin_branch`."""

    async def remove(self, name: str) -> None:
        """Remove a log that is not open, with all it holds; a missing one is no error."""

    def size_bytes(self, name: str) -> int:
        """Return the bytes that the log takes; 0 if there is none."""

    async def shrink(self, name: str) -> None:
        """Give room that an open log does not use back to the disk."""

    def disk(self) -> Disk | None:
        """Return how full the disk of the logs is; None if they are on none."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the disk that are kept for what removes rows."""

    def hold_reserve(self, size: int) -> None:
        """Keep so many bytes; 0 gives them up."""


class MemoryLogs:
    """Logs that last as long as this object, however often they are opened."""

    def __init__(self) -> None:
        self._logs: dict[str, SizedLog] = {}
        self._open = OpenLogs(self._open_one, _close_one)

    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        return self._open.open(name)

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        await self._open.branch(name, parent, parent_log, kept, version)

    async def _open_one(self, name: str, may_make: bool) -> SizedLog:
        assert may_make or name in self._logs, f"the log {name} is missing"
        return self._logs.setdefault(name, SizedLog())

    async def remove(self, name: str) -> None:
        assert not self._open.is_open(name), f"the log {name} is open"
        self._logs.pop(name, None)

    def size_bytes(self, name: str) -> int:
        log = self._logs.get(name)
        return 0 if log is None else log.size_bytes

    async def shrink(self, name: str) -> None:
        pass

    def disk(self) -> Disk | None:
        return None

    @property
    def reserved_bytes(self) -> int:
        return 0

    def hold_reserve(self, size: int) -> None:
        """Nothing to do: there is no disk."""

    def names(self) -> list[str]:
        return sorted(self._logs)

    def __repr__(self) -> str:
        return f"{len(self._logs)} logs in memory; {self._open!r}"


async def _close_one(name: str, log: SizedLog) -> None:
    """Leave the log as it is: it lasts as long as `MemoryLogs`."""


class SizedLog(MemoryLog):
    @property
    def size_bytes(self) -> int:
        return sum(map(len, self._records.values())) + sum(map(len, self._pages.values()))

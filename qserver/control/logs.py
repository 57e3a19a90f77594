"""The port to the logs of all databases, by name, and its implementation in memory.

A log has one user at a time: `open` gives the only access to it until its block ends. The caller
must not open a log twice, see `databases`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from qserver.durability.files import Disk
from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log


class Logs(Protocol):
    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        """Open the log of that name for the length of a block; make it if necessary."""

    async def remove(self, name: str) -> None:
        """Remove a log that is not open, with all it holds; a missing one is no error."""

    def size_bytes(self, name: str) -> int:
        """Return the bytes that the log takes; 0 if there is none."""

    async def shrink(self, name: str) -> None:
        """Give room that an open log does not use back to the disk."""

    def disk(self) -> Disk | None:
        """Return how full the disk of the logs is; None if they are on none."""


class MemoryLogs:
    """Logs that last as long as this object, however often they are opened."""

    def __init__(self) -> None:
        self._logs: dict[str, SizedLog] = {}
        self._open: set[str] = set()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        assert name not in self._open, f"the log {name} is open already"
        self._open.add(name)
        try:
            yield self._logs.setdefault(name, SizedLog())
        finally:
            self._open.remove(name)

    async def remove(self, name: str) -> None:
        assert name not in self._open, f"the log {name} is open"
        self._logs.pop(name, None)

    def size_bytes(self, name: str) -> int:
        log = self._logs.get(name)
        return 0 if log is None else log.size_bytes

    async def shrink(self, name: str) -> None:
        pass

    def disk(self) -> Disk | None:
        return None

    def names(self) -> list[str]:
        return sorted(self._logs)

    def __repr__(self) -> str:
        return f"{len(self._logs)} logs in memory, {len(self._open)} of them open"


class SizedLog(MemoryLog):
    @property
    def size_bytes(self) -> int:
        return sum(map(len, self._records.values())) + sum(map(len, self._pages.values()))

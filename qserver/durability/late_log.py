"""A log that nobody recovers from: it takes records in memory, and writes many of them at once.

Whatever reads or cuts the log writes them first, so nobody sees the difference but the disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

import trio

from qserver.durability.log_over import LogOver
from qserver.durability.port import APPENDED, Log, StoredRecord

LATE_RECORDS: Final = 64
LATE_BYTES: Final = 64 * 1024
"""With so many records, or bytes of them, they are written."""


class LateLog(LogOver):
    def __init__(self, own: Log) -> None:
        super().__init__(own)
        self._late: list[StoredRecord] = []
        self._bytes = 0
        self._writing = trio.Lock()

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        self._late += records
        self._bytes += sum(len(data) for _, data in records)
        if len(self._late) < LATE_RECORDS and self._bytes < LATE_BYTES:
            return APPENDED
        return self._write()

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        await self._write()
        return await super().read(after, most)

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        await self._write()
        await super().forget(version, pages)

    async def _write(self) -> None:
        with trio.CancelScope(shield=True):  # or nobody would know whether they are there
            async with self._writing:
                late = self._late[:]
                if late:
                    await self.own.append(late)
                    del self._late[: len(late)]
                    self._bytes = sum(len(data) for _, data in self._late)

"""A log that lasts as long as its object: for tests, scratch databases and benchmarks.

It keeps the same bytes that a file would hold, so that a database which is closed and opened
again on it recovers for real, and so that its cost is honest.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.durability.port import StoredRecord


class MemoryLog:
    def __init__(self) -> None:
        self._records: list[StoredRecord] = []
        self._bytes = 0

    async def append(self, records: Sequence[StoredRecord]) -> None:
        for version, data in records:
            assert version == len(self._records) + 1, "versions follow each other"
            self._records.append((version, data))
            self._bytes += len(data)

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        return self._records[after : after + most]

    def __repr__(self) -> str:
        return f"a log in memory with {len(self._records)} records, {self._bytes} bytes"

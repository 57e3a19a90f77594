"""A log in memory: for tests, scratch databases and benchmarks.

It keeps the same bytes that a file would hold, so that a database which is closed and opened again
on it recovers for real, and so that its cost is honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from qserver.durability.port import StoredPage, StoredRecord, ends_with


class MemoryLog:
    def __init__(self) -> None:
        self._records: dict[int, bytes] = {}
        self._pages: dict[int, bytes] = {}
        self._checkpoint: StoredRecord | None = None
        self._last = 0

    async def append(self, records: Sequence[StoredRecord]) -> None:
        for version, data in records:
            assert version == self._last + 1, "versions follow each other"
            self._records[version] = data
            self._last = version

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        first = self._last + 1 - len(self._records)
        until = min(max(after + 1, first) + most, self._last + 1)
        return [(each, self._records[each]) for each in range(max(after + 1, first), until)]

    async def fence(self, version: int) -> bool:
        checkpoint = 0 if self._checkpoint is None else self._checkpoint[0]
        return ends_with(max(self._last, checkpoint), version, "the log")

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self._pages.update(pages)

    async def save_checkpoint(self, version: int, data: bytes) -> None:
        self._checkpoint = (version, data)

    async def load_checkpoint(self) -> StoredRecord | None:
        return self._checkpoint

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        numbers = islice((each for each in sorted(self._pages) if each > after), most)
        return [(number, self._pages[number]) for number in numbers]

    async def last_page(self) -> int:
        return max(self._pages, default=0)

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {number: self._pages[number] for number in numbers if number in self._pages}

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        for each in range(self._last + 1 - len(self._records), min(version, self._last) + 1):
            del self._records[each]
        for number in pages:
            self._pages.pop(number, None)

    def __repr__(self) -> str:
        size = sum(map(len, self._records.values()))
        return (
            f"a log in memory with {len(self._records)} records, {size} bytes"
            + f", and a checkpoint of {len(self._pages)} pages" * (self._checkpoint is not None)
        )

"""A log in memory: for tests, scratch databases and benchmarks.

It keeps the same bytes as a file, so that a database reopened on it really recovers, at a realistic
cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from itertools import islice, takewhile

import msgspec

from qserver.durability.column_numbers import page_of
from qserver.durability.leases import Leases
from qserver.durability.port import (
    APPENDED,
    NO_PARTS,
    CheckpointParts,
    Scratch,
    StoredPage,
    StoredRecord,
    ends_with,
)


class CheckpointRow(msgspec.Struct, frozen=True):
    data: bytes
    outline: bytes
    gone: bytes
    dead: bytes

    def changed(self, parts: CheckpointParts) -> CheckpointRow:
        changes = {
            name: part for name, part in msgspec.structs.asdict(parts).items() if part is not None
        }
        return msgspec.structs.replace(self, **changes)

    def parts(self) -> CheckpointParts:
        return CheckpointParts(self.outline, self.gone, self.dead)


class CheckpointRows:
    """Checkpoints by version, as the table of a file has them."""

    def __init__(self) -> None:
        self._rows: dict[int, CheckpointRow] = {}

    @property
    def newest(self) -> StoredRecord | None:
        return self.get(max(self._rows, default=0))

    def save(self, version: int, data: bytes, parts: CheckpointParts, after: int) -> None:
        rows = {each: row for each, row in self._rows.items() if each <= after}
        rows[version] = CheckpointRow(data, b"", b"", b"").changed(parts)
        self._rows = rows

    def get(self, version: int | None = None) -> StoredRecord | None:
        version = max(self._rows, default=0) if version is None else version
        row = self._rows.get(version)
        return None if row is None else (version, row.data)

    def outlines(self) -> list[StoredRecord]:
        return [(version, row.outline) for version, row in sorted(self._rows.items())]

    def parts(self, version: int) -> CheckpointParts | None:
        row = self._rows.get(version)
        return None if row is None else row.parts()

    def change(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        rows = {each: row for each, row in self._rows.items() if each not in dropped}
        for version, parts in changed:
            if version in rows:
                rows[version] = rows[version].changed(parts)
        self._rows = rows


class MemoryScratch:
    """Pages in memory, as bytes."""

    def __init__(self) -> None:
        self._pages: dict[int, bytes] = {}

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self._pages.update(pages)

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {number: self._pages[number] for number in numbers if number in self._pages}

    def close(self) -> None:
        self._pages = {}

    def __repr__(self) -> str:
        return f"{len(self._pages)} scratch pages in memory"


class MemoryLog:
    def __init__(self) -> None:
        self._records: dict[int, bytes] = {}
        self._pages: dict[int, bytes] = {}
        self._columns: dict[int, list[int]] = {}
        """The numbers of the columns of each page."""
        self._checkpoints = CheckpointRows()
        self._last = 0
        self.borrowed = Leases()

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        for version, data in records:
            assert version == self._last + 1, "versions follow each other"
            self._records[version] = data
            self._last = version
        return APPENDED

    async def save_records(self, records: Sequence[StoredRecord]) -> None:
        self._records = dict(sorted((self._records | dict(records)).items()))
        self._last = max(self._last, *self._records)

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        first = next(iter(self._records), self._last + 1)
        versions: Iterable[int] = range(max(after + 1, first), self._last + 1)
        if self._last + 1 - first != len(self._records):  # some are missing
            versions = (each for each in self._records if each > after)
        return [(each, self._records[each]) for each in islice(versions, most)]

    async def fence(self, version: int) -> bool:
        newest = self._checkpoints.newest
        self._last = max(self._last, 0 if newest is None else newest[0])
        return ends_with(self._last, version, "the log")

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self._pages.update(pages)
        for number, _ in pages:
            if page_of(number) != number:
                self._columns.setdefault(page_of(number), []).append(number)

    async def sync_pages(self) -> None:
        """Nothing to do: pages last as long as this object."""

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        self._checkpoints.save(version, data, parts, after)

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        return self._checkpoints.get(version)

    async def load_outlines(self) -> list[StoredRecord]:
        return self._checkpoints.outlines()

    async def load_parts(self, version: int) -> CheckpointParts | None:
        return self._checkpoints.parts(version)

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        self._checkpoints.change(dropped, changed)

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        numbers = islice((each for each in sorted(self._pages) if each > after), most)
        return [(number, self._pages[number]) for number in numbers]

    async def page_sizes(self, after: int, most: int) -> list[tuple[int, int]]:
        return [(number, len(data)) for number, data in await self.load_pages(after, most)]

    async def last_page(self) -> int:
        return max([0, *self._pages])

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {number: self._pages[number] for number in numbers if number in self._pages}

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        for each in list(takewhile(lambda each: each <= version, self._records)):
            del self._records[each]
        for page in pages:
            for number in (page, *self._columns.pop(page, ())):
                self._pages.pop(number, None)

    def scratch(self) -> Scratch:
        return MemoryScratch()

    def __repr__(self) -> str:
        size = sum(map(len, self._records.values()))
        return (
            f"a log in memory with {len(self._records)} records, {size} bytes"
            + f", and checkpoints of {len(self._pages)} pages"
            * (self._checkpoints.newest is not None)
        )

"""A log on top of another one: every call goes to that, unless a subclass says otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from qserver.durability.leases import Leases
from qserver.durability.port import (
    NO_PARTS,
    CheckpointParts,
    Log,
    Scratch,
    StoredPage,
    StoredRecord,
)


class LogOver:
    def __init__(self, own: Log) -> None:
        self.own = own

    @property
    def borrowed(self) -> Leases:
        return self.own.borrowed

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        return self.own.append(records)

    async def save_records(self, records: Sequence[StoredRecord]) -> None:
        await self.own.save_records(records)

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        return await self.own.read(after, most)

    async def fence(self, version: int) -> bool:
        return await self.own.fence(version)

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        await self.own.save_pages(pages)

    async def sync_pages(self) -> None:
        await self.own.sync_pages()

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        await self.own.save_checkpoint(version, data, parts, after)

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        return await self.own.load_checkpoint(version)

    async def load_outlines(self) -> list[StoredRecord]:
        return await self.own.load_outlines()

    async def load_parts(self, version: int) -> CheckpointParts | None:
        return await self.own.load_parts(version)

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        await self.own.change_checkpoints(dropped, changed)

    async def last_page(self) -> int:
        return await self.own.last_page()

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        return await self.own.load_pages(after, most)

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return self.own.load(numbers)

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        await self.own.forget(version, pages)

    def scratch(self) -> Scratch:
        return self.own.scratch()

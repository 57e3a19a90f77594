"""The log of one database whose family has a stream: records go there first, then into the file."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack

from qserver.durability.log_over import LogOver
from qserver.durability.port import Log, StoredRecord
from qserver.replication.family import Family


class ReplicatedLog(LogOver):
    """Implements the log's port. Everything but appends is a matter of the file."""

    def __init__(self, name: str, own: Log, family: Family) -> None:
        super().__init__(own)
        self.name = name
        self.family = family
        self.held = AsyncExitStack()
        """Holds the file and the family until the log is closed."""

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        return self.family.append(self.name, self.own, records)

    async def fence(self, version: int) -> bool:
        await self.family.settle()
        return await self.own.fence(version)

    async def last_page(self) -> int:
        return max(0, await self.own.last_page())  # the position is a page, too, and none of a tree

    def __repr__(self) -> str:
        return f"{self.own!r}, of {self.family!r}"

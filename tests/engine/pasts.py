"""The past of a database, for tests: all versions, noted as they become durable."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import trio

from qserver.engine.feed import FeedVersion
from qserver.engine.messages import Append
from qserver.storage.snapshot import Snapshot


class NotedPast:
    """An observer that keeps every version; `kept_from` is the oldest that can be read."""

    def __init__(self) -> None:
        self.noted: dict[int, tuple[Snapshot, Append]] = {}
        self.reads = 0
        self.made = 0

    def committed(self, before: Snapshot, append: Append) -> None:
        self.noted[append.snapshot.version] = (before, append)

    def restarting(self, durable: Snapshot) -> None:
        pass

    def changed(self) -> None:
        pass

    async def after(self, version: int) -> AsyncGenerator[FeedVersion, None]:
        self.reads += 1
        while version + 1 in self.noted:
            version += 1
            before, append = self.noted[version]
            await trio.lowlevel.checkpoint()
            self.made += 1
            yield FeedVersion(before, append.snapshot, append.writes, append.catalog_changes)

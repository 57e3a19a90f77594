"""A data folder whose files are copies of a replicated log: implements the control plane's port."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from qserver.durability.data_folder import DataFolder
from qserver.durability.files import Disk
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.port import Log
from qserver.durability.sqlite import SqliteLog
from qserver.replication.following import FollowedFamily
from qserver.replication.replicated_logs import ReplicatedLogs


class ReplicatedFolder:
    def __init__(self, folder: DataFolder, logs: ReplicatedLogs) -> None:
        """`logs` use the files of the folder."""
        self._folder = folder
        self.logs = logs

    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        return self.logs.open(name)

    def follow(
        self, name: str, end: Callable[[], None]
    ) -> AbstractAsyncContextManager[tuple[FollowedFamily, Log]]:
        """Have the file of a database that another node owns, see `FollowedFamilies.follow`."""
        return self.logs.follow(name, end)

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        await self.logs.branch(name, parent, parent_log, kept, version)

    async def remove(self, name: str) -> None:
        await self.logs.remove(name)

    def size_bytes(self, name: str) -> int:
        return self._folder.size_bytes(name)

    async def shrink(self, name: str) -> None:
        async with self.logs.copies.hold(name) as own:
            assert isinstance(own, SqliteLog)
            await own.shrink()

    def disk(self) -> Disk | None:
        return self._folder.disk()

    @property
    def reserved_bytes(self) -> int:
        return self._folder.reserved_bytes

    def hold_reserve(self, size: int) -> None:
        self._folder.hold_reserve(size)

    def __repr__(self) -> str:
        return f"{self._folder!r}, with {self.logs!r}"

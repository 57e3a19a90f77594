"""Copies of a host's files as bytes, and files that are made of them: what bases need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pickle import dumps, loads

import trio

from qserver.durability.port import Log, StoredPage
from simulations.copy_disk import CopyDisk
from simulations.disk import DiskHandle, frame


class BytesCopy:
    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data = data

    async def read(self, at: int, size: int) -> bytes:
        await trio.lowlevel.checkpoint()
        return self._data[at : at + size]


class WholeFiles:
    """A part of a host: its disks, and files that were staged, which outlive processes."""

    def __init__(self, new_disk: Callable[[str], CopyDisk]) -> None:
        self._new_disk = new_disk
        self.disks: dict[str, CopyDisk] = {}
        self.staged: dict[str, bytes] = {}

    def all_names(self) -> list[str]:
        return sorted({*self.disks, *self.staged})

    def size_bytes(self, name: str) -> int:
        return len(_bytes_of(self.disks[name])) if name in self.disks else 0

    @asynccontextmanager
    async def copy_of(self, log: Log) -> AsyncIterator[BytesCopy]:
        assert isinstance(log, DiskHandle) and isinstance(log._disk, CopyDisk)
        await log.sync_pages()
        yield BytesCopy(_bytes_of(log._disk))

    async def stage(
        self, name: str, pieces: AsyncIterator[bytes], page: StoredPage | None = None
    ) -> None:
        self.staged[name] = b""
        async for piece in pieces:
            self.staged[name] += piece
        if page is not None:
            records, pages, checkpoints = loads(self.staged[name])
            self.staged[name] = dumps((records, pages | dict([page]), checkpoints))

    async def place(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        self.disks[name] = disk = self._new_disk(name)
        records, pages, checkpoints = loads(self.staged.pop(name))
        disk._synced += b"".join(frame(*record) for record in records)
        disk.shelf.pages, disk.shelf.checkpoints = pages, checkpoints

    async def discard(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        self.staged.pop(name, None)


def _bytes_of(disk: CopyDisk) -> bytes:
    return dumps((disk.records, disk.shelf.pages | disk.shelf.unsynced, disk.shelf.checkpoints))

"""Databases as files that nobody serves, and a place for objects that goes away when it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qserver.archive.objects import OWNER, Key, ObjectMissing, TargetAway
from qserver.durability.data_folder import DataFolder
from qserver.durability.port import StoredRecord
from qserver.durability.settling import save_newest
from qserver.durability.sqlite import open_log
from qserver.storage.transaction import Transaction
from tests.durability.histories import History, create


class Database:
    """A log in a folder, which is closed between its steps. A commit makes a table."""

    def __init__(self, folder: Path, name: str, history: History | None = None) -> None:
        self.name = name
        self.path = DataFolder(folder).file_of(name)
        self.history = history or History(2)

    async def commit(self, count: int, kind: str = "t") -> None:
        for _ in range(count):
            transaction = Transaction(self.history.snapshot)
            create(transaction, f"{kind}{self.history.snapshot.version}")
            self.history.commit(transaction)
        async with await open_log(self.path) as log:
            await self.history.append_to(log)

    async def forget(self, version: int) -> None:
        """Cut the log behind a checkpoint, as a database without history does."""
        async with await open_log(self.path) as log:
            await save_newest(log)
            await log.forget(version, [])


async def records_of(folder: Path, name: str) -> list[StoredRecord]:
    async with await open_log(DataFolder(folder).file_of(name)) as log:
        return await log.read(0, 1000)


class MemoryObjects:
    """Objects in a dictionary. `is_away`: every call fails; a save has been done all the same."""

    place = "memory"

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.is_away = False
        self.attempts = 0

    def save(self, name: str, data: bytes) -> None:
        if name == OWNER:
            self.stored[name] = data
        assert self.stored.setdefault(name, data) == data, f"{name} was changed"
        self._answer()

    def load(self, name: str) -> bytes:
        self._answer()
        if name not in self.stored:
            raise ObjectMissing(f"{name} is not there")
        return self.stored[name]

    def keys(self) -> list[Key]:
        self._answer()
        return sorted(Key(name, len(data)) for name, data in self.stored.items())

    def remove(self, names: Sequence[str]) -> None:
        self._answer()
        for name in names:
            self.stored.pop(name, None)

    def _answer(self) -> None:
        self.attempts += 1
        if self.is_away:
            raise TargetAway("memory is away", hint="Wait.")

"""The storage's test passes on storage that keeps, and fails on storage that does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
import trio

from qserver.control.logs import MemoryLogs
from qserver.durability.data_folder import DataFolder
from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log, StoredRecord
from qserver.errors import LogFailed, StorageTestFailed
from qserver.limits import STORAGE_TEST_BYTES
from qserver.web.service.storage_test import storage_test


class BrokenLog(MemoryLog):
    """A log whose disk does what `way` says."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    async def append(self, records: Sequence[StoredRecord]) -> None:
        if self.way == "full":
            raise LogFailed("no space left on device")
        await super().append(records)

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        found = await super().read(after, most)
        if self.way == "unreadable":
            raise OSError("input/output error")
        if self.way == "flips":
            return [(version, bytes([data[0] ^ 1]) + data[1:]) for version, data in found]
        if self.way == "forgets":
            return [record for record in found if record[0] < 10]
        return found


class BrokenLogs:
    def __init__(self, way: str) -> None:
        self.log = BrokenLog(way)
        self.removed: list[str] = []

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        yield self.log

    async def branch(self, *_: object) -> None:
        """No branch is made here."""

    async def remove(self, name: str) -> None:
        self.removed.append(name)
        if self.log.way == "sticks" and len(self.removed) > 1:
            raise LogFailed("read-only file system")

    def size_bytes(self, name: str) -> int:
        return 0

    async def shrink(self, name: str) -> None:
        pass

    def disk(self) -> None:
        return None

    @property
    def reserved_bytes(self) -> int:
        return 0

    def hold_reserve(self, size: int) -> None:
        pass


async def test_good_storage_passes_and_keeps_nothing() -> None:
    logs = MemoryLogs()
    report = await storage_test(logs, trio.current_time)
    assert report.bytes == STORAGE_TEST_BYTES
    assert [(step.step, step.bytes) for step in report.steps] == [
        ("delete what is left", 0),
        ("write and sync", STORAGE_TEST_BYTES // 2),
        ("write and sync", STORAGE_TEST_BYTES // 2),
        ("read", STORAGE_TEST_BYTES),
        ("compare", STORAGE_TEST_BYTES),
        ("delete", 0),
    ]
    assert 0 < sum(step.duration_us for step in report.steps) <= report.duration_us + 10
    assert logs.names() == []


async def test_a_folder_on_a_disk_passes_and_keeps_no_file(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    report = await storage_test(folder)
    assert [step.bytes for step in report.steps if step.step == "read"] == [STORAGE_TEST_BYTES]
    assert folder.names() == []


async def test_two_tests_at_once_do_not_meet() -> None:
    logs = MemoryLogs()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(storage_test, logs)
    assert logs.names() == []


async def test_two_processes_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for process in range(2):
        monkeypatch.setattr("qserver.web.service.storage_test._NUMBERS", count(1))  # as forked
        logs = BrokenLogs("sound")
        await storage_test(logs, process=process)
        names.update(logs.removed)
    assert len(names) == 2


@pytest.mark.parametrize(
    ("way", "message", "detail"),
    [
        ("full", "the storage failed at the step: write and sync", "no space left"),
        ("unreadable", "the storage failed at the step: read", "input/output error"),
        ("flips", "the storage does not give back what was written", "record 1 came back"),
        ("forgets", "the storage does not give back what was written", "9 came back"),
        ("sticks", "the storage failed at the step: delete", "read-only"),
    ],
)
async def test_bad_storage_fails_and_says_where(way: str, message: str, detail: str) -> None:
    logs = BrokenLogs(way)
    with pytest.raises(StorageTestFailed) as caught:
        await storage_test(logs)
    assert caught.value.message == message
    assert detail in (caught.value.detail or "")
    assert len(logs.removed) == 2, "before and after, also where it failed"

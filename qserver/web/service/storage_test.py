"""Tests the storage: writes bytes through the real port and compares what it reads back.

    open ─► write and sync, twice ─► close ─► open again ─► read ─► compare ─► close ─► delete

The test uses a log name that no database has, and deletes that log in every case. It closes the log
before the read, so it compares what the storage kept, not what a connection caches. The bytes
differ each time, so old ones cannot pass for new; the name differs too, so two concurrent tests do
not collide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Final

import msgspec
import trio

from qserver.control.logs import Logs
from qserver.durability.port import StoredRecord
from qserver.errors import QserverError, StorageTestFailed
from qserver.limits import STORAGE_TEST_BYTES

RECORDS: Final = 16
GROUPS: Final = 2

_NUMBERS: Final = count(1)
"""Gives concurrent tests different names; a later test deletes what a crash leaves."""


class StorageStep(msgspec.Struct, frozen=True):
    """One step: its bytes and its duration."""

    step: str
    bytes: int
    duration_us: int


class StorageReport(msgspec.Struct, frozen=True):
    bytes: int
    duration_us: int
    steps: list[StorageStep]


async def storage_test(
    logs: Logs, clock: Callable[[], float] = trio.current_time, *, process: int = 0
) -> StorageReport:
    """Write, sync, read back, compare, delete; StorageTestFailed names the step that failed.

    `process` is the number of this one, if several share the folder.
    """
    test = _Test(logs, f"storage-test-{process}-{next(_NUMBERS)}", clock)
    began = clock()
    chance = Random(began)
    size = STORAGE_TEST_BYTES // RECORDS
    records = [(version, chance.randbytes(size)) for version in range(1, RECORDS + 1)]
    try:
        await test.delete("delete what is left")
        await test.write(records)
        await test.read_back(records)
    except (QserverError, OSError, ExceptionGroup) as error:
        failure = test.failed(error)
        with trio.CancelScope(shield=True):
            try:
                await test.delete("delete")
            except (QserverError, OSError):
                pass  # report the first failure
        raise failure from error
    try:
        await test.delete("delete")
    except (QserverError, OSError) as error:
        raise test.failed(error) from error
    return StorageReport(STORAGE_TEST_BYTES, round((clock() - began) * 1_000_000), test.steps)


class _Test:
    """One run; `at` is the current step."""

    def __init__(self, logs: Logs, name: str, clock: Callable[[], float]) -> None:
        self.logs = logs
        self.name = name
        self.clock = clock
        self.at = "begin"
        self.steps: list[StorageStep] = []

    @contextmanager
    def step(self, name: str, records: list[StoredRecord]) -> Iterator[None]:
        """Time a step; `records` are counted at its end."""
        self.at = name
        began = self.clock()
        yield
        took = round((self.clock() - began) * 1_000_000)
        self.steps.append(StorageStep(name, sum(len(data) for _, data in records), took))

    async def write(self, records: list[StoredRecord]) -> None:
        self.at = "open"
        async with self.logs.open(self.name) as log:
            share = len(records) // GROUPS
            for first in range(0, len(records), share):
                group = records[first : first + share]
                with self.step("write and sync", group):
                    await log.append(group)
            self.at = "close"

    async def read_back(self, records: list[StoredRecord]) -> None:
        self.at = "open again"
        found: list[StoredRecord] = []
        async with self.logs.open(self.name) as log:
            with self.step("read", found):
                while page := await log.read(len(found), RECORDS):
                    found += page
            with self.step("compare", found):
                _compare(records, found)
            self.at = "close again"

    async def delete(self, step: str) -> None:
        with self.step(step, []):
            await self.logs.remove(self.name)

    def failed(self, error: Exception) -> StorageTestFailed:
        if isinstance(error, StorageTestFailed):
            return error
        return StorageTestFailed(
            f"the storage failed at the step: {self.at}",
            detail=str(error) or repr(error),
            hint="Look at the disk under the data folder: space, permissions, health.",
        )


def _compare(records: list[StoredRecord], found: list[StoredRecord]) -> None:
    for written, read in zip(records, found, strict=False):
        if written != (read[0], bytes(read[1])):
            raise _differs(f"record {written[0]} came back with other bytes")
    if len(found) != len(records):
        raise _differs(f"{len(records)} records were written, {len(found)} came back")


def _differs(detail: str) -> StorageTestFailed:
    return StorageTestFailed(
        "the storage does not give back what was written",
        detail=detail,
        hint="Do not trust the disk under the data folder; copy the data elsewhere.",
    )

"""Every version in history can be read in any memory that serves the newest one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from qserver.durability.memory import MemoryLog, MemoryScratch
from qserver.durability.page_cache import PageCache
from qserver.durability.port import Log, Scratch, StoredPage
from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.history import SHARE_OF_HISTORY
from qserver.errors import LogFailed, OutOfMemory
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes
from tests.engine import fakes
from tests.engine.fakes import Laboratory

ROWS = 400
VERSIONS = 12
ROOMY, NARROW = 1 << 30, 1 << 18
SOME = 1 << 20
"""Less than a version of long rows, and more than the leaves that one read needs."""
RARELY = CheckpointPolicy(log_bytes=1 << 30, seconds=1e9, history=3600.0)
Rows = dict[int, tuple[Any, ...]]


class ScratchLog(MemoryLog):
    """Counts the pages of scratches, and gives them no room if the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.scratched = 0
        self.is_full = False

    def scratch(self) -> Scratch:
        return CountedScratch(self)


class CountedScratch(MemoryScratch):
    def __init__(self, log: ScratchLog) -> None:
        super().__init__()
        self._log = log

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        await trio.lowlevel.checkpoint()
        if self._log.is_full:
            raise LogFailed("the disk is full")
        self._log.scratched += len(pages)
        await super().save_pages(pages)


def opened_in(log: Log, memory: int) -> AbstractAsyncContextManager[Database]:
    return fakes.opened(log, Laboratory(), 2, policy=RARELY, cache=PageCache(memory))


async def written(log: Log, width: int, checkpoint_at: int | None = None) -> dict[int, Rows]:
    """Write versions of which each changes a third of the rows; return them all."""
    chance = Random(width)
    async with opened_in(log, ROOMY) as database:
        sql = SqlDatabase(database, Laboratory())
        await sql.execute("create table t (id int primary key, n int, words text)")
        await sql.execute(
            f"insert into t select n, 0, repeat('x', {width}) from generate_series(1, {ROWS}) n"
        )
        versions: dict[int, Rows] = {}
        for number in range(VERSIONS):
            if number == checkpoint_at:
                await database.checkpoint()
            kind, rest = chance.randrange(8), chance.randrange(3)
            if kind:
                text = f"update t set n = {number} where id % 3 = {rest}"
            else:
                text = f"delete from t where id % 97 = {number}"
            await sql.execute(text)
            snapshot = await database.wait_durable_snapshot()
            versions[snapshot.version] = rows_of(snapshot)
    return versions


def rows_of(snapshot: Snapshot) -> Rows:
    table = snapshot.catalog.tables["t"]
    return {row[0]: row for _, rows in snapshot.pages(table.id) for row in rows}


def check_bound(database: Database) -> None:
    cache = database.page_cache
    assert cache.history_bytes <= cache.most >> SHARE_OF_HISTORY
    assert cache.held <= cache.most


@pytest.mark.long
@pytest.mark.parametrize(("width", "memory"), [(10, NARROW), (2_000, SOME)])
@pytest.mark.parametrize("checkpoint_at", [None, VERSIONS // 2])
async def test_each_version_reads_in_a_memory_smaller_than_itself(
    width: int, memory: int, checkpoint_at: int | None
) -> None:
    log = ScratchLog()
    versions = await written(log, width, checkpoint_at)
    for order in (sorted(versions), Random(1).sample(sorted(versions), len(versions))):
        async with opened_in(log, memory) as database:  # after a restart: nothing is in memory
            for version in [*order, order[0]]:
                assert rows_of(await database.snapshot_at(version)) == versions[version]
                check_bound(database)
    assert log.scratched > 0


async def test_versions_that_were_saved_compare_and_restore_as_they_were() -> None:
    log, chance = ScratchLog(), Random(5)
    versions = await written(log, 200)
    async with opened_in(log, NARROW) as database:
        for _ in range(12):
            first, last = chance.sample(sorted(versions), 2)
            old = await database.snapshot_at(first)
            new = await database.snapshot_at(last)
            found = [each[1] for each in snapshot_changes(old, new) if each is not None]
            before, after = versions[first], versions[last]
            differ = {
                key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
            }
            assert [key[0] for key in found if key is not None] == sorted(differ)
            check_bound(database)
            del old, new
        assert log.scratched > 0
    async with opened_in(log, SOME) as database:  # which has room for the rows that come back
        made, _ = await database.restore_version(min(versions))
        assert rows_of(await database.snapshot_at(made)) == versions[min(versions)]


async def test_a_reader_catches_up_with_a_version_larger_than_its_share() -> None:
    log = ScratchLog()
    versions = await written(log, 2_000)
    async with opened_in(log, SOME) as database:
        last = 1
        async for fed in database.catch_up.after(1):
            assert fed.version == last + 1
            last = fed.version
            check_bound(database)
        assert last == max(versions)


async def test_without_room_on_the_disk_a_version_that_fits_in_memory_is_read() -> None:
    log = ScratchLog()
    versions = await written(log, 10)
    log.is_full = True
    async with opened_in(log, ROOMY) as database:
        assert rows_of(await database.snapshot_at(9)) == versions[9]
    async with opened_in(log, NARROW) as database:
        with pytest.raises(OutOfMemory, match="no room on the disk"):
            await database.snapshot_at(max(versions) - 1)
        log.is_full = False
        assert rows_of(await database.snapshot_at(9)) == versions[9]
        check_bound(database)


async def test_reading_history_does_not_count_as_something_to_be_saved() -> None:
    log = MemoryLog()
    versions = await written(log, 10, checkpoint_at=3)
    async with opened_in(log, ROOMY) as database:
        await database.checkpoint()
        for version in versions:
            await database.snapshot_at(version)
        assert database.pages.copied == 0


def open_scratches() -> int:
    """Return how many files without a name this process has open in the folder of a test."""
    count = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the list itself
            name = str(each.readlink())
            count += "history_of" in name and "(deleted)" in name
    return count


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
async def test_scratch_files_end_with_their_versions(tmp_path: Path) -> None:
    folder = tmp_path / "history_of"
    folder.mkdir()
    async with await open_log(folder / "log") as log:
        versions = await written(log, 500)
        async with opened_in(log, NARROW) as database:
            held = await database.snapshot_at(max(versions) - 1)
            for version in list(versions)[::5]:
                assert rows_of(await database.snapshot_at(version)) == versions[version]
            names = {each.name for each in folder.iterdir()}
            assert names <= {"log", "log-wal", "log-shm", "log-mark"}
            assert open_scratches() > 1
            database.history.yield_memory()
            await database.checkpoint()  # behind what closes them
            assert open_scratches() == 1, "one is read"
            assert rows_of(held) == versions[max(versions) - 1]
    assert open_scratches() == 0, "the log is closed behind what closes them"

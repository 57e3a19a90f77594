"""A process that writes a file in spite of its lock is noticed, and nothing of its is destroyed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from qserver.durability.port import StoredRecord
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.engine.database import Database, DatabaseState
from qserver.errors import Applied, LogFailed, LogTaken
from qserver.storage.snapshot import Snapshot
from tests.engine import counters
from tests.engine.fakes import Laboratory

INTRUDER = """
import os, sqlite3, sys
path, version, ends = sys.argv[1:]
other = sqlite3.connect(f"file:{path}?vfs=unix-none", uri=True, isolation_level=None)
other.execute("PRAGMA locking_mode = EXCLUSIVE")
other.execute("PRAGMA synchronous = FULL")
other.execute("INSERT INTO records VALUES (?, ?)", (int(version), b"the other's"))
if ends == "closes":
    other.close()
os._exit(0)
"""
"""Appends a record without asking for a lock, and is killed or closes the file."""


def run_intruder(path: Path, version: int, ends: str) -> None:
    command = [sys.executable, "-c", INTRUDER, str(path), str(version), ends]
    subprocess.run(command, check=True, timeout=240)


async def intrude(path: Path, version: int, ends: str) -> None:
    await trio.to_thread.run_sync(run_intruder, path, version, ends)


async def records_of(path: Path) -> list[StoredRecord]:
    async with await open_log(path) as log:
        return await log.read(0, 100)


def connection_of(log: SqliteLog) -> sqlite3.Connection:
    connection = log._file._open
    assert connection is not None
    return connection


@pytest.mark.half
@pytest.mark.parametrize("ends", ["is killed", "closes"])
@pytest.mark.parametrize("appends", [0, 1, 3])
def test_a_foreign_append_ends_the_log_and_stays_there(
    tmp_path: Path, appends: int, ends: str
) -> None:
    path = tmp_path / "data"
    script = f"""
import trio, sys
from pathlib import Path
from qserver.durability.sqlite import open_log
from qserver.errors import LogTaken
async def main():
    log = await open_log(Path({str(path)!r}))
    for version in range(1, {appends} + 1):
        await log.append([(version, b"ours")])
    print("ready", flush=True)
    await trio.to_thread.run_sync(sys.stdin.readline)
    for call in (lambda: log.append([({appends} + 1, b"too late")]), lambda: log.read(0, 10),
                 lambda: log.fence({appends}), lambda: log.save_pages([(1, b"")]),
                 lambda: log.save_checkpoint(1, b""), lambda: log.forget(1, [])):
        try:
            await call()
        except LogTaken as taken:
            print(taken.version, taken.applied.name, flush=True)
    await log.aclose()
trio.run(main)
"""
    server = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        run_intruder(path, appends + 1, ends)
        told, _ = server.communicate("go on\n", timeout=240)
    assert server.returncode == 0
    assert told.splitlines() == [f"{appends + 1} NO"] * 6
    ours = [(version, b"ours") for version in range(1, appends + 1)]
    assert trio.run(records_of, path) == [*ours, (appends + 1, b"the other's")]


async def test_a_write_ahead_log_that_was_removed_is_noticed(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
        (tmp_path / "data-wal").unlink()
        with pytest.raises(LogTaken) as caught:
            await log.append([(2, b"two")])
        assert caught.value.detail == f"{tmp_path / 'data-wal'} is not as this process left it"


async def test_a_foreign_append_after_a_failure_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
        connection_of(log).execute("PRAGMA max_page_count = 1")
        with pytest.raises(LogFailed):
            await log.append([(2, bytes(100_000))])
        await intrude(path, 2, "closes")
        with pytest.raises(LogTaken, match="another process has written"):
            await log.read(0, 10)


async def test_what_failed_and_is_there_all_the_same_is_ours(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
        log._file._tried = [(2, b"two!")]
        connection_of(log).execute("INSERT INTO records VALUES (2, ?)", (b"two!",))
        log._file.close()  # as after a sync that has failed
        assert await log.read(1, 10) == [(2, b"two!")]
        assert await log.fence(2)


async def test_the_database_ends_when_its_file_is_written_by_another(tmp_path: Path) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log, trio.open_nursery() as nursery:
        database = Database(log, Laboratory())
        await nursery.start(database.run)
        snapshot: Snapshot = await database.wait_durable_snapshot()
        await database.transact(counters.create(3))
        await intrude(path, snapshot.version + 2, "is killed")
        with pytest.raises(LogTaken) as caught:
            await database.transact(counters.increment(1))
        assert caught.value.applied is Applied.NO and database.state is DatabaseState.TAKEN
        nursery.cancel_scope.cancel()

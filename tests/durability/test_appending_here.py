"""Appends without the thread: only while nothing else is to be done, and while syncs are short."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import trio

from qserver.durability import sqlite, sqlite_file, still_file, sync_times, upkeep
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import SqliteFile
from qserver.durability.sync_times import SyncTimes
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import LogFailed


async def test_a_call_is_done_here_only_when_no_other_is_to_be_done() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    go_on = threading.Event()
    done: list[str] = []
    async with trio.open_nursery() as nursery:

        def wait() -> None:
            go_on.wait()
            done.append("there")

        waiting = queue.run(wait)
        nursery.start_soon(_awaited, waiting)
        assert not queue.run_here(lambda: done.append("here")), "it would overtake"
        go_on.set()
    assert done == ["there"]
    assert queue.run_here(lambda: done.append("here"))
    assert done == ["there", "here"]
    await queue.aclose(lambda: None)


async def _awaited(waiting: Any) -> None:
    await waiting


async def test_a_call_is_not_done_here_while_a_thread_does_what_could_wait() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def idle() -> None:
        begun.set()
        go_on.wait()

    queue = SerialQueue(ThreadPool(), "worker", idle)
    assert queue.run_here(lambda: None)
    assert await trio.to_thread.run_sync(begun.wait, 60)
    assert not queue.run_here(lambda: None)
    go_on.set()
    while not queue.run_here(lambda: None):
        await trio.lowlevel.checkpoint()
    await queue.aclose(lambda: None)


async def test_a_queue_becomes_idle_again_after_a_call_that_was_done_here() -> None:
    idle = threading.Semaphore(0)
    queue = SerialQueue(ThreadPool(), "worker", idle.release)
    for _ in range(3):
        while not queue.run_here(lambda: None):
            await trio.lowlevel.checkpoint()
        assert await trio.to_thread.run_sync(lambda: idle.acquire(timeout=60))
    await queue.aclose(lambda: None)


async def test_an_error_of_a_call_here_is_raised_here_and_the_next_call_is_done() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    with pytest.raises(ZeroDivisionError):
        queue.run_here(lambda: 1 // 0)  # type: ignore[arg-type]
    assert queue.run_here(lambda: None)
    await queue.aclose(lambda: None)


def always_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(sync_times, "SHORT_SECONDS", 60.0)
    monkeypatch.setattr(sync_times, "STALL_SECONDS", 60.0)


def known() -> SyncTimes:
    """The disk has shown what it is."""
    times = SyncTimes(perf_counter)
    times.note(0.0, here=False, is_alone=False)
    return times


class Threads:
    """Which thread has appended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: list[bool] = []
        loop = threading.get_ident()
        original = SqliteFile.append

        def append(file: SqliteFile, records: Any) -> None:
            self.here.append(threading.get_ident() == loop)
            original(file, records)

        monkeypatch.setattr(SqliteFile, "append", append)


async def test_small_groups_are_appended_here_while_syncs_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_quick(monkeypatch)
    threads = Threads(monkeypatch)
    async with await open_log(tmp_path / "log") as log:
        await log.append([(1, b"one")])  # the disk has to show first what it is
        await log.append([(2, b"two")])
        await log.append([(3, bytes(sqlite.SYNC_HERE_BYTES_MAX + 1))])
        await log.append([(4, b"four"), (5, b"five")])
        assert threads.here == [False, True, False, True]
        assert [version for version, _ in await log.read(0, 10)] == [1, 2, 3, 4, 5]


async def test_a_sync_in_a_thread_that_waits_for_the_interpreter_keeps_no_append_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a server that has begun with threads does not stay with them for ever."""
    threads = Threads(monkeypatch)
    monkeypatch.setattr(sync_times, "STALL_SECONDS", 60.0)
    monkeypatch.setattr(sync_times, "SHORT_SECONDS", 1e-9)
    monkeypatch.setattr(sync_times, "NEWEST_SHARE", 1.0)
    monkeypatch.setattr(sync_times, "SHARE", 1e-6)
    async with await open_log(tmp_path / "log") as log:
        await log.append([(1, b"one")])  # longer than SHORT_SECONDS, but in a thread
        await log.append([(2, b"two")])  # too long here
        await log.append([(3, b"three")])
        assert threads.here == [False, True, False]
        assert not log.sync_times.may_wait(is_alone=False)
        log.sync_times = known()  # when the doubt is over, it is tried again
        await log.append([(4, b"four")])
        assert threads.here == [False, True, False, True]


async def test_a_lone_client_waits_for_a_sync_here_that_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(monkeypatch)
    monkeypatch.setattr(sync_times, "STALL_SECONDS", 60.0)
    monkeypatch.setattr(sync_times, "SHORT_SECONDS", 1e-9)
    monkeypatch.setattr(sync_times, "SHORT_SECONDS_ALONE", 60.0)
    monkeypatch.setattr(sync_times, "SHARE", 1e-6)
    alone = iter([True, True, True, False, False, True])
    async with await open_log(tmp_path / "log", is_alone=lambda: next(alone)) as log:
        await log.append([(1, b"one")])  # the disk has to show first what it is
        await log.append([(2, b"two")])
        await log.append([(3, b"three"), (4, b"four")])  # of two, whatever the server thinks
        log.sync_times = known()
        log.sync_times.note(1.0, here=True, is_alone=True)
        await log.append([(5, b"five")])  # others would wait
        log.sync_times = known()
        await log.append([(6, b"six")])
        assert threads.here == [False, True, False, False, True]


async def test_one_append_that_is_long_is_chance_and_several_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(monkeypatch)
    monkeypatch.setattr(sync_times, "STALL_SECONDS", 60.0)
    monkeypatch.setattr(sync_times, "SHORT_SECONDS", 1e-9)
    monkeypatch.setattr(sync_times, "SHARE", 1e-6)
    async with await open_log(tmp_path / "log") as log:
        for version in range(1, 9):
            await log.append([(version, b"data")])
        assert threads.here[:3] == [False, True, True]
        assert threads.here[-1] is False


async def test_a_log_that_has_become_long_is_moved_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the event loop never waits for a move, and an append is never long because of one."""
    always_quick(monkeypatch)
    threads = Threads(monkeypatch)
    moved: list[bool] = []
    loop, original = threading.get_ident(), upkeep.move_log

    def move(connection: Any) -> None:
        moved.append(threading.get_ident() == loop)
        original(connection)

    monkeypatch.setattr(still_file, "move_log", move)
    path = tmp_path / "log"
    async with await open_log(path) as log:
        wal = path.with_name("log-wal")
        size = path.stat().st_size
        for version in range(1, sqlite_file.WAL_PAGES_MOVED + 2):
            await log.append([(version, bytes(2000))])
        while not moved:
            await trio.lowlevel.checkpoint()
        assert not any(moved)
        await log.read(0, 1)  # comes after the move
        assert path.stat().st_size > size
        long = wal.stat().st_size
        for _ in range(100):
            version += 1
            await log.append([(version, bytes(2000))])
        assert wal.stat().st_size == long, "the next record is where the first was"
        assert threads.here.count(False) <= 4, "and appends wait for no thread but for the move"
        assert len(await log.read(0, 1000)) == version


async def test_a_move_that_fails_harms_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_quick(monkeypatch)
    monkeypatch.setattr(sqlite_file, "WAL_PAGES_MOVED", 2)

    class Broken:
        def execute(self, text: str) -> Any:
            tried.append(text)
            raise sqlite3.OperationalError("disk I/O error")

    tried: list[str] = []
    original = upkeep.move_log
    monkeypatch.setattr(still_file, "move_log", lambda _: original(Broken()))  # type: ignore[arg-type]
    async with await open_log(tmp_path / "log") as log:
        for version in range(1, 20):
            await log.append([(version, b"data")])
            await log.read(0, 1)
        assert len(tried) > 2
        assert len(await log.read(0, 100)) == 19


async def test_an_append_here_that_fails_says_so_and_appends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_quick(monkeypatch)
    threads = Threads(monkeypatch)
    async with await open_log(tmp_path / "log") as log:
        await log.append([(1, b"one")])
        failing = log.append([(3, b"three")])  # it is raised where it is waited for
        with pytest.raises(LogFailed):
            await failing
        assert threads.here == [False, True]
        await log.append([(2, b"two")])
        assert await log.read(0, 10) == [(1, b"one"), (2, b"two")]


async def test_a_disk_that_is_new_stalls_or_is_closed_is_left_to_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(monkeypatch)
    always_quick(monkeypatch)
    async with await open_log(tmp_path / "log") as log:
        await log.append([(1, b"one")])
        monkeypatch.setattr(sync_times, "STALL_SECONDS", 0.0)
        monkeypatch.setattr(sync_times, "SHARE", 1e-6)
        await log.append([(2, b"two")])  # it stalled
        await log.append([(3, b"three")])
        log.sync_times = known()
        log._file.close()
        await log.append([(4, b"four")])
        assert threads.here == [False, True, False, False]


async def test_nothing_is_done_here_after_the_end() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    await queue.aclose(lambda: None)
    with pytest.raises(AssertionError, match="closed"):
        queue.run_here(lambda: None)

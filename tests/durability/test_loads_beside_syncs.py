"""A page is loaded while a commit syncs; nothing counts as durable before its sync has ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from qserver.durability import wal_sync
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.durability.sync_times import SyncTimes
from qserver.errors import LogFailed

PAGES = [(number, bytes([number]) * 100) for number in range(1, 6)]


class Syncs:
    """Stands before `os.fdatasync`: holds syncs up, or lets them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.error: OSError | None = None
        self.during: Callable[[], None] = lambda: None
        self.count = 0
        real = os.fdatasync

        def fdatasync(file: int) -> None:
            self.begun.set()
            assert self.go_on.wait(60)
            self.during()
            if self.error is not None:
                raise self.error
            self.count += 1
            real(file)

        monkeypatch.setattr(os, "fdatasync", fdatasync)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


async def append(log: SqliteLog, version: int, done: list[int]) -> None:
    log.sync_times = SyncTimes(lambda: 0.0)  # it is done in a thread
    await log.append([(version, b"record")])
    done.append(version)


async def test_a_page_is_loaded_while_a_commit_syncs(tmp_path: Path, syncs: Syncs) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.save_pages(PAGES)
        syncs.go_on.clear()
        syncs.begun.clear()
        done: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(append, log, 1, done)
            await trio.to_thread.run_sync(syncs.begun.wait, 60)
            assert log.load([2, 4]) == dict([PAGES[1], PAGES[3]])
            assert done == [], "the commit is not durable yet"
            syncs.go_on.set()
        assert done == [1]


async def test_each_change_is_synced_before_it_counts(tmp_path: Path, syncs: Syncs) -> None:
    async with await open_log(tmp_path / "data") as log:
        changes: list[Callable[[], Awaitable[None]]] = [
            lambda: log.append([(1, b"one")]),
            lambda: log.append([(2, b"two"), (3, b"three")]),
            lambda: log.save_pages(PAGES),
            lambda: log.save_checkpoint(1, b"checkpoint"),
            lambda: log.forget(1, [1]),
        ]
        for number, change in enumerate(changes, start=1):
            await change()
            assert syncs.count >= number


async def test_a_commit_whose_sync_fails_is_not_acknowledged(tmp_path: Path, syncs: Syncs) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
        syncs.error = OSError(28, "No space left on device")
        with pytest.raises(LogFailed, match="is full"):
            await log.append([(2, b"two")])
        syncs.error = None
        assert [version for version, _ in await log.read(0, 10)] in ([1], [1, 2])


async def test_a_log_that_cannot_be_mended_is_not_moved_and_pages_are_read_on(
    tmp_path: Path, syncs: Syncs, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
        await log.save_pages(PAGES)
        before = path.read_bytes()
        syncs.error = OSError(5, "Input/output error")
        mending: list[int] = []

        def failing(path: Path) -> None:
            mending.append(1)
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(wal_sync, "write_again", failing)
        for attempt in range(3):
            with pytest.raises(LogFailed, match="cannot be read or written"):
                await log.append([(2, b"two")])
            assert len(mending) > attempt
        with pytest.raises(LogFailed):
            await log.read(0, 10)
        assert log.load([3]) == dict([PAGES[2]])
        assert path.read_bytes() == before, "nothing of the log was moved"
        monkeypatch.undo()
        assert [version for version, _ in await log.read(0, 10)] == [1, 2]
        await log.append([(3, b"three")])


async def test_a_load_that_fails_during_a_sync_does_not_spoil_it(
    tmp_path: Path, syncs: Syncs
) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
        await log.save_pages(PAGES)
        syncs.go_on.clear()
        syncs.begun.clear()
        done: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(append, log, 2, done)
            await trio.to_thread.run_sync(syncs.begun.wait, 60)
            fail = log._file.close  # as an error of the disk does
            closing = threading.Thread(target=lambda: log._queue.run_between(fail))
            closing.start()
            syncs.go_on.set()
        closing.join()
        assert done == [2]
        assert [version for version, _ in await log.read(0, 10)] == [1, 2]


async def test_a_load_never_opens_the_file_in_the_thread_of_the_event_loop(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.save_pages(PAGES)
        opened_by: list[int] = []
        file = log._file
        really_open = file.open

        def opening() -> None:
            if not file.is_open:
                opened_by.append(threading.get_ident())
            really_open()

        file.open = opening  # type: ignore[method-assign]
        file.close()
        with pytest.raises(LogFailed, match="is being opened again"):
            log.load([1])
        await log.last_page()  # comes after what was queued
        assert log.load([1]) == dict(PAGES[:1])
        assert opened_by and threading.get_ident() not in opened_by

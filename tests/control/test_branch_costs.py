"""What a branch costs: counted in operations and bytes, on real files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest

from qserver.control.branches import Branches, Origin
from qserver.durability.data_folder import DataFolder
from qserver.durability.page_cache import PageCache
from qserver.durability.sqlite import SqliteLog
from qserver.engine.checkpointer import Checkpointer
from qserver.errors import LogFailed
from tests.control.planes import Opened, opened_plane
from tests.known_work import counted

TABLE = "create table t (id integer primary key, n integer, text text)"
FILL = "insert into t select n, n, repeat('x', 80) from generate_series({}, {}) n"


class CountingFolder(DataFolder):
    """Counts the calls of all logs, and the bytes of what they read and write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls = self.bytes = 0

    async def open_file(self, name: str, may_make: bool) -> SqliteLog:
        log = await super().open_file(name, may_make)
        for each in (
            "read",
            "append",
            "save_records",
            "save_pages",
            "save_checkpoint",
            "load",
            "load_checkpoint",
        ):
            setattr(log, each, self._counting(getattr(log, each)))
        return log

    def _counting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.calls += 1
            for argument in arguments:
                self.bytes += sum(
                    len(data) for pair in as_pairs(argument) for data in pair if is_data(data)
                )
            return call(*arguments)

        return counted


def as_pairs(argument: Any) -> list[Any]:
    pairs = [each for each in argument if isinstance(each, tuple)] if is_list(argument) else []
    return [(argument,)] if is_data(argument) else pairs


def is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def is_data(value: Any) -> bool:
    return isinstance(value, bytes)


async def filled(opened: Opened, database: str, rows: int) -> None:
    await opened.run(opened.grant, TABLE, database)
    for first in range(1, rows, 5000):
        await opened.run(opened.grant, FILL.format(first, min(first + 4999, rows)), database)
    with await opened.plane.database(opened.grant, database) as used:
        await used.database.checkpoint()


@pytest.mark.long
async def test_a_branch_of_a_large_database_takes_what_one_of_a_small_one_takes(
    tmp_path: Path,
) -> None:
    folder = CountingFolder(tmp_path)
    async with opened_plane(folder) as opened:
        counts = []
        for name, rows in (("small", 100), ("large", 20_000)):
            await opened.plane.records.create(opened.grant, name)
            await filled(opened, name, rows)
            folder.calls = folder.bytes = 0
            made = await opened.plane.records.create(opened.grant, f"b-{name}", Origin(name))
            counts.append((folder.calls, folder.bytes))
            assert folder.size_bytes(made.id) < 200_000
            assert await opened.run(
                opened.grant, f"select n from t where id = {rows}", f"b-{name}"
            ) == [(rows,)]
        (few, few_bytes), (many, many_bytes) = counts
        assert many <= few + 2 and many_bytes <= 1.2 * few_bytes


@pytest.mark.half
@pytest.mark.parametrize("rows_of_a_commit", [500, 20_000])
async def test_branches_do_not_repeat_the_log_of_their_parent(
    rows_of_a_commit: int, tmp_path: Path
) -> None:
    folder = CountingFolder(tmp_path)
    async with opened_plane(folder) as opened:
        await opened.run(opened.grant, TABLE)
        for first in range(1, 20_000, rows_of_a_commit):
            last = first + rows_of_a_commit - 1
            await opened.run(opened.grant, FILL.format(first, last))
        costs = []
        for number in range(3):
            folder.bytes = 0
            made = await opened.plane.records.create(opened.grant, f"b{number}", Origin("main"))
            costs.append(folder.bytes)
            assert folder.size_bytes(made.id) < 200_000
            rows = await opened.run(opened.grant, "select count(*), max(n) from t", made.name)
            assert rows == [(20_000, 20_000)]
            with await opened.plane.database(opened.grant, "main") as main:
                await main.database.checkpoint()  # which the first branch has begun
        assert max(costs) < 100_000


@pytest.mark.long
async def test_a_branch_takes_no_longer_after_more_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In calls and bytes of all logs, and in calls of the loop's thread: the least of three."""
    monkeypatch.setattr(Branches, "shorten_log", lambda *_: None)
    folder = CountingFolder(tmp_path)
    async with opened_plane(folder, cache=PageCache(16 << 30)) as opened:
        took = {}
        for name, rows in (("warm", 200), ("few", 200), ("many", 60_000)):
            await opened.plane.records.create(opened.grant, name)
            await opened.run(opened.grant, TABLE, name)
            for first in range(1, rows, 2_000):
                last = min(first + 1_999, rows)
                await opened.run(opened.grant, FILL.format(first, last), name)
            tries = []
            for number in range(3):
                folder.calls = folder.bytes = 0
                with counted() as found:
                    await opened.plane.records.create(opened.grant, f"{name}{number}", Origin(name))
                tries.append((found.calls, folder.calls, folder.bytes))
            took[name] = [min(each) for each in zip(*tries, strict=True)]
        (few, *few_of_logs), (many, *many_of_logs) = took["few"], took["many"]
        assert many < few + 60_000 / 10, "a few calls for each unsaved page, none for each row"
        assert many_of_logs[0] == few_of_logs[0] and many_of_logs[1] < 1.5 * few_of_logs[1]


async def test_files_are_made_and_removed_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody waits for what the thread of the loop does, also other organizations."""
    here: list[str] = []
    there = 0

    def noting(name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            nonlocal there
            if current_thread() is main_thread():
                here.append(name)
            there += 1
            return call(*arguments, **options)

        return noted

    async with opened_plane(DataFolder(tmp_path)) as opened:
        await filled(opened, "main", 100)
        for name in ("fsync", "unlink", "rename"):
            monkeypatch.setattr(os, name, noting(name))
        for number in range(3):
            await opened.plane.records.create(opened.grant, f"b{number}", Origin("main"))
        for number in range(3):
            await opened.plane.records.delete(opened.grant, f"b{number}")
        monkeypatch.undo()
    assert there > 10 and here == []


@pytest.mark.long
async def test_a_parent_that_cannot_save_gets_branches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_plane(DataFolder(tmp_path)) as opened:
        await filled(opened, "main", 100)
        await opened.run(opened.grant, FILL.format(101, 10_000))
        with monkeypatch.context() as failing:
            failing.setattr(Checkpointer, "save", _fails)
            for number in range(2):  # the second finds that checkpoints fail
                await opened.plane.records.create(opened.grant, f"b{number}", Origin("main"))
                count = "select count(*) from t"
                assert await opened.run(opened.grant, count, f"b{number}") == [(10_000,)]


async def _fails(*_: Any) -> None:
    raise LogFailed("no room")


async def size_at_rest(opened: Opened, folder: DataFolder, name: str) -> int:
    """Close a database, which empties its write-ahead log; return the bytes of its files."""
    with await opened.plane.database(opened.grant, name) as used:
        await used.database.checkpoint()
        host = opened.plane.databases._hosts[used.id]
    opened.plane.databases._begin_close(host)
    await host.closed.wait()
    return folder.size_bytes(used.id)


@pytest.mark.long
async def test_branches_cost_what_they_change(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with opened_plane(folder) as opened:
        await filled(opened, "main", 20_000)
        whole = await size_at_rest(opened, folder, "main")
        sizes = []
        for number in range(5):
            name = f"b{number}"
            await opened.plane.records.create(opened.grant, name, Origin("main"))
            first = number * 1000
            change = f"update t set n = -n where id > {first} and id <= {first + 1000}"
            await opened.run(opened.grant, change, name)
            sizes.append(await size_at_rest(opened, folder, name))
        assert max(sizes) < whole / 4
        assert await size_at_rest(opened, folder, "main") < 1.1 * whole + 200_000
        sums = "select sum(n) from t where n < 0"
        assert await opened.run(opened.grant, sums, "b3") == [(-(3001 + 4000) * 500,)]
        assert await opened.run(opened.grant, sums) == [(None,)]

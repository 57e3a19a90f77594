"""A file is copied piece by piece while it is written, and the copy is one of a moment."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from qserver.durability.data_folder import DataFolder
from qserver.durability.sqlite import open_log
from qserver.errors import LogFailed

PIECE = 64 << 10


def record(version: int) -> tuple[int, bytes]:
    return version, bytes([version % 251]) * 3000


def size_of(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None


def is_locked(path: Path) -> bool:
    return f":{path.stat().st_ino} " in Path("/proc/locks").read_text(encoding="ascii")


@pytest.mark.long
async def test_a_copy_is_of_the_moment_at_which_it_began(tmp_path: Path) -> None:
    """So much is appended meanwhile that the write-ahead log would be moved many times."""
    folder = DataFolder(tmp_path)
    async with await open_log(tmp_path / "a.qserver") as log:
        for version in range(1, 301):
            await log.append([record(version)])

        async def pieces() -> AsyncIterator[bytes]:
            async with folder.copy_of(log) as copy:
                version = 300
                for at in range(0, copy.size, PIECE):
                    for _ in range(100):
                        version += 1
                        await log.append([record(version)])
                    yield await copy.read(at, PIECE)
                await log.shrink()
                assert await copy.read(0, copy.size) == b"".join(taken)

        taken: list[bytes] = []

        async def noted() -> AsyncIterator[bytes]:
            async for piece in pieces():
                taken.append(piece)
                yield piece

        await folder.stage("b", noted())
        assert folder.names() == ["a"], "it has no name yet"
        await folder.place("b")
        async with await open_log(tmp_path / "b.qserver") as copied:
            assert await copied.read(0, 1000) == [record(version) for version in range(1, 301)]
            assert await copied.troubles() == []
        await log.shrink()
        assert size_of(tmp_path / "a.qserver-wal") == 0, "it is moved again"


@pytest.mark.long
async def test_the_log_stays_short_while_a_file_is_copied(tmp_path: Path) -> None:
    """What is overwritten, freed and cut off meanwhile is in the copy as it was."""
    folder = DataFolder(tmp_path)
    async with await open_log(tmp_path / "a.qserver") as log:
        await log.save_pages([(number, b"old%d" % number * 600) for number in range(1, 1500)])
        await log.append([record(version) for version in range(1, 300)])
        longest, taken = 0, b""
        async with folder.copy_of(log) as copy:
            before = await copy.read(0, copy.size)
            for at in range(0, copy.size, PIECE):
                first = 1 + at // PIECE * 20
                await log.forget(first, range(first, first + 20))
                await log.save_pages([(9000 + first + each, b"new" * 500) for each in range(20)])
                await log.append([record(299 + first + each) for each in range(20)])
                await log.shrink()
                longest = max(longest, size_of(tmp_path / "a.qserver-wal") or 0)
                taken += await copy.read(at, PIECE)
            assert len(log._file._still._kept) > 100, "pages were overwritten"
            assert taken == before
            assert await copy.read(100, 70_000) == before[100:70_100]
        assert longest < copy.size / 3
        assert not (tmp_path / "a.qserver.kept").exists()


async def test_a_copy_does_not_end_the_lock(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with folder.open("a") as log:
        await log.append([record(1)])
        async with folder.copy_of(log) as copy:
            await copy.read(0, 100)
        assert is_locked(tmp_path / "a.qserver")


async def test_a_file_that_fails_while_it_is_copied_is_not_read_on(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with await open_log(tmp_path / "a.qserver") as log:
        await log.append([record(1)])
        async with folder.copy_of(log) as copy:
            with pytest.raises(LogFailed):
                await log.append([record(7)])  # which closes the file
            await log.append([record(2)])
            with pytest.raises(LogFailed, match="closed while it was copied"):
                await copy.read(0, 100)
        async with folder.copy_of(log) as copy:
            assert (await copy.read(0, 100)).startswith(b"SQLite")


async def test_what_was_placed_has_nothing_of_an_earlier_file(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with folder.open("a") as log, folder.copy_of(log) as copy:
        empty = await copy.read(0, copy.size)
        await log.append([record(1)])
        before = [(tmp_path / f"a.qserver{each}").read_bytes() for each in ("", "-wal")]
    for ending, data in zip(("", "-wal"), before, strict=True):
        (tmp_path / f"b.qserver{ending}").write_bytes(data)

    async def pieces() -> AsyncIterator[bytes]:
        yield empty

    await folder.stage("b", pieces())
    await folder.place("b")
    assert not (tmp_path / "b.qserver-wal").exists()
    async with folder.open("b") as log:
        assert await log.read(0, 10) == []


async def test_what_was_staged_can_be_given_up(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"some"
        raise sqlite3.Error

    with pytest.raises(sqlite3.Error):
        await folder.stage("a", pieces())
    await folder.discard("a")
    await folder.discard("a")
    assert size_of(tmp_path / "a.qserver.staged") is None

"""Copies of a file that is being written are consistent, whenever they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from qserver.durability.live_copy import copy_live
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import SqliteFile
from qserver.errors import DataInUse, LogFailed


def record(version: int) -> tuple[int, bytes]:
    return version, bytes([version % 251]) * 3000


@pytest.mark.long
async def test_a_copy_of_an_open_file_holds_what_was_appended_whenever_it_is_made(
    tmp_path: Path,
) -> None:
    """Often enough that the write-ahead log is begun anew in between."""
    async with await open_log(tmp_path / "log") as log:
        for version in range(1, 2500):
            await log.append([record(version)])
            if version % 250 == 0:
                copy = tmp_path / f"copy{version}"
                copy_live(tmp_path / "log", copy)
                async with await open_log(copy) as copied:
                    last = await copied.read(version - 1, 10)
                    assert last == [record(version)]
                    first = await copied.read(0, 1)
                    assert first == [record(1)]


@pytest.mark.half
def test_a_copy_that_was_overtaken_is_made_again(tmp_path: Path) -> None:
    """While the file is copied, so much is written that the write-ahead log begins anew."""
    file = SqliteFile(tmp_path / "log")
    file.open()
    file.append([record(1)])
    written = 1
    copies = 0

    def copy_and_write(source: Path, target: Path) -> None:
        nonlocal written, copies
        copies += 1
        target.write_bytes(source.read_bytes())
        if copies == 1:
            while written < 1500:
                written += 1
                file.append([record(written)])

    copy_live(tmp_path / "log", tmp_path / "copy", copy_and_write)
    file.close()
    assert copies == 2
    copied = SqliteFile(tmp_path / "copy")
    copied.open()
    assert copied.read(written - 1, 10) == [record(written)]
    copied.close()


def test_a_file_that_never_comes_to_rest_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"file")
    pauses: list[float] = []
    number = 0

    def copy_and_write(source: Path, target: Path) -> None:
        nonlocal number
        number += 1
        (tmp_path / "log-wal").write_bytes(bytes([number]) * 32)

    with pytest.raises(DataInUse, match="changes faster than it can be copied"):
        copy_live(tmp_path / "log", tmp_path / "copy", copy_and_write, pauses.append)
    assert pauses == sorted(pauses)


def test_a_file_that_is_not_there_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(LogFailed, match="cannot be copied"):
        copy_live(tmp_path / "log", tmp_path / "copy")

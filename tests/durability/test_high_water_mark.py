"""A log that lost transactions at its end is refused, and a mark never refuses a whole one."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qserver.durability.data_folder import DataFolder
from qserver.durability.high_water_mark import SLOT_BYTES, HighWaterMark, Mark
from qserver.durability.restoring import restore
from qserver.durability.seal import sealed
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import APPENDS_UNMARKED_MAX, SqliteFile
from qserver.errors import DataCorrupted

PROGRAM = """
import os, signal, sys
from pathlib import Path
from qserver.durability.seal import sealed
from qserver.durability.sqlite_file import SqliteFile
file = SqliteFile(Path(sys.argv[1]))
file.open()
for version in range(1, int(sys.argv[2]) + 1):
    file.append([(version, sealed(b"record %d" % version))])
    file.move_mark()
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(path: Path, versions: int) -> None:
    """A process appended so many records, each by itself, and was killed."""
    command = [sys.executable, "-c", PROGRAM, str(path), str(versions)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


async def refusal(path: Path) -> DataCorrupted:
    with pytest.raises(DataCorrupted) as caught:
        await open_log(path)
    assert str(path.with_name(f"{path.name}-mark")) in (caught.value.hint or "")
    return caught.value


async def test_a_write_ahead_log_cut_between_transactions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    killed_after(path, 5)
    log = tmp_path / "data-wal"
    whole = log.read_bytes()
    frame = 24 + 4096
    log.write_bytes(whole[:-frame])
    error = await refusal(path)
    assert str(error).endswith("ends with version 4, and 5 was durable")
    log.write_bytes(whole)
    async with await open_log(path) as opened:
        assert len(await opened.read(0, 10)) == 5, "what was put back is good again"


async def test_a_write_ahead_log_that_was_deleted_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    killed_after(path, 5)
    (tmp_path / "data-wal").unlink()
    assert "ends with version 0, and 5 was durable" in str(await refusal(path))


async def test_an_older_copy_of_the_file_is_refused_until_the_operator_accepts_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, sealed(b"one"))])
    shutil.copy(path, tmp_path / "older")
    async with await open_log(path) as log:
        await log.append([(2, sealed(b"two"))])
    shutil.copy(tmp_path / "older", path)
    assert "ends with version 1, and 2 was durable" in str(await refusal(path))
    (tmp_path / "data-mark").unlink()
    async with await open_log(path) as log:
        assert len(await log.read(0, 10)) == 1


async def test_a_file_that_went_another_way_is_refused(tmp_path: Path) -> None:
    for name in ("data", "other"):
        async with await open_log(tmp_path / name) as log:
            await log.append([(1, sealed(name.encode())), (2, sealed(name.encode()))])
    async with await open_log(tmp_path / "other") as log:
        await log.append([(3, sealed(b"three"))])
    shutil.copy(tmp_path / "other", tmp_path / "data")
    assert "version 2" in str(await refusal(tmp_path / "data"))


async def test_a_main_file_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, sealed(b"one"))])
    path.unlink()
    assert "is missing, but the high-water mark" in str(await refusal(path))


async def test_a_mark_that_is_behind_or_missing_is_no_obstacle(tmp_path: Path) -> None:
    path, mark = tmp_path / "data", tmp_path / "data-mark"
    async with await open_log(path) as log:
        await log.append([(1, sealed(b"one"))])
        old = mark.read_bytes()
        await log.append([(2, sealed(b"two"))])
    for content in (old, b"", bytes(2 * SLOT_BYTES), None):
        if content is None:
            mark.unlink()
        else:
            mark.write_bytes(content)
        async with await open_log(path) as log:
            assert len(await log.read(0, 10)) == 2
        assert HighWaterMark(path).read() is not None


async def test_a_checkpoint_that_forgot_the_marked_record_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, sealed(b"one")), (2, sealed(b"two"))])
        await log.save_checkpoint(2, b"all")
        await log.forget(2, [])
    async with await open_log(path) as log:
        assert await log.read(0, 10) == []
        await log.append([(3, sealed(b"three"))])


def test_one_damaged_slot_is_made_up_for_by_the_other_and_two_are_refused(tmp_path: Path) -> None:
    mark = HighWaterMark(tmp_path / "data")
    mark.begin(Mark(1, 11))
    mark.move(Mark(2, 22))
    mark.close()
    assert mark.read() == Mark(2, 22)
    data = bytearray(mark.path.read_bytes())
    data[SLOT_BYTES] ^= 1
    mark.path.write_bytes(data)
    assert mark.read() == Mark(1, 11)
    data[0] ^= 1
    mark.path.write_bytes(data)
    with pytest.raises(DataCorrupted, match="is damaged"):
        mark.read()


def test_a_mark_moves_only_by_what_is_durable(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "data")
    file.open()
    file.append([(1, sealed(b"one"))])
    assert file._mark.read() == Mark(0, 0), "nothing is written on the way of a commit"
    file.move_mark()
    found = file._mark.read()
    assert found is not None and found.version == 1
    file.close()


def test_a_mark_follows_a_log_that_is_never_idle(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "data")
    file.open()
    for version in range(1, 2 * APPENDS_UNMARKED_MAX):
        file.append([(version, sealed(b"record"))])
    found = file._mark.read()
    assert found is not None and found.version == APPENDS_UNMARKED_MAX
    file.close()
    found = file._mark.read()
    assert found is not None and found.version == 2 * APPENDS_UNMARKED_MAX - 1


async def test_a_removed_database_leaves_no_mark_and_a_restored_one_is_not_measured_by_the_old(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path / "data")
    async with folder.open("one") as log:
        await log.append([(1, sealed(b"one"))])
    path = folder.file_of("one")
    mark = path.with_name(f"{path.name}-mark").read_bytes()
    await folder.remove("one")
    assert list((tmp_path / "data").iterdir()) == []
    async with await open_log(tmp_path / "backup"):
        pass
    path.with_name(f"{path.name}-mark").write_bytes(mark)
    await restore(tmp_path / "backup", path)
    async with folder.open("one") as log:
        assert await log.read(0, 10) == []

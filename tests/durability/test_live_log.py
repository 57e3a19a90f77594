"""The log of a file that is in use, read from outside, against what was written."""

from __future__ import annotations

import sqlite3
from multiprocessing import get_context
from pathlib import Path
from random import Random
from shutil import copyfile
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from qserver.durability.branch_log import begin_branch
from qserver.durability.data_file import make_if_absent
from qserver.durability.files import beside
from qserver.durability.kept import KeptCheckpoint, empty
from qserver.durability.live_log import Beginning, LiveLog, Pages
from qserver.durability.pinning import pin_in_log
from qserver.durability.sqlite import open_log
from qserver.errors import DataCorrupted, DataInUse, DataUnknown, LogFailed

APPENDS = 300
READ_BYTES = 1 << 18


def record(version: int, times: int) -> bytes:
    return version.to_bytes(4, "big") * times


def write(path: Path) -> None:
    """Append, save pages and checkpoints, forget: in a process of its own."""
    trio.run(_write, path)


async def _write(path: Path) -> None:
    random, version = Random(7), 0
    async with await open_log(path) as log:
        for turn in range(APPENDS):
            records = []
            for _ in range(random.choice([1, 1, 1, 5, 40])):
                version += 1
                records.append((version, record(version, random.choice([1, 100, 1000, 5000]))))
            await log.append(records)
            if turn % 30 == 0:
                pages = range(turn, turn + 60)
                await log.save_pages([(number + 1, bytes(5000)) for number in pages])
            if turn % 100 == 99:
                await log.save_checkpoint(version, bytes(9000))


@pytest.mark.half
def test_what_another_process_appends_is_found_in_order_and_without_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "log.qserver"
    make_if_absent(path)
    writer = get_context("forkserver").Process(target=write, args=(path,))
    writer.start()
    log, last, end, is_done = LiveLog(path), 0, 0, False
    while not is_done:
        is_over = not writer.is_alive()
        found = log.read(last, READ_BYTES)
        for version, data in found.records:
            assert version == last + 1 and data == record(version, len(data) // 4)
            last = version
        is_done, end = is_over and found.is_all, found.last
    writer.join()
    assert writer.exitcode == 0 and last == end > APPENDS


SIZES = st.integers(0, 3) | st.integers(4020, 4100) | st.integers(8100, 8200) | st.just(70_000)


@given(st.lists(SIZES, min_size=1, max_size=12), st.booleans())
def test_a_record_of_any_length_is_read_as_it_was_written(sizes: list[int], moved: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.qserver"
        make_if_absent(path)
        rows = [(number, bytes([number]) * size) for number, size in enumerate(sizes, 1)]
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executemany("INSERT INTO records VALUES (?, ?)", rows)
        if moved:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found = LiveLog(path).read(0, 1 << 30)
        connection.close()
    assert found.records == rows and found.last == len(rows) and found.is_all


@pytest.mark.parametrize("at", range(1, 9))
def test_what_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Pages move into the file, and others take their places, between two pages that are read."""
    path = tmp_path / "log.qserver"
    make_if_absent(path)
    server = sqlite3.connect(path, isolation_level=None)
    server.execute("PRAGMA wal_autocheckpoint = 0")
    rows = [(version, record(version, 200)) for version in range(1, 1001)]
    server.executemany("INSERT INTO records VALUES (?, ?)", rows[:500])
    server.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    server.execute("INSERT INTO pages VALUES (1, x'00')")
    calls = 0
    page = Pages.page

    def interrupted(self: Pages, number: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == at:
            server.execute("DELETE FROM records WHERE version <= 450")
            server.executemany("INSERT INTO records VALUES (?, ?)", rows[500:])
            server.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return page(self, number)

    monkeypatch.setattr(Pages, "page", interrupted)
    found = LiveLog(path).read(449, 1 << 30)
    server.close()
    assert found.records in (rows[449:500], rows[450:]) and found.last in (500, 1000)
    assert found.last == found.records[-1][0], "all of it is of one moment"


async def test_what_looks_damaged_because_it_changes_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.qserver"
    await filled(path, 20)
    server = sqlite3.connect(path, isolation_level=None)
    changes = 1

    def half(*_: object) -> None:
        nonlocal changes
        if changes < 0:
            return
        changes -= 1
        if changes >= 0:
            server.execute("INSERT INTO pages VALUES (?, x'00')", [changes + 1])
            server.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        raise DataCorrupted("it is half of one version")

    monkeypatch.setattr("qserver.durability.live_log._check_format", half)
    with pytest.raises(DataCorrupted):
        LiveLog(path).read(0, 1)
    assert changes == -1, "nothing changed the second time"
    assert LiveLog(path).read(0, 1 << 20).last == 20
    server.close()


async def filled(path: Path, versions: int) -> None:
    async with await open_log(path) as log:
        await log.append([(version, record(version, 9)) for version in range(1, versions + 1)])


async def test_records_come_in_parts_with_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "log.qserver"
    await filled(path, 20)
    found = LiveLog(path).read(5, 100)
    assert found.before == record(5, 9) and not found.is_all and found.last == 20
    assert [version for version, _ in found.records] == [6, 7, 8]
    async with await open_log(path) as log:
        await log.save_checkpoint(20, b"data")
        await log.forget(10, [])
    found = LiveLog(path).read(5, 1 << 20)
    assert found.before is None and found.records[0][0] == 11 and found.is_all


async def test_a_transaction_that_is_there_in_part_does_not_count(tmp_path: Path) -> None:
    path, copy = tmp_path / "log.qserver", tmp_path / "copy.qserver"
    async with await open_log(path) as log:
        await log.append([(1, record(1, 9))])
        await log.append([(2, record(2, 3000))])
        copyfile(path, copy)
        whole = beside(path, "-wal").read_bytes()
    ends = set()
    for length in range(32, len(whole) + 1, 1000):
        beside(copy, "-wal").write_bytes(whole[:length])
        ends.add(LiveLog(copy).read(0, 1 << 20).last)
    assert ends == {0, 1}, "the second is whole only with its last byte"
    beside(copy, "-wal").write_bytes(whole)
    assert LiveLog(copy).read(0, 1 << 20).last == 2
    torn = whole[:-2000] + bytes(2000)
    beside(copy, "-wal").write_bytes(torn)
    assert LiveLog(copy).read(0, 1 << 20).last == 1


async def test_a_branch_is_told_by_its_file(tmp_path: Path) -> None:
    above, below = tmp_path / "above.qserver", tmp_path / "below.qserver"
    await filled(above, 3)
    async with await open_log(above) as parent, await open_log(below) as own:
        kept = await pin_in_log(parent, "below", 3)
        assert kept is not None and kept.version == empty().version
        assert LiveLog(below).beginning() is None, "it is not one yet"
        await begin_branch(own, parent, "above", KeptCheckpoint(0, 0.0, 0, 0), 3)
    beginning = LiveLog(below).beginning()
    assert beginning is not None and beginning.base is not None
    assert (beginning.base.parent, beginning.base.version) == ("above", 3)
    assert LiveLog(above).beginning() == Beginning(None)


def test_what_is_no_file_of_ours_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.qserver"
    with pytest.raises(LogFailed):
        LiveLog(path).read(0, 1)
    assert LiveLog(path).look() is None
    path.write_bytes(b"something else" * 100)
    with pytest.raises(DataUnknown):
        LiveLog(path).read(0, 1)
    path.write_bytes(b"")
    with pytest.raises(DataCorrupted):
        LiveLog(path).read(0, 1)


async def test_a_file_that_makes_no_sense_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qserver.durability.live_log.PAUSE_SECONDS", 0.0)
    path = tmp_path / "log.qserver"
    await filled(path, 20)
    data = bytearray(path.read_bytes())
    data[2 * 4096 : 2 * 4096 + 8] = b"\xff" * 8  # the root of the records
    path.write_bytes(data)
    with pytest.raises(DataInUse, match="or is damaged"):
        LiveLog(path).read(0, 1)

"""The log in a file: what it refuses, and how it goes on when the disk is well again."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from qserver.durability.data_file import APPLICATION, FORMAT
from qserver.durability.sqlite import SqliteLog, open_log
from qserver.durability.sqlite_errors import explained
from qserver.durability.sqlite_file import SqliteFile
from qserver.errors import DataCorrupted, DataInUse, DataUnknown, LogFailed, QserverError


async def refusal(path: Path) -> QserverError:
    with pytest.raises(QserverError) as caught:
        await open_log(path)
    assert caught.value.hint, "it says what to do"
    return caught.value


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def connection_of(log: SqliteLog) -> sqlite3.Connection:
    connection = log._file._open
    assert connection is not None
    return connection


# --- files that are not ours, or not any more ----------------------------------------------------


async def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but dear to somebody\n" * 10)
    before = path.read_bytes()
    error = await refusal(path)
    assert isinstance(error, DataUnknown) and str(error) == f"{path} is not a file of qserver"
    assert path.read_bytes() == before and names_in(tmp_path) == ["notes.txt"]


async def test_a_sqlite_file_of_another_program_is_refused_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE records (version INTEGER PRIMARY KEY, data BLOB)")
    other.close()
    before = path.read_bytes()
    error = await refusal(path)
    assert isinstance(error, DataUnknown) and "not one of qserver" in str(error)
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    await (await open_log(path)).aclose()
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {FORMAT + 1}")
    other.close()
    error = await refusal(path)
    assert isinstance(error, DataUnknown)
    assert f"has format {FORMAT + 1}, this release knows {FORMAT}" in str(error)
    assert "newer release" in (error.hint or "")


@pytest.mark.parametrize("length", [0, 1, 99, 100, 1000, 4096])
async def test_a_file_that_was_cut_is_refused_and_not_begun_anew(
    tmp_path: Path, length: int
) -> None:
    path = tmp_path / "data"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
    path.write_bytes(path.read_bytes()[:length])
    try:
        async with await open_log(path) as log:
            assert await log.read(0, 10) != [], "it never looks empty"
    except QserverError as error:
        assert isinstance(error, DataCorrupted)
    else:
        raise AssertionError("a file without its end was opened")


async def test_a_log_that_lost_its_main_file_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "data"
    (tmp_path / "data-wal").write_bytes(b"x" * 100)
    error = await refusal(path)
    assert isinstance(error, DataCorrupted) and "is missing" in str(error)


async def test_what_an_interrupted_first_start_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "data.new").write_bytes(b"half of a file")
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
    assert names_in(tmp_path) == ["data", "data-mark"]


async def test_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "data"
    async with await open_log(path):
        head = path.read_bytes()[:100]
    assert int.from_bytes(head[68:72], "big") == APPLICATION


async def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = await refusal(tmp_path / "file" / "data")
    assert isinstance(error, LogFailed) and "cannot be used" in str(error)


# --- other processes -----------------------------------------------------------------------------


def start(program: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )


HOLD = """
import sys, trio
from pathlib import Path
from qserver.durability.sqlite import open_log
async def main():
    async with await open_log(Path(sys.argv[1])) as log:
        await log.append([(1, b"one")])
        print("open", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


async def test_a_second_process_is_refused_and_a_killed_one_leaves_what_it_had_synced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    other = start(HOLD, path)
    try:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        error = await refusal(path)
        assert isinstance(error, DataInUse) and "another process uses" in str(error)
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    async with await open_log(path) as log:
        assert await log.read(0, 10) == [(1, b"one")]
        assert not path.with_name("data-wal").stat().st_size, "all of it is in the main file"


READ_ONLY = """
import os, sys, trio
from pathlib import Path
from qserver.durability.sqlite import open_log
from qserver.errors import LogFailed
async def main():
    os.setuid(65534)
    try:
        await open_log(Path(sys.argv[1]))
    except LogFailed as error:
        print(error, "|", error.hint)
trio.run(main)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("present", [True, False])
async def test_a_read_only_place_is_refused(tmp_path: Path, present: bool) -> None:
    path = tmp_path / "data"
    if present:
        await (await open_log(path)).aclose()
        path.chmod(0o444)
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(0o755)
    said, _ = start(READ_ONLY, path).communicate()
    assert "Let qserver write there" in said or "may write to it" in said


# --- failures, and after them --------------------------------------------------------------------


async def test_a_full_disk_is_told_loses_nothing_and_is_over_when_there_is_room(
    tmp_path: Path,
) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
        (pages,) = connection_of(log).execute("PRAGMA page_count").fetchone()
        connection_of(log).execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LogFailed, match="is full") as caught:
            await log.append([(2, bytes(100_000)), (3, b"three")])
        assert "Make room" in (caught.value.hint or "")
        # The next connection has no limit: there is room again.
        assert await log.read(0, 10) == [(1, b"one")], "the group is not there in part"
        await log.append([(2, bytes(100_000))])
        assert len(await log.read(0, 10)) == 2


async def test_pages_that_find_no_room_do_not_keep_commits_from_going_on(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
        (pages,) = connection_of(log).execute("PRAGMA page_count").fetchone()
        connection_of(log).execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LogFailed):
            await log.save_pages([(1, bytes(100_000))])
        await log.append([(2, b"two")])
        assert await log.load_pages(0, 10) == []


async def test_a_version_that_does_not_follow_what_the_file_holds_fails(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        await log.append([(1, b"one")])
        with pytest.raises(LogFailed, match="ends with version 1, where 3 was to follow"):
            await log.append([(3, b"three")])
        await log.append([(2, b"two")])
        assert await log.read(0, 10) == [(1, b"one"), (2, b"two")]


async def test_a_cancelled_append_is_done_before_the_next_reading(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "data") as log:
        with trio.CancelScope() as scope:
            scope.cancel()
            await log.append([(1, b"one")])  # the first one is left to a thread
        assert scope.cancelled_caught
        assert await log.read(0, 10) == [(1, b"one")]


async def test_a_log_that_was_closed_twice_is_closed(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "data")
    assert repr(log) == f"a log in the file {tmp_path / 'data'}, open, up to version 0"
    await log.aclose()
    await log.aclose()
    assert "closed" in repr(log)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (sqlite3.SQLITE_FULL, LogFailed, "is full"),
        (sqlite3.SQLITE_IOERR, LogFailed, "cannot be read or written"),
        (sqlite3.SQLITE_IOERR | 4 << 8, LogFailed, "cannot be read or written"),
        (sqlite3.SQLITE_READONLY, LogFailed, "read-only"),
        (sqlite3.SQLITE_CANTOPEN, LogFailed, "cannot be opened"),
        (sqlite3.SQLITE_NOMEM, LogFailed, "memory"),
        (sqlite3.SQLITE_BUSY, DataInUse, "another process"),
        (sqlite3.SQLITE_CORRUPT, DataCorrupted, "is damaged"),
        (sqlite3.SQLITE_NOTADB, DataCorrupted, "is damaged"),
        (sqlite3.SQLITE_MISMATCH, LogFailed, "cannot be read or written"),
    ],
)
def test_what_sqlite_says_becomes_what_can_be_done(
    code: int, kind: type[QserverError], says: str
) -> None:
    error = sqlite3.OperationalError("as SQLite puts it")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_SOMETHING"
    found = explained(error, Path("/data/main"))
    assert type(found) is kind
    assert says in str(found) and found.hint
    assert found.detail == "as SQLite puts it (SQLITE_SOMETHING)"


def test_damage_inside_the_file_is_damage(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "data")
    file.open()
    file.append([(version, bytes(900)) for version in range(1, 40)])
    file.close()
    data = bytearray(file.path.read_bytes())
    assert file.troubles() == []
    file.close()
    data[3 * 4096 : 9 * 4096] = b"\xff" * (6 * 4096)
    file.path.write_bytes(data)
    with pytest.raises(DataCorrupted):
        file.read(0, 100)
    file.close()


async def test_pages_of_no_tree_are_not_the_last(tmp_path: Path) -> None:
    async with await open_log(tmp_path / "log") as log:
        await log.save_pages([(-1, b"position")])
        assert await log.last_page() == 0

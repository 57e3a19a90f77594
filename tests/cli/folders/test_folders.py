"""backup, restore and check on real folders, and a backup of one that a real server is writing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from shutil import copytree
from threading import Event, Thread

import pytest

from qserver.cli import main
from qserver.client import Client
from qserver.durability import live_copy
from qserver.durability.folder import lock_folder
from qserver.durability.high_water_mark import HighWaterMark, Mark
from tests.cli.real_server import KEY, real_server


@contextmanager
def served(folder: Path) -> Iterator[Client]:
    """A client of a server on this folder."""
    with real_server(folder) as url, Client(url, KEY) as client:
        yield client


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that has rows, and a backup of it made while it was written."""
    folder = tmp_path_factory.mktemp("filled")
    with served(folder / "data") as client:
        client.query("CREATE TABLE pair (id bigint PRIMARY KEY, text text)")
        client.query("CREATE TABLE twin (id bigint PRIMARY KEY REFERENCES pair)")
        client.create_database("second")
        with writing(client) as numbers:
            before = [numbers.get() for _ in range(20)]
            assert main(["backup", "--data", str(folder / "data"), str(folder / "copy")]) == 0
            count = len(before) + numbers.qsize()
            while numbers.get() < count + 5:  # the server goes on as before
                pass
    (folder / "numbers").write_text(str(count), encoding="utf-8")
    return folder


@contextmanager
def writing(client: Client) -> Iterator[SimpleQueue[int]]:
    """Pairs of rows, written by another thread while the block runs; those that were answered."""
    numbers: SimpleQueue[int] = SimpleQueue()
    stop = Event()

    def write() -> None:
        for number in range(1_000_000):
            if stop.is_set():
                return
            first = f"INSERT INTO pair VALUES ({number}, repeat('x', 2000))"
            client.transaction([first, f"INSERT INTO twin VALUES ({number})"])
            numbers.put(number)

    thread = Thread(target=write)
    thread.start()
    try:
        yield numbers
    finally:
        stop.set()
        thread.join()


@pytest.mark.long
def test_a_backup_that_is_made_while_clients_write_is_a_moment_of_the_database(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that was acknowledged before it began is there, and no transaction by half."""
    restored = tmp_path / "restored"
    assert main(["restore", str(filled / "copy"), "--data", str(restored)]) == 0
    assert main(["check", "--data", str(restored)]) == 0
    assert capsys.readouterr().out.count("ok, version") == 3
    with served(restored) as client:
        assert {each["name"] for each in client.databases()} == {"main", "second"}
        pairs = client.query("SELECT id FROM pair ORDER BY id").rows
        twins = client.query("SELECT id FROM twin ORDER BY id").rows
    assert pairs == twins == [(number,) for number in range(len(pairs))]
    assert 20 <= len(pairs) <= int((filled / "numbers").read_text(encoding="utf-8")) + 1


@pytest.mark.long
def test_only_the_owner_may_read_a_backup_and_what_is_made_of_it(
    filled: Path, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        data = str(filled / "data")
        assert main(["backup", "--data", data, str(tmp_path / "copy")]) == 0
        assert main(["restore", "--data", str(tmp_path / "new"), str(tmp_path / "copy")]) == 0
    finally:
        os.umask(before)
    for folder in (tmp_path / "copy", tmp_path / "new"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert modes == {0o600}


def test_a_backup_does_not_replace_anything(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", "--data", str(filled / "data"), str(tmp_path)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["backup", "--data", str(tmp_path / "nothing"), str(tmp_path / "copy")]) == 1
    assert "is not a data folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_backup_is_not_put_into_what_it_is_of(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, link = tmp_path / "data", tmp_path / "link"
    copytree(filled / "copy", data)
    link.symlink_to(data)
    before = sorted(data.iterdir())
    for inside in (data / "copy", data / "deep" / "copy", link / "copy"):
        assert main(["backup", "--data", str(data), str(inside)]) == 1
        assert f"{inside} is in the data folder itself" in capsys.readouterr().err
        assert main(["restore", str(data), "--data", str(inside)]) == 1
        assert f"{inside} is in the backup itself" in capsys.readouterr().err
    for name in ("", ".", str(data)):
        assert main(["backup", "--data", str(data), name]) == 1
        assert "exists already" in capsys.readouterr().err
    assert sorted(data.iterdir()) == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").write_bytes(bytes(range(250)) * 36)


def lose_end(path: Path) -> None:
    mark = HighWaterMark(path)
    mark.begin(Mark(1_000_000, 0))
    mark.close()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(b""), ".qserver is empty"),
        (lambda path: path.write_bytes(b"x" * 5000), ".qserver is not a file of qserver"),
        (cut, ".qserver is damaged"),
        (spoil_log, ".qserver-wal is damaged"),
        (lose_end, ".qserver ends with version"),
    ],
)
def test_damage_is_refused_and_told_of_the_file_that_has_it(
    harm: Callable[[Path], object],
    said: str,
    filled: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_copy, "PAUSE_SECONDS", 0.0)  # it may be that somebody writes the log
    damaged, copy = tmp_path / "damaged", tmp_path / "copy"
    copytree(filled / "copy", damaged)
    file = max(damaged.glob("db_*.qserver"), key=lambda each: each.stat().st_size)
    harm(file)
    for command in (
        ["backup", "--data", str(damaged), str(copy)],
        ["restore", str(damaged), "--data", str(copy)],
    ):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert f"{file.with_suffix('')}{said}" in error
        assert str(copy) not in error


def test_a_target_that_cannot_be_written_is_named(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "copy"
    assert main(["backup", "--data", str(filled / "copy"), str(target)]) == 1
    assert f"{target} cannot be written" in capsys.readouterr().err


def test_a_backup_of_damaged_data_is_refused_and_leaves_nothing(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    damage(filled / "copy", damaged)
    assert main(["backup", "--data", str(damaged), str(tmp_path / "copy")]) == 1
    assert "damaged" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["damaged"]


def test_a_restore_wants_an_empty_folder_that_nobody_uses(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = str(filled / "copy")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("dear", encoding="utf-8")
    assert main(["restore", copy, "--data", str(tmp_path / "taken")]) == 1
    assert "is not empty: it holds letter.txt" in capsys.readouterr().err
    with lock_folder(tmp_path / "used", "now"):
        assert main(["restore", copy, "--data", str(tmp_path / "used")]) == 1
    assert "is in use by process" in capsys.readouterr().err


def test_a_damaged_backup_is_not_restored(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    damage(filled / "copy", damaged)
    assert main(["restore", str(damaged), "--data", str(tmp_path / "data")]) == 1
    assert capsys.readouterr().err.startswith("qserver: ")
    assert not list((tmp_path / "data").glob("*.qserver*"))


def test_check_says_which_database_is_damaged_and_looks_at_the_others(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    name = damage(filled / "copy", damaged)
    assert main(["check", "--data", str(damaged)]) == 1
    printed, said = capsys.readouterr()
    assert f"{name}: DAMAGED: " in printed
    assert printed.count(": ok, version") == 2
    assert said.startswith("qserver: 1 of 3 databases damaged.")


def test_check_wants_a_folder_that_is_not_served(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lock_folder(filled / "data", "now"):
        assert main(["check", "--data", str(filled / "data")]) == 1
    assert "is in use by process" in capsys.readouterr().err


def damage(source: Path, target: Path) -> str:
    """A copy of a folder with a flipped byte in its largest file; the name of that database."""
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    largest = max(target.iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    at = data.rindex(b"x" * 100)
    data[at] ^= 1
    largest.write_bytes(data)
    return largest.name.removesuffix(".qserver")


def test_a_database_without_its_file_is_missed(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, copy, again = (str(tmp_path / name) for name in ("data", "copy", "again"))
    copytree(filled / "copy", data)
    largest = max(Path(data).glob("db_*.qserver"), key=lambda each: each.stat().st_size)
    assert main(["backup", "--data", data, copy]) == 0
    largest.unlink()
    capsys.readouterr()
    assert main(["check", "--data", data]) == 1
    printed = capsys.readouterr()
    assert f"the file of the database main, {largest}, is not there" in printed.out
    assert "one database without a file" in printed.err
    assert main(["backup", "--data", data, again]) == 1
    assert f"the file of the database main, {largest}, is not there" in capsys.readouterr().err
    (Path(copy) / largest.name).unlink()
    assert main(["restore", copy, "--data", again]) == 1
    assert "the file of the database main" in capsys.readouterr().err
    assert sorted(each.name for each in Path(again).iterdir()) == ["qserver.lock"]


@pytest.mark.long
def test_a_backup_has_branches_with_the_pages_of_their_parents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, copy, again = (str(tmp_path / name) for name in ("data", "copy", "again"))
    with served(Path(data)) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY)")
        client.query("INSERT INTO t SELECT * FROM generate_series(1, 3000)")
    with served(Path(data)) as client:  # which has made a checkpoint
        client.create_database("one", "main")
        client.query("DELETE FROM t WHERE id > 10", database="one")
        client.create_database("two", "one")
        client.query("INSERT INTO t VALUES (0)")
        client.delete_database("one")
        assert main(["backup", "--data", data, copy]) == 0
    capsys.readouterr()
    assert main(["check", "--data", copy]) == 0
    printed = capsys.readouterr().out
    assert printed.count(", a branch of db_") == 2 and "warning" not in printed
    assert main(["restore", copy, "--data", again]) == 0
    with served(Path(again)) as client:
        counts = {
            name: client.query("SELECT count(*) FROM t", database=name).rows
            for name in ("main", "two")
        }
        assert counts == {"main": [(3001,)], "two": [(10,)]}
        assert sorted(each["name"] for each in client.databases()) == ["main", "two"]
    assert "4 databases" in capsys.readouterr().out

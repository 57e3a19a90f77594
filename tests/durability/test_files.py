"""Nobody but the owner may read what qserver keeps, whatever the umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from qserver.durability.data_file import make_if_absent
from qserver.durability.data_folder import DataFolder
from qserver.durability.files import keep_private, make_folder
from qserver.durability.folder import lock_folder


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    return {**found, ".": stat.S_IMODE(folder.stat().st_mode)}


async def test_a_folder_and_all_files_in_it_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "data"
    with lock_folder(folder, "now") as lock:
        assert lock.is_private()
        async with DataFolder(folder).open("one") as log:
            await log.append([(1, b"one")])
            assert modes(folder) == {
                ".": 0o700,
                "one.qserver": 0o600,
                "one.qserver-wal": 0o600,
                "one.qserver-mark": 0o600,
                "qserver.lock": 0o600,
            }
    assert modes(tmp_path)["some"] == 0o700


async def test_what_an_earlier_release_left_open_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with DataFolder(folder).open("one"):
        pass
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    with lock_folder(folder, "now") as lock:
        assert lock.is_private()
        async with DataFolder(folder).open("one") as log:
            await log.append([(1, b"one")])
            assert set(modes(folder).values()) == {0o600, 0o700}


async def test_of_a_file_that_was_not_made_to_its_end_nothing_is_left(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    async with data.open("other"):
        pass
    before = modes(tmp_path)
    for ending in (".new", ".new-journal"):  # a process that is killed in the middle leaves these
        (tmp_path / f"one.qserver{ending}").write_bytes(b"half")
    await data.remove("one")
    assert modes(tmp_path) == before


def test_a_folder_that_holds_other_things_is_left_as_it_is_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    (folder / "letter.txt").write_text("not ours")
    with lock_folder(folder, "now") as lock:
        assert not lock.is_private()
    assert modes(folder)["."] == 0o755


def test_a_mode_that_is_narrow_already_stays(tmp_path: Path) -> None:
    make_folder(tmp_path / "narrow")
    (tmp_path / "narrow").chmod(0o500)
    assert keep_private(tmp_path / "narrow")
    assert modes(tmp_path)["narrow"] == 0o500


def test_a_new_data_file_has_its_journal_mode_and_nothing_beside_it(tmp_path: Path) -> None:
    make_if_absent(tmp_path / "new.qserver")
    assert [path.name for path in tmp_path.iterdir()] == ["new.qserver"]
    assert (tmp_path / "new.qserver").read_bytes()[18:20] == b"\2\2", "SQLite's mark of WAL files"

"""The model of the disk itself: what it may keep, and what it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.powerloss.disk import SECTOR, Disk, Luck
from tests.powerloss.journal import Operation

ROOT = "/data"


def played(*operations: tuple[str, int, int, str, bytes]) -> Disk:
    disk = Disk(Path(ROOT))
    for operation in operations:
        disk.replay(Operation(*operation))
    return disk


def write(offset: int, data: bytes) -> tuple[str, int, int, str, bytes]:
    return ("W", 7, offset, "", data)


CREATE = ("C", 7, 0, f"{ROOT}/file", b"")
SYNC = (("B", 7, 0, "", b""), ("E", 7, 0, "", b""))
OPEN_FOLDER = ("O", 1, 0, ROOT, b"")
SYNC_FOLDER = (OPEN_FOLDER, ("B", 1, 0, "", b""), ("E", 1, 0, "", b""))


def test_a_file_that_was_synced_is_lost_with_a_name_that_was_not() -> None:
    disk = played(CREATE, write(0, b"one"), *SYNC)
    assert disk.survivors(Luck("nothing")) == {}
    assert disk.survivors(Luck("all")) == {"file": b"one"}


def test_what_was_synced_is_there_whatever_the_luck() -> None:
    disk = played(CREATE, write(0, b"one"), *SYNC, *SYNC_FOLDER, write(3, b"two"))
    for luck in ("nothing", "all", *range(50)):
        assert disk.survivors(Luck(luck))["file"] in (b"one", b"onetwo", b"one\0\0\0")


def test_a_write_may_be_torn_between_sectors_and_never_inside_of_one() -> None:
    disk = played(CREATE, write(0, bytes(2 * SECTOR)), *SYNC, *SYNC_FOLDER)
    disk.replay(Operation(*write(0, b"x" * 2 * SECTOR)))
    found = {disk.survivors(Luck(luck))["file"] for luck in range(200)}
    assert len(found) == 4
    for data in found:
        assert data is not None
        assert len(set(data[:SECTOR])) == len(set(data[SECTOR:])) == 1


def test_a_cut_that_is_lost_leaves_what_it_would_have_taken() -> None:
    disk = played(CREATE, write(0, b"x" * 2000), *SYNC, *SYNC_FOLDER, ("T", 7, 0, "", b""))
    found = {disk.survivors(Luck(luck))["file"] for luck in range(50)}
    assert found == {b"", b"x" * 2000}


def test_a_sync_that_failed_is_not_made_good_by_the_next() -> None:
    failed = (("B", 7, 0, "", b""), ("F", 7, 0, "", b""))
    disk = played(CREATE, *SYNC_FOLDER, write(0, b"one"), *failed, *SYNC)
    assert disk.survivors(Luck("nothing"))["file"] in (b"", b"\0\0\0")
    disk.replay(Operation(*write(0, b"one")))
    for operation in SYNC:
        disk.replay(Operation(*operation))
    assert disk.survivors(Luck("nothing"))["file"] == b"one"


def test_a_renamed_file_has_its_old_name_or_its_new_one() -> None:
    rename = ("R", 7, 0, f"{ROOT}/file", f"{ROOT}/other".encode())
    disk = played(CREATE, write(0, b"one"), *SYNC, *SYNC_FOLDER, rename)
    assert disk.survivors(Luck("nothing")) == {"file": b"one"}
    assert disk.survivors(Luck("all")) == {"other": b"one"}


@pytest.mark.parametrize("luck", ["nothing", 3])
def test_a_file_that_was_removed_may_come_back_until_its_folder_is_synced(luck: int | str) -> None:
    disk = played(CREATE, *SYNC, *SYNC_FOLDER, ("U", 7, 0, f"{ROOT}/file", b""))
    if luck == "nothing":
        assert disk.survivors(Luck(luck)) == {"file": b""}
    for operation in SYNC_FOLDER:
        disk.replay(Operation(*operation))
    assert disk.survivors(Luck(luck)) == {}

"""A data folder belongs to one process at a time, and to nobody when that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qserver.durability.folder import LOCK_FILE, lock_folder
from qserver.errors import DataInUse, LogFailed

HOLD = """
import sys
from pathlib import Path
from qserver.durability.folder import lock_folder
lock = lock_folder(Path(sys.argv[1]), "12:00")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_who_has_it_and_the_end_of_that_process_frees_it(
    tmp_path: Path,
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DataInUse) as caught:
            lock_folder(tmp_path, "12:01")
        assert f"is in use by process {other.pid}, started 12:00" in str(caught.value)
        assert caught.value.hint
    finally:
        other.kill()
        other.communicate()
    with lock_folder(tmp_path, "12:02"):
        assert (tmp_path / LOCK_FILE).read_text() == f"process {os.getpid()}, started 12:02\n"


def test_a_lock_that_was_released_can_be_taken_again(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path / "new" / "folder", "now")
    assert repr(lock) == f"the lock of {tmp_path / 'new' / 'folder'}, held"
    lock.release()
    lock.release()
    assert repr(lock).endswith("released")
    with lock_folder(tmp_path / "new" / "folder", "later"):
        pass


def test_one_process_cannot_take_it_twice_either(tmp_path: Path) -> None:
    with lock_folder(tmp_path, "now"), pytest.raises(DataInUse):
        lock_folder(tmp_path, "later")


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogFailed, match="cannot be used"):
        lock_folder(tmp_path / "file", "now")

"""A file that holds room on the disk, and is given up when there is none left.

A full disk has no room for a DELETE either: a commit needs a record, and a checkpoint new pages,
before old ones can go. So a part of the disk is kept for them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from qserver.durability.files import FILE_MODE

RESERVE_FILE: Final = "reserve"


class Reserve:
    def __init__(self, folder: Path) -> None:
        self._path = folder / RESERVE_FILE

    def hold(self, size: int) -> None:
        """Hold room for so many bytes; 0 gives all of it up. Less is held if there is no more."""
        if size == self.size:
            return
        if size == 0:
            self._path.unlink(missing_ok=True)
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            os.ftruncate(descriptor, 0)
            os.posix_fallocate(descriptor, 0, size)
        except OSError:  # the disk has less, or cannot set room aside
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    @property
    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def __repr__(self) -> str:
        return f"a reserve of {self.size} bytes in {self._path}"

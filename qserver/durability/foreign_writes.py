"""Notices that another process has written a log in spite of the lock.

SQLite locks the file, but locks do not work on some network file systems, and a lock does not
prevent replacing or removing a file. SQLite would not notice: it goes on writing where it believes
the write-ahead log to end, over what the other process has acknowledged, or into a file that has
lost its name. So before each use the write-ahead log must be as this process left it: the same
file, length and time of change. That costs two system calls.

The time is as exact as the clock of the file system, and another process may still write between
this check and our write. So the check ends a fight, it does not prevent one. A log that several
nodes share must refuse the append itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from ctypes import py_object, pythonapi
from pathlib import Path
from typing import TypeAlias

from qserver.durability.files import beside
from qserver.errors import LogTaken

Look: TypeAlias = tuple[int, int, int] | None


class ForeignWrites:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = str(beside(path, "-wal"))
        self._left: Look = None
        self._watches = False

    def leave(self, log: int) -> None:
        """Remember the log, an open file, as this process has just written it.

        A later change is foreign, and so is another file by that name.
        """
        self._left, self._watches = _seen(os.fstat(log)), True

    def rest(self) -> None:
        """Stop watching: the file is not ours while it is closed."""
        self._watches = False

    def check(self, version: int) -> None:
        """Raise LogTaken if another process has written since; `version` would be the next."""
        if self._watches and self._look() != self._left:
            raise _taken(f"{self._log} is not as this process left it", self._path, version)

    def _look(self) -> Look:
        try:
            return _seen(os.stat(self._log))  # noqa: PTH116 - a Path is slow, and commits wait
        except FileNotFoundError:
            return None

    def __repr__(self) -> str:
        return f"{self._log}, left as {self._left}"


def _seen(found: os.stat_result) -> Look:
    return found.st_ino, found.st_size, found.st_mtime_ns


def check_end(
    path: Path, known: int, tried: Mapping[int, int], last: int, checksum: int | None
) -> None:
    """Raise LogTaken if, after a failure, the log ends with another process's version.

    It may end with the last version that is known, or with one that this process tried to append.
    """
    if last > known and tried.get(last) != checksum:
        raise _taken(
            f"the log in {path} ends with version {last}, which this process did not write",
            path,
            known + 1,
        )


def _taken(what: str, path: Path, version: int) -> LogTaken:
    return LogTaken(
        f"another process has written {path}",
        version=version,
        detail=what,
        hint="Only one server may use a file. See to it that this is the case, then restart this"
        " one.",
    )


def abandon(connection: object) -> None:
    """Keep a connection open until the process ends.

    Closing it would write into the file, and remove the write-ahead log, both of which belong to
    another process now.
    """
    pythonapi.Py_IncRef(py_object(connection))

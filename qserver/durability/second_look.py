"""Tells damage from a disk that cannot be read: SQLite reports both as damage.

A read that the system refuses with EIO comes out of SQLite as SQLITE_CORRUPT, just as bytes that
make no sense do. The difference matters: the one may be over in a moment and needs another disk at
worst, the other needs a backup. So what SQLite calls damage is looked at again:

    SQLite says damaged ─► read the files byte by byte ─► EIO                     ─► LogFailed
                                                       └► all of it can be read
                                                            ─► the same once more ─► damaged: it is
                                                                                  └► well: it was
                                                                                     one read

Reading the files takes as long as they are large. So a page that a statement wants in the thread of
the event loop is refused as unreadable at first, and the look is taken when the file is opened
again, which happens in a thread of its own. A write is not repeated: it is refused as failed, and
is damage if the next one ends in the same way.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from pathlib import Path
from typing import Final

from qserver.durability.explaining import explained
from qserver.durability.files import beside
from qserver.errors import DataCorrupted, LogFailed, QserverError

BYTES_AT_ONCE: Final = 1 << 20
_CODE: Final = re.compile(r"error code=(\d+)")


class SecondLook:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_wanted = False
        self._has_looked = False
        self._found: OSError | None = None
        self.write_has_failed = False
        """Whether the last write has met what SQLite calls damage."""

    def judge(self, error: sqlite3.Error | OSError) -> QserverError:
        """Return what an error means; read the files if SQLite calls them damaged."""
        found = explained(error, self._path)
        if isinstance(found, DataCorrupted):
            failed = first_read_error(self._path)
            if failed is not None:
                return explained(failed, self._path)
        return found

    def judge_load(self, damage: DataCorrupted) -> QserverError:
        """Return what a page means that SQLite calls damaged, without reading the files now."""
        if self._has_looked:
            self._has_looked = False
            return damage if self._found is None else explained(self._found, self._path)
        self._is_wanted = True
        return doubtful(self._path, damage)

    def judge_write(self, damage: DataCorrupted) -> QserverError:
        """Return what a write means that has met damage in files which can be read."""
        if self.write_has_failed:
            return damage
        self.write_has_failed = True
        return doubtful(self._path, damage)

    def take(self) -> None:
        """Read the files if a load has met what may be damage."""
        if self._is_wanted:
            self._found = first_read_error(self._path)
            self._is_wanted, self._has_looked = False, True

    def __repr__(self) -> str:
        return f"a second look at {self._path}"


def doubtful(path: Path, damage: DataCorrupted) -> LogFailed:
    return LogFailed(
        f"{path} seems damaged, or its disk cannot be read: it is looked at again",
        detail=damage.detail,
        hint="Try again in a moment.",
    )


def first_read_error(path: Path) -> OSError | None:
    """Read a file and its write-ahead log; return the error if the system refuses that."""
    for each in (path, beside(path, "-wal")):
        try:
            descriptor = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            return error
        try:
            at = 0
            while some := os.pread(descriptor, BYTES_AT_ONCE, at):
                at += len(some)
        except OSError as error:
            return error
        finally:
            os.close(descriptor)
    return None


def is_read_error(trouble: str) -> bool:
    """Return whether something that SQLite's own check reports is a read that failed."""
    found = _CODE.search(trouble)
    return found is not None and int(found.group(1)) & 0xFF == sqlite3.SQLITE_IOERR


def read_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))

"""Tells corruption from a failed read: SQLite reports both as SQLITE_CORRUPT.

A read that the system refuses with EIO looks to SQLite like bytes that make no sense. The
difference matters: a failed read may pass, corruption needs a backup. So after SQLITE_CORRUPT:

    read the files byte by byte ─┬─ EIO              ─► LogFailed
                                 └─ all readable     ─► repeat the call ─┬─ corrupt ─► DataCorrupted
                                                                         └─ well: one read failed

Reading the files takes time in proportion to their size. So a page load in the thread of the event
loop first raises LogFailed, and the files are read when the file is reopened, which happens in
another thread. A write is not repeated: the first one raises LogFailed, and the next one counts as
corruption if it fails in the same way.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from pathlib import Path
from typing import Final

from qserver.durability.files import beside
from qserver.durability.sqlite_errors import explained
from qserver.errors import DataCorrupted, LogFailed, QserverError

BYTES_AT_ONCE: Final = 1 << 20
_CODE: Final = re.compile(r"error code=(\d+)")


class SuspectedDamage:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_wanted = False
        self._has_looked = False
        self._found: OSError | None = None
        self.write_has_failed = False
        """Whether the last write has met what SQLite calls damage."""

    def judge(self, error: sqlite3.Error | OSError) -> QserverError:
        """Return the error to raise; read the files if SQLite calls them corrupt."""
        found = explained(error, self._path)
        if isinstance(found, DataCorrupted):
            failed = first_read_error(self._path)
            if failed is not None:
                return explained(failed, self._path)
        return found

    def judge_load(self, damage: DataCorrupted) -> QserverError:
        """Return the error to raise for a page that SQLite calls corrupt, without reading the
        files.
        """
        if self._has_looked:
            self._has_looked = False
            return damage if self._found is None else explained(self._found, self._path)
        self._is_wanted = True
        return doubtful(self._path, damage)

    def judge_write(self, damage: DataCorrupted) -> QserverError:
        """Return the error to raise for a write that met corruption in readable files."""
        if self.write_has_failed:
            return damage
        self.write_has_failed = True
        return doubtful(self._path, damage)

    def recheck(self) -> None:
        """Read the files if a load has met suspected damage."""
        if self._is_wanted:
            self._found = first_read_error(self._path)
            self._is_wanted, self._has_looked = False, True

    def __repr__(self) -> str:
        return f"suspected damage of {self._path}"


def doubtful(path: Path, damage: DataCorrupted) -> LogFailed:
    return LogFailed(
        f"{path} seems damaged, or its disk cannot be read: it is looked at again",
        detail=damage.detail,
        hint="Try again in a moment.",
    )


def first_read_error(path: Path) -> OSError | None:
    """Read a file and its write-ahead log; return the first error of the system."""
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
    """Return whether a finding of SQLite's integrity check is a failed read."""
    found = _CODE.search(trouble)
    return found is not None and int(found.group(1)) & 0xFF == sqlite3.SQLITE_IOERR


def read_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))

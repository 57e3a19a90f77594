"""Translates errors of SQLite and the system into the engine's errors, each with a hint.

An error of a copy that is not finished names what was copied, or where to.
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Final

from qserver.errors import DataCorrupted, DataInUse, LogFailed, QserverError


def explained(error: sqlite3.Error | OSError, path: Path) -> QserverError:
    """Return the error as the engine knows it, with a hint what to do."""
    if isinstance(error, OSError):
        if error.errno in _CAUSES:
            kind, message, hint = EXPLANATIONS[_CAUSES[error.errno]]
            return kind(message.format(path=path), detail=str(error), hint=hint)
        return LogFailed(
            f"{path} cannot be used: {error.strerror or error}",
            hint="See to it that the folder exists and that qserver may write to it.",
        )
    code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_CORRUPT
    kind, message, hint = EXPLANATIONS.get(code & 0xFF, _UNEXPLAINED)
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return kind(message.format(path=path), detail=f"{error} ({name})", hint=hint)


def name_instead(error: QserverError, copy: Path, meant: Path) -> None:
    """Let an error of an unfinished copy name the file or folder that the reader knows."""
    error.message = error.message.replace(str(copy), str(meant))
    error.detail = error.detail and error.detail.replace(str(copy), str(meant))
    error.hint = error.hint and error.hint.replace(str(copy), str(meant))


_CAUSES: Final = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EIO: sqlite3.SQLITE_IOERR,
}
"""What the system reports when our own sync fails, as SQLite would have called it."""

EXPLANATIONS: Final[dict[int, tuple[type[QserverError], str, str]]] = {
    sqlite3.SQLITE_FULL: (
        LogFailed,
        "the disk of {path} is full",
        "Make room; the database goes on by itself. Nothing that was acknowledged is lost.",
    ),
    sqlite3.SQLITE_IOERR: (
        LogFailed,
        "the disk of {path} cannot be read or written",
        "Look for disk errors in the system's log. The database tries again by itself.",
    ),
    sqlite3.SQLITE_READONLY: (
        LogFailed,
        "{path} cannot be written: it, its folder or its disk is read-only",
        "Let qserver write there; the database goes on by itself.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        LogFailed,
        "{path} cannot be opened",
        "See to it that the folder exists and that qserver may write to it.",
    ),
    sqlite3.SQLITE_NOMEM: (
        LogFailed,
        "there is not enough memory to work on {path}",
        "Give qserver more memory.",
    ),
    sqlite3.SQLITE_BUSY: (
        DataInUse,
        "another process uses {path}",
        "Stop the other process: one file has one server.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        DataCorrupted,
        "{path} is damaged",
        "Restore a backup, and keep the damaged file until you have.",
    ),
    sqlite3.SQLITE_ERROR: (  # our statements never change, so it is the tables
        DataCorrupted,
        "{path} is damaged: it lacks what a data file has",
        "Restore a backup, and keep the damaged file until you have.",
    ),
    sqlite3.SQLITE_NOTADB: (
        DataCorrupted,
        "{path} is damaged: it does not begin as a data file does",
        "Restore a backup, and keep the damaged file until you have.",
    ),
}
_UNEXPLAINED: Final[tuple[type[QserverError], str, str]] = (
    LogFailed,
    "{path} cannot be read or written",
    "The database tries again by itself. If this does not end, restart qserver.",
)

"""The SQLite file of a database as a file: made whole, recognized, private, copied, removed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from shutil import copyfile
from typing import Final

from qserver.durability.files import beside, keep_private, make_folder, new_file, publish_file
from qserver.durability.high_water_mark import ENDING
from qserver.durability.sqlite_errors import EXPLANATIONS
from qserver.durability.write_ahead_log import is_damaged
from qserver.errors import DataCorrupted, DataInUse, DataUnknown, LogFailed

APPLICATION: Final = int.from_bytes(b"qsrv", "big")
"""SQLite's application id, which tells our files from others."""
FORMAT: Final = 2
"""SQLite's user version: the layout of the tables. Pages and records have formats of their own."""
FORMAT_OF_ONE_CHECKPOINT: Final = 1

COMPANIONS: Final = ("", "-journal", "-wal", "-shm", ENDING)
MADE: Final = ".new"
"""The ending of a file that is being made."""

TABLES: Final = (
    ("records", 2, "CREATE TABLE records (version INTEGER PRIMARY KEY, data BLOB NOT NULL)"),
    ("pages", 3, "CREATE TABLE pages (number INTEGER PRIMARY KEY, data BLOB NOT NULL)"),
    (
        "checkpoints",
        4,
        "CREATE TABLE checkpoints (version INTEGER PRIMARY KEY, outline BLOB NOT NULL,"
        " gone BLOB NOT NULL, dead BLOB NOT NULL, data BLOB NOT NULL)",
    ),
)
"""Name, SQLite's number of its first page, definition."""


def make_if_absent(path: Path) -> None:
    """Make a new and empty file, unless there is one; it appears whole or not at all."""
    if path.exists():
        return
    for ending, what in (("-wal", "write-ahead log"), (ENDING, "high-water mark")):
        if beside(path, ending).exists():
            raise DataCorrupted(
                f"{path} is missing, but the {what} of such a file is there",
                hint="Put the file back, or restore a backup. To begin anew, remove"
                f" {beside(path, ending)}.",
            )
    make_folder(path.parent)
    unfinished = beside(path, MADE)
    remove_file(unfinished)
    new_file(unfinished)
    connection = sqlite3.connect(unfinished, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")  # it is synced when it gets its name
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the file has a first page
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("BEGIN")
        for _, _, definition in TABLES:
            connection.execute(definition)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")  # as it is opened; that costs syncs later
    finally:
        connection.close()
    publish_file(unfinished, path)


def check_head(path: Path) -> None:
    """Refuse a file that is not ours by its first bytes, without changing it."""
    with path.open("rb") as file:
        head = file.read(100)
    if not head:
        raise DataCorrupted(f"{path} is empty", hint="It has lost its content. Restore a backup.")
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise DataUnknown(
            f"{path} is not a file of qserver",
            hint="Name another file. If this one was qserver's, it is damaged: restore a backup.",
        )
    if int.from_bytes(head[68:72], "big") != APPLICATION:
        raise DataUnknown(
            f"{path} is a SQLite file, but not one of qserver", hint="Name another file."
        )
    version = int.from_bytes(head[60:64], "big")
    if version > FORMAT:
        raise DataUnknown(
            f"{path} has format {version}, this release knows {FORMAT}",
            hint="The data were written by a newer release of qserver: use that one.",
        )


def check_writable(path: Path) -> None:
    """Refuse a read-only place, for which SQLite would only report an I/O error."""
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)):
        _, message, hint = EXPLANATIONS[sqlite3.SQLITE_READONLY]
        raise LogFailed(message.format(path=path), hint=hint)


def check_write_ahead_log(path: Path) -> None:
    """Refuse damage that SQLite would silently cut off."""
    beside_it = beside(path, "-wal")
    if beside_it.exists() and is_damaged(beside_it.read_bytes()):
        raise DataCorrupted(
            f"{beside_it} is damaged",
            hint="It holds the newest commits. Restore a backup, and keep both files until then.",
        )


def keep_all_private(path: Path) -> None:
    for each in (beside(path, ending) for ending in COMPANIONS):
        if each.exists():
            keep_private(each)


def remove_file(path: Path) -> None:
    """Remove what an interrupted attempt has left, with the files beside it."""
    for ending in COMPANIONS:
        try:
            beside(path, ending).unlink(missing_ok=True)
        except OSError:
            pass  # the next writer there reports it


def copy_data(source: Path, target: Path, unfinished: Path) -> None:
    """Copy a file that no process has open, with its write-ahead log and mark if it has them."""
    if target.exists():
        raise DataInUse(
            f"{target} exists already",
            hint="Move it away first, if you are sure that you want the backup instead.",
        )
    try:
        check_head(source)
        make_folder(target.parent)
        remove_file(unfinished)
        new_file(unfinished)
        copyfile(source, unfinished)
        for ending in ("-wal", ENDING):
            if beside(source, ending).exists():
                new_file(beside(unfinished, ending))
                copyfile(beside(source, ending), beside(unfinished, ending))
    except OSError as error:
        raise LogFailed(
            f"{source} cannot be copied to {target}: {error.strerror or error}",
            hint="See to it that the one can be read and that there is room for the other.",
        ) from error

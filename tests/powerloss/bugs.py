"""Mistakes that the test of power failures has to find, each planted in the worker's process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import Any, Final

from qserver.durability import (
    data_file,
    files,
    high_water_mark,
    sqlite_connection,
    sqlite_file,
)
from qserver.durability.port import StoredPage, StoredRecord
from qserver.durability.saved_pages import Save
from qserver.durability.sqlite import SqliteLog
from qserver.durability.sqlite_file import SqliteFile
from qserver.durability.wal_sync import WalSync
from qserver.engine.checkpointer import Checkpointer


def sync_less_often() -> None:
    """The write-ahead log is synced only by SQLite, before a checkpoint of its own."""
    WalSync.sync = lambda self: None  # type: ignore[method-assign]


def never_sync() -> None:
    """`synchronous=OFF`."""
    _connected_with("PRAGMA synchronous = OFF")


def _connected_with(statement: str) -> None:
    connect = sqlite_connection.connect

    def connected(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(statement)
        return connection

    sqlite_file.connect = connected  # type: ignore[attr-defined]


def trim_before_sync() -> None:
    """Pages go from the write-ahead log into the main file, and the log is cut before a sync."""

    def trim(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = NORMAL")

    save = SqliteFile.save_checkpoint

    def saved(file: SqliteFile, *row: Any) -> None:
        save(file, *row)
        file._run(trim)

    SqliteFile.save_checkpoint = saved  # type: ignore[method-assign, assignment]


def forget_before_saved() -> None:
    """A checkpoint lets the log be forgotten before its record is written."""

    async def save(checkpointer: Checkpointer, made: Save, logged: int = 0) -> None:
        pages: list[StoredPage] = list(made.pages())
        await checkpointer.log.save_pages(pages)
        await checkpointer.log.forget(made.snapshot.version, [])
        await checkpointer.log.save_checkpoint(made.snapshot.version, *made.stored())
        checkpointer.saved.confirm(made)

    Checkpointer.save = save  # type: ignore[method-assign, assignment]


def leave_names_unsynced() -> None:
    """New files and folders get their names, and the folders that hold them are not synced."""
    _patched_sync(lambda path: not path.is_dir())


def _patched_sync(wanted: Callable[[Path], bool]) -> None:
    original = files.sync

    def sync(path: Path) -> None:
        if wanted(path):
            original(path)

    for module in (files, sqlite_file, high_water_mark):
        module.sync = sync  # type: ignore[attr-defined]


def leave_content_unsynced() -> None:
    """A new file gets its name before its bytes are durable, as if SQLite had not synced them."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connected(path: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    class Careless:
        """The module, with another `connect`."""

        def __getattr__(self, name: str) -> Any:
            return connected if name == "connect" else getattr(sqlite3, name)

    data_file.sqlite3 = Careless()  # type: ignore[assignment, attr-defined]
    _patched_sync(Path.is_dir)


def acknowledge_early() -> None:
    """An append is called done when it is begun; its disk is slow, so that this comes first."""

    async def append(log: SqliteLog, records: Sequence[StoredRecord]) -> None:
        def late() -> None:
            sleep(0.05)
            log._file.append(records)

        log._queue._begin(late)

    SqliteLog.append = append  # type: ignore[method-assign, assignment]


def read_without_making_durable() -> None:
    """A start believes what it finds, though a power failure could still take it."""
    sqlite_connection.make_durable = lambda connection, path: None


def leave_pins_unsynced() -> None:
    """What a branch needs of its parent is pinned, and the pin is not synced."""
    change = SqliteFile._change
    change_checkpoints = SqliteFile.change_checkpoints

    def unsynced(file: SqliteFile, *arguments: Any) -> None:
        SqliteFile._change = _change_without_sync  # type: ignore[method-assign, assignment]
        try:
            change_checkpoints(file, *arguments)
        finally:
            SqliteFile._change = change  # type: ignore[method-assign]

    SqliteFile.change_checkpoints = unsynced  # type: ignore[method-assign, assignment]


def _change_without_sync(file: SqliteFile, work: Callable[[sqlite3.Connection], Any]) -> Any:
    def change(connection: sqlite3.Connection) -> Any:
        connection.execute("BEGIN IMMEDIATE")
        result = work(connection)
        connection.execute("COMMIT")
        return result

    return file._run(change)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "normal": sync_less_often,
    "off": never_sync,
    "trim": trim_before_sync,
    "forget": forget_before_saved,
    "names": leave_names_unsynced,
    "content": leave_content_unsynced,
    "early": acknowledge_early,
    "believe": read_without_making_durable,
    "pins": leave_pins_unsynced,
}

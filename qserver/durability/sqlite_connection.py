"""Opens a SQLite file as we use it: alone, in WAL mode, with the tables of a data file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from qserver.durability.data_file import FORMAT, FORMAT_OF_ONE_CHECKPOINT, TABLES
from qserver.durability.files import beside
from qserver.durability.upkeep import STATEMENTS_KEPT, can_shrink
from qserver.durability.wal_sync import WalSync

WAL_BYTES_KEPT: Final = 16 << 20
WAL_PAGES_MOVED_AT_LAST: Final = 1024
"""Pages after which a commit moves them itself, because nobody has called `SqliteFile.rest`."""
CACHE_KIB: Final = 512
"""The memory of one connection for pages of SQLite.

A thousand files may be open. What is read often is in our own cache, which is bounded for all."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a file that is ours, for this process alone; all that it holds is durable then."""
    # Our own thread makes and uses it; another may close it, at the very end.
    connection = sqlite3.connect(
        path,
        timeout=0.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS_KEPT,
    )
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # see `wal_sync`
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES_MOVED_AT_LAST}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        # Otherwise forgetting a page or a record would write all of it again, as zeros.
        connection.execute("PRAGMA secure_delete = FAST")
        connection.execute("BEGIN EXCLUSIVE")  # may we write, and does no other process?
        connection.execute("COMMIT")
        make_durable(connection, path)
        _keep_several_checkpoints(connection)
        _check_structure(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def make_durable(connection: sqlite3.Connection, path: Path) -> None:
    """Make everything that can be read from here on durable, whichever process wrote it."""
    log = beside(path, "-wal")
    if log.exists() and log.stat().st_size:
        WalSync(path).mend()  # a sync may have failed before the other process ended
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        # There is no room to move the log into the main file. It can be read where it is.


def _keep_several_checkpoints(connection: sqlite3.Connection) -> None:
    """Give a file of format 1, which has room for one checkpoint, the tables of this release.

    The table stays where it is, so that all files are alike; only its definition changes.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found != FORMAT_OF_ONE_CHECKPOINT:
        return
    name, _, definition = TABLES[-1]
    connection.execute("BEGIN IMMEDIATE")
    rows = connection.execute("SELECT version, data FROM checkpoint").fetchall()
    connection.execute("DELETE FROM checkpoint")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET name = ?, tbl_name = ?, sql = ? WHERE name = 'checkpoint'",
        (name, name, definition),
    )
    connection.execute("PRAGMA writable_schema = RESET")
    connection.executemany("INSERT INTO checkpoints VALUES (?, x'', x'', x'', ?)", rows)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _check_structure(connection: sqlite3.Connection) -> None:
    """Check the definitions, and the checkpoints as a table.

    A damaged definition would make SQLite find other rows, or none. The tables of records and of
    pages may be large, so they are not read: a record or page has its number and a checksum, which
    are checked when it is read, and the high-water mark tells where the records end. `troubles`
    checks everything.
    """
    tables = connection.execute("SELECT name, rootpage, sql FROM sqlite_schema").fetchall()
    first = 1 if can_shrink(connection) else 0  # such a file begins with a map of its pages
    if tables != [(name, page + first, text) for name, page, text in TABLES]:
        raise sqlite3.DatabaseError("its tables are not those of a data file")
    (found,) = connection.execute("PRAGMA quick_check(checkpoints)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)

"""The SQLite file of one database, driven by one thread: every call here blocks.

    records      version │ bytes      the log, one row for each round
    pages        number  │ bytes      pages of trees; which of them count, the checkpoints say;
                                      their columns, see `column_numbers`
    checkpoints  version │ bytes      the checkpoints that are kept, with what changes beside them

SQLite brings checksums of its write-ahead log, torn-write safety and decades of crash tests, so
none of that is ours to write. What is ours, because SQLite would be too lenient:

- A new file is made under another name and renamed when it is whole. So a file that is empty or
  lacks its head is damage, where SQLite would begin a new and empty database in it.
- A write-ahead log that is damaged in its middle is refused; SQLite would cut it there.
- A stranger's file is recognized by its first hundred bytes, before SQLite may write to it.
- What a crashed process had written but not synced is in the system's cache. A power failure
  would lose it after a client has read it. So opening writes all of it into the main file, and
  syncs that, before anything is read. The same holds after a sync that has failed. On a full
  disk there is no room for that, and it is synced where it is.
- The file is locked for as long as it is open, against a second process. A process that writes
  in spite of that is noticed, see `foreign_writes`: then the file is given up for good.
- A log that lost whole transactions at its end is refused, see `high_water_mark`.
- Only the owner may read the files.

A file that is the copy of a replicated log need not have its records when the power fails, see
`replication`. Its appends are not synced (`syncs_appends`), everything else is. So the log before
it may be torn anywhere behind the last sync, and there is no high-water mark.

After any failure the connection is given up. The next call opens the file again, so the database
recovers by reading when the cause is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from qserver.durability.column_numbers import columns_between
from qserver.durability.data_file import (
    check_head,
    check_writable,
    check_write_ahead_log,
    keep_all_private,
    make_if_absent,
)
from qserver.durability.foreign_writes import ForeignWrites, abandon, check_end
from qserver.durability.high_water_mark import (
    HighWaterMark,
    Mark,
    NoMark,
    check_mark,
    checksum_of,
)
from qserver.durability.port import (
    NO_PARTS,
    CheckpointParts,
    StoredPage,
    StoredRecord,
    ends_with,
)
from qserver.durability.sqlite_connection import connect
from qserver.durability.sqlite_errors import explained
from qserver.durability.still_file import StillFile
from qserver.durability.suspected_damage import SuspectedDamage, is_read_error, read_error
from qserver.durability.upkeep import shrink, shrink_memory
from qserver.durability.wal_sync import WalSync
from qserver.errors import DataCorrupted, LogFailed, LogTaken, QserverError

READ_BYTES: Final = 4 << 20
"""A read ends after so many bytes, however few rows that is."""
APPENDS_UNMARKED_MAX: Final = 64
"""After so many appends the mark is moved, if the thread was never idle meanwhile."""
ROWS_OF_STATEMENT: Final = 256
FORGET_BYTES: Final = 1 << 20
"""Records dropped in one transaction have at most so many bytes, or are one."""
WAL_PAGES_MOVED: Final = 256
"""Pages after which the write-ahead log is to be moved into the main file, by `rest`.

Commits wait for the move, so it is a megabyte and not SQLite's four.
"""
PAGE_BYTES: Final = 4096
"""About the bytes of a record, or of a page of ours, for which SQLite writes one page."""

T = TypeVar("T")


class SqliteFile:
    def __init__(self, path: Path, *, syncs_appends: bool = True) -> None:
        self.path = path
        self.syncs_appends = syncs_appends
        self._open: sqlite3.Connection | None = None
        self._last = 0
        self._last_checksum = 0
        self._unmarked = 0
        self._unmoved = 0
        """About how many pages the write-ahead log has."""
        self._mark = HighWaterMark(path) if syncs_appends else NoMark(path)
        self._tried: Sequence[StoredRecord] = ()
        """The records of an append that has not succeeded."""
        self._was_open = False
        self._foreign = ForeignWrites(path)
        self._wal = WalSync(path)
        self._still = StillFile(path)
        self._suspected = SuspectedDamage(path)
        self.freely: Callable[[Callable[[], None]], None] = lambda call: call()
        """Does a sync; reads may come in meanwhile, if they may at all."""
        self._taken: LogTaken | None = None

    # --- opening and closing ---

    def open(self) -> None:
        """Open the file, and make it if necessary; raise what prevents that."""
        if self._taken is not None:
            raise self._taken.again()
        if self._open is not None and self._wal.has_failed:
            try:
                self._wal.mend()
            except OSError as error:
                raise explained(error, self.path) from error
            self.close()
        if self._open is None:
            self._suspected.recheck()
            try:
                self._open_file()
            except DataCorrupted as damage:
                if not isinstance(damage.__cause__, sqlite3.Error):
                    raise
                self._open_file()

    def _open_file(self) -> None:
        try:
            make_if_absent(self.path)
            check_head(self.path)
            check_writable(self.path)
            if self.syncs_appends:
                check_write_ahead_log(self.path)
            keep_all_private(self.path)
            self._open = connection = connect(self.path)
            last = _last_version(connection)
            if self._was_open:
                self._check_end(connection, last)
            self._last, self._was_open, self._unmoved = last, True, 0
            self._compare_mark(connection)
            self._wal.open()
            self._foreign.leave(self._wal.descriptor)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._suspected.judge(error) from error
        except QserverError:
            self.close()
            raise

    def _check_end(self, connection: sqlite3.Connection, last: int) -> None:
        """Raise if another process has appended while the file was closed after a failure."""
        found = _record(connection, last)
        checksum = None if found is None else checksum_of(found)
        tried = {version: checksum_of(data) for version, data in self._tried}
        try:
            check_end(self.path, self._last, tried, last, checksum)
        except LogTaken as taken:
            self._give_up(taken)
            raise

    def _give_up(self, taken: LogTaken) -> None:
        """Leave the file alone for good: it belongs to another process."""
        self._taken = taken
        self._still.let_go()
        self._mark.close()
        self._wal.close()
        connection, self._open = self._open, None
        abandon(connection)

    def _compare_mark(self, connection: sqlite3.Connection) -> None:
        """Refuse a log that has lost its end; then mark the end that was found."""
        mark = self._mark.read()
        if mark is not None:
            found = _record(connection, mark.version)
            check_mark(mark, self._last, found, self.path, self._mark.path)
        last = _record(connection, self._last)
        self._last_checksum = 0 if last is None else checksum_of(last)
        self._mark.begin(Mark(self._last, self._last_checksum))

    @property
    def is_open(self) -> bool:
        return self._open is not None and not self._wal.has_failed

    @property
    def can_load(self) -> bool:
        return self._open is not None

    @property
    def has_to_rest(self) -> bool:
        """Whether `rest` should be called soon: the log has become long."""
        return self._unmoved >= WAL_PAGES_MOVED

    def rest(self) -> None:
        """Move the mark, and a log that has become long, or let go of memory in a quiet moment.

        No commit has to wait for any of it.
        """
        self.move_mark()
        if self.is_open:
            work = self._still.move_log if self.has_to_rest else shrink_memory
            if self.has_to_rest:
                self._unmoved = 0
            with suppress(QserverError):  # another process has the file: the next call says so
                self._use(work, self._suspected.judge)

    def move_mark(self) -> None:
        """Note beside the log how far it is durable. May be called at any time, or never."""
        if self._open is not None:
            self._mark.move(Mark(self._last, self._last_checksum))
            self._unmarked = 0

    def end(self) -> None:
        """Close the file for good."""
        self.close()
        connection, self._open = self._open, None
        if connection is not None:
            abandon(connection)

    def close(self) -> None:
        """Close the file, unless a sync has failed and the log cannot be mended now.

        Then SQLite has to keep it: it would move a log that is not durable.
        """
        self.move_mark()
        if self._open is not None and self._wal.has_failed:
            try:
                self._wal.mend()
            except OSError:
                return
        self._mark.close()
        self._foreign.rest()
        self._wal.close()
        connection, self._open = self._open, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                pass  # it is given up anyway; opening the file again says what is wrong
            self._still.close()

    def _run(self, work: Callable[[sqlite3.Connection], T], *, syncs: bool = False) -> T:
        """Do the work; if it `syncs`, all that was changed is durable when this returns."""
        if self._open is None or self._wal.has_failed:
            self.open()
        try:
            result = self._use(work, self._suspected.judge, syncs)
        except DataCorrupted as damage:
            if syncs:
                raise self._suspected.judge_write(damage) from damage
            self.open()  # it may have been one read that failed
            return self._use(work, self._suspected.judge)
        if syncs:
            self._suspected.write_has_failed = False
        return result

    def _use(
        self,
        work: Callable[[sqlite3.Connection], T],
        judge: Callable[[sqlite3.Error | OSError], QserverError],
        syncs: bool = False,
        changes: bool = True,
    ) -> T:
        connection = self._open
        assert connection is not None
        try:
            self._foreign.check(self._last + 1)
            result = work(connection)
            if changes:
                self._foreign.leave(self._wal.descriptor)
            if syncs:
                self.freely(self._wal.sync)
            return result
        except LogTaken as taken:
            self._give_up(taken)
            raise
        except (sqlite3.Error, OSError) as error:
            self.close()
            if self._open is not None:  # SQLite keeps it, and another descriptor would end its lock
                judge = self._explained
            raise judge(error) from error

    def _change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work as one transaction, which is durable when this returns."""

        def change(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
            return result

        return self._run(change, syncs=True)

    def _insert(
        self, statement: str, rows: Sequence[tuple[int, bytes]], *, syncs: bool = True
    ) -> None:
        """Insert all rows as one transaction, which one statement is by itself.

        This thread releases Python's lock in each statement. With one for each row, it would have
        to get the lock back as often, from a loop that is busy.
        """
        size = PAGE_BYTES
        for _, data in rows:
            size += len(data)
        self._unmoved += size // PAGE_BYTES
        if len(rows) > ROWS_OF_STATEMENT:
            self._change(lambda connection: connection.executemany(statement, rows))
        elif len(rows) == 1:  # a lone commit
            self._run(lambda connection: connection.execute(statement, rows[0]), syncs=syncs)
        else:
            many = statement + ", (?, ?)" * (len(rows) - 1)
            values = tuple(chain.from_iterable(rows))
            self._run(lambda connection: connection.execute(many, values), syncs=syncs)

    # --- records ---

    def append(self, records: Sequence[StoredRecord]) -> None:
        if self._open is None or self._wal.has_failed:
            self.open()
        first = records[0][0]
        if first != self._last + 1:
            self.close()
            raise LogFailed(
                f"the log of {self.path} ends with version {self._last}, where {first} was to"
                " follow",
                hint="Something else has changed the file. The database reads it again.",
            )
        self._tried = records
        self._insert(_APPEND, records, syncs=self.syncs_appends)
        self._tried = ()
        self._last, data = records[-1]
        self._last_checksum = checksum_of(data)
        self._unmarked += 1
        if self._unmarked >= APPENDS_UNMARKED_MAX:
            self.move_mark()

    def save_records(self, records: Sequence[StoredRecord]) -> None:
        self._tried = records
        self._insert(_SAVE_RECORD, records)
        self._tried = ()
        version, data = records[-1]
        if version >= self._last:
            self._last, self._last_checksum = version, checksum_of(data)

    def read(self, after: int, most: int) -> list[StoredRecord]:
        return self._run(lambda connection: _some(connection.execute(_READ, (after, most))))

    def fence(self, version: int) -> bool:
        """Check where the log ends: that is enough, because the lock keeps other processes out."""
        self._last = self._run(_last_version)
        return ends_with(self._last, version, f"the log in {self.path}")

    # --- checkpoints ---

    def sync(self) -> None:
        """Return when all that was written is durable."""
        self._run(lambda connection: None, syncs=True)

    def save_pages(self, pages: Sequence[StoredPage]) -> None:
        self._insert(_SAVE_PAGE, pages)

    def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        row = (version, parts.outline, parts.gone, parts.dead, data)

        def save(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM checkpoints WHERE version > ?", (after,))
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)

        self._change(save)
        self.move_mark()
        self.freely(self._mark.sync)

    def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        rows = self._run(
            lambda connection: connection.execute(_LOAD_CHECKPOINT, (version, version)).fetchall()
        )
        return rows[0] if rows else None

    def load_outlines(self) -> list[StoredRecord]:
        return self._run(lambda connection: connection.execute(_LOAD_OUTLINES).fetchall())

    def load_parts(self, version: int) -> CheckpointParts | None:
        rows = self._run(lambda connection: connection.execute(_LOAD_PARTS, (version,)).fetchall())
        return CheckpointParts(*rows[0]) if rows else None

    def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        def change(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "DELETE FROM checkpoints WHERE version = ?", [(each,) for each in dropped]
            )
            rows = [(parts.outline, parts.gone, parts.dead, each) for each, parts in changed]
            connection.executemany(_CHANGE_PARTS, rows)

        self._change(change)

    def load_pages(self, after: int, most: int) -> list[StoredPage]:
        return self._run(lambda connection: _some(connection.execute(_LOAD_PAGES, (after, most))))

    def last_page(self) -> int:
        rows = self._run(lambda connection: connection.execute(_LAST_PAGE).fetchall())
        return int(rows[0][0])

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return pages of a file that is open, also of one whose last sync has failed."""
        text = _LOAD_PAGE
        if len(numbers) > 1:
            text = f"{text.rpartition('=')[0]}IN ({', '.join('?' * len(numbers))})"
        try:
            return self._use(
                lambda connection: dict(connection.execute(text, numbers).fetchall()),
                self._explained,
                changes=False,
            )
        except DataCorrupted as damage:
            raise self._suspected.judge_load(damage) from damage

    def _explained(self, error: sqlite3.Error | OSError) -> QserverError:
        return explained(error, self.path)

    def forget(self, version: int, pages: Sequence[int]) -> bool:
        """Drop pages, and records up to a version as far as that is a short step.

        True if that was all; otherwise call it again.
        """

        def remove(connection: sqlite3.Connection) -> bool:
            until = _short_step(connection.execute(_SIZES, (version,)))
            if until is not None:
                connection.execute("DELETE FROM records WHERE version <= ?", (until,))
            if pages:
                marks = ",".join("?" * len(pages))
                connection.execute(f"DELETE FROM pages WHERE number IN ({marks})", pages)
                connection.executemany(_FORGET_COLUMNS, columns_between(pages))
            return until is None or until == version

        done = self._change(remove)
        return not self._run(shrink) and done

    def shrink(self) -> bool:
        """Give a few free pages back to the file system; False if nothing is left to give."""

        def cut(connection: sqlite3.Connection) -> bool:
            if shrink(connection, 0, 0):
                return True
            if self._still.is_held:
                self._still.move_log(connection)
            else:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return False

        return self._run(cut)

    # --- copies ---

    def hold_still(self) -> int:
        """Keep the main file as it is now, with all that was written; return its bytes."""
        return self._run(self._still.hold)

    def read_still(self, at: int, size: int) -> bytes:
        try:
            return self._still.read(at, size)
        except OSError as error:
            raise explained(error, self.path) from error

    def release_still(self) -> None:
        if self._still.is_held:
            self._run(self._still.release)

    # --- inspection ---

    def page_sizes(self, after: int, most: int) -> list[tuple[int, int]]:
        return self._run(
            lambda connection: connection.execute(_SIZES_OF_PAGES, (after, most)).fetchall()
        )

    def troubles(self) -> list[str]:
        """Return what SQLite finds wrong with its own structure; empty if nothing."""
        rows = self._run(lambda connection: connection.execute("PRAGMA integrity_check").fetchall())
        troubles = [] if rows == [("ok",)] else [str(text) for (text,) in rows]
        if any(map(is_read_error, troubles)):
            raise explained(read_error(), self.path)
        return troubles

    def __repr__(self) -> str:
        state = "closed" if self._open is None else "open"
        return f"the file {self.path}, {state}, up to version {self._last}"


_APPEND: Final = "INSERT INTO records VALUES (?, ?)"
_SAVE_RECORD: Final = "INSERT OR REPLACE INTO records VALUES (?, ?)"
_READ: Final = "SELECT version, data FROM records WHERE version > ? ORDER BY version LIMIT ?"
_SAVE_PAGE: Final = "INSERT OR REPLACE INTO pages VALUES (?, ?)"
_LOAD_CHECKPOINT: Final = (
    "SELECT version, data FROM checkpoints WHERE ? IS NULL OR version = ?"
    " ORDER BY version DESC LIMIT 1"
)
_LOAD_OUTLINES: Final = "SELECT version, outline FROM checkpoints ORDER BY version"
_LOAD_PARTS: Final = "SELECT outline, gone, dead FROM checkpoints WHERE version = ?"
_CHANGE_PARTS: Final = (
    "UPDATE checkpoints SET outline = coalesce(?, outline), gone = coalesce(?, gone),"
    " dead = coalesce(?, dead) WHERE version = ?"
)
_SIZES: Final = (
    "SELECT version, length(data) FROM records WHERE version <= ? ORDER BY version LIMIT 1000"
)
_SIZES_OF_PAGES: Final = (
    "SELECT number, length(data) FROM pages WHERE number > ? ORDER BY number LIMIT ?"
)
_LAST_PAGE: Final = "SELECT max(coalesce(max(number), 0), 0) FROM pages"
_FORGET_COLUMNS: Final = "DELETE FROM pages WHERE number BETWEEN ? AND ?"
_LOAD_PAGE: Final = "SELECT number, data FROM pages WHERE number = ?"
_LOAD_PAGES: Final = "SELECT number, data FROM pages WHERE number > ? ORDER BY number LIMIT ?"


def _short_step(sizes: Iterable[tuple[int, int]]) -> int | None:
    """Return the last version of those that together are not too large; None if there is none."""
    last, total = None, 0
    for version, size in sizes:
        if last is not None and total + size > FORGET_BYTES:
            break
        last, total = version, total + size
    return last


def _some(rows: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return rows up to a number of bytes, and always one if there is any."""
    some: list[tuple[int, bytes]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[1])
        if size >= READ_BYTES:
            break
    return some


def _last_version(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute(
        "SELECT max((SELECT coalesce(max(version), 0) FROM records),"
        " (SELECT coalesce(max(version), 0) FROM checkpoints))"
    ).fetchone()
    return int(last)


def _record(connection: sqlite3.Connection, version: int) -> bytes | None:
    """Return the record of a version, if it is not forgotten."""
    rows = connection.execute("SELECT data FROM records WHERE version = ?", (version,)).fetchall()
    return rows[0][0] if rows else None

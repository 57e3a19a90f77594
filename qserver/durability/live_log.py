"""Reads the log in a data file that a server has open, without the server's help or its lock.

    -wal    frames of committed transactions ──► page number → newest frame ──┐
                                                                              ├──► tables ─► records
    file    pages that no frame has ──────────────────────────────────────────┘

The server keeps its file locked, so another process cannot ask SQLite. But a file in WAL mode
changes in one way only: pages of the write-ahead log are moved to their places (see `live_copy`).
So the pages of the log, and of the file where the log has none, are together what was committed
last. That holds unless the log was begun anew meanwhile, which its head shows, or a page that was
read in the file has come into the log since, because then it may have been moved, too. Either way
all is read again.

Records are in one table in the order of their versions, so reading those after a version takes a
few pages, however large the file is. Of SQLite's format three kinds of pages are read
(sqlite.org/fileformat2.html): interior and leaf pages of a table, and overflow pages. A record has
a checksum of its own, which the caller compares.

Not for the process that has the file open itself: to close another descriptor of a file ends the
lock that SQLite has on it.

What the server has written and not yet synced is read, too. A crash of the machine may take that
back, so who keeps what was read here compares it later with what the file has then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from struct import error as StructError
from struct import unpack_from
from typing import Final, NamedTuple, TypeVar, cast

import msgspec

from qserver.durability.branch_log import Base, read_base
from qserver.durability.data_file import FORMAT, check_head
from qserver.durability.files import beside
from qserver.durability.kept import KeptCheckpoint, decode_outline
from qserver.durability.port import StoredRecord
from qserver.durability.write_ahead_log import BIG, FRAME, HEAD, LITTLE, sums_of
from qserver.errors import DataInUse, DataUnknown, LogFailed, QserverError

ATTEMPTS: Final = 30
PAUSE_SECONDS: Final = 0.005
INTERIOR, LEAF = 5, 13
DEPTH_MAX: Final = 20
"""No tree of SQLite is deeper: what looks so is torn."""
TICK_NS: Final = 2 * 10**9
"""Two writes so close to each other may leave a file with the same time: some file systems count in
seconds. And a write-ahead log that was begun anew is written over, and does not grow."""
FIRST_TABLE: Final = 2
"""Page of the first table; one more in files that can shrink, see `data_file.TABLES`."""
RECORDS, PAGES, CHECKPOINTS = 0, 1, 2

T = TypeVar("T")


class Look(NamedTuple):
    """How the files look from outside. While that stays, and is settled, nothing was written."""

    file: tuple[int, int, int]
    log: tuple[int, int, int]
    is_settled: bool
    """Whether a write after this look gets a later time than those before."""


class LiveRecords(msgspec.Struct, frozen=True):
    records: list[StoredRecord]
    """Those after a version, in order; some of them if they are many."""
    is_all: bool
    last: int
    """The last version of all."""
    before: bytes | None
    """The record of the version itself, unless it was forgotten."""
    checkpoint: KeptCheckpoint | None
    """The newest."""


class Beginning(msgspec.Struct, frozen=True):
    """How a log begins."""

    base: Base | None
    """Of what it is a branch; None if it is not one."""

    @property
    def parent(self) -> str | None:
        return None if self.base is None else self.base.parent


class Torn(Exception):
    """What was read does not fit together: the server has written meanwhile."""


class LiveLog:
    """One file. Every call blocks, and only reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._frames = Frames(b"")
        self._log: tuple[int, ...] = ()
        """Of which file these are."""

    def look(self) -> Look | None:
        """Return how the files look; None if there is no file."""
        try:
            now = time.time_ns()
            file, log = _seen(self.path), _seen_if_there(beside(self.path, "-wal"))
            return Look(file, log, now - max(file[-1], log[-1]) > TICK_NS)
        except FileNotFoundError:
            return None

    def read(self, after: int, most: int) -> LiveRecords:
        """Return records after a version, at most so many bytes of them, or one.

        Raises LogFailed if the files cannot be read, or are gone; DataUnknown, DataCorrupted if
        they are not what they should be; DataInUse if they change faster than they can be read.
        """

        def read(tables: Tables) -> LiveRecords:
            records: list[StoredRecord] = []
            before, size, is_all = None, 0, True
            for version, data in tables.rows(RECORDS, after - 1):
                if version == after:
                    before = data()
                elif size >= most:
                    is_all = False
                    break
                else:
                    records.append((version, data()))
                    size += len(records[-1][1])
            newest, checkpoint = tables.last(CHECKPOINTS), None
            if newest is not None:
                ((_, outline),) = tables.rows(CHECKPOINTS, newest - 1)
                text = outline()
                checkpoint = decode_outline(newest, text) if text else None
            last = max(tables.last(RECORDS) or 0, newest or 0)
            return LiveRecords(records, is_all, last, before, checkpoint)

        return self._whole(read)

    def beginning(self) -> Beginning | None:
        """Return how the log begins; None if it is empty, or a branch that is still being made."""
        return self._whole(_beginning)

    def _whole(self, work: Callable[[Tables], T]) -> T:
        """Return what the work found, all of it at one moment."""
        for attempt in range(ATTEMPTS):
            time.sleep(attempt * PAUSE_SECONDS)
            try:
                return self._once(work)
            except Torn:
                continue
            except (StructError, IndexError, ValueError, AssertionError):
                continue  # a page that is half of one version and half of another
            except OSError as error:
                raise LogFailed(
                    f"{self.path} cannot be read: {error.strerror or error}",
                    hint="See to it that it is there and can be read.",
                ) from error
        raise DataInUse(
            f"{self.path} changes faster than it can be read, or is damaged",
            hint="It is tried again. If this stays, stop the server and run qserver check.",
        )

    def _once(self, work: Callable[[Tables], T]) -> T:
        check_head(self.path)
        with _opened(self.path) as file, _opened(beside(self.path, "-wal")) as log:
            state = self.look()
            if file is None or state is None:
                raise FileNotFoundError(ENOENT, "it is not there")
            head = _head(log)
            if head != self._frames.head or state.log[:1] != self._log or self._frames.is_over(log):
                self._frames, self._log = Frames(head), state.log[:1]
            if log is not None:
                self._frames.read_on(log)
            pages = Pages(file, log, self._frames)
            found, damage = None, None
            try:
                _check_format(self.path, pages)
                found = work(Tables(pages))
            except QserverError as error:  # half of one version and half of another look so, too
                damage = error
            if log is None or not head:
                is_whole = self.look() == state
            else:
                is_whole = _head(log) == head
                is_whole = is_whole and not self._frames.read_on(log) & pages.read_in_file
            if not is_whole:
                raise Torn from damage
            if damage is not None:
                raise damage
            return cast(T, found)

    def __repr__(self) -> str:
        return f"{self.path}, read from outside"


class Frames:
    """Which pages the committed transactions of a write-ahead log have, and where."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.places: dict[int, int] = {}
        self._end = HEAD.size
        self.page_bytes = 0
        self._salts: tuple[int, ...] = ()
        if len(head) == HEAD.size:
            magic, _, self.page_bytes, _, *salts, one, two = HEAD.unpack(head)
            self._order = {LITTLE: "<", BIG: ">"}.get(magic)
            if self._order is None or sums_of(self._order, head[:-8], 0, 0) != (one, two):
                raise Torn  # it is just being written
            self._salts = tuple(salts)

    def is_over(self, log: int | None) -> bool:
        """Return whether the log is shorter than it was: an older copy took its place."""
        return log is not None and os.fstat(log).st_size < self._end

    def read_on(self, log: int) -> set[int]:
        """Add what was committed since; return which pages that has."""
        if not self._salts:
            return set()
        size, at = FRAME.size + self.page_bytes, self._end
        pending: dict[int, int] = {}
        commits: list[tuple[int, dict[int, int]]] = []
        while len(frame := os.pread(log, FRAME.size, at)) == FRAME.size:
            number, pages, *salts, _, _ = FRAME.unpack(frame)
            if tuple(salts) != self._salts:
                break
            pending[number] = at
            if pages:
                commits.append((at, pending))
                pending = {}
            at += size
        # Frames are written in their order, so only the last of them may be there in part.
        if commits and not self._is_whole(log, commits[-1][0]):
            commits.pop()
        new: set[int] = set()
        for place, found in commits:
            self.places.update(found)
            new.update(found)
            self._end = place + size
        return new

    def _is_whole(self, log: int, at: int) -> bool:
        assert self._order is not None
        frame = os.pread(log, FRAME.size + self.page_bytes, at)
        if len(frame) < FRAME.size + self.page_bytes:
            return False
        before = HEAD.size - 8 if at == HEAD.size else at - self.page_bytes - 8
        one, two = unpack_from(">2I", os.pread(log, 8, before))
        one, two = sums_of(self._order, frame[:8], one, two)
        sums = sums_of(self._order, frame[FRAME.size :], one, two)
        return bool(sums == unpack_from(">2I", frame, 16))


class Pages:
    """SQLite's pages, as they were committed last."""

    def __init__(self, file: int, log: int | None, frames: Frames) -> None:
        self._file = file
        self._log = log
        self._frames = frames
        self.read_in_file: set[int] = set()
        self._bytes = frames.page_bytes
        if not self._bytes:
            (size,) = unpack_from(">H", os.pread(file, 18, 0), 16)
            self._bytes = 65_536 if size == 1 else size
        first = self.page(1)
        self.usable = self._bytes - first[20]
        self.can_shrink = unpack_from(">I", first, 52) != (0,)
        (self.format,) = unpack_from(">I", first, 60)

    def page(self, number: int) -> bytes:
        place = self._frames.places.get(number)
        if place is not None and self._log is not None:
            data = os.pread(self._log, self._bytes, place + FRAME.size)
        else:
            self.read_in_file.add(number)
            data = os.pread(self._file, self._bytes, (number - 1) * self._bytes)
        if len(data) < self._bytes:
            raise Torn
        return data


class Tables:
    """The tables of a data file: rows with a number and a blob."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return those of our pages that there are, see `Log.load`."""
        found: dict[int, bytes] = {}
        for number in numbers:
            for row, data in self.rows(PAGES, number - 1):
                if row == number:
                    found[number] = data()
                break
        return found

    def rows(self, table: int, after: int) -> Iterator[tuple[int, Callable[[], bytes]]]:
        """Yield the rows after a number, each with a function that returns its first blob."""
        return self._rows(self._root(table), after, DEPTH_MAX)

    def last(self, table: int) -> int | None:
        """Return the greatest number of a row; None if there is none."""
        number = self._root(table)
        for _ in range(DEPTH_MAX):
            data = self._pages.page(number)
            kind, count = data[0], _cells(data)
            if kind == LEAF:
                if not count:
                    return None
                (at,) = unpack_from(">H", data, 8 + 2 * (count - 1))
                _, at = _varint(data, at)
                return _signed(_varint(data, at)[0])
            if kind != INTERIOR:
                raise Torn
            (number,) = unpack_from(">I", data, 8)
        raise Torn

    def _root(self, table: int) -> int:
        return FIRST_TABLE + table + self._pages.can_shrink

    def _rows(
        self, number: int, after: int, depth: int
    ) -> Iterator[tuple[int, Callable[[], bytes]]]:
        data = self._pages.page(number)
        kind, count = data[0], _cells(data)
        if kind == INTERIOR and depth:
            for at in unpack_from(f">{count}H", data, 12):
                (left,) = unpack_from(">I", data, at)
                if _signed(_varint(data, at + 4)[0]) > after:
                    yield from self._rows(left, after, depth - 1)
            (right,) = unpack_from(">I", data, 8)
            yield from self._rows(right, after, depth - 1)
        elif kind == LEAF:
            for at in unpack_from(f">{count}H", data, 8):
                size, at = _varint(data, at)
                row, at = _varint(data, at)
                if _signed(row) > after:
                    yield _signed(row), self._blob_of(data, at, size)
        else:
            raise Torn

    def _blob_of(self, data: bytes, at: int, size: int) -> Callable[[], bytes]:
        return lambda: self._blob(data, at, size)

    def _blob(self, data: bytes, at: int, size: int) -> bytes:
        """Return the first blob of a row whose values begin there, and take so many bytes."""
        usable = self._pages.usable
        local, most = size, usable - 35
        if size > most:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
        values = bytearray(data[at : at + local])
        head, place = _varint(values, 0)
        begin, end = head, 0
        while place < head:
            kind, place = _varint(values, place)
            if kind >= 12:
                end = begin + (kind - 12) // 2
                break
            assert kind == 0, "the number of a row is not stored among its values"
        if not end:
            raise Torn
        (following,) = unpack_from(">I", data, at + local) if size > local else (0,)
        while len(values) < end:
            if not following:
                raise Torn
            page = self._pages.page(following)
            values += page[4 : min(usable, 4 + size - len(values))]
            (following,) = unpack_from(">I", page)
        return bytes(values[begin:end])


def _beginning(tables: Tables) -> Beginning | None:
    base = read_base(tables)
    if tables.last(CHECKPOINTS) is not None:
        return Beginning(base)
    # The base of a branch is written first; what holds the place of lent records follows it.
    return None if base is not None or tables.last(RECORDS) is None else Beginning(None)


def _check_format(path: Path, pages: Pages) -> None:
    if pages.format != FORMAT:
        raise DataUnknown(
            f"{path} has format {pages.format}, this release reads {FORMAT}",
            hint="Serve the folder with this release once, or use the release that wrote it.",
        )


def _head(log: int | None) -> bytes:
    head = b"" if log is None else os.pread(log, HEAD.size, 0)
    return head if len(head) == HEAD.size else b""


def _cells(data: bytes) -> int:
    (count,) = unpack_from(">H", data, 3)
    return int(count)


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return a number as SQLite writes it, and where the next value begins."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Have a file open for the length of a block; None if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _seen(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)


def _seen_if_there(path: Path) -> tuple[int, int, int]:
    try:
        return _seen(path)
    except FileNotFoundError:
        return 0, 0, 0

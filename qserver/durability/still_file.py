"""The main file of an open SQLite file, as it was when a copy of it began.

    commits ──► write-ahead log ──► moved into ──► main file ──┐
                                          │                    ├──► copied, piece by piece
                                  what that overwrites ──► kept ┘

SQLite changes a main file in WAL mode in one way: it moves the log into it. So the log is moved
once, and the main file is a whole database of that moment. When the log has become long meanwhile,
the pages of the file that it overwrites or cuts off are kept first, beside the file, under no name.
So the log stays short however long the copy takes, and what is kept is never longer than the file.

A descriptor that a process closes ends the lock which SQLite has on the same file. So ours is kept
for as long as SQLite's own.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from struct import Struct
from typing import Final

from qserver.durability.files import beside
from qserver.durability.sqlite_connection import WAL_PAGES_MOVED_AT_LAST
from qserver.durability.upkeep import move_log
from qserver.errors import LogFailed

KEPT: Final = ".kept"
HEADER: Final = Struct(">8xI4x8s8x")
"""Of a write-ahead log: the bytes of a page, and the salt of frames that count."""
FRAME: Final = Struct(">II8s8x")
"""A page's number; how many there are after a commit, or 0; the salt. Then comes the page."""


class StillFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self.is_held = False
        self._size = 0
        self._page_bytes = 1
        self._kept: dict[int, int] = {}
        """By the number of a page that was overwritten: where it is kept."""
        self._kept_in: int | None = None

    def hold(self, connection: sqlite3.Connection) -> int:
        """Move the log into the file, and show it so from now on; return its bytes."""
        assert not self.is_held, "one copy is made at a time"
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((self._page_bytes,),) = connection.execute("PRAGMA page_size")
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self.is_held = not is_busy
        self._size = os.fstat(self._descriptor).st_size
        return self._size

    def move_log(self, connection: sqlite3.Connection) -> None:
        """Move the log into the file, after keeping what that overwrites, if a copy is made."""
        try:
            if self.is_held:
                for number in self._overwritten():
                    self._keep(number)
        except OSError:
            return  # there is no room to keep it: the log grows
        move_log(connection)

    def _overwritten(self) -> set[int]:
        """Return the numbers of pages that the log has, or cuts off."""
        found = set[int]()
        pages = last = self._size // self._page_bytes
        with beside(self._path, "-wal").open("rb") as log:
            header = log.read(HEADER.size)
            if len(header) < HEADER.size:
                return found
            page_bytes, salt = HEADER.unpack(header)
            while len(frame := log.read(FRAME.size)) == FRAME.size:
                number, size, own = FRAME.unpack(frame)
                if own != salt:
                    break
                found.add(number)
                last = min(last, size or last)
                log.seek(page_bytes, os.SEEK_CUR)
        return {each for each in found if each <= pages} | set(range(last + 1, pages + 1))

    def _keep(self, number: int) -> None:
        if number in self._kept:
            return
        assert self._descriptor is not None
        if self._kept_in is None:
            path = beside(self._path, KEPT)
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._kept_in = os.open(path, flags, 0o600)
            path.unlink()
        data = os.pread(self._descriptor, self._page_bytes, (number - 1) * self._page_bytes)
        at = len(self._kept) * self._page_bytes
        if os.pwrite(self._kept_in, data, at) < self._page_bytes:
            raise OSError("a page could not be kept as a whole")
        self._kept[number] = at

    def read(self, at: int, size: int) -> bytes:
        """Return a piece of the file as it was when it was held, which it must be all the time."""
        if not self.is_held or self._descriptor is None:
            raise LogFailed(
                f"{self._path} was closed while it was copied", hint="Copy it again from its start."
            )
        size = min(size, self._size - at)
        found = bytearray(os.pread(self._descriptor, size, at).ljust(size, b"\0"))
        page_bytes = self._page_bytes
        for page in range(at // page_bytes, -(-(at + size) // page_bytes)):
            if self._kept_in is not None and page + 1 in self._kept:
                kept = os.pread(self._kept_in, page_bytes, self._kept[page + 1])
                begin, end = max(at, page * page_bytes), min(at + size, (page + 1) * page_bytes)
                found[begin - at : end - at] = kept[begin - page * page_bytes :][: end - begin]
        return bytes(found)

    def release(self, connection: sqlite3.Connection) -> None:
        self.let_go()
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES_MOVED_AT_LAST}")

    def let_go(self) -> None:
        """Let go of what is kept: no copy is made any more."""
        self.is_held = False
        self._kept.clear()
        descriptor, self._kept_in = self._kept_in, None
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Let go of the file, which SQLite has closed."""
        self.let_go()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"{self._path}, {'held' if self.is_held else 'free to change'}"

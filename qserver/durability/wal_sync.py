"""Syncs the write-ahead log of a SQLite file, while SQLite itself is free for reads.

SQLite would sync in its COMMIT, and a connection does one thing at a time: a page that a reader
wants would wait for the disk. So SQLite writes the log without a sync (`synchronous = NORMAL`, with
which it still syncs before it moves the log into the main file and begins it anew), and every
change is synced here, through a descriptor of our own. Nothing counts as durable before that, as
with `synchronous = FULL`.

A sync that has failed leaves bytes that no later sync writes, because the system takes them for
written. SQLite must not move such a log into the main file: if the power failed then, the log would
be there again without its end, and its older pages would cover newer ones. So after a failure the
log is written again, in its place, before anything else happens to it (`mend`).
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Final

from qserver.durability.files import beside, sync

BYTES_AT_ONCE: Final = 4 << 20


class WalSync:
    def __init__(self, path: Path) -> None:
        self._log = beside(path, "-wal")
        self._file: int | None = None
        self._lock = Lock()
        """Keeps the descriptor from being closed, and given to another file, during a sync."""
        self.has_failed = False
        """Whether something in the log may not be durable, and cannot become so by a sync."""

    def open(self) -> None:
        """Begin to hear of failures, also of those that SQLite's own syncs meet."""
        with self._lock:
            self._find()

    @property
    def descriptor(self) -> int:
        """The log, which must be open."""
        assert self._file is not None, "it is open"
        return self._file

    def _find(self) -> int:
        if self._file is None:
            self._file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        return self._file

    def sync(self) -> None:
        """Return when everything that was written is durable."""
        with self._lock:
            try:
                os.fdatasync(self._find())
            except OSError:
                self.has_failed = True
                raise

    def mend(self) -> None:
        """Make everything in the log durable after a failure, or raise."""
        write_again(self._log)
        sync(self._log)
        self.has_failed = False

    def close(self) -> None:
        """Forget the log: SQLite may remove it, and make another."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                os.close(file)

    def __repr__(self) -> str:
        return f"the syncs of {self._log}"


def write_again(path: Path) -> None:
    """Write the same bytes in the same place, so that the next sync has to write them."""
    with path.open("r+b", buffering=0) as file:
        at = 0
        while some := file.read(BYTES_AT_ONCE):
            file.seek(at)
            file.write(some)
            at += len(some)

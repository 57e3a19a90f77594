"""The high-water mark: a version up to which the log is known to be durable, in a file beside it.

    data.qserver-mark     slot 0 │ slot 1      each: version ‖ checksum of its record ‖ checksum

SQLite ends its write-ahead log at the last complete transaction. So a log that has lost whole
transactions at its end (the -wal file was deleted or cut, or the main file was replaced by an older
copy) looks like one that never had them. The mark reveals the loss. It is written after an append
was synced, so it is never ahead of the log. It is synced only when the file is opened and when a
checkpoint is saved, so a power failure may leave it behind: then the loss of later appends goes
unnoticed. So does any loss if the mark itself is replaced or removed.

It costs a commit nothing: the thread writes it when no job has come for a moment, or after many
appends, without a sync. A mark that cannot be written stays behind. Two slots alternate, so that
one is always whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import msgspec

from qserver.durability.files import FILE_MODE, beside, sync
from qserver.errors import DataCorrupted

ENDING: Final = "-mark"
SLOT_BYTES: Final = 512
"""One sector, which a disk writes as a whole."""
_BODY: Final = Struct(">QI")
_SLOT: Final = Struct(">QII")


class Mark(msgspec.Struct, frozen=True, order=True):
    version: int
    checksum: int
    """The record's checksum, so that another log of the same length is noticed; 0 if forgotten."""


class HighWaterMark:
    def __init__(self, path: Path) -> None:
        self.path = beside(path, ENDING)
        self._descriptor: int | None = None
        self._turn = 0
        self._written: Mark | None = None

    def read(self) -> Mark | None:
        """Return the mark in the file; None if there is no file, or no mark in it."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if not data.strip(b"\0"):
            return None  # a power failure while it was made
        slots = (data[at : at + _SLOT.size] for at in (0, SLOT_BYTES))
        found = [mark for mark in map(_unpacked, slots) if mark is not None]
        if not found:
            raise DataCorrupted(
                f"{self.path} is damaged",
                hint=f"It tells whether the log has lost its end. {remove_to_accept(self.path)}",
            )
        return max(found)

    def begin(self, mark: Mark) -> None:
        """Write the mark durably, and keep the file open for later moves."""
        is_new = not self.path.exists()
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, FILE_MODE)
            self.move(mark)
            os.fsync(self._descriptor)
            if is_new:
                sync(self.path.parent)
        except OSError:
            self.close()  # the disk is full or broken, which the log itself will report

    def move(self, mark: Mark) -> None:
        if self._descriptor is None or mark == self._written:
            return
        try:
            os.pwrite(self._descriptor, _packed(mark), SLOT_BYTES * self._turn)
        except OSError:
            return  # it stays behind
        self._turn ^= 1
        self._written = mark

    def sync(self) -> None:
        if self._descriptor is not None:
            try:
                os.fsync(self._descriptor)
            except OSError:
                pass  # it may stay behind

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        self._written = None
        if descriptor is not None:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"the mark {self.path}, at {self._written}"


class NoMark(HighWaterMark):
    """That of a log which may lose its end: it has none, and leaves an earlier one as it is."""

    def read(self) -> None:
        return None

    def begin(self, mark: Mark) -> None:
        pass


def check_mark(mark: Mark, last: int, found: bytes | None, path: Path, mark_path: Path) -> None:
    """Compare a mark with a log that ends with `last`; `found` is the marked record."""
    if mark.version > last:
        raise DataCorrupted(
            f"the log in {path} ends with version {last}, and {mark.version} was durable",
            hint=f"Put back {path.name} and {path.name}-wal as they were, or restore a backup."
            f" {remove_to_accept(mark_path)}",
        )
    if found is not None and mark.checksum and checksum_of(found) != mark.checksum:
        raise DataCorrupted(
            f"version {mark.version} in {path} is not the one that was durable",
            hint="The file was replaced by that of another database, or by an older copy that went"
            f" another way. {remove_to_accept(mark_path)}",
        )


def checksum_of(record: bytes) -> int:
    """Return the checksum at the start of a record, see `seal`."""
    return int.from_bytes(record[:4], "big")


def remove_to_accept(path: Path) -> str:
    return f"To go on with what is there, remove {path}."


def _packed(mark: Mark) -> bytes:
    body = _BODY.pack(mark.version, mark.checksum)
    return body + crc32(body).to_bytes(4, "big")


def _unpacked(slot: bytes) -> Mark | None:
    if len(slot) < _SLOT.size:
        return None
    version, checksum, sum_found = _SLOT.unpack(slot)
    return Mark(version, checksum) if crc32(slot[: _BODY.size]) == sum_found else None

"""Makes a consistent copy of a data file that a server may be writing, without the server's help.

    file   ───────────── copied ─────────────►
    -wal   head                       copied ──► head again: the same?

The server keeps its files locked, so another process cannot use SQLite's own backup. But a file in
WAL mode changes in one way only: pages of the write-ahead log are written to their places. So a
file copied in any state, and a log copied after it, together hold the last commit, as long as the
log was not restarted in between. The log's head tells: each new log has other salts. If the head
has changed, the copy starts over.

The high-water mark is copied first: the server moves it after the log. So a copy of a log that has
lost its end is noticed like the log itself.

A page torn by the copy is in the log, so the log repairs it. Frames after the log's last commit do
not count, as after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Final

from qserver.durability.files import beside, new_file
from qserver.durability.high_water_mark import ENDING
from qserver.durability.write_ahead_log import is_damaged
from qserver.errors import DataCorrupted, DataInUse, LogFailed

ATTEMPTS: Final = 30
PAUSE_SECONDS: Final = 0.02
_HEAD_BYTES: Final = 32
_FRAME_HEAD_BYTES: Final = 24
_SALTS: Final = slice(16, 24)
_FRAME_SALTS: Final = slice(8, 16)


def copy_live(
    source: Path,
    target: Path,
    copy: Callable[[Path, Path], object] = copyfile,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Copy a data file with its write-ahead log to a path that does not exist.

    Raises LogFailed if a file cannot be read or written, DataCorrupted if the log is damaged,
    DataInUse if the server writes too much for a copy to succeed.
    """
    is_broken = False
    for attempt in range(ATTEMPTS):
        pause(attempt * PAUSE_SECONDS)
        try:
            if not target.exists():
                new_file(target)  # readable only by its owner, before it has content
            _copy_mark(source, target)
            log = _copied(source, target, copy)
            # A log read while it grows can look damaged, but not in every attempt.
            is_broken = log is not None and is_damaged(log)
            if log is not None and not is_broken:
                if log:
                    new_file(_beside(target))
                    _beside(target).write_bytes(_current_frames(log))
                return
        except OSError as error:
            raise LogFailed(
                f"{source} cannot be copied to {target}: {error.strerror or error}",
                hint="See to it that the one can be read and that there is room for the other.",
            ) from error
    if is_broken:
        raise DataCorrupted(
            f"{_beside(source)} is damaged",
            hint="It holds the newest commits. Stop the server and run qserver check.",
        )
    raise DataInUse(
        f"{source} changes faster than it can be copied",
        hint="Try again when less is written.",
    )


def _copy_mark(source: Path, target: Path) -> None:
    """Copy the high-water mark, before the log that must reach up to it."""
    mark = _bytes_of(beside(source, ENDING))
    if mark:
        if not beside(target, ENDING).exists():
            new_file(beside(target, ENDING))
        beside(target, ENDING).write_bytes(mark)


def _copied(source: Path, target: Path, copy: Callable[[Path, Path], object]) -> bytes | None:
    """Copy the file; return its log, or None if the log restarted meanwhile."""
    before = _state(source)
    copy(source, target)
    log = _bytes_of(_beside(source))
    if _state(source) != before or log[:_HEAD_BYTES] != before[0]:
        return None
    return log


def _state(source: Path) -> tuple[bytes, int]:
    """The head of the log; without a log, the file's modification time, which must not change."""
    head = _bytes_of(_beside(source), _HEAD_BYTES)
    return head, 0 if head else source.stat().st_mtime_ns


def _current_frames(log: bytes) -> bytes:
    """The log without the frames of an earlier log at its end."""
    page_size = int.from_bytes(log[8:12], "big")
    size = _FRAME_HEAD_BYTES + page_size
    for at in range(_HEAD_BYTES, len(log), size):
        salts = log[at : at + _FRAME_HEAD_BYTES][_FRAME_SALTS]
        if salts[:4] != log[_SALTS][:4] and salts[4:] != log[_SALTS][4:]:
            return log[:at]
    return log


def _bytes_of(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return b""


def _beside(path: Path) -> Path:
    return beside(path, "-wal")

"""A consistent copy of a data file that a server may be writing at this moment, without asking it.

    file   ───────────── copied ─────────────►
    -wal   head                       copied ──► head again: the same?

The server keeps its files locked, so SQLite's own backup cannot be used from another process. But
a file in WAL mode is changed in one way only: pages that stand in the write-ahead log are written
to their places. So a file that was copied in any state, and a log that was copied after it, are
together what was committed last, as long as the log was not begun anew in between. Its head tells:
each new log has other salts. If it has changed, all is copied again.

A page that was torn by copying it while it was written is in the log, so the log mends it.
Whatever is in the log behind its last commit counts for nothing, as after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Final

from qserver.durability.files import new_file
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
    """Copy a data file with its write-ahead log to a place where there is nothing.

    Raises LogFailed if something cannot be read or written, DataCorrupted if the log is damaged,
    DataInUse if the server writes too much for a copy to be had.
    """
    is_broken = False
    for attempt in range(ATTEMPTS):
        pause(attempt * PAUSE_SECONDS)
        try:
            if not target.exists():
                new_file(target)  # for its owner alone, before there is anything in it
            log = _copied(source, target, copy)
        except OSError as error:
            raise LogFailed(
                f"{source} cannot be copied to {target}: {error.strerror or error}",
                hint="See to it that the one can be read and that there is room for the other.",
            ) from error
        # A log that is read while it grows can look damaged, but not again and again.
        is_broken = log is not None and is_damaged(log)
        if log is not None and not is_broken:
            if log:
                new_file(_beside(target))
                _beside(target).write_bytes(log)
            return
    if is_broken:
        raise DataCorrupted(
            f"{_beside(source)} is damaged",
            hint="It holds the newest commits. Stop the server and run qserver check.",
        )
    raise DataInUse(
        f"{source} changes faster than it can be copied",
        hint="Try again when less is written.",
    )


def _copied(source: Path, target: Path, copy: Callable[[Path, Path], object]) -> bytes | None:
    """The log that belongs to the copy; None if it was begun anew while we copied."""
    before = _state(source)
    copy(source, target)
    log = _bytes_of(_beside(source))
    if _state(source) != before or log[:_HEAD_BYTES] != before[0]:
        return None
    return _current_frames(log)


def _state(source: Path) -> tuple[bytes, int]:
    """The head of the log. Without a log nothing may have changed at all, as the clock tells."""
    head = _bytes_of(_beside(source), _HEAD_BYTES)
    return head, 0 if head else source.stat().st_mtime_ns


def _current_frames(log: bytes) -> bytes:
    """The log without what is left at its end of an earlier one."""
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
    return path.with_name(f"{path.name}-wal")

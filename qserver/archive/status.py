"""Says in the data folder how far a continuous backup is, and lets only one make it at a time.

The file is `backup.` and digits of the target. It is locked by the process that makes the backup
and written in its place, so a reader may meet half of it, and reads again. `/metrics` and `qserver
doctor` read it.
"""

from __future__ import annotations

import fcntl
import os
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from qserver.durability.files import FILE_MODE
from qserver.durability.folder import STATUS
from qserver.errors import DataInUse, LogFailed

_DIGITS: Final = 8
_ATTEMPTS: Final = 5


class BackupStatus(msgspec.Struct, frozen=True):
    target: str
    process: int
    written: float
    """When this was written."""
    until: float = 0.0
    """Everything that was acknowledged before is in the target; 0: nothing is yet."""
    saved: float = 0.0
    """When something was saved last."""
    generation: str = ""
    begins: float = 0.0
    """When its files were copied."""
    segments: int = 0
    bytes_saved: int = 0
    """By this process."""
    copied_anew: list[str] = []
    """The databases whose log was cut before it was copied, and whose files are being copied."""
    trouble: str | None = None
    """Why it does not get on; None: it does."""
    folder_id: str = ""
    """That of this folder in the target, see `owner`."""


class StatusFile:
    def __init__(self, folder: Path, target: str) -> None:
        """Raises DataInUse if another process backs the folder up to the same target."""
        self.process = os.getpid()
        self.path = folder / f"{STATUS}{sha256(target.encode()).hexdigest()[:_DIGITS]}"
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise LogFailed(
                f"{self.path} cannot be written: {error.strerror}",
                hint="Run the backup as the user of the server: it notes there how far it is.",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise DataInUse(
                f"another process backs {folder} up to {target}",
                hint="Stop that one, or name another target.",
            ) from None
        self.folder_id = next((each.folder_id for each in _read(self.path)), "")
        """What the process before has written; empty if there was none."""

    def write(self, status: BackupStatus) -> None:
        data = msgspec.json.encode(status) + b"\n"
        try:
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))
        except OSError:
            pass  # the disk is full: the backup goes on, and what is seen of it stays behind

    def close(self) -> None:
        """Let go: the file stays, and says when the backup ended, if it began."""
        if not os.fstat(self._descriptor).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def __repr__(self) -> str:
        return f"the status in {self.path}"


def statuses_in(folder: Path) -> list[BackupStatus]:
    """Return what the continuous backups of a folder say, running or not."""
    found = []
    for path in sorted(folder.glob(f"{STATUS}{'[0-9a-f]' * _DIGITS}")):
        found += _read(path)
    return found


def _read(path: Path) -> list[BackupStatus]:
    for _ in range(_ATTEMPTS):
        try:
            return [_decode(path.read_bytes())]
        except (OSError, msgspec.MsgspecError):
            continue
    return []


_decode = msgspec.json.Decoder(BackupStatus).decode

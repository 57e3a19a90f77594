"""Locks a data folder: it belongs to one process at a time.

The lock is the kernel's (`flock` on a file in the folder), so it ends with the process, however
that ends. The file names the holder, for the error message of a second process; the text of a dead
process means nothing.

The folder belongs to one user, too. An existing folder that holds nothing but our files is closed
to other users. One that holds other things is left as it is, and `is_private` says so, so that the
operator can be warned.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from qserver.durability.copy_mark import COPY_FILE
from qserver.durability.data_folder import COMPANIONS, SUFFIX
from qserver.durability.files import FILE_MODE, is_private, keep_private, make_folder
from qserver.durability.reserve import RESERVE_FILE
from qserver.errors import DataInUse, LogFailed

LOCK_FILE: Final = "qserver.lock"
REPLICAS: Final = "replicas."
"""Folders of this name and the number of a process have its copies of others' databases."""
STATUS: Final = "backup."
"""Files of this name and some digits say how far a continuous backup is."""
NODE_FILE: Final = "node.id"
"""The name of the folder, for a node of several."""


class FolderLock:
    """Hold it while the folder is in use; `release`, or the end of the process, lets go."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor: int | None = descriptor

    def is_private(self) -> bool:
        return is_private(self.folder)

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "released" if self._descriptor is None else "held"
        return f"the lock of {self.folder}, {state}"


def lock_folder(folder: Path, started: str) -> FolderLock:
    """Lock the folder, and make it if necessary; `started` tells people since when.

    Raises DataInUse, which names the holder, or LogFailed if the folder cannot be made or written.
    """
    path = folder / LOCK_FILE
    try:
        make_folder(folder)
        if all(map(_is_ours, folder.iterdir())):
            keep_private(folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        keep_private(path)
    except OSError as error:
        raise LogFailed(
            f"the data folder {folder} cannot be used: {error.strerror}",
            hint="Name a folder that qserver may write to.",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 200).decode(errors="replace").strip()
        os.close(descriptor)
        raise DataInUse(
            f"the data folder {folder} is in use by {holder or 'another process'}",
            hint="Stop that process, or name another folder.",
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise LogFailed(
            f"the data folder {folder} cannot be locked: {error.strerror}",
            hint="Use a file system that has locks.",
        ) from error
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}, started {started}\n".encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise LogFailed(
            f"the data folder {folder} cannot be written: {error.strerror}",
            hint="Make room on the disk, or let qserver write there.",
        ) from error
    return FolderLock(folder, descriptor)


def _is_ours(path: Path) -> bool:
    endings = tuple(SUFFIX + companion for companion in (*COMPANIONS, ".new"))
    is_evidence = path.name.startswith("stall") and path.suffix == ".txt"  # the watchdog's
    is_named = path.name in (LOCK_FILE, RESERVE_FILE, COPY_FILE, NODE_FILE)
    is_beside = path.name.startswith((REPLICAS, STATUS))
    return is_named or is_evidence or is_beside or path.name.endswith(endings)

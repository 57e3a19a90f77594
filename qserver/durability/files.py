"""Files and folders that survive a power failure, readable by their owner only.

    make_folder     the folder and those above it, each name synced in the folder that holds it
    new_file        an empty file for its owner alone, before anything is written to it
    publish_file    a whole file gets its name: bytes first, then the name, both synced
    remove_files    names go, and stay gone

A new name is durable only when the folder that holds it has been synced; a file that was synced
under a name that was not can be lost as a whole.

SQLite gives the files that it puts beside another the permissions of that one, so a main file that
only its owner may read is enough.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple


class Disk(NamedTuple):
    """How many bytes of a disk are free for us, and how many it has."""

    free: int
    total: int


FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_folder(folder: Path) -> None:
    """Make a folder and the missing ones above it, durably."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync(each.parent)


def new_file(path: Path) -> None:
    """Make an empty file that only its owner may use; its name is not durable yet."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))


def publish_file(unfinished: Path, path: Path) -> None:
    """Give a complete file its name, durably."""
    sync(unfinished)
    unfinished.rename(path)
    sync(path.parent)


def size_of_files(path: Path, endings: Iterable[str]) -> int:
    """Return the bytes of those of the files that there are."""
    total = 0
    for ending in endings:
        try:
            total += beside(path, ending).stat().st_size
        except FileNotFoundError:
            pass
    return total


def disk_of(folder: Path) -> Disk | None:
    """Return how full the disk of a folder is; None if the folder is not there."""
    try:
        found = os.statvfs(folder)
    except FileNotFoundError:
        return None
    return Disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, in this order and durably; a missing one is no error."""
    folders = set()
    for path in paths:
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        folders.add(path.parent)
    for folder in folders:
        sync(folder)


def keep_private(path: Path) -> bool:
    """Revoke the permissions of other users; False if this process may not."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS:
        try:
            path.chmod(mode & ~_OTHERS)
        except PermissionError:
            return False
    return True


def is_private(path: Path) -> bool:
    return not path.stat().st_mode & _OTHERS


def sync(path: Path) -> None:
    """Return when a file's bytes, or a folder's names, are durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)

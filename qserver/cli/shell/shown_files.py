"""Files that are sent and written as a whole, with a line of progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from qserver.cli.shell.progress import Progress
from qserver.errors import InvalidRequest


class ShownFile:
    """A file whose progress is shown."""

    def __init__(self, file: BinaryIO, total: int | None) -> None:
        self._file = file
        self._progress = Progress(sys.stderr, total, counted="lines")
        self._bytes = self._lines = 0

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._note(piece)
        return piece

    def readline(self) -> bytes:
        line = self._file.readline()
        self._note(line)
        return line

    def write(self, piece: bytes) -> int:
        self._note(piece)
        return self._file.write(piece)

    def clear(self) -> None:
        self._progress.clear()

    def _note(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._lines += piece.count(b"\n")
        self._progress.update(self._bytes, self._lines)


@contextmanager
def shown(file: BinaryIO, total: int | None = None) -> Iterator[BinaryIO]:
    """Show the progress of a file while it is used."""
    with_progress = ShownFile(file, total)
    try:
        yield cast(BinaryIO, with_progress)
    finally:
        with_progress.clear()


@contextmanager
def rewound(file: BinaryIO) -> Iterator[BinaryIO]:
    """Show the progress of a file that is read from its beginning."""
    file.seek(0)
    with shown(file, os.fstat(file.fileno()).st_size) as whole:
        yield whole


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield file


def write_whole(path: Path, write: Callable[[BinaryIO], int]) -> int:
    """Have a file written beside its place, which it gets when it is complete."""
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file, shown(file) as shown_file:
            size = write(shown_file)
        beside.replace(path)
    except OSError as error:
        raise InvalidRequest(f"cannot write {path}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return size

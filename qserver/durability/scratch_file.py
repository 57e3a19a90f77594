"""A file for pages that nobody needs after a restart: rebuilt versions that memory has no room for.

It is in the folder of the data, has no name, and is never synced. So the system removes it however
the process ends. Pages are appended, one after the other; a list of their ends is all that is kept
in memory. The file exists once the first page is saved.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from qserver.durability.port import StoredPage
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite_errors import explained


class ScratchFile:
    """Written by the threads of a queue, read by that of the event loop."""

    def __init__(self, folder: Path, queue: SerialQueue) -> None:
        self._folder = folder
        self._queue = queue
        self._file: BinaryIO | None = None
        self._is_closed = False
        self._first = 0
        """The number of the first page."""
        self._ends = array("Q", [0])

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        if pages:
            await self._queue.run(lambda: self._append(pages))

    def _append(self, pages: Sequence[StoredPage]) -> None:
        if self._is_closed:
            return  # nobody reads them any more
        if self._file is None:
            self._first = pages[0][0]
        unused = pages[0][0] - self._first - (len(self._ends) - 1)  # given out, and not saved
        assert unused >= 0, "numbers grow"
        self._ends.extend([self._ends[-1]] * unused)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            data, at = memoryview(b"".join([data for _, data in pages])), self._ends[-1]
            while data:
                written = os.pwrite(self._file.fileno(), data, at)
                data, at = data[written:], at + written
        except OSError as error:
            raise explained(error, self._folder) from error
        for _, each in pages:
            self._ends.append(self._ends[-1] + len(each))

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for number in numbers:
            place = number - self._first
            if self._file is not None and 0 <= place < len(self._ends) - 1:
                start, end = self._ends[place], self._ends[place + 1]
                found[number] = self._read(start, end - start)
        return found

    def _read(self, start: int, length: int) -> bytes:
        assert self._file is not None
        try:
            return os.pread(self._file.fileno(), length, start)
        except OSError as error:
            raise explained(error, self._folder) from error

    def close(self) -> None:
        self._is_closed = True
        if not self._queue.post(self._close):  # the log is closed: no thread is writing
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __repr__(self) -> str:
        return f"a scratch file of {len(self._ends) - 1} pages, {self._ends[-1]} bytes"

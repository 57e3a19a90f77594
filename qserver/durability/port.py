"""What the engine asks of whatever keeps its log: two calls, and no word about files.

A record is a version and bytes. Versions follow each other without a gap. What `append` has
returned from is there after any crash; what it was still writing may be there, record by record
from the front, or not. A tail that a crash tore is the implementation's to cut: `read` gives whole
records only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

StoredRecord: TypeAlias = tuple[int, bytes]


class Log(Protocol):
    async def append(self, records: Sequence[StoredRecord]) -> None:
        """Return when all of them are durable, as one group.

        Raises LogFailed when that cannot be known; then nothing more may be appended before
        the log has been read again, because only reading tells what is there. Calls are served
        in order: when an `append` is cancelled, the next `read` waits until it has ended.
        """

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        """The next records with a version greater than `after`, at most `most`, in order."""

"""What the engine asks of whatever keeps its log: a few calls, and no word about files.

A record is a version and bytes. Versions follow each other without a gap. What `append` has
returned from is there after any crash; what it was still writing may be there, record by record
from the front, or not. A tail that a crash tore is the implementation's to cut: `read` gives whole
records only.

A checkpoint is a snapshot as bytes: pages, each under a number, and one small record that says
which pages are the roots. Pages are saved first, in as many calls as it takes, and mean nothing
until `save_checkpoint` has made them count, all at once. Then, and only then, what is behind may be
forgotten.

    save_pages … save_pages ─► save_checkpoint ─► forget … forget
                               ^ from here on recovery begins with it

Calls are served in order: when one is cancelled, the next waits until it has ended. A call that
raises LogFailed may have done its work or not.

Any call may raise LogTaken: somebody else has taken the log over. Then every later call raises it
too, and changes nothing; there is no way back but to open the log anew. Its `version` says which
records of a group are there: those before it, and none from it on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeAlias

from qserver.errors import DataCorrupted

StoredRecord: TypeAlias = tuple[int, bytes]
"""A version, and what happened between the version before and this one."""

StoredPage: TypeAlias = tuple[int, bytes]
"""A page's number, and the page."""


class Log(Protocol):
    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        """Wait until all of them are durable, as one group. Some begin before they are waited for.

        After LogFailed nothing more may be appended before the log has been read again, because
        only reading tells what is there.
        """

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        """The next records with a version greater than `after`, at most `most`, in order.

        None only if there are none; of large ones it may give fewer than `most`.
        """

    async def fence(self, version: int) -> bool:
        """Is this version, up to which all was read, the last? If so, the log is ours from here on:
        no append of an earlier owner succeeds any more. If not, there is more to read.

        Nothing of what was read may be shown before. Raises DataCorrupted if the log ends before
        that version.
        """

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        """Keep pages for a checkpoint to come. They need not be durable before that is."""

    async def save_checkpoint(self, version: int, data: bytes) -> None:
        """Return when this is the checkpoint, durably, with all pages that were saved before it.

        A crash in the middle leaves the one before.
        """

    async def load_checkpoint(self) -> StoredRecord | None:
        """The newest checkpoint, with the version that it is of."""

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        """The next pages with a number greater than `after`, as `read` gives records.

        Pages that count for no checkpoint may be among them.
        """

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        """Drop the records up to a version, and pages. Nobody needs them any more."""


def ends_with(last: int, version: int, where: str) -> bool:
    """What a fence finds of a log that ends with `last` and was read up to a version."""
    if last < version:
        raise DataCorrupted(
            f"{where} ends with version {last}, and {version} was durable",
            hint="A part of the log is missing. Put its files back, or restore a backup.",
        )
    return last == version

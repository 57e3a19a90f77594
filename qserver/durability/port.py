"""The interface to the engine's log: a few calls, and no mention of files.

A record is a version and bytes; versions have no gaps. Records that `append` has returned from
survive any crash; of a group still being written, any number of records from the front may survive.
`read` returns whole records only: the implementation cuts a torn tail.

A checkpoint is a snapshot as bytes: numbered pages, and one small record that names the root pages.
Pages are saved first, in any number of calls, and mean nothing until `save_checkpoint` makes them
count, all at once. Only then may records and pages before it be forgotten.

    save_pages … save_pages ─► save_checkpoint ─► change_checkpoints ─► forget … forget
                               ^ from here on recovery begins with it

Columns of pages are saved like pages, under numbers of their own, see `column_numbers`. They go
with the page that they belong to, which a durable checkpoint has.

The log may keep several checkpoints. It knows them by their versions; what it keeps beside each of
them, and which are needed, is for others to say (see `kept`).

Calls are served in order: when one is cancelled, the next waits until it has ended. A call that
raises LogFailed may have done its work or not.

Any call may raise LogTaken: another process has taken over the log. Then every later call raises it
too, and changes nothing, until the log is opened again. Its `version` is the first of a group's
records that is not in the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from qserver.durability.leases import Leases
from qserver.errors import DataCorrupted

StoredRecord: TypeAlias = tuple[int, bytes]
"""A version, and the changes between the version before and this one."""

StoredPage: TypeAlias = tuple[int, bytes]
"""A page's number, and the page."""


class CheckpointParts(msgspec.Struct, frozen=True):
    """What is kept beside a checkpoint and may change, see `kept`; None: it stays as it is."""

    outline: bytes | None = None
    gone: bytes | None = None
    dead: bytes | None = None


NO_PARTS: Final = CheckpointParts(b"", b"", b"")


class Ended:
    """An awaitable that has ended: awaiting it takes no time, and raises the error if it failed."""

    __slots__ = ("error",)

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __await__(self) -> Generator[None, None, None]:
        if self.error is not None:
            raise self.error
        return
        yield


class UnderWay(ABC):
    """An awaitable that was begun, and whose end can be noticed without a task."""

    __slots__ = ()
    error: Exception | None
    """Why it failed, once it has ended."""

    @abstractmethod
    def then(self, callback: Callable[[], None]) -> None:
        """Call the function at the end; it must not raise. Whoever awaits this takes its place."""

    @abstractmethod
    def __await__(self) -> Generator[Any, Any, Any]: ...


APPENDED: Final = Ended()
"""An append that has ended, and not failed."""


class Scratch(Protocol):
    """Pages beside a log that nobody needs after a restart. Its user closes it."""

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        """Keep pages, whose numbers grow, until `close`; raise LogFailed if there is no room."""

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return those of the pages that there are, see `Log.load`."""

    def close(self) -> None:
        """Forget everything. It may be called more than once."""


class Log(Protocol):
    @property
    def borrowed(self) -> Leases:
        """What readers of branches may load of it. It lasts while the log is open."""

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        """Wait until all records are durable, as one group. Some logs begin before the await.

        Where a log has written them before this returns, it returns an Ended.

        After LogFailed nothing may be appended before the log has been read again, because only
        reading shows what is in it.
        """

    async def save_records(self, records: Sequence[StoredRecord]) -> None:
        """Keep records out of their order, in place of those that there are: durably, as one step.

        What is appended afterwards follows the last of all.
        """

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        """Return the next records with a version greater than `after`, at most `most`, in order.

        Empty only if there are none; of large records it may return fewer than `most`.
        """

    async def fence(self, version: int) -> bool:
        """Take over the log if `version`, up to which all was read, is the last.

        True: the log is ours from here on, and no append of an earlier owner succeeds any more.
        False: there is more to read. Nothing that was read may be shown before. Raises
        DataCorrupted if the log ends before that version.
        """

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        """Keep pages for a later checkpoint. They need not be durable before it is."""

    async def sync_pages(self) -> None:
        """Return when all pages that were saved are durable, though no checkpoint names them."""

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        """Return when this is the checkpoint, durably, with all pages that were saved before it.

        It takes the place of all with a greater version than `after`. A crash in the middle leaves
        those.
        """

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        """Return the checkpoint of a version, or the newest, with its version; None: not there."""

    async def load_outlines(self) -> list[StoredRecord]:
        """Return the versions of all checkpoints, in order, with their outlines."""

    async def load_parts(self, version: int) -> CheckpointParts | None:
        """Return what is kept beside a checkpoint; None if it is not there."""

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        """Drop checkpoints, and change what is kept beside others: durably, as one step."""

    async def last_page(self) -> int:
        """Return the greatest number of a page; 0 if there is none."""

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        """Return the next pages with a number greater than `after`, as `read` returns records.

        Pages that count for no checkpoint may be among them.
        """

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return those of the pages that there are, without waiting for other calls.

        For a statement that needs them now: it blocks, for about as long as the disk takes.
        """

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        """Drop the records up to a version, and pages with their columns: nothing needs them."""

    def scratch(self) -> Scratch:
        """Return a new place for pages that need not last."""


def ends_with(last: int, version: int, where: str) -> bool:
    """Return whether a log that ends with `last` was read to its end; raise if it ends early."""
    if last < version:
        raise DataCorrupted(
            f"{where} ends with version {last}, and {version} was durable",
            hint="A part of the log is missing. Put its files back, or restore a backup.",
        )
    return last == version

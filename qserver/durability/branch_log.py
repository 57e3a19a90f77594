"""The log of a branch: its own records and pages, on top of the pages of its parent.

    numbers of pages     1 …………… 40 41 …………… 90 91 ……
    main                 own     own     own            a branch of main, made at a checkpoint whose
    branch of main       main's  own ·················  last page is 40; and a branch of that
    branch of that       main's  the branch's  own

Page numbers only grow. A branch starts from a checkpoint of its parent whose last page is
`Base.last_page`, and numbers its own pages from there on. So the number of a page tells which file
has it, and pages are stored in the same way in both. The branch never forgets pages of the parent;
the parent keeps them because that checkpoint is pinned (see `kept`).

The base is page 0 of the branch's own file, a number that no tree uses. It is written before the
checkpoint, so a file with a checkpoint and no base is not a branch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import msgspec

from qserver.durability.checkpoint import FORMAT as CHECKPOINT_FORMAT
from qserver.durability.checkpoint import format_of
from qserver.durability.kept import KeptCheckpoint, encode_numbers, encode_outline
from qserver.durability.leases import Leases
from qserver.durability.port import (
    NO_PARTS,
    CheckpointParts,
    Log,
    Scratch,
    StoredPage,
    StoredRecord,
)
from qserver.durability.seal import sealed, unsealed
from qserver.errors import DatabaseUnavailable, DataCorrupted, HistoryTooOld

BASE_PAGE: Final = 0
FORMAT: Final = 1
RECORDS_COPIED_AT_ONCE: Final = 1000


class Base(msgspec.Struct, frozen=True, array_like=True):
    """Which log a branch was made from, and where it starts."""

    format: int
    parent: str
    """The name of the parent's log."""
    last_page: int
    """Pages up to this number are the parent's."""
    version: int
    """The last version that both have in common."""


class Pages(Protocol):
    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """See `Log.load`."""


def read_base(log: Pages) -> Base | None:
    """Return the base of a branch; None if the log is not one."""
    data = log.load([BASE_PAGE]).get(BASE_PAGE)
    if data is None:
        return None
    try:
        base = _decode(unsealed(data, "the base of a branch", BASE_PAGE))
    except msgspec.MsgspecError as error:
        raise DataCorrupted("the base of a branch cannot be decoded", detail=str(error)) from error
    if base.format != FORMAT:
        raise DataCorrupted(
            f"the base of a branch has format {base.format}, this release knows {FORMAT}",
            hint="The data were written by a newer release of qserver: use that one.",
        )
    return base


async def begin_branch(
    own: Log, parent_log: Log, parent: str, kept: KeptCheckpoint | None, version: int
) -> int:
    """Turn an empty log into a branch of another at a version; return the bytes of its records.

    `kept` is the parent's checkpoint at or before the version, which stays pinned; None if the
    parent's log begins with version 1. Raises HistoryTooOld if the parent has forgotten what is
    needed.
    """
    after = size = 0
    if kept is not None:
        stored = await parent_log.load_checkpoint(kept.version)
        if stored is None:
            raise _too_old(version)
        if format_of(stored[1]) != CHECKPOINT_FORMAT:
            raise DatabaseUnavailable(
                "an earlier release has written the database, and pages of then cannot be shared",
                hint="Commit something to it; a few minutes later it can have branches.",
            )
        base = Base(FORMAT, parent, kept.last_page, version)
        await own.save_pages([(BASE_PAGE, sealed(_encode(base), BASE_PAGE))])
        outline = KeptCheckpoint(kept.version, kept.time, kept.last_page, 0)
        numbers = encode_numbers(kept.version, [])
        parts = CheckpointParts(encode_outline(outline), numbers, numbers)
        await own.save_checkpoint(kept.version, stored[1], parts)
        await own.fence(kept.version)
        after = kept.version
    while after < version:
        records = await parent_log.read(after, min(RECORDS_COPIED_AT_ONCE, version - after))
        if not records or records[0][0] != after + 1:
            raise _too_old(version)
        await own.append(records)
        size += sum([len(data) for _, data in records])
        after = records[-1][0]
    return size


def _too_old(version: int) -> HistoryTooOld:
    return HistoryTooOld(
        f"version {version} is not kept any more", hint="Name a newer version, or none."
    )


class BranchLog:
    """Implements the log's port with two logs: its own, and its parent's, which it only reads."""

    def __init__(self, own: Log, base: Base, parent: Log) -> None:
        self.own = own
        self.base = base
        self.parent = parent

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        bound = self.base.last_page
        shared = [number for number in numbers if BASE_PAGE < number <= bound]
        if not shared:
            return self.own.load(numbers)
        found = self.parent.load(shared)
        if len(shared) < len(numbers):
            ours = [number for number in numbers if not BASE_PAGE < number <= bound]
            found |= self.own.load(ours)
        return found

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        bound = self.base.last_page
        await self.own.forget(version, [number for number in pages if number > bound])

    async def last_page(self) -> int:
        return max(await self.own.last_page(), self.base.last_page)

    # --- the rest is its own ---

    @property
    def borrowed(self) -> Leases:
        return self.own.borrowed

    def append(self, records: Sequence[StoredRecord]) -> Awaitable[None]:
        return self.own.append(records)

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        return await self.own.read(after, most)

    async def fence(self, version: int) -> bool:
        return await self.own.fence(version)

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        await self.own.save_pages(pages)

    async def sync_pages(self) -> None:
        await self.own.sync_pages()

    async def save_checkpoint(
        self, version: int, data: bytes, parts: CheckpointParts = NO_PARTS, after: int = 0
    ) -> None:
        await self.own.save_checkpoint(version, data, parts, after)

    async def load_checkpoint(self, version: int | None = None) -> StoredRecord | None:
        return await self.own.load_checkpoint(version)

    async def load_outlines(self) -> list[StoredRecord]:
        return await self.own.load_outlines()

    async def load_parts(self, version: int) -> CheckpointParts | None:
        return await self.own.load_parts(version)

    async def change_checkpoints(
        self, dropped: Sequence[int], changed: Sequence[tuple[int, CheckpointParts]]
    ) -> None:
        await self.own.change_checkpoints(dropped, changed)

    async def load_pages(self, after: int, most: int) -> list[StoredPage]:
        return await self.own.load_pages(after, most)

    def scratch(self) -> Scratch:
        return self.own.scratch()

    def __repr__(self) -> str:
        return f"{self.own!r}, a branch of {self.base.parent} at version {self.base.version}"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Base).decode

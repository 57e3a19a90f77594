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

    versions             … 20 ………………… 25 ……………
    main                 checkpoint, records ··········     a branch of version 25 borrows the
    branch of main       checkpoint  main's · own ·····     records 21 to 25 from main

Nor are records copied when a branch is made. It *borrows* those between the shared checkpoint and
its version: it reads them in the log of its parent, which keeps what is lent (see `kept`). An empty
record with the last borrowed version holds their place, so that the branch's own ones follow it.
Borrowing ends when the branch's log begins later, because of its own checkpoints. If its parent
wants to forget the records before that, the branch copies them. Only when its base says so durably,
the parent takes them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, Protocol

import msgspec

from qserver.durability.checkpoint import FORMAT as CHECKPOINT_FORMAT
from qserver.durability.checkpoint import format_of
from qserver.durability.column_numbers import page_of
from qserver.durability.kept import KeptCheckpoint, encode_numbers, encode_outline
from qserver.durability.log_over import LogOver
from qserver.durability.port import CheckpointParts, Log, StoredRecord
from qserver.durability.seal import sealed, unsealed
from qserver.errors import DatabaseUnavailable, DataCorrupted

BASE_PAGE: Final = 0
FORMAT: Final = 1
FORMAT_BORROWING: Final = 2
"""That of a branch which borrows records: earlier releases do not know it, and refuse it."""
RECORDS_COPIED_AT_ONCE: Final = 100
BORROWED: Final = b""
"""Holds the place of borrowed records."""


class Base(msgspec.Struct, frozen=True, array_like=True):
    """Which log a branch was made from, and where it starts."""

    format: int
    parent: str
    """The name of the parent's log."""
    last_page: int
    """Pages up to this number are the parent's."""
    version: int
    """The last version that both have in common."""
    borrowed_after: int = -1
    """The records after this one, up to `version`, are the parent's; -1: none."""

    @property
    def borrows(self) -> bool:
        return self.format == FORMAT_BORROWING


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
    if base.format not in (FORMAT, FORMAT_BORROWING):
        raise DataCorrupted(
            f"the base of a branch has format {base.format}, this release knows {FORMAT_BORROWING}",
            hint="The data were written by a newer release of qserver: use that one.",
        )
    return base


async def begin_branch(
    own: Log, parent_log: Log, parent: str, kept: KeptCheckpoint, version: int
) -> None:
    """Turn an empty log into a branch of another at a version.

    `kept` is the parent's checkpoint at or before the version. It stays pinned, and the records up
    to the version are lent. So the work does not depend on how many there are.
    """
    stored = await parent_log.load_checkpoint(kept.version)
    if stored is None:
        raise DataCorrupted(f"the checkpoint of version {kept.version} is pinned, and not there")
    if format_of(stored[1]) != CHECKPOINT_FORMAT:
        raise DatabaseUnavailable(
            "an earlier release has written the database, and pages of then cannot be shared",
            hint="Commit something to it; a few minutes later it can have branches.",
        )
    base = Base(FORMAT, parent, kept.last_page, version)
    if kept.version < version:
        base = Base(FORMAT_BORROWING, parent, kept.last_page, version, kept.version)
    await _save_base(own, base)
    if base.borrows:
        await own.save_records([(version, BORROWED)])
    outline = KeptCheckpoint(kept.version, kept.time, kept.last_page, 0)
    numbers = encode_numbers(kept.version, [])
    parts = CheckpointParts(encode_outline(outline), numbers, numbers)
    await own.save_checkpoint(kept.version, stored[1], parts)
    await own.fence(version)


async def _save_base(own: Log, base: Base) -> None:
    await own.save_pages([(BASE_PAGE, sealed(_encode(base), BASE_PAGE))])


class BranchLog(LogOver):
    """Implements the log's port with two logs: its own, and its parent's, which it only reads."""

    def __init__(self, own: Log, base: Base, parent: Log) -> None:
        super().__init__(own)
        self.base = base
        self.parent = parent

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        bound = self.base.last_page
        shared = [number for number in numbers if BASE_PAGE < page_of(number) <= bound]
        if not shared:
            return self.own.load(numbers)
        found = self.parent.load(shared)
        if len(shared) < len(numbers):
            ours = [number for number in numbers if not BASE_PAGE < page_of(number) <= bound]
            found |= self.own.load(ours)
        return found

    async def forget(self, version: int, pages: Sequence[int]) -> None:
        shared = range(self.base.last_page + 1)
        await self.own.forget(version, [number for number in pages if number not in shared])

    async def last_page(self) -> int:
        return max(await self.own.last_page(), self.base.last_page)

    # --- records ---

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        base = self.base
        if base.borrows and after < base.version:
            after = max(after, base.borrowed_after)
            records = await self.parent.read(after, min(most, base.version - after))
            if records and records[-1][0] <= base.version:
                return records
            after = base.version  # where they should be is a gap, which the reader will notice
        return await self.own.read(after, most)

    async def copy_borrowed(self, after: int) -> int:
        """Copy some of the borrowed records after a version; return the version of the last.

        They count as borrowed until `end_borrowing`. Nothing may be forgotten meanwhile.
        """
        most = min(RECORDS_COPIED_AT_ONCE, self.base.version - after)
        records = await self.read(after, most)
        if not records or records[0][0] != after + 1:
            raise DataCorrupted(
                f"{self.base.parent}, of which this is a branch, has lost version {after + 1}",
                hint="Restore a backup.",
            )
        await self.own.save_records(records)
        return records[-1][0]

    async def drop_borrowed(self) -> None:
        """Need no record of the parent any more: a checkpoint of ours has all that they did."""
        await self.own.forget(self.base.version, ())
        await self.end_borrowing()

    async def end_borrowing(self) -> None:
        """Need no record of the parent any more, durably: all were copied."""
        base = self.base
        settled = Base(FORMAT, base.parent, base.last_page, base.version)
        await _save_base(self.own, settled)
        await self.own.sync_pages()
        self.base = settled

    def __repr__(self) -> str:
        return f"{self.own!r}, a branch of {self.base.parent} at version {self.base.version}"


def last_shared_page(one: tuple[str, Log], other: tuple[str, Log]) -> float:
    """Return up to which number two logs, each with its name, read the pages of one and the same.

    0 if they have no ancestor in common; infinite for one log.
    """
    ours, theirs = dict(_reads(*one)), dict(_reads(*other))
    return max(
        (min(last, theirs[name]) for name, last in ours.items() if name in theirs), default=0
    )


def _reads(name: str, log: Log) -> Iterator[tuple[str, float]]:
    """Yield a log and its ancestors by name, each with the last page that is read there."""
    last = inf
    yield name, last
    while isinstance(log, BranchLog):
        name, last, log = log.base.parent, min(last, log.base.last_page), log.parent
        yield name, last


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Base).decode

"""The files of databases: local copies of what their streams say.

A file holds nothing that the nodes of the log have not acknowledged. So it may be old, but it is
never wrong: what it has in common with the stream must be the same bytes.

What is read again is skipped by its version. A file may be missing because a later message removes
its database, and a stream is read from an older position: `missing` has the names of these, until
that message comes.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol

import trio

from qserver.durability.kept import KeptCheckpoint
from qserver.durability.open_logs import OpenLogs
from qserver.durability.pinning import pin_in_log, unpin_in_log
from qserver.durability.port import Log, StoredPage, StoredRecord
from qserver.errors import DataCorrupted
from qserver.replication.messages import Branch, Claim, Records, Removed
from qserver.replication.reader import Whole

RECORDS_AT_ONCE: Final = 1000


class FileCopy(Protocol):
    """The bytes of a file as it was when the copy began."""

    size: int

    async def read(self, at: int, size: int) -> bytes:
        """Return a piece."""


class LocalFiles(Protocol):
    """One file for each database. Its appends need not be synced; all else is, as in `Log`."""

    async def open_file(self, name: str, may_make: bool) -> Log:
        """Open a file, and make it if it may be made; raise DataCorrupted if it is missing."""

    async def close_file(self, name: str, log: Log) -> None:
        """Close it. All that it has is synced then."""

    async def has_file(self, name: str) -> bool:
        """Return whether there is a file."""

    async def remove(self, name: str) -> None:
        """Remove a file that is not open; a missing one is no error."""

    def all_names(self) -> Collection[str]:
        """Return the names of all files, also of those that are staged."""

    def size_bytes(self, name: str) -> int:
        """Return how long a file is; 0 if it is missing."""

    def copy_of(self, log: Log) -> AbstractAsyncContextManager[FileCopy]:
        """Have a copy of an open file for the length of a block; the file may change meanwhile."""

    async def stage(
        self, name: str, pieces: AsyncIterator[bytes], page: StoredPage | None = None
    ) -> None:
        """Write the pieces of a whole file, which has no name before `place`.

        `page` takes the place of that page of it.
        """

    async def place(self, name: str) -> None:
        """Give a file that was staged its name, in place of one that is not open, if any."""

    async def discard(self, name: str) -> None:
        """Remove what was staged, or a part of it, if there is anything."""


class Running(Protocol):
    """A database that shows what its file has, while another node owns it."""

    async def apply(self, records: list[StoredRecord]) -> None:
        """Show records that the file has got."""

    async def pin(self, name: str, version: int) -> KeptCheckpoint | None:
        """Keep the checkpoint from which a version can be rebuilt; None if there is none."""

    async def unpin(self, name: str) -> None:
        """Keep nothing for a name any more."""


class Copies:
    def __init__(self, files: LocalFiles) -> None:
        self.files = files
        self._open = OpenLogs(files.open_file, files.close_file)
        self._copied: dict[str, _Copying] = {}
        self._unfinished: set[str] = set()
        """Branches whose files are being made, or could not be."""

    @asynccontextmanager
    async def hold(self, name: str, *, may_make: bool = False) -> AsyncIterator[Log]:
        """Hold the file of a database, which others may hold, too."""
        async with self._open.hold(name, may_make=may_make) as (own, _):
            yield own

    @asynccontextmanager
    async def hold_whole(self, name: str, *, may_make: bool) -> AsyncIterator[Log]:
        """Hold the file of a database, with those of its ancestors."""
        async with self._open.hold(name, may_make=may_make) as (_, log):
            yield log

    async def sync_open(self, names: Iterable[str]) -> None:
        """Return when all that was written to those of these files that are open is durable."""
        for name in names:
            own = self._open.own(name)
            if own is not None:
                await own.sync_pages()

    async def copy(
        self, name: str, use: Callable[[FileCopy], Awaitable[None]], *, is_branch: bool
    ) -> bool:
        """Have a copy of a file used.

        False if there is none, or it is not whole yet, or is removed before that ends.
        """
        assert name not in self._copied, "one copy is made at a time"
        if name in self._unfinished or not await self.files.has_file(name):
            return False
        copying = self._copied[name] = _Copying(trio.CancelScope(), trio.Event())
        try:
            with copying.scope:
                async with self.hold(name) as own:
                    if is_branch and not await own.load_outlines():  # a crash left it in part
                        return False
                    async with self.files.copy_of(own) as copy:
                        await use(copy)
        finally:
            del self._copied[name]
            copying.done.set()
        return not copying.scope.cancelled_caught

    async def remove_file(self, name: str) -> None:
        """Remove a file that nobody holds; a copy that is made of it is given up."""
        if name in self._copied:
            copying = self._copied[name]
            copying.scope.cancel()
            await copying.done.wait()
        await self.files.remove(name)
        self._unfinished.discard(name)

    async def remove_gone(
        self, gone: Callable[[Collection[str]], Awaitable[Collection[str]]]
    ) -> None:
        """Remove files of databases that others have removed; `gone` returns which these are.

        It is told which files there are before it looks: so it knows of each one's database.
        """
        for name in await gone(self.files.all_names()):
            if not self._open.is_open(name):
                await self.remove_file(name)
                await self.files.discard(name)

    async def branch(self, message: Branch, parent_runs: Running | None) -> bool:
        """Make the file of a branch; False if the parent's history is too short for that."""
        if not await self.files.has_file(message.parent):
            return False
        async with self._open.hold(message.parent) as (_, parent):
            pin = partial(pin_in_log, parent) if parent_runs is None else parent_runs.pin
            kept = await pin(message.database, message.version)
            if kept is None:
                return False
            await self.begin(message, parent, kept)
            return True

    async def remove(self, name: str, closed: Iterable[str]) -> None:
        """Remove a file; none of the closed ones keeps pages for it any more.

        Its parent may have a pin for a branch that was never made, or is gone already.
        """
        for each in closed:
            if each != name and await self.files.has_file(each):
                async with self.hold(each) as own:
                    await unpin_in_log(own, name)
        await self.remove_file(name)

    async def is_whole(self, name: str) -> bool:
        """Return whether there is a file of a branch; one that was made in part is removed."""
        if not await self.files.has_file(name):
            return False
        async with self.hold(name) as own:
            if await own.load_outlines():
                return True
        await self.files.remove(name)
        return False

    async def begin(self, message: Branch, parent: Log, kept: KeptCheckpoint) -> None:
        """Make the file of a branch whose parent has pinned a checkpoint for it."""
        database, version = message.database, message.version
        self._unfinished.add(database)
        await self._open.branch(database, message.parent, parent, kept, version)
        self._unfinished.discard(database)


class _Copying(NamedTuple):
    scope: trio.CancelScope
    done: trio.Event


class CatchUp:
    """Brings the files of a family up to what was read of its stream."""

    def __init__(
        self,
        copies: Copies,
        versions: dict[str, int],
        is_open: Collection[str],
        missing: set[str],
    ) -> None:
        """`is_open`: databases that run on their files, and change their own pins."""
        self._copies = copies
        self._is_open = is_open
        self.versions = versions
        """The last version of each database, in what was read so far."""
        self._ends: dict[str, int] = {}
        """Where their files end."""
        self.missing = missing
        self.running: Mapping[str, Running] = {}
        """Databases that show what their files get, and change their own pins."""
        self.end_use: Callable[[str], Awaitable[None]] = _used_by_nobody
        """Returns when nobody uses the file of a database that is removed."""

    async def apply(self, wholes: Sequence[Whole]) -> None:
        gathered: dict[str, list[StoredRecord]] = {}
        for whole in wholes:
            match whole.entry.body:
                case Records(groups):
                    for group in groups:
                        gathered.setdefault(group.database, []).extend(group.records)
                case Branch() as branch:
                    await self._write(gathered)
                    await self._branch(branch)
                case Removed(database):
                    gathered.pop(database, None)
                    await self._write(gathered)  # so that all are known that may have pinned for it
                    self.versions.pop(database, None)
                    self._ends.pop(database, None)
                    self.missing.discard(database)
                    await self._remove(database)
                case Claim():
                    pass
        await self._write(gathered)

    async def _remove(self, database: str) -> None:
        await self.end_use(database)
        for running in list(self.running.values()):
            await running.unpin(database)
        is_open = {*self.running, *self._is_open}
        await self._copies.remove(database, [name for name in self.versions if name not in is_open])

    async def _branch(self, branch: Branch) -> None:
        name = branch.database
        self.versions[name] = branch.version
        if await self._copies.is_whole(name):
            return
        if not await self._copies.branch(branch, self.running.get(branch.parent)):
            self.missing.add(name)

    async def _write(self, gathered: dict[str, list[StoredRecord]]) -> None:
        for name, records in gathered.items():
            is_known = self.versions.get(name, 0) > 0
            if (
                name not in self.missing
                and is_known
                and not await self._copies.files.has_file(name)
            ):
                self.missing.add(name)
            if name not in self.missing:
                async with self._copies.hold(name, may_make=True) as own:
                    await self._add(name, own, records)
            self.versions[name] = records[-1][0]
        gathered.clear()

    async def _add(self, name: str, own: Log, records: list[StoredRecord]) -> None:
        """Append what the file does not have; what it has must be the same."""
        if name not in self._ends:
            self._ends[name] = await end_of(own, self.versions.get(name, 0))
        end = self._ends[name]
        common = [record for record in records if record[0] <= end]
        if common:
            found = dict(await own.read(common[0][0] - 1, len(common)))
            for version, data in common:
                if found.get(version, data) != data:
                    raise _differs(name, version)
        new = records[len(common) :]
        if new:
            if new[0][0] != end + 1:
                raise DataCorrupted(
                    f"the replicated log has version {new[0][0]} of {name} after {end}",
                    hint="It lost what it had acknowledged, or the file did.",
                )
            await own.append(new)
            self._ends[name] = new[-1][0]
            if name in self.running:
                await self.running[name].apply(new)


async def _used_by_nobody(name: str) -> None:
    """Databases that are removed are closed first."""


async def end_of(own: Log, known: int) -> int:
    """Return the last version of a file, which must have at least the known one."""
    end = max((version for version, _ in await own.load_outlines()), default=0)
    if end < known:
        records = await own.read(known - 1, 1)
        if not records or records[0][0] != known:
            raise DataCorrupted(
                f"a file ends before version {known}, which it had",
                hint="It was replaced by an older copy. Remove the files of the database and of its"
                " branches: they are loaded again from the log.",
            )
        end = known
    while records := await own.read(end, RECORDS_AT_ONCE):
        end = records[-1][0]
    return end


def _differs(name: str, version: int) -> DataCorrupted:
    return DataCorrupted(
        f"version {version} of {name} is not the same in its file and in the replicated log",
        hint="One of them was replaced, or went another way. Nothing is shown.",
    )

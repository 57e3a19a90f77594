"""Recovery: rebuilds the newest snapshot from the log.

    newest checkpoint ─► its snapshot, roots alone ─► the records after it ─► the newest snapshot

The log is the only truth (presumed abort). So recovery is the same after a clean stop, a crash, or
the death of one actor: load the newest checkpoint, read all records after it in order, let later
writes cover earlier ones, and change each tree once.

Recovery refuses what it cannot vouch for. A failed checksum, a gap in the versions, a log that ends
too early, or the format of another release raises DataCorrupted; it never gives a database that
lacks rows. The last step is the fence: the snapshot is shown only when the log has confirmed that
all of it was read, and that no other process can append.

A long log may make more pages than fit in memory, for example after the bound was lowered. So
recovery replays it in pieces and saves the pages of each piece *ahead* of the next checkpoint,
which will name them; then they can be evicted. The log must be ours before that, so its end is
found and fenced first. A crash leaves pages that no checkpoint names, as a crash during a
checkpoint does. If saving fails, the pages stay in memory: a full disk does not prevent reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from math import inf
from typing import Final, TypeAlias

import msgspec
import trio

from qserver.durability.kept import decode_outline, with_empty
from qserver.durability.loading import load_newest
from qserver.durability.page_store import LoggedPages
from qserver.durability.pauses import in_steps
from qserver.durability.port import Log, StoredPage, StoredRecord
from qserver.durability.records import LogRecord, decode_record_in_pieces, writes_of
from qserver.durability.saved_pages import SavedPages
from qserver.errors import DataCorrupted, LogFailed
from qserver.limits import CHECKPOINT_PAGES_AT_ONCE, PAGE_ENTRIES_MAX
from qserver.storage.catalog import changes_from_plain
from qserver.storage.ranges import Trees
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.writes import Moment, Writes, merge_writes
from qserver.values.steps import Steps, at_once

RECORDS_READ_AT_ONCE: Final = 1000
RECORDS_BEFORE_YIELDING: Final = 16
CHANGES_AT_ONCE_MIN: Final = 16
RECORD_BYTES_LONG: Final = 64 * 1024
"""Longer records are added in pieces, between which others can run."""

MEMORY_OF_LOG: Final = 6
"""Bytes that new entries take in memory, for each byte that they take in the log."""

SHARE_OF_REPLAY: Final = 3
"""Recovery may have 1 / 2**3 of the memory for pages that are not saved.

As much takes the log between two checkpoints that are kept for history."""


class Recovered(msgspec.Struct, frozen=True):
    """The state with which a database begins."""

    snapshot: Snapshot
    saved: SavedPages
    log_bytes: int
    """How much log there is behind the checkpoint."""
    ahead_bytes: int = 0
    """How much of it made pages that are saved already."""


async def recover(
    log: Log, shards: int, store: LoggedPages | None = None, *, may_save: bool = False
) -> Recovered:
    """Return the newest snapshot of a log, laid out for `shards` shards.

    `store`: that of the database's earlier recoveries in this process, if any. `may_save`: save
    pages of a long log, so that memory stays within its bound.
    """
    store = LoggedPages(log) if store is None else store
    while True:
        store.copied = 0
        saved = SavedPages(store)
        base = await load_newest(log, saved, shards) or empty_snapshot(shards, store.new_lease(0))
        try:
            return await recover_from(Recovered(base, saved, 0), log, may_save=may_save)
        except CheckpointOvertaken:
            continue


class CheckpointOvertaken(Exception):
    """The previous owner of the log has saved a newer checkpoint than the one we began with."""


async def recover_from(known: Recovered, log: Log, *, may_save: bool = False) -> Recovered:
    """Recover from a snapshot that is known to equal the log up to its version.

    Raises CheckpointOvertaken: then its page numbers may be taken, and records may be gone.
    """
    recovery = Recovery(known, log, may_save)
    is_ours = False
    while not await recovery.read_on():
        if not is_ours:
            await _fence_end(log, recovery.replay.version, known.saved)
            await _check_newest(log, known.saved)
            is_ours = True
        await recovery.apply(is_long=True)
    while not await log.fence(recovery.replay.version):
        before = recovery.replay.version
        await recovery.read_on()
        if recovery.replay.version == before:
            await _check_newest(log, known.saved)
            raise _withheld(before)
    snapshot = await recovery.apply()
    return Recovered(snapshot, known.saved, recovery.log_bytes, recovery.ahead_bytes)


async def has_checkpoints_of(log: Log, saved: SavedPages) -> bool:
    """Return whether a log has exactly the checkpoints, with their pins, that are known."""
    outlines = await log.load_outlines()
    if saved.doubt is not None or not all(outline for _, outline in outlines):
        return False
    found = [decode_outline(version, outline) for version, outline in outlines]
    return with_empty(found) == with_empty(saved.kept)


async def _fence_end(log: Log, after: int, saved: SavedPages) -> None:
    """Take over a log before all of it is applied."""
    end, refused = after, False
    while True:
        before = end
        while records := await log.read(end, RECORDS_READ_AT_ONCE):
            end = records[-1][0]
        if refused and end == before:
            await _check_newest(log, saved)
            raise _withheld(end)
        if await log.fence(end):
            return
        refused = True


async def _check_newest(log: Log, saved: SavedPages) -> None:
    versions = [version for version, _ in await log.load_outlines()]
    if max(versions, default=0) > saved.version:
        raise CheckpointOvertaken


def _withheld(version: int) -> DataCorrupted:
    return DataCorrupted(
        f"the log has more than version {version} and does not give it",
        hint="A part of the log is missing. Restore a backup.",
    )


class Recovery:
    """Reads a log and applies it, in one piece or in several whose pages are saved."""

    def __init__(self, known: Recovered, log: Log, may_save: bool) -> None:
        self.log_bytes, self.ahead_bytes = known.log_bytes, known.ahead_bytes
        self._saved = known.saved
        self._store = known.saved.store
        self._log = log
        if self._saved.doubt is not None:  # then nothing else may change
            may_save = False
        most = self._store.cache.most >> SHARE_OF_REPLAY if may_save else inf
        self.replay = BoundedReplay(known.snapshot, self._store, most)
        self._records: deque[StoredRecord] = deque()

    async def read_on(self) -> bool:
        """Read on; False if there may be more and memory has no room for it."""
        count = 0
        while self._records or await self._read_some():
            record = self._records.popleft()
            self.log_bytes += len(record[1])
            if not await self.replay.read(record):
                return False
            count += 1
            if count % RECORDS_BEFORE_YIELDING == 0:
                await trio.lowlevel.checkpoint()
        return True

    async def _read_some(self) -> bool:
        self._records.extend(await self._log.read(self.replay.version, RECORDS_READ_AT_ONCE))
        return bool(self._records)

    async def apply(self, *, is_long: bool = False) -> Snapshot:
        """Return the snapshot of what was read; save its pages if memory is short."""
        return await self.replay.apply(self._save_ahead, is_long=is_long)

    async def _save_ahead(self, snapshot: Snapshot, is_whole: bool) -> bool:
        """Save all pages of a snapshot, so that they can be evicted; False if that fails."""
        save = self._saved.begin(snapshot)
        step: list[StoredPage] = []
        try:
            for page in save.pages():
                step.append(page)
                if len(step) == CHECKPOINT_PAGES_AT_ONCE:
                    await self._log.save_pages(step)
                    step = []
            if step:
                await self._log.save_pages(step)
            await self._log.sync_pages()
        except LogFailed:
            return False
        for _ in save.sort_out():
            await trio.lowlevel.checkpoint()
        self._saved.advance(save)
        self._store.copied = 0
        if is_whole:
            self.ahead_bytes = self.log_bytes
        return True


SavePages: TypeAlias = Callable[[Snapshot, bool], Awaitable[bool]]
"""Saves the new pages of a snapshot, and receives whether it has all that was read.

Returns False if that fails; then all stays in memory."""


class BoundedReplay:
    """Applies records to a snapshot, in pieces whose pages are saved if they are too many."""

    def __init__(
        self,
        base: Snapshot,
        store: LoggedPages,
        most: float,
        pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        """`most`: the bytes of memory for what is not saved."""
        self._replay = Replay(base)
        self._store = store
        self._most = most
        self._pause = pause
        self._pending = 0
        """Bytes of log that were read and not applied."""

    @property
    def version(self) -> int:
        """That of the last record that was read."""
        return self._replay.version

    async def read(self, record: StoredRecord) -> bool:
        """Add a record; False if what was read has to be applied before the next one."""
        await self._replay.read(record, self._pause)
        self._pending += len(record[1])
        return MEMORY_OF_LOG * self._pending <= self._most

    async def apply(self, save: SavePages, *, is_long: bool = False) -> Snapshot:
        """Return the snapshot of what was read; save its pages if memory is short, or `is_long`."""
        store, replay = self._store, self._replay
        page = PAGE_ENTRIES_MAX * store.cache.entry_bytes
        snapshot = replay.base
        for made in replay.snapshots(max(self._most / page, CHANGES_AT_ONCE_MIN)):
            if made is None:
                await self._pause()
                continue
            snapshot = made
            if store.copied * store.cache.entry_bytes > self._most:
                is_long = True
                if not await save(snapshot, False):
                    self._most = inf
        if is_long and not await save(snapshot, True):
            self._most = inf
        self._replay, self._pending = Replay(snapshot), 0
        return snapshot


class Replay:
    """Applies records to a snapshot."""

    def __init__(self, base: Snapshot) -> None:
        self.version = base.version
        self.base = base
        self._time = base.time
        self._catalog = base.catalog
        self._writes: Writes = {}
        self._moments: dict[int, Moment] = {}
        self._dropped: set[int] = set()

    async def read(self, stored: StoredRecord, pause: Callable[[], Awaitable[None]]) -> None:
        """Add a record; pause between the pieces of a long one."""
        steps = self.apply(stored)
        if len(stored[1]) <= RECORD_BYTES_LONG:
            at_once(steps)
        else:
            await in_steps(steps, pause)

    def apply(self, stored: StoredRecord) -> Steps[tuple[LogRecord, Writes]]:
        """Add a record, and return it with its writes."""
        version, data = stored
        record = yield from decode_record_in_pieces(data)
        if not version == record.version == self.version + 1:
            raise DataCorrupted(
                f"the log has version {record.version} (filed as {version})"
                f" where {self.version + 1} must follow",
                hint="A part of the log is missing. Restore a backup.",
            )
        at = record.version, record.time
        changes = changes_from_plain(record.catalog_changes, self._catalog)
        self._catalog = self._catalog.changed(changes, record.trees_used)
        if changes:
            self._catalog = self._catalog.dated(changes, at)
        writes = yield from writes_of(record)
        yield from merge_writes(self._writes, writes)
        self._moments.update(dict.fromkeys(writes, at))
        self._forget_dropped(record)
        self.version, self._time = record.version, record.time
        return record, writes

    def _forget_dropped(self, record: LogRecord) -> None:
        for tree in record.dropped:
            self._writes.pop(tree, None)
            self._dropped.add(tree)

    def snapshots(self, changes: float) -> Generator[Snapshot | None, None, None]:
        """Yield intermediate snapshots, each with so many more changes; the last is the newest.

        The others are no version of the log: save them, never show them. Yields None now and then,
        so that others can run.
        """
        if sum(map(len, self._writes.values())) > changes:
            most = int(changes)
            for tree, entries in self._writes.items():
                keys = sorted(entries)
                for first in range(0, len(keys), most):
                    some = {key: entries[key] for key in keys[first : first + most]}
                    trees = yield from written(
                        self.base, self._catalog, {tree: some}, (), self._moments
                    )
                    self.base = self._on_base(self.base.version, trees)
                    yield self.base
            self._writes = {}
        yield (yield from self.in_pieces())

    def _on_base(self, version: int, trees: Trees) -> Snapshot:
        base = self.base
        return Snapshot(version, self._time, self._catalog, trees, base.shards, base.lease)

    def in_pieces(self) -> Steps[Snapshot]:
        """Return the snapshot; yield now and then, so that others can run."""
        base = self.base
        if self.version == base.version:
            return base
        trees = yield from written(base, self._catalog, self._writes, self._dropped, self._moments)
        return self._on_base(self.version, trees)

"""Rebuilds older versions of a database, from a kept checkpoint and the records after it.

    a version, or a time ─► the newest kept checkpoint before it ─► the records after ─► snapshot

A checkpoint loads only its roots, and the log between two checkpoints is short; so the cost does
not depend on the size of the database. A rebuilt snapshot stays in memory while somebody reads it,
and a few are cached for the next reader. They count in the memory of pages, take at most a quarter
of it, and are evicted first.

A version is in history if it was the newest at some moment since the horizon, whenever checkpoints
were taken. Times of versions never decrease, so binary search finds the version of a time.

The history of a branch before its creation is that of its parent, as far as the parent keeps it
(see `durability.lineage`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, TypeAlias
from weakref import ref

import msgspec
import trio

from qserver.durability.checkpoint import FORMAT, Checkpoint, decode_checkpoint
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.lineage import LogSegment, segment_before, segment_of
from qserver.durability.loading import snapshot_of
from qserver.durability.page_store import LoggedPages
from qserver.durability.pauses import in_steps
from qserver.durability.port import Log, StoredRecord
from qserver.durability.records import decode_time
from qserver.durability.recovery import MEMORY_OF_LOG, Replay
from qserver.durability.saved_pages import SavedPages
from qserver.engine.version_list import VersionEntry, list_versions
from qserver.engine.yielding import yield_to_others
from qserver.errors import HistoryTooOld, InvalidRequest, OutOfMemory
from qserver.limits import HISTORY_SNAPSHOTS_MAX
from qserver.storage.snapshot import Lease, Snapshot, empty_snapshot

AsOf: TypeAlias = int | float
"""A version, or a time: seconds since 1970."""

RECORDS_READ_AT_ONCE: Final = 256
RECORDS_BEFORE_YIELDING: Final = 16
TRIES_MAX: Final = 3
"""A checkpoint may be dropped while it is being read; then another one serves."""


class HistoryStatistics(msgspec.Struct, frozen=True):
    oldest: int
    """The first version that can be made from what the log has."""
    checkpoints: int
    log_bytes: int
    """What the records of history take."""
    pages: int
    """Pages that only history needs."""
    rebuilt: int
    """Versions that were made again."""
    snapshot_bytes: int
    """What these take in memory."""


class RebuiltSnapshot(msgspec.Struct, frozen=True):
    """The size of a rebuilt snapshot, for as long as its lease lives."""

    lease: ref[Lease]
    size: int


class History:
    """The older versions of one database."""

    def __init__(
        self,
        log: Log,
        store: LoggedPages,
        now: Callable[[], float],
        saved: Callable[[], Awaitable[SavedPages]],
        newest_durable: Callable[[float], Awaitable[Snapshot]],
        seconds: float,
    ) -> None:
        """`newest_durable` waits until everything published up to a time is durable."""
        self.seconds = seconds
        """How long versions are kept."""
        self._log = log
        self._store = store
        store.trim = self._trim
        self._now = now
        self._saved = saved
        self._newest_durable = newest_durable
        self._recent: list[Snapshot] = []
        self._rebuilt_snapshots: list[RebuiltSnapshot] = []
        self._making = trio.Lock()
        self._rebuilt = 0

    @property
    def horizon(self) -> float:
        """The time since which versions can be read."""
        return self._now() - self.seconds if self.seconds else inf

    async def snapshot_at(self, as_of: AsOf) -> Snapshot:
        """Return the snapshot of a version, or of the newest version at a time.

        Raises HistoryTooOld, and InvalidRequest for the future.
        """
        version, newest = await self._found(as_of)
        return newest if version == newest.version else await self._snapshot(version, newest.shards)

    async def version_of(self, as_of: AsOf) -> int:
        """Return the version whose snapshot that would be."""
        return (await self._found(as_of))[0]

    async def _found(self, as_of: AsOf) -> tuple[int, Snapshot]:
        """Return the version that is meant, and the newest snapshot."""
        time = as_of if isinstance(as_of, float) else inf
        if time is not inf and time > self._now():
            raise InvalidRequest("as_of is in the future", hint="Name a time that has passed.")
        newest = await self._newest_durable(time)
        if isinstance(as_of, float):
            if newest.time <= as_of:
                return newest.version, newest
            if as_of < self.horizon:
                raise self._too_old()
            version = await self.version_at(as_of, newest)
        else:
            version = as_of
        if version > newest.version:
            raise InvalidRequest(
                f"there is no version {version} yet, the newest is {newest.version}"
            )
        if isinstance(as_of, int) and version < newest.version:
            await self.check_kept(version)
        return version, newest

    async def check_kept(self, version: int) -> None:
        """Raise HistoryTooOld unless a version was the newest at some moment since the horizon."""
        after = await self.read(version, 1)
        if not after or after[0][0] != version + 1 or decode_time(after[0][1]) < self.horizon:
            raise self._too_old()

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        """Return the next records after a version, from the log that has them."""
        segment = await self._segment(after)
        if segment is None:
            return []
        if segment.end is not None:
            most = min(most, segment.end - after)
        return await segment.log.read(after, most)

    async def oldest(self) -> int:
        """Return the first version that the logs can rebuild."""
        segment = await self._newest_segment()
        while (before := await segment_before(segment)) is not None:
            segment = before
        return segment.start

    async def _newest_segment(self) -> LogSegment:
        saved = await self._saved()
        return LogSegment(self._log, saved.kept, saved.history_start)

    async def _segment(self, version: int) -> LogSegment | None:
        return await segment_of(await self._newest_segment(), version)

    def count_grown(self, snapshot: Snapshot, size: int) -> None:
        """Count records of this size that were applied to a rebuilt snapshot.

        Raises OutOfMemory if there is no room for them.
        """
        size *= MEMORY_OF_LOG
        self._check_memory(size)
        if self._is_ours(snapshot):
            assert snapshot.lease is not None
            self._rebuilt_snapshots.append(RebuiltSnapshot(ref(snapshot.lease), size))

    def keep(self, snapshot: Snapshot) -> None:
        """Cache a snapshot that was derived from a rebuilt one, for the next reader."""
        known = any(each.version == snapshot.version for each in self._recent)
        if self._is_ours(snapshot) and not known:
            self._recent = [*self._recent[1 - HISTORY_SNAPSHOTS_MAX :], snapshot]
            self._count()

    def _is_ours(self, snapshot: Snapshot) -> bool:
        return any(each.lease() is snapshot.lease for each in self._rebuilt_snapshots)

    async def version_at(self, time: float, newest: Snapshot) -> int:
        """Return the version that was the newest at a time, which is before that of `newest`."""
        segment: LogSegment | None = await self._newest_segment()
        while segment is not None:
            usable = [each for each in segment.kept if each.version >= segment.start]
            before = [each.version for each in usable if each.time <= time]
            if before:
                behind = [each.version for each in usable if each.time > time]
                end = newest.version if segment.end is None else segment.end
                return await self._halved(segment.log, time, before[-1], min([end, *behind]))
            segment = await segment_before(segment)
        raise self._too_old()

    async def _halved(self, log: Log, time: float, low: int, high: int) -> int:
        while high - low > 1:
            middle = (low + high) // 2
            found = await log.read(middle - 1, 1)
            if not found or found[0][0] != middle:
                raise self._too_old()
            if decode_time(found[0][1]) <= time:
                low = middle
            else:
                high = middle
        return low

    async def versions(self, before: int | None, most: int) -> list[VersionEntry]:
        """Return the versions in history before the given one, newest first."""
        newest = await self._newest_durable(inf)
        until = newest.version if before is None else min(newest.version, before - 1)
        for _ in range(TRIES_MAX):
            entries = await self._entries(until - most, min(until + 1, newest.version))
            if entries is not None:
                return self._within_history(entries, until)
        raise self._too_old()

    async def _entries(self, after: int, until: int) -> list[VersionEntry] | None:
        """Return the versions after `after` that are kept; None if some were just dropped."""
        entries: list[VersionEntry] = []
        segment: LogSegment | None = await self._newest_segment()
        while segment is not None and after < until:
            first = max(segment.start, after)
            base = segment.base_of(first)
            if base is None:
                break
            if first < until:
                some = await list_versions(segment.log, base, first, until)
                if some is None:
                    return None
                entries, until = some + entries, first
            segment = await segment_before(segment)
        return entries

    def _within_history(self, entries: list[VersionEntry], until: int) -> list[VersionEntry]:
        """Return the versions that were the newest since the horizon, newest first."""
        ends = [*(each.time for each in entries[1:]), inf][: len(entries)]
        horizon = self.horizon
        return [
            each
            for each, end in reversed(list(zip(entries, ends, strict=True)))
            if each.version <= until and end >= horizon
        ]

    def _too_old(self) -> HistoryTooOld:
        return HistoryTooOld(
            "this version is older than the history that is kept",
            detail=f"History goes back {self.seconds:.0f} seconds.",
            hint="Ask for a newer one, or have more kept from now on, by the database's history.",
        )

    # --- making snapshots ---

    async def _snapshot(self, version: int, shards: int) -> Snapshot:
        async with self._making:
            for known in self._recent:
                if known.version == version:
                    self._recent.remove(known)
                    self._recent.append(known)
                    return known
            for _ in range(TRIES_MAX):
                made = await self._rebuild(version, shards)
                if made is not None:
                    self._recent = [*self._recent[1 - HISTORY_SNAPSHOTS_MAX :], made]
                    self._count()
                    return made
        raise self._too_old()

    async def _rebuild(self, version: int, shards: int) -> Snapshot | None:
        """Rebuild a snapshot; None if its checkpoint or records are dropped meanwhile."""
        segment = await self._segment(version)
        base = None if segment is None else segment.base_of(version)
        if segment is None or base is None:
            raise self._too_old()
        lease = self._store.new_lease(base.version, version)
        if segment.end is not None:
            segment.log.borrowed.add(lease)
        begin = await self._load(segment.log, base, shards, lease)
        if begin is None:
            return None
        replay, size = Replay(begin), 0
        while replay.version < version:
            most = min(version - replay.version, RECORDS_READ_AT_ONCE)
            records = await segment.log.read(replay.version, most)
            if not records or records[0][0] != replay.version + 1:
                return None
            size += MEMORY_OF_LOG * sum(len(data) for _, data in records)
            self._check_memory(size)
            for count, record in enumerate(records, start=1):
                await replay.read(record, yield_to_others)
                if count % RECORDS_BEFORE_YIELDING == 0:
                    await yield_to_others()
        made = await in_steps(replay.in_pieces(), yield_to_others)
        self._rebuilt += 1
        self._rebuilt_snapshots.append(RebuiltSnapshot(ref(lease), size))
        self._store.cache.histories.add(self)
        return made

    async def _load(
        self, log: Log, base: KeptCheckpoint, shards: int, lease: Lease
    ) -> Snapshot | None:
        if base.version == 0:
            return empty_snapshot(shards, lease)
        stored = await log.load_checkpoint(base.version)
        if stored is None:
            return None
        checkpoint = decode_checkpoint(*stored)
        if not isinstance(checkpoint, Checkpoint) or checkpoint.format != FORMAT:
            raise self._too_old()  # an earlier release wrote it, and only its newest can be read
        return snapshot_of(checkpoint, self._store, shards, lease)

    # --- memory ---

    def _check_memory(self, wanted: int) -> None:
        """Raise OutOfMemory if rebuilt versions have used up their share of the memory."""
        cache = self._store.cache
        if cache.history_bytes + wanted > cache.most >> 2:
            cache.yield_histories()
        if cache.history_bytes + wanted > cache.most >> 2:
            raise OutOfMemory(
                "there is not enough memory for this older version",
                hint="Ask again when other readers of older versions have ended, or raise"
                " QSERVER_MEMORY.",
            )

    def _trim(self, log_start: int) -> None:
        """Drop cached versions that are too old to be asked for, so that their pages can go."""
        self._recent = [each for each in self._recent if each.version >= log_start]
        self._count()

    def yield_memory(self) -> None:
        """Drop the cached snapshots."""
        self._recent = []
        self._count()

    @property
    def held(self) -> int:
        return sum(each.size for each in self._rebuilt_snapshots)

    def _count(self) -> None:
        self._rebuilt_snapshots = [
            each for each in self._rebuilt_snapshots if each.lease() is not None
        ]
        if not self._rebuilt_snapshots:
            self._store.cache.histories.discard(self)

    def close(self) -> None:
        self._recent, self._rebuilt_snapshots = [], []
        self._count()

    def statistics(self, saved: SavedPages, logged: int) -> HistoryStatistics:
        self._count()
        start = saved.base_of(saved.log_start)
        newest = saved.kept[-1]
        return HistoryStatistics(
            saved.log_start,
            len(saved.kept),
            newest.log_end + logged - (start.log_end if start else newest.log_end),
            sum(each.gone for each in saved.kept),
            self._rebuilt,
            self.held,
        )

    def __repr__(self) -> str:
        return f"history of {self.seconds} seconds, {self._rebuilt} versions made again"

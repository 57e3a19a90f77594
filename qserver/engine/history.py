"""Rebuilds older versions of a database, from a kept checkpoint and the records after it.

    a version, or a time ─► the newest kept checkpoint before it ─► the records after ─► snapshot

A checkpoint loads only its roots, and the log between two checkpoints is short; so the cost does
not depend on the size of the database. A rebuilt snapshot stays while somebody reads it, and a few
are cached for the next reader; a later version is rebuilt from them if they are nearer than a
checkpoint. Their new pages count in the memory of pages. What would take more than a quarter of it
is saved in a scratch, from where it is loaded on demand like all pages (`rebuilt_pages`). So every
version in history can be read, however little memory there is.

A version is in history if it was the newest at some moment since the horizon, whenever checkpoints
were taken. Times of versions never decrease, so binary search finds the version of a time.

The history of a branch before its creation is that of its parent, as far as the parent keeps it
(see `durability.lineage`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from operator import attrgetter
from typing import Final, TypeAlias
from weakref import ref

import msgspec
import trio

from qserver.durability.checkpoint import FORMAT, Checkpoint, decode_checkpoint
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.lineage import LogSegment, segment_before, segment_of
from qserver.durability.loading import snapshot_of
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log, StoredRecord
from qserver.durability.rebuilt_pages import RebuiltPages
from qserver.durability.records import decode_time
from qserver.durability.recovery import SHARE_OF_REPLAY, BoundedReplay
from qserver.durability.saved_pages import SavedPages
from qserver.engine.version_list import VersionEntry, list_versions
from qserver.engine.yielding import yield_to_others
from qserver.errors import DatabaseUnavailable, HistoryTooOld, InvalidRequest, OutOfMemory
from qserver.limits import HISTORY_SNAPSHOTS_MAX
from qserver.storage.snapshot import Lease, Snapshot, empty_snapshot

AsOf: TypeAlias = int | float
"""A version, or a time: seconds since 1970."""

RECORDS_READ_AT_ONCE: Final = 256
RECORDS_BEFORE_YIELDING: Final = 16
SHARE_OF_HISTORY: Final = 2
"""1 / 2**2 of the memory may be new pages of rebuilt versions."""
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


class Rebuilt(msgspec.Struct, frozen=True):
    """The pages of rebuilt snapshots that have one lease, for as long as that lives."""

    lease: ref[Lease]
    pages: RebuiltPages


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
        self._all: list[Rebuilt] = []
        self._making = trio.Lock()
        self._begun = self._rebuilt = 0

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

    async def note_grown(self, snapshot: Snapshot, size: int) -> None:
        """Count records of this size that were applied to a rebuilt snapshot.

        Raises OutOfMemory if there is no room for them, in memory or on the disk.
        """
        rebuilt = self._rebuilt_of(snapshot)
        if rebuilt is not None:
            rebuilt.pages.logged += size
            if self._takes_too_much():
                await self._save(rebuilt.pages, snapshot)

    def keep(self, snapshot: Snapshot) -> None:
        """Cache a snapshot that was derived from a rebuilt one, for the next reader."""
        known = any(each.version == snapshot.version for each in self._recent)
        if not known and self._rebuilt_of(snapshot) is not None:
            self._add_recent(snapshot)

    def _rebuilt_of(self, snapshot: Snapshot) -> Rebuilt | None:
        """Return the pages of a snapshot that was rebuilt, or derived from such a one."""
        return next((each for each in self._all if each.lease() is snapshot.lease), None)

    def _add_recent(self, snapshot: Snapshot) -> None:
        self._recent = [*self._recent[1 - HISTORY_SNAPSHOTS_MAX :], snapshot]
        self._count()

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
                    self._add_recent(made)
                    return made
        raise self._too_old()

    async def _rebuild(self, version: int, shards: int) -> Snapshot | None:
        """Rebuild a snapshot; None if its checkpoint or records are dropped meanwhile."""
        segment = await self._segment(version)
        base = None if segment is None else segment.base_of(version)
        if segment is None or base is None:
            raise self._too_old()
        begin = self._nearest(base.version, version)
        if begin is None:
            begin = await self._begin(segment, base, version, shards)
        if begin is None:
            return None
        rebuilt = self._rebuilt_of(begin)
        if rebuilt is None:  # it has a lease of ours, so `close` has come while it was loaded
            raise DatabaseUnavailable("the database is closed")
        made = await self._replayed(begin, rebuilt.pages, segment.log, version)
        self._rebuilt += made is not None
        return made

    def _nearest(self, first: int, last: int) -> Snapshot | None:
        """Return the cached snapshot with the greatest version between two."""
        near = [each for each in self._recent if first < each.version < last]
        found = max(near, key=attrgetter("version"), default=None)
        rebuilt = None if found is None else self._rebuilt_of(found)
        if rebuilt is None or rebuilt.pages.saved > self._store.cache.most:
            return None  # its scratch has many pages that only earlier versions had
        return found

    async def _begin(
        self, segment: LogSegment, base: KeptCheckpoint, version: int, shards: int
    ) -> Snapshot | None:
        """Load a checkpoint, with a lease and pages of its own; None if it is dropped meanwhile."""
        lease = self._store.new_lease(base.version, version)
        if segment.end is not None:
            segment.log.borrowed.add(lease)
        self._begun += 1
        pages = RebuiltPages(self._store, self._log, self._begun)
        self._all.append(Rebuilt(ref(lease), pages))
        self._store.cache.histories.add(self)
        if base.version == 0:
            return empty_snapshot(shards, lease)
        stored = await segment.log.load_checkpoint(base.version)
        if stored is None:
            return None
        checkpoint = decode_checkpoint(*stored)
        if not isinstance(checkpoint, Checkpoint) or checkpoint.format != FORMAT:
            raise self._too_old()  # an earlier release wrote it, and only its newest can be read
        return snapshot_of(checkpoint, pages, shards, lease)

    async def _replayed(
        self, begin: Snapshot, pages: RebuiltPages, log: Log, version: int
    ) -> Snapshot | None:
        """Apply the records up to a version; None if some are dropped meanwhile."""

        async def save(snapshot: Snapshot, is_whole: bool) -> bool:
            return await self._save(pages, snapshot)

        cache = self._store.cache
        most = cache.most >> SHARE_OF_REPLAY
        replay = BoundedReplay(begin, pages, most, yield_to_others)
        while replay.version < version:
            count = min(version - replay.version, RECORDS_READ_AT_ONCE)
            records = await log.read(replay.version, count)
            if not records or records[0][0] != replay.version + 1:
                return None
            for count, record in enumerate(records, start=1):
                pages.logged += len(record[1])
                has_room = await replay.read(record)
                if not has_room or self._takes_too_much():
                    await replay.apply(save, is_long=True)
                elif count % RECORDS_BEFORE_YIELDING == 0:
                    await yield_to_others()
            cache.make_room()
        made = await replay.apply(save)
        if self._takes_too_much():
            await self._save(pages, made)
        return made

    # --- memory ---

    def _takes_too_much(self) -> bool:
        """Return whether rebuilt versions, of all databases, take more than their share."""
        cache = self._store.cache
        if cache.history_bytes > cache.most >> SHARE_OF_HISTORY:
            cache.yield_histories()
        return cache.history_bytes > cache.most >> SHARE_OF_HISTORY

    async def _save(self, pages: RebuiltPages, snapshot: Snapshot) -> bool:
        """Save the new pages of a version; False if that fails, and memory has room for them."""
        if await pages.save(snapshot, yield_to_others):
            return True
        if self._takes_too_much():
            raise OutOfMemory(
                "there is not enough memory for this older version, and no room on the disk",
                hint="Make room on the disk, or raise QSERVER_MEMORY.",
            )
        return False

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
        return sum([each.pages.unsaved for each in self._all if each.lease() is not None])

    def _count(self) -> None:
        """Forget the pages of snapshots that nobody has any more."""
        for each in self._all:
            if each.lease() is None:
                each.pages.close()
        self._all = [each for each in self._all if each.lease() is not None]
        if not self._all:
            self._store.cache.histories.discard(self)

    def close(self) -> None:
        for each in self._all:
            each.pages.close()
        self._recent, self._all = [], []
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

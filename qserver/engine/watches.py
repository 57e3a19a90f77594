"""Wakes live queries: tests each durable commit against their footprints.

    a round is durable ─► for each changed key: which footprints? ─► does it matter? ─► wake

The index makes a commit cost one look-up per changed key, however many live queries there are. A
footprint is tested as a commit is (`conflict`): by value, and by the predicate of a scan.

A watch is armed with a footprint that holds at one version. The first later commit that matters
disarms it and leaves it the snapshot before that commit, which still gives the query's last result.
So an idle watch keeps no snapshot alive, and a busy one costs nothing until it is armed again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import trio

from qserver.engine.messages import Append
from qserver.engine.snapshot_source import SnapshotSource
from qserver.limits import LIVE_TESTS_MAX
from qserver.storage.conflict import differs, matters
from qserver.storage.footprint import Footprint
from qserver.storage.footprint_index import FootprintIndex, TreeFootprints
from qserver.storage.page import Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import TreeWrites


class WatchesStatistics(msgspec.Struct, frozen=True):
    watches: int
    wakeups: int


class Watch:
    """The watch of one live query. `base`: once disarmed, a snapshot with its last result."""

    def __init__(self) -> None:
        self.footprint = Footprint()
        self.version = 0
        self.base: Snapshot | None = None
        self.armed = False
        self._awake = trio.Event()

    def wake(self) -> None:
        """Wake the waiting task although no commit matters."""
        self._awake.set()

    async def wait(self) -> None:
        """Wait until a commit matters, or `wake` is called."""
        await self._awake.wait()
        self._awake = trio.Event()

    def __repr__(self) -> str:
        return f"{'an armed' if self.armed else 'a disarmed'} watch on {self.footprint!r}"


class Watches:
    """All watches of one database, across its generations."""

    def __init__(self, snapshots: SnapshotSource) -> None:
        self._snapshots = snapshots
        self._index: FootprintIndex[Watch] = FootprintIndex()
        self._all: set[Watch] = set()
        self._wakeups = 0

    def open(self) -> Watch:
        watch = Watch()
        self._all.add(watch)
        return watch

    def close(self, watch: Watch) -> None:
        self._all.discard(watch)
        self._index.remove(watch, watch.footprint)
        watch.footprint = Footprint()
        watch.armed = False

    def arm(self, watch: Watch, footprint: Footprint, snapshot: Snapshot) -> None:
        """Wake the watch at the first commit after a snapshot that matters to a footprint.

        If there are later commits already, wake it at once: they were not tested.
        """
        if footprint is not watch.footprint:
            self._index.remove(watch, watch.footprint)
            self._index.add(watch, footprint)
            watch.footprint = footprint
        watch.version, watch.base = snapshot.version, snapshot
        durable = self._snapshots.take()
        if durable is None or durable.version != snapshot.version:
            self._disarm(watch, snapshot)
        else:
            watch.armed, watch.base = True, None

    def committed(self, before: Snapshot, append: Append) -> None:
        """Wake the watches to which a newly durable round matters."""
        if not self._all:
            return
        if append.catalog_changes or append.dropped:
            self._disarm_all(before, append.snapshot.version)
            return
        trees = self._index.trees
        for tree, changes in append.writes.items():
            watched = trees.get(tree)
            if watched is None:
                continue
            for watch in self._touched(before, tree, changes, watched):
                if watch.armed and watch.version < append.snapshot.version:
                    self._disarm(watch, before)

    def _touched(
        self, before: Snapshot, tree: int, changes: TreeWrites, watched: TreeFootprints[Watch]
    ) -> Iterator[Watch]:
        keys, has_ranges = watched.keys, watched.has_ranges
        tests = 0
        for key, becomes in changes.items():
            tests += 1
            if tests > LIVE_TESTS_MAX:
                yield from watched.owners()
                return
            by_key = keys.get(key)
            if by_key is None and not has_ranges:
                continue
            try:
                was: Value | None = before.get_entry(tree, key)
                if not differs(was, becomes):
                    continue
            except Exception:  # the page cannot be read now: the change could matter
                yield from watched.owners()
                return
            yield from by_key or ()
            if has_ranges:
                for watch, scanned in watched.ranges_at(key):
                    tests += 1
                    if watch.armed and matters(scanned, was, becomes):
                        yield watch

    def restarting(self, durable: Snapshot) -> None:
        """Wake all: the log may have later versions that were not tested."""
        self._disarm_all(durable, durable.version + 1)

    def changed(self) -> None:
        """Wake all: the state of the database has changed."""
        for watch in self._all:
            watch.wake()

    def _disarm_all(self, before: Snapshot, version: int) -> None:
        for watch in self._all:
            if watch.armed and watch.version < version:
                self._disarm(watch, before)

    def _disarm(self, watch: Watch, before: Snapshot) -> None:
        watch.armed, watch.base = False, before
        self._wakeups += 1
        watch.wake()

    def statistics(self) -> WatchesStatistics:
        return WatchesStatistics(len(self._all), self._wakeups)

    def __repr__(self) -> str:
        return f"{len(self._all)} watches, with {self._index!r}"

"""Hands out snapshots: the one place that decides whether this process may show one.

    readers, SQL ──── take(), take_fresh() ─┐
    attempts of transactions,               ├──► SnapshotSource ──► the newest durable one, or the
    the coordinator ─ take(newest=True) ────┘                       newest of all, or None

Readers and attempts take every snapshot here. The supervisor says what may be shown: nothing, a
recovered snapshot, or what a living generation publishes. So a database that is closed, refused or
taken over by another process shows nothing, even if snapshots are still in memory. A reader may
finish with a snapshot that it took before: it was true when it was taken.

If other processes follow the database, `announce` tells them each version before it is shown here.
If this process may show it only while a lease holds, `guard` tells whether it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qserver.engine.freshness import Freshness
from qserver.engine.versions import Versions
from qserver.errors import DatabaseMoved
from qserver.storage.snapshot import Snapshot

NO_VERSION: Final = 1 << 62
"""Announced if nothing may be shown any more, wherever: later than every version."""


Guard = Callable[[], bool]
"""Whether this process may show what it has, at this moment."""


class SnapshotSource:
    def __init__(self) -> None:
        self._versions: Versions | None = None
        self._recovered: Snapshot | None = None
        self._announce: Callable[[int], None] | None = None
        self._guard: Guard | None = None

    def take(self, newest: bool = False) -> Snapshot | None:
        """Return the newest durable snapshot; None if nothing may be shown now.

        `newest`, for an attempt, includes snapshots that are not durable yet. Nothing that follows
        from such a snapshot may leave the process before it is durable, or `check_guard` passes.
        """
        versions = self._versions
        if newest and versions is not None:
            return versions.newest
        if self._guard is not None and not self._guard():
            return None
        return self._recovered if versions is None else versions.durable

    def take_fresh(self, freshness: Freshness) -> Snapshot | None:
        """Return the newest durable snapshot; None if none is fresh enough now, see `freshness`."""
        snapshot = self.take()
        if snapshot is None or snapshot.version < freshness.min_version:
            return None
        return snapshot

    def follow(self, versions: Versions) -> None:
        """From now on show what a living generation publishes."""
        self._versions, self._recovered = versions, None
        versions.announce = self._announce
        self.announce(versions.durable.version)

    def show(self, snapshot: Snapshot) -> None:
        """From now on show this snapshot, which is durable."""
        self._versions, self._recovered = None, snapshot
        self.announce(snapshot.version)

    def guard_by(self, guard: Guard | None) -> None:
        """From now on show something only while the guard allows it, asked each time."""
        self._guard = guard

    def check_guard(self) -> None:
        """Raise DatabaseMoved if another node may have the database by now."""
        if self._guard is not None and not self._guard():
            raise DatabaseMoved("another node may serve this database by now", hint="Try again.")

    def announce_by(self, announce: Callable[[int], None]) -> None:
        """From now on announce each version that is shown, beginning with the present one."""
        self._announce = announce
        if self._versions is not None:
            self._versions.announce = announce
        snapshot = self.take()
        if snapshot is not None:
            announce(snapshot.version)

    def announce(self, version: int) -> None:
        """Tell those that follow the database, if any, that a version is shown."""
        if self._announce is not None:
            self._announce(version)

    def shut(self) -> None:
        """From now on show nothing."""
        self._versions = self._recovered = None

    def __repr__(self) -> str:
        snapshot = self.take()
        return "shows nothing" if snapshot is None else f"shows version {snapshot.version}"

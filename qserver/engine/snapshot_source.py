"""Hands out snapshots: the one place that decides whether this process may show one.

    readers, SQL ──── take(), take_fresh() ─┐
    attempts of transactions,               ├──► SnapshotSource ──► the newest durable one, or the
    the coordinator ─ take(newest=True) ────┘                       newest of all, or None

Readers and attempts take every snapshot here. The supervisor says what may be shown: nothing, a
recovered snapshot, or what a living generation publishes. So a database that is closed, refused or
taken over by another process shows nothing, even if snapshots are still in memory. A reader may
finish with a snapshot that it took before: it was true when it was taken.

If other processes follow the database, `announce` tells them each version before it is shown here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qserver.engine.freshness import Freshness
from qserver.engine.versions import Versions
from qserver.storage.snapshot import Snapshot

NO_VERSION: Final = 1 << 62
"""Announced if nothing may be shown any more, wherever: later than every version."""


class SnapshotSource:
    def __init__(self) -> None:
        self._versions: Versions | None = None
        self._recovered: Snapshot | None = None
        self._announce: Callable[[int], None] | None = None

    def take(self, newest: bool = False) -> Snapshot | None:
        """Return the newest durable snapshot; None if nothing may be shown now.

        `newest`, for an attempt, includes snapshots that are not durable yet. Nothing that follows
        from such a snapshot may leave the process before it is durable.
        """
        versions = self._versions
        if versions is None:
            return self._recovered
        return versions.newest if newest else versions.durable

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

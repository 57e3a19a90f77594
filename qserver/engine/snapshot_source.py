"""Hands out snapshots: the one place that decides whether this process may show one.

    readers, SQL ──── take() ───────────────┐
    attempts of transactions,               ├──► SnapshotSource ──► the newest durable one, or the
    the coordinator ─ take(newest=True) ────┘                       newest of all, or None

Readers and attempts take every snapshot here. The supervisor says what may be shown: nothing, a
recovered snapshot, or what a living generation publishes. So a database that is closed, refused or
taken over by another process shows nothing, even if snapshots are still in memory. A reader may
finish with a snapshot that it took before: it was true when it was taken.
"""

from __future__ import annotations

from qserver.engine.versions import Versions
from qserver.storage.snapshot import Snapshot


class SnapshotSource:
    def __init__(self) -> None:
        self._versions: Versions | None = None
        self._recovered: Snapshot | None = None

    def take(self, newest: bool = False) -> Snapshot | None:
        """Return the newest durable snapshot; None if nothing may be shown now.

        `newest`, for an attempt, includes snapshots that are not durable yet. Nothing that follows
        from such a snapshot may leave the process before it is durable.
        """
        versions = self._versions
        if versions is None:
            return self._recovered
        return versions.newest if newest else versions.durable

    def follow(self, versions: Versions) -> None:
        """From now on show what a living generation publishes."""
        self._versions, self._recovered = versions, None

    def show(self, snapshot: Snapshot) -> None:
        """From now on show this snapshot, which is durable."""
        self._versions, self._recovered = None, snapshot

    def shut(self) -> None:
        """From now on show nothing."""
        self._versions = self._recovered = None

    def __repr__(self) -> str:
        snapshot = self.take()
        return "shows nothing" if snapshot is None else f"shows version {snapshot.version}"

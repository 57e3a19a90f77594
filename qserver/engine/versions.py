"""A generation's newest snapshot and its newest durable one.

Memory runs ahead of the disk, answers do not. The coordinator publishes snapshots; the log writer
marks them durable. A request that only reads takes the newest durable snapshot and waits for
nothing; one that has seen a newer snapshot waits here until that is durable too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec
import trio

from qserver.storage.snapshot import Lease, Snapshot


class EngineRestarted(Exception):  # for the gateway, not for users
    """The generation ended before the commit was sent: run the work again on the next."""


class VersionsStatistics(msgspec.Struct, frozen=True):
    newest: int
    durable: int
    waiting: int


class Versions:
    def __init__(self, snapshot: Snapshot, now: Callable[[], float]) -> None:
        self.newest = snapshot
        self.durable = snapshot
        self.now = now
        self._ahead: deque[Snapshot] = deque()
        self._waiting: list[tuple[int, trio.Event]] = []
        self._ended: Exception | None = None
        self.announce: Callable[[int], None] | None = None
        """Tells other processes which version is durable, if they follow the database."""

    def publish(self, snapshot: Snapshot) -> None:
        assert snapshot.version == self.newest.version + 1, "versions follow each other"
        self.newest = snapshot
        self._ahead.append(snapshot)

    def renew(self, lease: Lease) -> None:
        """Give the newest snapshots, from the durable one on, and all later ones a new lease."""
        if self.newest.lease is not None:
            self.newest.lease.last = self.newest.version
        renewed = {
            each.version: msgspec.structs.replace(each, lease=lease)
            for each in (self.durable, *self._ahead)
        }
        self.durable = renewed[self.durable.version]
        self.newest = renewed[self.newest.version]
        self._ahead = deque(renewed[each.version] for each in self._ahead)

    def mark_durable(self, version: int) -> None:
        """Mark all snapshots up to this version durable, and wake their waiters."""
        while self._ahead and self._ahead[0].version <= version:
            self.durable = self._ahead.popleft()
        if self.announce is not None:
            self.announce(self.durable.version)
        if self._waiting:
            still = []
            for wanted, event in self._waiting:
                if wanted <= version:
                    event.set()
                else:
                    still.append((wanted, event))
            self._waiting = still

    async def wait_durable(self, version: int) -> None:
        """Return when that version is durable; raise if it never will be."""
        if version > self.durable.version:
            self.check_alive()
            waiting = (version, trio.Event())
            self._waiting.append(waiting)
            try:
                await waiting[1].wait()
            except trio.Cancelled:  # or cancelled waiters would pile up while the log hangs
                if not waiting[1].is_set():  # else it became durable before this task could run
                    self._waiting.remove(waiting)
                raise
            if version > self.durable.version:
                self.check_alive()

    def end(self, error: Exception) -> None:
        """Make all waiters raise `error`: what is not durable now never will be."""
        self._ended = error
        for _, event in self._waiting:
            event.set()

    def check_alive(self) -> None:
        if self._ended is not None:
            raise self._ended

    def statistics(self) -> VersionsStatistics:
        return VersionsStatistics(
            self.newest.version,
            self.durable.version,
            len(self._waiting),
        )

    def __repr__(self) -> str:
        return f"version {self.newest.version} published, {self.durable.version} durable"

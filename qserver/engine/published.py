"""What the rest of the world may see of a database: its newest view, its newest durable one, and
recent history.

Memory runs ahead of the disk, answers do not. The coordinator publishes views; the log writer says
how far they are durable. A request that only reads takes the newest durable view and need
wait for nothing; one that has seen a newer view waits here until that is durable too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable

import msgspec
import trio

from qserver.errors import HistoryTooOld
from qserver.limits import HISTORY_AGE_SECONDS_MAX, HISTORY_VIEWS_MAX
from qserver.storage.view import View


class PublishedStatistics(msgspec.Struct, frozen=True):
    newest: int
    durable: int
    oldest: int
    views: int
    waiting: int


class Published:
    def __init__(
        self,
        view: View,
        now: Callable[[], float],
        views_most: int = HISTORY_VIEWS_MAX,
        age_seconds_most: float = HISTORY_AGE_SECONDS_MAX,
    ) -> None:
        self.newest = view
        self.durable = view
        self.now = now
        self._history: deque[View] = deque([view])
        self._ahead: deque[View] = deque()
        self._waiting: list[tuple[int, trio.Event]] = []
        self._views_most = views_most
        self._age_seconds_most = age_seconds_most
        self._fallen: Exception | None = None

    def publish(self, view: View) -> None:
        assert view.version == self.newest.version + 1, "versions follow each other"
        self.newest = view
        self._ahead.append(view)

    def mark_durable(self, version: int) -> None:
        """All views up to this version are safe: they join history, and who waited goes on."""
        while self._ahead and self._ahead[0].version <= version:
            self.durable = self._ahead.popleft()
            self._history.append(self.durable)
        self._forget_old_views()
        if self._waiting:
            still = []
            for wanted, event in self._waiting:
                if wanted <= version:
                    event.set()
                else:
                    still.append((wanted, event))
            self._waiting = still

    async def wait_durable(self, version: int) -> None:
        """Return when that version is safe; raise if it never will be."""
        if version > self.durable.version:
            self.check_alive()
            waiting = (version, trio.Event())
            self._waiting.append(waiting)
            try:
                await waiting[1].wait()
            except trio.Cancelled:  # or a log that hangs would gather those who gave up
                if not waiting[1].is_set():  # it became durable before this task could run
                    self._waiting.remove(waiting)
                raise
            if version > self.durable.version:
                self.check_alive()

    def fall(self, news: Exception) -> None:
        """What is not durable now never will be: all who wait for it raise this."""
        self._fallen = news
        for _, event in self._waiting:
            event.set()

    def check_alive(self) -> None:
        if self._fallen is not None:
            raise self._fallen

    def at_version(self, version: int) -> View:
        """The durable view of that version, if it is still kept."""
        position = bisect_left(self._history, version, key=lambda view: view.version)
        if position < len(self._history) and self._history[position].version == version:
            return self._history[position]
        raise self._not_kept(f"version {version}")

    def at_time(self, time: float) -> View:
        """What was the newest durable view at a time."""
        position = bisect_right(self._history, time, key=lambda view: view.time)
        if position == 0:
            raise self._not_kept(f"time {time}")
        return self._history[position - 1]

    def _forget_old_views(self) -> None:
        history = self._history
        too_old = self.durable.time - self._age_seconds_most
        while len(history) > 1 and (len(history) > self._views_most or history[0].time < too_old):
            history.popleft()

    def _not_kept(self, what: str) -> HistoryTooOld:
        return HistoryTooOld(
            f"{what} is not in the kept history",
            detail=f"Kept are the versions from {self._history[0].version}"
            f" to {self.durable.version}.",
        )

    def statistics(self) -> PublishedStatistics:
        return PublishedStatistics(
            self.newest.version,
            self.durable.version,
            self._history[0].version,
            len(self._history),
            len(self._waiting),
        )

    def __repr__(self) -> str:
        return f"version {self.newest.version} published, {self.durable.version} durable"

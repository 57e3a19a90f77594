"""A follower with files of its own: it also has history, a feed, and room for more than memory.

    base ─────► pages and a checkpoint in its own log ──► as of every follower
    records ──► its own log ──► shown                     older versions, readers of the feed

Its log is begun by one base and lasts as long as it: a second base would need another log, so it
refuses that, and whoever runs it begins anew with another replica. What it keeps begins with that
base; what is older is read where the database is owned.

Records reach it when they are durable at the owner. So its log need not be synced, nobody recovers
from it, and it writes many records at once (`LateLog`).
"""

from __future__ import annotations

from math import inf

from qserver.durability.late_log import LateLog
from qserver.durability.page_cache import PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log, StoredRecord
from qserver.durability.saved_pages import SavedPages
from qserver.engine.catch_up import LogCatchUp
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.deletable import Deletable
from qserver.engine.feed import Feed
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.history import AsOf, History
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Append
from qserver.engine.work import FOREVER, before
from qserver.engine.world import World
from qserver.errors import HistoryTooOld
from qserver.limits import SHARDS_DEFAULT
from qserver.storage.snapshot import Snapshot


class Waiters:
    """Readers that wait until the replica has a version. They cost it no task."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, float, Reply[None], Exception]] = []

    def add(self, version: int, deadline: float, otherwise: Exception) -> Reply[None]:
        """Return a reply, which is given with that version, or fails when the deadline comes."""
        reply: Reply[None] = Reply()
        self._waiting.append((version, deadline, reply, otherwise))
        return reply

    def committed(self, before: Snapshot, append: Append) -> None:
        if self._waiting:
            waiting, version = self._waiting, append.snapshot.version
            self._waiting = [each for each in waiting if each[0] > version]
            for wanted, _, reply, _ in waiting:
                if wanted <= version:
                    reply.put(None)

    def expire(self, now: float) -> None:
        """Let those fail whose deadline has come."""
        late = [each for each in self._waiting if each[1] <= now]
        self._waiting = [each for each in self._waiting if each[1] > now]
        for _, _, reply, otherwise in late:
            reply.fail(otherwise)

    def restarting(self, durable: Snapshot) -> None:
        """Called before the next base, which a replica never has."""

    def changed(self) -> None:
        """The replica closes: nobody waits for it any more."""
        self.expire(inf)


class Replica(FollowedDatabase, Deletable):
    def __init__(
        self,
        log: Log,
        world: World,
        *,
        name: str = "main",
        shards: int = SHARDS_DEFAULT,
        policy: CheckpointPolicy | None = None,
        cache: PageCache | None = None,
    ) -> None:
        """`log` is empty, and nobody else's."""
        super().__init__(world, name=name, shards=shards, policy=policy, cache=cache)
        self._log = log = self._log_over(log)
        self._has_begun = False
        self._kept_until = 0
        self.feed = Feed(self.snapshots)
        self.waiters = Waiters()
        self._observers = (self.watches, self.feed, self.waiters)
        self.pages = LoggedPages(log, self.page_cache, world.report)
        self.history = History(
            log, self.pages, world.now, self._saved_pages, self._newest, self._policy.history
        )
        self.catch_up = LogCatchUp(
            self.history.read,
            self.history.snapshot_at,
            self.feed.newest,
            self.history.note_grown,
            self.history.keep,
        )

    def close(self) -> None:
        super().close()
        self.history.close()
        self._close_pages(self.pages)

    def keep_history(self, seconds: float) -> None:
        """Keep older versions for so many seconds, from now on."""
        self.history.seconds = seconds
        if self._checkpointer is not None and self._checkpointer.history != seconds:
            self._checkpointer.history = seconds
            self._checkpointer.save_soon()

    # --- its log ---

    def _log_over(self, log: Log) -> Log:
        return LateLog(log)

    def _new_log(self) -> Log:
        if self._has_begun:
            raise DoesNotFollow("a replica has one base")
        self._has_begun = True
        return self._log

    def _pages_of(self, log: Log) -> LoggedPages:
        return self.pages

    async def _keep(self, records: list[StoredRecord]) -> None:
        if self.version is None or records[0][0] != self.version + 1:
            raise DoesNotFollow(f"version {records[0][0]} does not follow {self.version}")
        new = [each for each in records if each[0] > self._kept_until]
        if new:
            self._kept_until = new[-1][0]
            await self._log.append(new)

    # --- older versions ---

    async def snapshot_at(self, as_of: AsOf, deadline: float = FOREVER) -> Snapshot:
        """Return the snapshot of a version or of a time that is surely over; else HistoryTooOld."""
        snapshot: Snapshot = await before(deadline, self._snapshot_at, as_of)
        return snapshot

    async def _snapshot_at(self, as_of: AsOf) -> Snapshot:
        if isinstance(as_of, float) and as_of >= (await self._snapshot(0)).time:
            raise HistoryTooOld("the owner of the database may have versions of that time")
        return await self.history.snapshot_at(as_of)

    async def _saved_pages(self) -> SavedPages:
        await self._snapshot(0)
        assert self._checkpointer is not None
        return await self._checkpointer.settled()

    async def _newest(self, time: float) -> Snapshot:
        return await self._snapshot(0)

    def __repr__(self) -> str:
        return f"a replica of database {self.name} at version {self.version}"

"""Replicas: databases of other processes that this one follows, to answer reads of them.

    read ─► here? ─► no: follow it from now on; the owner answers this one
              │yes
              ▼
            the owner's number in shared memory ─► reached? ─► answered here
                                                      └─► waits a moment, then the owner answers

Which processes may follow a database is a function of its family and of its `replicas`, as its
owner is. One of them begins with the first read that it gets, and ends when none came for long, as
`databases` opens and closes them. A replica's file lies in a folder of this process, which is
removed at its start: nobody recovers from it.

The number is the owner's durable version (`cluster.shared_versions`). It is looked at when the
request begins, so every read is as new as one at the owner. When the owner is dead it stands, and
reads go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, Protocol

import msgspec
import trio

from qserver.cluster import SharedVersions, Stream, digest_of
from qserver.control.access import Access, no_database
from qserver.control.databases import Databases, Host, OpenDatabase
from qserver.control.owners import STAYS, OwnedElsewhere, Owners
from qserver.control.store import Store
from qserver.durability.port import Log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.follower import DoesNotFollow
from qserver.engine.following import Message, records_after
from qserver.engine.freshness import Freshness
from qserver.engine.mailbox import Reply
from qserver.engine.replica import Replica
from qserver.engine.turns import OWNER, in_turns_of_owner
from qserver.errors import LogFailed, NotFound, QserverError
from qserver.limits import REPLICA_WAIT_SECONDS_MAX

AGAIN_SECONDS: Final = 0.05
"""Before an owner that is away is asked again."""

EXPIRY_SECONDS: Final = 0.1
"""Between two looks for readers that have waited for too long."""

LOOK_SECONDS: Final = 1.0
"""Between two looks at which replicas are still wanted."""

_WANTED: Final = """select id, family, replicas, history from databases
    where id = any($1) and state = 'ready'"""


class Versions(Protocol):
    """Where a process tells the versions of its databases, for those that follow them."""

    def find(self, database_id: str) -> Callable[[int], None] | None:
        """Return what announces the versions of a database; None if nobody follows it."""

    def enter(self, database_id: str) -> tuple[int, Callable[[int], None]]:
        """Return the same from now on, and the slot where they are read."""


class ReplicaStatistics(msgspec.Struct, frozen=True):
    id: str
    name: str
    version: int
    behind: int
    """Versions that the owner has, and this replica has not."""
    records: int
    reads: int
    """Requests that it has answered."""


class Followed:
    """What owners send to processes that follow their databases."""

    def __init__(self, owners: Owners, access: Access, versions: Versions) -> None:
        self._access = access
        self._versions = versions
        owners.streams["replica"] = self.stream

    async def stream(
        self, back: Stream, database_id: str, version: int | None, process: int | None = None
    ) -> AsyncGenerator[int | Message, None]:
        """Yield the slot of a database's number, and the database, from a version on.

        `process`: the follower, if it may be given long reads.
        """
        opened = await self._access.whole(database_id)
        if opened is None:
            raise no_database(database_id)
        hold = _Hold(opened, process)
        try:
            slot, announce = self._versions.enter(database_id)
            opened.database.snapshots.announce_by(announce)
            yield slot
            async with aclosing(records_after(opened.database, version)) as messages:
                async for message in messages:
                    yield message
        finally:
            hold.close()

    def __repr__(self) -> str:
        return f"what others follow: {self._versions!r}"


class _Hold:
    """A follower keeps a database open, until that is to be closed."""

    def __init__(self, opened: OpenDatabase, process: int | None) -> None:
        self._opened: OpenDatabase | None = opened
        self._process = process
        opened.held.add(self)
        if process is not None:
            opened.long_reads.add(process)

    def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.held.discard(self)
            if self._process is not None:
                opened.long_reads.remove(self._process)
            opened.release()


class Replicas(Databases):
    """Give it what `join` needs, and start `run` and `keep_wanted` in a nursery."""

    owners: Owners
    own_versions: Versions
    _store: Store
    _replica_type = Replica

    def __init__(self, versions: SharedVersions | None, *arguments: Any, **options: Any) -> None:
        """`versions` are those of all databases that are followed, in memory that all see.

        The rest as of `Databases`.
        """
        super().__init__(*arguments, **options)
        self._versions = versions
        self._slots: dict[str, tuple[int, int]] = {}
        """Where the numbers of databases are, and their digests."""
        self._owner_of: dict[str, int] = {}
        self._reads: Counter[str] = Counter()
        self.has_room: Callable[[], bool] = lambda: True
        """Returns whether the disk has room for them."""

    def join(self, owners: Owners, store: Store) -> Versions:
        """Return the versions of this process, which others may follow."""
        assert self._versions is not None
        self.owners, self._store = owners, store
        self.own_versions = self._versions.of_owner(owners.process)
        return self.own_versions

    def attend(self, databases: Databases, owners: Owners, store: Store) -> None:
        """Let the databases of this process be followed by others."""
        databases.announcer_of = self.join(owners, store).find

    # --- reading ---

    def read_nowait(self, elsewhere: OwnedElsewhere, freshness: Freshness) -> OpenDatabase | None:
        """Return a replica that is fresh enough; None if it must be waited for.

        One that is as new as its owner always is; and for who takes what is near, any that has the
        version that they name.
        """
        opened = self._open.get(elsewhere.followed or "")
        if opened is None:
            return None
        takes_any = freshness.replica and freshness.max_age_ms is None
        has_it = takes_any and opened.readable.snapshots.take_fresh(freshness) is not None
        return self._used(opened, elsewhere) if has_it or self._is_current(opened) else None

    def waiting(self, elsewhere: OwnedElsewhere, deadline: float) -> Reply[None] | None:
        """Return what is answered when a replica is as new as its owner is now: then `take` it.

        None if there is no replica; it fails with `elsewhere` if that takes too long.
        """
        opened = self._open.get(elsewhere.followed or "")
        number = None if opened is None else self._number(opened.id)
        if opened is None or number is None:
            return None
        replica = opened.readable
        assert isinstance(replica, Replica)
        elsewhere.visits = STAYS
        deadline = min(deadline, trio.current_time() + REPLICA_WAIT_SECONDS_MAX)
        return replica.waiters.add(number, deadline, elsewhere)

    def take(self, elsewhere: OwnedElsewhere) -> OpenDatabase:
        """Return a replica that was waited for."""
        opened = self._open.get(elsewhere.followed or "")
        if opened is None:
            raise elsewhere
        return self._used(opened, elsewhere)

    async def read(self, elsewhere: OwnedElsewhere, deadline: float) -> OpenDatabase:
        """Return a replica, once it is as new as its owner is now; else raise OwnedElsewhere.

        That is raised, too, if this process does not follow the database, or has only begun to.
        """
        if elsewhere.followed is None:
            raise elsewhere
        elsewhere.visits = STAYS
        opened = self._open.get(elsewhere.followed)
        if opened is None:
            self._begin(elsewhere)
            raise elsewhere
        number = await self._newest(elsewhere, deadline)
        if number is None:
            self._end(opened.id)
            raise elsewhere
        self._used(opened, elsewhere)
        try:
            deadline = min(deadline, trio.current_time() + REPLICA_WAIT_SECONDS_MAX)
            await opened.readable.wait_durable_snapshot(deadline, number)
        except BaseException as error:
            opened.release()
            if isinstance(error, QserverError):
                raise elsewhere from error
            raise
        return opened

    async def _newest(self, elsewhere: OwnedElsewhere, deadline: float) -> int | None:
        """Return the version that its owner has now; None if nobody knows."""
        return self._number(elsewhere.followed or "")

    def _used(self, opened: OpenDatabase, elsewhere: OwnedElsewhere) -> OpenDatabase:
        opened.users += 1
        opened.name, opened.owner = elsewhere.name, elsewhere.process
        self._reads[opened.id] += 1
        return opened

    def _is_current(self, opened: OpenDatabase) -> bool:
        number = self._number(opened.id)
        snapshot = opened.readable.snapshots.take()
        return number is not None and snapshot is not None and snapshot.version >= number

    def _number(self, database_id: str) -> int | None:
        place = self._slots.get(database_id)
        if place is None or self._versions is None:
            return None
        return self._versions.read(*place)

    # --- following ---

    def _begin(self, elsewhere: OwnedElsewhere) -> None:
        if elsewhere.followed is not None:
            self._begin_following(elsewhere.followed, elsewhere.process)

    def _begin_following(self, database_id: str, owner: int) -> None:
        if database_id not in self._hosts and self.has_room():
            self._owner_of[database_id] = owner
            with suppress(QserverError):  # too many are open, or all end
                self._begin_open(database_id, None)

    def _end(self, database_id: str, *, is_deleted: bool = False) -> None:
        host = self._hosts.get(database_id)
        if host is not None:
            if host.opened is not None and is_deleted:
                host.opened.readable.is_deleted = True
            self._begin_close(host)

    async def _live(self, host: Host, log: Log) -> None:
        """Follow a database until nobody wants it."""
        found = await self._store.read_here(_WANTED, [host.id])
        if not found.rows:
            return
        replica = self._replica_type(
            log,
            self._world,
            name=host.id,
            shards=self._shards,
            policy=CheckpointPolicy(history=self._history_of(found.rows[0][3])),
            cache=self.cache,
        )
        share = await self.share_of(host.id)
        OWNER.set(None if share is None else share.turns)
        owner = self._owner_of[host.id]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_turns_of_owner, replica.run())
            nursery.start_soon(self._follow, replica, owner)
            nursery.start_soon(_expire, replica)
            await replica.wait_durable_snapshot()
            await self._serve(host, replica, share, owner)
            self._end_replica(host, replica)
            nursery.cancel_scope.cancel()
        self._replica_ended(host, replica)

    def _end_replica(self, host: Host, replica: Replica) -> None:
        """A replica is about to end."""

    def _replica_ended(self, host: Host, replica: Replica) -> None:
        """A replica has ended."""

    async def _follow(self, replica: Replica, owner: int) -> None:
        """Follow the owner, also through its ends; end if the replica has to begin anew."""
        links = self.owners.links
        while True:
            try:
                wanted = [replica.name, replica.version, self.owners.process]
                async with links.follow(owner, "replica", wanted) as sent:
                    slot = await anext(sent)
                    self._slots[replica.name] = slot, digest_of(replica.name)
                    await replica.follow(_messages(sent))
            except NotFound:
                self._end(replica.name, is_deleted=True)
                return
            except (DoesNotFollow, LogFailed) as error:
                self._world.report(f"the replica of {replica.name} begins anew", error)
                self._end(replica.name)
                return
            except QserverError:
                pass  # the owner is away
            await trio.sleep(AGAIN_SECONDS)

    @asynccontextmanager
    async def _log_of(self, host: Host) -> AsyncIterator[Log]:
        """A new log, which is removed afterwards."""
        try:
            await self.logs.remove(host.id)
            async with self.logs.open(host.id) as log:
                yield log
        finally:
            self._slots.pop(host.id, None)
            self._reads.pop(host.id, None)
            with trio.CancelScope(shield=True), suppress(LogFailed):
                await self.logs.remove(host.id)

    def _history_of(self, seconds: float | None) -> float:
        return self._history if seconds is None else seconds

    async def keep_wanted(self) -> None:
        """End replicas that are no longer wanted, for ever."""
        store, seen = self._store, (self._store.version(), self.owners.version)
        while True:
            await self._pause()
            if not self.has_room():
                for database_id in list(self._hosts):
                    self._end(database_id)
            now = store.version(), self.owners.version
            if self._hosts and now != seen:
                with suppress(QserverError):  # it is looked at again
                    seen = now
                    await self._look()

    async def _pause(self) -> None:
        await trio.sleep(LOOK_SECONDS)

    async def _wanted(self, followed: list[str]) -> dict[str, list[Any]]:
        """Return the families, replicas and history of databases that are there."""
        found = await self._store.read_here(_WANTED, followed)
        return {database_id: rest for database_id, *rest in found.rows}

    async def _look(self) -> None:
        followed = list(self._hosts)
        wanted = await self._wanted(followed)
        for database_id in followed:
            family, replicas, history = wanted.get(database_id, ("", 0, None))
            is_moved = self._owner_of[database_id] != self.owners.owner_of(family)
            if is_moved or not self.owners.follows(family, replicas):
                self._end(database_id, is_deleted=database_id not in wanted)
            elif (opened := self._open.get(database_id)) is not None:
                opened.readable.keep_history(self._history_of(history))

    def replica_statistics(self) -> list[ReplicaStatistics]:
        found = []
        for opened in self._open.values():
            replica = opened.readable
            assert isinstance(replica, Replica)
            version, statistics = replica.version or 0, replica.statistics()
            behind = max(0, (self._number(opened.id) or version) - version)
            counts = statistics.records, self._reads[opened.id]
            found.append(ReplicaStatistics(opened.id, opened.name, version, behind, *counts))
        return found

    def __repr__(self) -> str:
        return f"{len(self._open)} replicas, {len(self._hosts) - len(self._open)} begin"


async def _expire(replica: Replica) -> None:
    while True:
        await trio.sleep(EXPIRY_SECONDS)
        replica.waiters.expire(trio.current_time())


async def _messages(sent: Stream) -> AsyncGenerator[Any, None]:
    async for message in sent:
        yield message

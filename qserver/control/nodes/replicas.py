"""Replicas of databases that other nodes own.

    read, any or session ─► what is here, if it is as new as the request wants
    read, strong ─► the owner's newest version, asked ─► here once the replica has it

Between machines there is no memory that all see, so a strong read asks the owner for the number:
a small call in place of the whole request, which pays for long reads. Who asks while a call is on
its way shares the next one: a number counts for a read that began before it was asked for.

    owner ── appended: families, how long their streams are ──► next owners: begin, read on
    placement: this node owns it ─► the replica ends ─► claim, the last messages ─► the database,
                                                        with the replica's snapshot and pages

A replica follows the log, not the owner (`replication.following`), on the files that this node
would open if it were the owner. So it goes on when the owner is lost, and when this node is the
next owner it has all but the last messages, in memory. That is why replicas also begin without a
read, as soon as their owner has opened the database; they end when it has been closed for long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

import trio

from qserver.control.access import Access, no_database
from qserver.control.databases import Databases, Host, OpenDatabase
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.replicas import LOOK_SECONDS, Replicas
from qserver.control.store import Store
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered
from qserver.engine.replica import Replica
from qserver.engine.warm_replica import WarmReplica
from qserver.errors import DatabaseMoved, QserverError
from qserver.limits import REPLICA_WAIT_SECONDS_MAX
from qserver.replication.following import FollowedFamily
from qserver.replication.replicated_folder import ReplicatedFolder

AGAIN_SECONDS: Final = 5.0
"""Before a database that could not be followed is tried again."""
HANDED_SECONDS: Final = 60.0
"""For so long a database that was followed is kept in memory, until it is opened."""


class AskedVersions:
    """The versions that this node tells others: when they ask."""

    def __init__(self, owners: Owners, access: Access) -> None:
        self._access = access
        owners.answer("newest_version", self._newest)

    async def _newest(self, database_id: str) -> int:
        opened = await self._access.whole(database_id)
        if opened is None:
            raise no_database(database_id)
        with opened:
            snapshot = opened.database.snapshots.take()
            if snapshot is None:
                raise DatabaseMoved(f"{database_id} is not open here", hint="Try again.")
            return snapshot.version


class _NoVersions:
    """Nobody reads the versions of this node in memory."""

    def find(self, database_id: str) -> None:
        """Return what announces versions: nothing does."""

    def enter(self, database_id: str) -> NoReturn:
        raise AssertionError("replicas of other nodes follow the log")


class NodeReplicas(Replicas):
    """`logs` are those that this node has in common with others."""

    logs: ReplicatedFolder
    _databases: Databases
    _replica_type = WarmReplica

    def __init__(self, logs: ReplicatedFolder, *arguments: Any, **options: Any) -> None:
        super().__init__(None, logs, *arguments, **options)
        self._asking: dict[str, _Asking] = {}
        self._followed: dict[str, FollowedFamily] = {}
        """The families of databases that are followed."""
        self._handed: dict[str, _Handed] = {}
        """What is in memory of databases that this node is about to open."""
        self._again: dict[str, float] = {}
        """When what could not be followed is tried again."""
        self._news = trio.Event()
        logs.logs.replaced = self._discard_family

    def join(self, owners: Owners, store: Store) -> _NoVersions:
        self.owners, self._store = owners, store
        self.own_versions = _NoVersions()
        owners.answer("appended", self._appended)
        return self.own_versions

    def attend(self, databases: Databases, owners: Owners, store: Store) -> None:
        super().attend(databases, owners, store)
        self._databases = databases
        databases.take_followed = self.take_handed

    # --- reading ---

    async def _newest(self, elsewhere: OwnedElsewhere, deadline: float) -> int | None:
        """Ask the owner for its newest version; raise `elsewhere` if it does not answer soon."""
        database_id = elsewhere.followed
        assert database_id is not None
        asking = self._asking.setdefault(database_id, _Asking(self.owners, database_id))
        try:
            with trio.fail_at(min(deadline, trio.current_time() + REPLICA_WAIT_SECONDS_MAX)):
                newest = await asking.ask(elsewhere.process)
        except (QserverError, trio.TooSlowError) as error:
            raise elsewhere from error
        finally:
            if asking.is_idle:
                self._asking.pop(database_id, None)
        family = self._followed.get(database_id)
        if family is not None:
            family.look()
        return newest

    # --- following ---

    async def _appended(self, owner: int, news: dict[str, tuple[int, list[str]]]) -> None:
        """The owner of families says how long their streams are, and whom this node follows."""
        now = trio.current_time()
        for root, (sequence, followed) in news.items():
            self.logs.logs.followed.look(root, sequence)
            for database_id in followed:
                opened = self._open.get(database_id)
                if opened is not None:
                    opened.used_at = max(opened.used_at, now)
                elif len(self._hosts) < self._open_max and now >= self._again.get(database_id, 0.0):
                    self._begin_following(database_id, owner)  # none ends for another one

    @asynccontextmanager
    async def _log_of(self, host: Host) -> AsyncIterator[Log]:
        """The database's file, which its family follows; it stays."""
        self._again[host.id] = trio.current_time() + AGAIN_SECONDS
        async with self.logs.follow(host.id, partial(self._end_host, host)) as (family, log):
            self._discard(host.id)
            self._followed[host.id] = family
            try:
                yield log
            finally:
                family.ended(host.id)
                del self._followed[host.id]
                self._reads.pop(host.id, None)

    def _end_host(self, host: Host) -> None:
        if self._hosts.get(host.id) is host:
            self._begin_close(host)

    async def _follow(self, replica: Replica, owner: int) -> None:
        """Begin with what the file has; from then on the family brings what follows."""
        assert isinstance(replica, WarmReplica)
        await self._followed[replica.name].begin(replica.name, replica.begin)

    async def _settle(self, opened: OpenDatabase) -> None:
        """Who reads what is handed over may go on: its pages stay."""
        if not self._is_wanted_here(opened.id):
            await super()._settle(opened)

    def _is_wanted_here(self, database_id: str) -> bool:
        """Return whether this node is about to open a database that it follows."""
        family = self._followed.get(database_id)
        return family is not None and family.root in self.logs.logs.families()

    def _end_replica(self, host: Host, replica: Replica) -> None:
        assert isinstance(replica, WarmReplica)
        if self._is_wanted_here(host.id):
            self._followed[host.id].ended(host.id)
            replica.hand_over()

    def _replica_ended(self, host: Host, replica: Replica) -> None:
        assert isinstance(replica, WarmReplica)
        known = replica.handed_over()
        if known is not None:
            root = self._followed[host.id].root
            self._handed[host.id] = _Handed(root, known, trio.current_time() + HANDED_SECONDS)

    # --- taking over ---

    def take_handed(self, database_id: str) -> Recovered | None:
        """Return what is in memory of a database that was followed here until it was opened."""
        handed = self._handed.pop(database_id, None)
        return None if handed is None else handed.known

    def _discard(self, database_id: str) -> None:
        known = self.take_handed(database_id)
        if known is not None:
            known.saved.store.close()

    def _discard_family(self, root: str) -> None:
        for database_id, handed in list(self._handed.items()):
            if handed.root == root:
                self._discard(database_id)

    def _discard_old(self) -> None:
        now, families = trio.current_time(), set(self.logs.logs.families())
        self._again = {each: at for each, at in self._again.items() if at > now}
        for database_id, handed in list(self._handed.items()):
            if handed.until < now or handed.root not in families:
                self._discard(database_id)

    def look_soon(self) -> None:
        """Owners have changed."""
        self._news.set()

    async def _pause(self) -> None:
        with trio.move_on_after(LOOK_SECONDS):
            await self._news.wait()
        self._news = trio.Event()
        self._discard_old()

    async def _look(self) -> None:
        """Open what this node owns by now, and follow no more what it need not."""
        followed = list(self._hosts)
        wanted = await self._wanted(followed)
        for database_id in followed:
            family, replicas, history = wanted.get(database_id, ("", 0, None))
            opened = self._open.get(database_id)
            if family and self.owners.is_here(family):
                assert self._nursery is not None
                self._nursery.start_soon(self._take_over, database_id)
            elif not self.owners.follows(family, replicas):
                self._end(database_id, is_deleted=database_id not in wanted)
            elif opened is not None:
                opened.readable.keep_history(self._history_of(history))

    async def _take_over(self, database_id: str) -> None:
        with suppress(QserverError):  # whoever asks for it hears why
            (await self._databases.use(database_id)).release()


class _Handed(NamedTuple):
    root: str
    known: Recovered
    until: float


class _Asking:
    """Calls for the number of one database: one on its way, one that waits behind it."""

    def __init__(self, owners: Owners, database_id: str) -> None:
        self._owners = owners
        self._id = database_id
        self._lock = trio.Lock()
        self._asked = 0
        self._answered = 0
        self._number = 0
        self._users = 0

    @property
    def is_idle(self) -> bool:
        return not self._users

    async def ask(self, owner: int) -> int:
        """Return the number by a call that begins after this."""
        wanted = self._asked + 1
        self._users += 1
        try:
            async with self._lock:
                if self._answered < wanted:
                    self._asked += 1
                    mine = self._asked
                    found = await self._owners.ask(owner, "newest_version", self._id)
                    self._number, self._answered = found, mine
                return self._number
        finally:
            self._users -= 1

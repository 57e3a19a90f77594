"""Opens databases on demand and closes them when they are idle.

                 use: not open                    unused for idle_seconds, or room is needed
    (closed) ───────────────────► opening ─► open ─────────────────────────► closing ─► (closed)
        ▲                           │  all callers wait for one opening
        └─────── it failed ◄────────┘  and all get its error; the next caller tries again

Each database lives in a host, a task of its own, which alone opens and closes its log. A host
begins when the hosts in its way have ended: an earlier one of the same database, so that no log is
ever opened twice, and the one that had to make room. Wanting a database registers its host at once,
without waiting; so a removal finds all hosts that could ever touch the database (see `access` for
the other half of that argument).

A database in use is never closed for being idle or old. When the service stops, or a database is
removed, its users have `DATABASE_CLOSE_SECONDS_MAX` to end, and what was committed by then is made
durable. Only for that are hosts shielded from cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import NoReturn, Protocol

import msgspec
import trio

from qserver.control.logs import Logs
from qserver.control.long_reads import LongReads
from qserver.control.shares import Share
from qserver.durability.handing_over import Handover
from qserver.durability.page_cache import PageCache
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered
from qserver.engine.answer_sweeper import sweep_answers
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database, DatabaseStatistics
from qserver.engine.observers import Observer
from qserver.engine.position_sweeper import sweep_positions
from qserver.engine.replica import Replica
from qserver.engine.snapshot_source import Guard
from qserver.engine.turns import OWNER, in_turns_of_owner
from qserver.engine.world import World
from qserver.errors import (
    DatabaseMoved,
    DatabaseUnavailable,
    QserverError,
    QueryCanceled,
    TooManyRequests,
    first_of,
)
from qserver.limits import (
    DATABASE_CLOSE_SECONDS_MAX,
    DATABASE_IDLE_SECONDS,
    DATABASES_OPEN_MAX,
    SHARDS_DEFAULT,
    VALUE_BYTES_MAX,
)
from qserver.query.memory_pool import MemoryPool
from qserver.query.plan_cache import KeptPlans, PlanCacheStatistics
from qserver.query.server_facts import Connected, ConnectedSession
from qserver.query.sql_database import SqlDatabase
from qserver.query.statement_statistics import StatementStatistics
from qserver.query.storage_quota import StorageQuota
from qserver.storage.transaction import Transaction

OPENING_POLL_SECONDS = 0.1
"""How often a caller that waits for an opening checks the database for trouble."""


class Endable(Protocol):
    def close(self) -> None:
        """Stop using the database, as soon as possible."""


class OpenDatabaseStatistics(msgspec.Struct, frozen=True):
    id: str
    name: str
    users: int
    unused_seconds: float
    size_bytes: int
    refused: int
    """Statements refused because there was no room for more rows."""
    database: DatabaseStatistics
    plans: PlanCacheStatistics


class OpenDatabase:
    """A database in use; its user calls `release` once, or uses it as a block."""

    __slots__ = (
        "_clock",
        "held",
        "id",
        "is_closing",
        "is_given_up",
        "long_reads",
        "owner",
        "quota",
        "readable",
        "settling",
        "sql",
        "unused",
        "used_at",
        "users",
    )

    def __init__(
        self,
        database_id: str,
        database: Database | Replica,
        sql: SqlDatabase,
        quota: StorageQuota | None = None,
        owner: int | None = None,
    ) -> None:
        self.id = database_id
        self.readable = database
        self.sql = sql
        self.name = database_id
        self.long_reads = LongReads(database_id)
        sql.long_reads.give_away = self.long_reads.give_away
        self.owner = owner
        """The process that owns it, if this one only follows it."""
        self.quota = quota or StorageQuota()
        """Whether it may store more."""
        self.users = 0
        self.is_closing = self.is_given_up = False
        self._clock = trio.lowlevel.current_clock()  # the same for as long as Trio runs
        self.used_at = self._clock.current_time()
        self.unused: trio.Event | None = None
        """Set when the last user goes, if a task waits for that."""
        self.settling = trio.CancelScope()
        """Of the wait for its users to end, when it is to be closed."""
        self.held: set[Endable] = set()
        """Users that hold it between requests: they end when it is to be closed."""

    @property
    def name(self) -> str:
        """Its name, as of the last request for it."""
        return self.sql.server.database

    @name.setter
    def name(self, name: str) -> None:
        self.sql.server.database = name

    @property
    def database(self) -> Database:
        """The database, which this process owns."""
        assert isinstance(self.readable, Database), "a replica is only read"
        return self.readable

    def release(self) -> None:
        assert self.users > 0, "released more often than used"
        self.users -= 1
        if self.users == 0:
            self.used_at = self._clock.current_time()
            if self.unused is not None:
                self.unused.set()

    def begin_close(self) -> None:
        """Tell long-lived users that the database is about to close."""
        self.is_closing = True
        self.readable.watches.changed()
        if isinstance(self.readable, Database):
            self.readable.channels.end()
        for each in list(self.held):
            each.close()

    def check_open(self) -> None:
        """Raise if the database is about to close."""
        self.readable.check_not_deleted(self.name)
        if self.is_closing:
            raise DatabaseUnavailable(f"database {self.name} is being closed", hint="Try again.")

    def __enter__(self) -> OpenDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"{self.readable!r}, with {self.users} users"


class Databases:
    """Start `run` in a nursery; before and after it, none can be opened."""

    def __init__(
        self,
        logs: Logs,
        world: World,
        *,
        shards: int = SHARDS_DEFAULT,
        idle_seconds: float = DATABASE_IDLE_SECONDS,
        open_max: int = DATABASES_OPEN_MAX,
        pool: MemoryPool | None = None,
        cache: PageCache | None = None,
        value_bytes_most: int = VALUE_BYTES_MAX,
        history: float = 0.0,
        statements: StatementStatistics | None = None,
    ) -> None:
        """`history`: for how many seconds databases keep older versions."""
        if open_max < 2:
            raise ValueError("at least 2 databases can be open: one is the control plane's own")
        if not idle_seconds > 0:
            raise ValueError("a database is idle for more than 0 seconds before it is closed")
        self.logs = logs
        self._world = world
        self._started = world.now()
        self._connected: dict[str, dict[int, Connected]] = {}
        """The connections to each database, by their numbers."""
        self._shards = shards
        self._idle_seconds = idle_seconds
        self._open_max = open_max
        self.pool = pool or MemoryPool()
        self.cache = PageCache() if cache is None else cache
        self.plans = KeptPlans()
        self.cache.others.append(self.plans)
        self._value_bytes_most = value_bytes_most
        self.statements = statements or StatementStatistics()
        """Counters of the statements of all databases, which outlive their closing."""
        self._history = history
        self._histories: dict[str, float] = {}
        """Of databases that have one of their own length."""
        self._nursery: trio.Nursery | None = None
        self._open: dict[str, OpenDatabase] = {}
        self._hosts: dict[str, Host] = {}
        """Hosts of databases that are open or opening; `_closing` has the rest."""
        self._closing: dict[str, Host] = {}
        self.share_of: Callable[[str], Awaitable[Share | None]] = _shared_by_all
        """Finds the share of a database's organization, when the database is opened."""
        self.troubles: dict[str, Exception] = {}
        """Why databases could not be opened; a later success removes the entry."""
        self.announcer_of: Callable[[str], Callable[[int], None] | None] = _followed_by_nobody
        """Finds what tells other processes the versions of a database that they follow."""
        self.take_followed: Callable[[str], Recovered | None] = _followed_nowhere
        """Takes what this process has in memory of a database that it has followed."""
        self.observers_of: Callable[[str], Sequence[Observer]] = _observed_by_nobody
        """Finds who else is told of the commits of a database that is opened."""
        self.guard_now: Callable[[], Guard | None] = _no_guard
        """Returns what says whether a database that is opened now may still be shown."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Host the databases until cancelled; return when all are closed."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                while True:
                    await trio.sleep(self._idle_seconds / 2)
                    self._close_idle()
            finally:
                self._nursery = None
                for host in list(self._hosts.values()):
                    self._begin_close(host)

    # --- using them ---

    def use_nowait(self, database_id: str) -> OpenDatabase | None:
        opened = self._open.get(database_id)
        if opened is not None:
            opened.users += 1
        return opened

    async def use(self, database_id: str, handover: Handover | None = None) -> OpenDatabase:
        """Return the database, opened if necessary; a new branch begins with the `handover`.

        Raises DatabaseUnavailable if that fails, TooManyRequests if too many others are in use.
        """
        opened = self.use_nowait(database_id)
        if opened is not None:
            return opened
        host = self._hosts.get(database_id) or self._begin_open(database_id, handover)
        host.waiting += 1
        try:
            await host.ready.wait()
        finally:
            host.waiting -= 1
        if host.opened is None:
            _raise_unavailable(database_id, host.trouble)
        host.opened.users += 1
        return host.opened

    async def close(self, database_id: str) -> None:
        """Close the database if it is open: its users have a moment to end."""
        host = self._hosts.get(database_id)
        if host is not None:
            if host.opened is not None:
                host.opened.readable.is_deleted = True
            self._begin_close(host)
        host = self._closing.get(database_id)
        if host is not None:
            await host.closed.wait()

    def give_up(self, database_id: str, seconds: float = DATABASE_CLOSE_SECONDS_MAX) -> None:
        """Begin to close a database that another node will open; its users have so long to end.

        Whoever opens it waits for that, so there is no last checkpoint: the log has everything.
        """
        host = self._hosts.get(database_id) or self._closing.get(database_id)
        if host is None:
            return
        if host.opened is not None:
            host.opened.is_given_up = True
            settling = host.opened.settling
            settling.deadline = min(settling.deadline, trio.current_time() + seconds)
        if self._hosts.get(database_id) is host:
            self._begin_close(host)

    async def remove(self, database_id: str) -> None:
        """Close the database and remove its log. No caller may use it again."""
        await self.close(database_id)
        self.troubles.pop(database_id, None)
        self._histories.pop(database_id, None)
        self.statements.forget(database_id)
        await self.logs.remove(database_id)

    def history_of(self, database_id: str) -> float:
        """Return for how many seconds a database keeps older versions."""
        return self._histories.get(database_id, self._history)

    def keep_history(self, database_id: str, seconds: float) -> None:
        self._histories[database_id] = seconds
        opened = self._open.get(database_id)
        if opened is not None:
            opened.readable.keep_history(seconds)

    def all_open(self) -> list[OpenDatabase]:
        return list(self._open.values())

    def statistics(self) -> tuple[OpenDatabaseStatistics, ...]:
        now = trio.current_time()
        return tuple(
            OpenDatabaseStatistics(
                opened.id,
                opened.name,
                opened.users,
                0.0 if opened.users else now - opened.used_at,
                self.logs.size_bytes(opened.id),
                opened.quota.refused,
                opened.database.statistics(),
                opened.sql.statistics(),
            )
            for opened in self._open.values()
        )

    def __repr__(self) -> str:
        return (
            f"{len(self._open)} databases open, {len(self._hosts) - len(self._open)} opening,"
            f" {len(self._closing)} closing"
        )

    # --- opening and closing ---

    def _begin_open(self, database_id: str, handover: Handover | None) -> Host:
        if self._nursery is None:
            raise DatabaseUnavailable("the service is starting or stopping", hint="Try again.")
        after = []
        if len(self._hosts) >= self._open_max:
            after.append(self._make_room())
        if database_id in self._closing:
            after.append(self._closing[database_id])
        host = self._hosts[database_id] = Host(database_id, handover)
        self._nursery.start_soon(in_turns_of_owner, self._run_host(host, after))
        return host

    def _make_room(self) -> Host:
        unused = [
            opened
            for opened in self._open.values()
            if opened.users == 0 and self._hosts[opened.id].waiting == 0
        ]
        if not unused:
            raise TooManyRequests(
                f"all {self._open_max} databases that can be open at once are in use",
                hint="Try again after a pause.",
            )
        host = self._hosts[min(unused, key=lambda opened: opened.used_at).id]
        self._begin_close(host)
        return host

    def _close_idle(self) -> None:
        too_long_ago = trio.current_time() - self._idle_seconds
        for opened in list(self._open.values()):
            host = self._hosts[opened.id]
            if opened.users == 0 and host.waiting == 0 and opened.used_at <= too_long_ago:
                self._begin_close(host)

    def _begin_close(self, host: Host) -> None:
        del self._hosts[host.id]
        self._open.pop(host.id, None)
        self._closing[host.id] = host
        host.close_wanted.set()
        if host.opened is None:
            host.scope.cancel()
        else:
            host.opened.begin_close()

    async def _run_host(self, host: Host, after: list[Host]) -> None:
        with trio.CancelScope(shield=True):
            for other in after:
                await other.closed.wait()
            try:
                with host.scope:
                    async with self._log_of(host) as log:
                        await self._live(host, log)
            except DatabaseMoved as moved:
                host.trouble = moved  # all is well: another node has it
            except Exception as error:
                host.trouble = self.troubles[host.id] = first_of(error)
                self._world.report(f"database {host.id} is not open", host.trouble)
            finally:
                self._forget(host)

    def _log_of(self, host: Host) -> AbstractAsyncContextManager[Log]:
        return self.logs.open(host.id)

    async def _live(self, host: Host, log: Log) -> None:
        database = Database(
            log,
            self._world,
            name=host.id,
            shards=self._shards,
            policy=CheckpointPolicy(history=self.history_of(host.id)),
            cache=self.cache,
            handover=host.handover,
            followed=self.take_followed(host.id),
            observers=self.observers_of(host.id),
        )
        host.handover = None
        database.snapshots.guard_by(self.guard_now())
        announce = self.announcer_of(host.id)
        if announce is not None:
            database.snapshots.announce_by(announce)
        share = await self.share_of(host.id)
        OWNER.set(None if share is None else share.turns)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_turns_of_owner, database.run())
            await _until_open(database)
            nursery.start_soon(sweep_answers, database, self._world)
            nursery.start_soon(sweep_positions, database, self._world)
            await self._serve(host, database, share)
            nursery.cancel_scope.cancel()

    def connect(
        self, database_id: str, number: int, session: ConnectedSession
    ) -> Callable[[], None]:
        """Count a connection as one to a database, open or not; returns what ends that."""
        connection = Connected(session, self._world.now())
        self._connected.setdefault(database_id, {})[number] = connection
        return partial(self._disconnect, database_id, number, connection)

    def _connected_to(self, database_id: str) -> Mapping[int, Connected]:
        return self._connected.get(database_id, {})

    def _disconnect(self, database_id: str, number: int, connection: Connected) -> None:
        connected = self._connected.get(database_id, {})
        if connected.get(number) is connection:  # numbers come again, after a very long time
            del connected[number]
            if not connected:
                del self._connected[database_id]

    async def _serve(
        self,
        host: Host,
        database: Database | Replica,
        share: Share | None,
        owner: int | None = None,
    ) -> None:
        """Let users have a database that is there, until it is to be closed."""
        if host.close_wanted.is_set():
            return
        sql = SqlDatabase(
            database,
            self._world,
            self.pool if share is None else share.memory,
            self._value_bytes_most,
            host.quota,
            plans=self.plans,
            statements=None if share is None else self.statements.of(share.organization, host.id),
        )
        sql.server.started = self._started
        sql.server.connected = partial(self._connected_to, host.id)
        opened = OpenDatabase(host.id, database, sql, host.quota, owner)
        host.opened = self._open[host.id] = opened
        self.troubles.pop(host.id, None)
        host.ready.set()
        await host.close_wanted.wait()
        await self._settle(opened)
        sql.planner.cache.close()

    async def _settle(self, opened: OpenDatabase) -> None:
        """Wait for users and commits to end, then take the last checkpoint, in bounded time."""
        settling = opened.settling
        latest = trio.current_time() + DATABASE_CLOSE_SECONDS_MAX
        settling.deadline = min(settling.deadline, latest)
        with settling:
            if opened.users:
                opened.unused = trio.Event()
                await opened.unused.wait()
            if opened.owner is not None:
                return  # it is only read
            try:
                await opened.database.transact(_nothing)
                if not opened.is_given_up:
                    await opened.database.close()
            except QserverError:
                pass  # a database that is not open has nothing to settle

    def _forget(self, host: Host) -> None:
        if self._hosts.get(host.id) is host:  # it ended by itself
            del self._hosts[host.id]
            self._open.pop(host.id, None)
        if self._closing.get(host.id) is host:
            del self._closing[host.id]
        host.ready.set()
        host.closed.set()


class Host:
    """One life of a database, from the request to open it until its log is closed."""

    def __init__(self, database_id: str, handover: Handover | None) -> None:
        self.id = database_id
        self.handover = handover
        """What it begins with, until it has begun."""
        self.quota = StorageQuota()
        self.opened: OpenDatabase | None = None
        self.trouble: Exception | None = None
        self.waiting = 0
        self.ready = trio.Event()
        """Set when it is open, or has failed."""
        self.close_wanted = trio.Event()
        self.closed = trio.Event()
        self.scope = trio.CancelScope()


async def _until_open(database: Database) -> None:
    """Return when the database has recovered. Recovery may take long; trouble ends the wait."""
    while True:
        try:
            await database.wait_durable_snapshot(trio.current_time() + OPENING_POLL_SECONDS)
            return
        except QueryCanceled:
            if database.trouble is not None:
                raise database.trouble from None


def _observed_by_nobody(_: str) -> Sequence[Observer]:
    return ()


def _no_guard() -> None:
    """It is shown as long as it is open."""


def _followed_by_nobody(database_id: str) -> None:
    """No process follows it."""


def _followed_nowhere(database_id: str) -> None:
    """It was opened by this process alone."""


async def _shared_by_all(database_id: str) -> None:
    """Nobody has a share."""


def _nothing(transaction: Transaction) -> None:
    """Write nothing: the transaction ends when all earlier commits are durable."""


def _raise_unavailable(database_id: str, trouble: Exception | None) -> NoReturn:
    if isinstance(trouble, DatabaseMoved):
        raise trouble
    raise DatabaseUnavailable(
        f"database {database_id} could not be opened",
        detail=None if trouble is None else str(trouble),
        hint="Try again; if it stays so, the operator has to look at the server's log.",
    ) from trouble

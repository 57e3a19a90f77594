"""The control plane: decides who may do what with which database, and how often.

    ControlPlane ─┬─ access             token ─► Grant, name ─► OpenDatabase: on every request
                  ├─ rates              requests of the last minute
                  ├─ organizations ─────┐
                  ├─ database_records   │  made and deleted in steps that a crash cannot lose
                  ├─ space              │  bytes that databases take, and whether more may be
                  ├─ keys               │
                  ├─ sessions ──────────┴─► store ─► the database `control`: records, by SQL
                  └─ reset
    Databases ────── opens and closes them, `control` too

The records live in a database of our own kind, so they are durable, serializable and recovered by
the same code as users' data. `control` is never closed while the plane runs, and is no database of
any organization: ids of those begin with `db_`.

The parts do the work; the plane puts them together. A method of theirs that takes a grant checks
its scopes, and finds nothing of another organization.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final, NoReturn, TypeAlias

import msgspec
import trio

from qserver.control.access import Access
from qserver.control.background_tasks import BackgroundTasks
from qserver.control.barrier import Barrier
from qserver.control.database_records import DatabaseRecords
from qserver.control.databases import Databases, OpenDatabase
from qserver.control.held_list import HeldList
from qserver.control.keys import Keys
from qserver.control.leading import AGAIN_SECONDS, Leader, LeaderSource, follow_leader
from qserver.control.nodes.hints import Hints
from qserver.control.nodes.node import Node
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.part import Part
from qserver.control.nodes.placement import CONTROL as CONTROL
from qserver.control.nodes.rates import NodeWindows
from qserver.control.nodes.replicas import AskedVersions, NodeReplicas
from qserver.control.open_transactions import OpenTransactions, database_of, not_found
from qserver.control.organizations import Organizations
from qserver.control.owned import OwnedDatabases
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.rates import Allowance, Rates, SignupRates, SlidingLogs, Uncounted, Windows
from qserver.control.records import Grant
from qserver.control.replicas import Followed, Replicas
from qserver.control.reset import Reset
from qserver.control.sessions import Sessions
from qserver.control.shares import Share, Shares
from qserver.control.space import Space
from qserver.control.statement_counts import StatementCounts
from qserver.control.store import Store
from qserver.control.tiers import TIERS, Tier
from qserver.control.tokens import Mint, check_key
from qserver.engine.follower import FollowedDatabase
from qserver.engine.freshness import Freshness
from qserver.engine.world import World
from qserver.errors import (
    DatabaseMoved,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    NotFound,
    QserverError,
    first_of,
)
from qserver.limits import (
    CALL_SECONDS_MAX,
    RATE_WINDOW_SECONDS,
    SIGNUPS_MAX,
    SIGNUPS_OF_ADDRESS_MAX,
    SPACE_POLL_SECONDS,
    SWEEP_SECONDS,
)
from qserver.query.sql_database import SqlDatabase

COUNTED_AGAIN: Final = 5
"""So often a request waits for other nodes to count it: who counts may change meanwhile."""

_ANY_ORGANIZATION: Final = "select 1 from organizations limit 1"
_FAMILY: Final = "select family from databases where id = $1"
_OWNER: Final = """select o.id, o.tier, o.limits from databases d join organizations o
    on o.id = d.organization_id where d.id = $1"""


Gone: TypeAlias = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Returns which of some logs are of databases that are not there any more."""


class PlaneOptions(msgspec.Struct, frozen=True):
    """What an operator decides. Raises if there is no such tier, or the key is malformed."""

    default_tier: str | None = None
    first_key: str | None = None
    signups_per_address: int = SIGNUPS_OF_ADDRESS_MAX
    signups_per_hour: int = SIGNUPS_MAX

    @property
    def tier(self) -> str:
        """The tier of the first organization."""
        return self.default_tier or "unlimited"

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise InvalidRequest(
                f"there is no tier {self.tier!r}", hint=f"Tiers are {', '.join(TIERS)}."
            )
        if self.first_key is not None:
            check_key(self.first_key)


class ControlPlane:
    """Start `run` in a nursery; it runs `databases` too."""

    _barrier: Barrier | None = None  # of the leader
    _node_windows: NodeWindows | None = None

    def __init__(
        self,
        databases: Databases,
        world: World,
        secrets: Callable[[int], bytes],
        options: PlaneOptions,
        *,
        shares: Shares | None = None,
        owners: Owners | None = None,
        windows: Windows | None = None,
        replicas: Replicas | None = None,
        node: Node | None = None,
    ) -> None:
        """`windows` count requests; by default those of this process alone.

        One of several processes may have `replicas` of others' databases. A `node` of several
        machines has `owners`, too.
        """
        self._options = options
        self._world = world
        self.databases = databases
        databases.keep_history(CONTROL, 0.0)  # what was revoked or deleted there is not for anybody
        databases.share_of = self._share_of
        self.owners = owners = owners or Owners()
        self._shares = shares = shares or Shares()
        self.statement_counts = StatementCounts(owners, databases.statements)
        store = self._store = Store(world.now)
        self._rates = Rates(self._windows(node) if windows is None else windows)
        per_address, per_hour = options.signups_per_address, options.signups_per_hour
        self._signup_rates = SignupRates(trio.current_time, per_address, per_hour)
        tasks = self._background_tasks = BackgroundTasks()
        mint = Mint(secrets)
        self.space = Space(store, databases, shares, owners)
        access = self.access = Access(store, databases, world.now, shares, owners)
        self.grant_nowait = access.grant_nowait  # on every request, as are the four below
        self.moment_nowait = access.moment_nowait
        self.authenticate = access.authenticate
        self.database_nowait = access.database_nowait
        self.database = access.database
        self.replicas = replicas
        if replicas is not None:
            replicas.share_of = self._share_of
            replicas.has_room = lambda: not self.space.is_disk_full
            replicas.attend(databases, owners, store)
        self.records = DatabaseRecords(
            store, access, databases, owners, tasks, mint, world.report, self.space
        )
        self.open_transactions = OpenTransactions(mint, world.now)
        self.held_list = HeldList(owners, self.open_transactions)
        end_key = self._everywhere(self.open_transactions.finish_key)
        end_session = self._everywhere(self.open_transactions.finish_session)
        self.keys = Keys(store, access, owners, mint, end_key)
        self.sessions = Sessions(store, access, mint, end_session)
        self.organizations = Organizations(
            store, self.records, owners, self.keys, self._rates, tasks, mint, self.space, shares
        )
        self.reset = Reset(store, owners).reset
        self._part = None if node is None else Part(node, store, databases, world, self._lead)
        self.remove_gone: Callable[[Gone], Awaitable[None]] = _keep_all
        """Removes the files of databases that are gone, where others may have removed these."""

    def _windows(self, node: Node | None) -> Windows:
        """Those that count requests: with the other nodes, or in this process alone."""
        if node is None:
            return SlidingLogs(trio.current_time, RATE_WINDOW_SECONDS)
        assert isinstance(self.owners, NodeOwners)
        self._node_windows = NodeWindows(trio.current_time, self.owners)
        return self._node_windows

    def version(self) -> int | None:
        """Return the version of the control records; None while they are not available."""
        return self._store.version()

    def take_request(self, grant: Grant, cost: int = 1) -> Allowance:
        """Count a request of the grant's organization; raise RateLimited if it is one too many."""
        return self._rates.take(grant.organization_id, *_counted(grant, cost))

    async def wait_counted(self, grant: Grant, cost: int) -> None:
        """Return when a request that was Uncounted can be counted, see `nodes.rates`."""
        await self._rates.wait(grant.organization_id, *_counted(grant, cost))

    async def take_request_later(self, grant: Grant, cost: int = 1) -> Allowance:
        """Count a request that was Uncounted, as `take_request` does."""
        for _ in range(COUNTED_AGAIN):
            await self.wait_counted(grant, cost)
            with suppress(Uncounted):
                return self.take_request(grant, cost)
        raise DatabaseUnavailable("requests cannot be counted now", hint="Try again.")

    async def find_elsewhere(self, grant: Grant, transaction: str) -> NoReturn:
        """Raise OwnedElsewhere if another process may have an open transaction.

        Otherwise raise TransactionNotFound.
        """
        database_id = database_of(transaction)
        if database_id is not None:
            with suppress(NotFound, Forbidden):
                (await self.database(grant, database_id)).release()
        raise not_found(transaction)

    def replica_nowait(
        self, elsewhere: OwnedElsewhere, freshness: Freshness
    ) -> OpenDatabase | None:
        """Return a replica of another's database that is fresh enough; None: not at once."""
        return None if self.replicas is None else self.replicas.read_nowait(elsewhere, freshness)

    async def database_to_read(
        self, grant: Grant, name: str | None, deadline: float = inf
    ) -> OpenDatabase:
        """Return a database, or a replica that is as new as that; raise OwnedElsewhere.

        Who gets a replica, which has an `owner`, raises OwnedElsewhere if that cannot answer.
        """
        try:
            return await self.database(grant, name)
        except OwnedElsewhere as elsewhere:
            if self.replicas is None:
                raise
            return await self.replicas.read(elsewhere, deadline)

    def give_back(self, grant: Grant, cost: int) -> None:
        """Count a request no more: it moves to another process, which counts it."""
        self._rates.give_back(grant.organization_id, *_counted(grant, cost))

    def take_signup(self, caller: str) -> None:
        """Count a signup, in the process that counts all; raise RateLimited if it is too many."""
        self.owners.check_leader()
        self._signup_rates.take(caller)

    def _everywhere(self, finish: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that calls another here, and soon in all other processes."""
        method, owners = finish.__name__, self.owners

        async def finish_here(ended: str) -> None:
            finish(ended)

        def finish_everywhere(ended: str) -> None:
            finish(ended)
            for process in owners.others:
                self._background_tasks.start(partial(owners.ask, process, method, ended))

        owners.answer(method, finish_here)
        return finish_everywhere

    async def run(
        self, *, task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run until cancelled. Started with the secret of the first key, if one was made."""
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.databases.run)
                if self.replicas is not None:
                    await nursery.start(self.replicas.run)
                if self._part is not None:
                    await nursery.start(self._part.run)
                    await self._live(task_status)
                elif self.owners.is_leader:
                    with await self.databases.use(CONTROL) as control:
                        await self._lead(control)
                        await self._live(task_status)
                else:
                    await self._follow(nursery)
                    await self._live(task_status)
        except ExceptionGroup as errors:  # the caller gets the cause, not a group
            raise first_of(errors) from errors

    async def _lead(self, control: OpenDatabase) -> None:
        """Begin with the control database; the other processes can follow from here on."""
        barrier = Barrier(lambda: self.owners.others)
        self._barrier = barrier
        source = await self._store.open(control.sql, self.owners.locks, barrier)
        Leader(self.owners, source, control.database, barrier)
        if not (await source.read(_ANY_ORGANIZATION, ())).rows:
            # The key that is made now is shown once: the start must not fail after that.
            await barrier.wait(0, CALL_SECONDS_MAX)

    async def _follow(self, nursery: trio.Nursery) -> None:
        """Begin with a copy of the control database; return when it is there."""
        report = self._world.report
        control = FollowedDatabase(self._world, name=CONTROL, cache=self.databases.cache)
        nursery.start_soon(control.run)
        nursery.start_soon(follow_leader, self.owners, control, report)
        await control.wait_durable_snapshot()
        sql = SqlDatabase(control, self._world, self.databases.pool, plans=self.databases.plans)
        self._store.follow(sql, LeaderSource(self.owners, control))

    def leave(self) -> None:
        """This node is about to end: nobody waits for what it will not have."""
        self._store.gets_another = False

    def placement_changed(self) -> None:
        """Owners, or the nodes that count, are others now."""
        self.access.forget_places()
        self._background_tasks.start(self.records.load_histories)
        if isinstance(self.replicas, NodeReplicas):
            self.replicas.look_soon()
        if self._barrier is not None:
            self._barrier.look_again()

    async def _live(self, task_status: trio.TaskStatus[str | None]) -> None:
        OwnedDatabases(self.owners, self.access, self.databases)
        if isinstance(self.replicas, NodeReplicas):
            AskedVersions(self.owners, self.access)
        elif self.replicas is not None:
            Followed(self.owners, self.access, self.replicas.own_versions)
        async with trio.open_nursery() as nursery:
            self._background_tasks.begin(nursery)
            try:
                task_status.started(await self._prepared())
                nursery.start_soon(self.open_transactions.run)
                if self.replicas is not None:
                    nursery.start_soon(self.replicas.keep_wanted)
                if isinstance(self.replicas, NodeReplicas):
                    nursery.start_soon(self._hints(self.replicas).run)
                if self._node_windows is not None:
                    nursery.start_soon(self._node_windows.run)
                nursery.start_soon(self._measure_for_ever)
                await self._sweep_for_ever()
            finally:
                self._background_tasks.end()

    def _hints(self, replicas: NodeReplicas) -> Hints:
        assert isinstance(self.owners, NodeOwners)
        logs = replicas.logs.logs
        hints = Hints(self.owners, self._store, self.databases, logs.families)
        logs.appended = hints.appended
        return hints

    async def _prepared(self) -> str | None:
        """Prepare; while other nodes come and go, again and again until nobody is in the way."""
        while True:
            try:
                return await self._prepare()
            except QserverError as error:
                if self._part is None:
                    raise
                self._world.report("this node is not prepared yet", error)
            await trio.sleep(AGAIN_SECONDS)

    async def _prepare(self) -> str | None:
        await self.records.load_histories()
        if self.owners.is_leader or not self.owners.shares_files:
            await self.remove_gone(self._gone)
        if self.owners.is_leader:
            await self.organizations.undo_cut_short()
        await self.records.finish_cut_short()
        await self.records.delete_expired()
        if self.owners.is_leader:
            tier, key = self._options.tier, self._options.first_key
            return await self.organizations.ensure_default(tier, key)
        await self.organizations.count()
        return None

    async def root_of(self, log: str) -> str:
        """Return the root of the family that a log belongs to; of any other log, itself."""
        found = await self._store.read_here(_FAMILY, log) if log.startswith("db_") else None
        return found.rows[0][0] or log if found is not None and found.rows else log

    async def _gone(self, logs: Collection[str]) -> list[str]:
        """Return which of these logs are of databases that are not there any more."""
        known = {row[0] for row in await self._store.rows("select id from databases")}
        strange = [each for each in logs if each.startswith("db_") and each not in known]
        return strange if known else []  # it is new, and cannot know them

    async def _share_of(self, database_id: str) -> Share | None:
        """Return the share of a database's organization; `control` has none."""
        if database_id == CONTROL:
            return None
        found = await self._store.read_here(_OWNER, database_id)
        return self._shares.share(*found.rows[0]) if found.rows else None

    async def _sweep_for_ever(self) -> None:
        while True:
            await trio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except QserverError as error:
                self._world.report("the sweep of the control database failed", error)

    async def _measure_for_ever(self) -> None:
        tasks = self._background_tasks
        while True:
            await trio.sleep(SPACE_POLL_SECONDS)
            try:
                await self.space.measure()
                if tasks.was_cut_short:
                    tasks.was_cut_short = False
                    await tasks.run(self.records.finish_cut_short)
            except DatabaseMoved:
                pass  # while nodes change their parts
            except (QserverError, OSError) as error:
                self._world.report("files could not be measured, or not finished", error)

    async def sweep(self) -> None:
        """Remove what is long dead, and go on with what was cut short."""
        self._rates.forget_old()
        self._signup_rates.forget_old()
        if self.owners.is_leader:
            await self.organizations.undo_cut_short()
            await self.sessions.sweep()
            await self.keys.sweep()
        await self.organizations.count()
        await self.records.finish_cut_short()
        await self.records.delete_expired()
        await self.records.take_back_records()

    def __repr__(self) -> str:
        return f"the control plane, with {self.databases!r}"


async def _keep_all(gone: Gone) -> None:
    """Nobody else removes databases."""


def _counted(grant: Grant, cost: int) -> tuple[Tier, int]:
    """Return by which limit a request counts, and for how many."""
    limit = grant.limits.requests_per_minute
    return Tier(grant.tier, limit), cost if limit is None else min(cost, limit)

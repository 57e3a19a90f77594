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

from collections.abc import Callable, Mapping
from typing import Final

import trio

from qserver.control.access import Access
from qserver.control.background_tasks import BackgroundTasks
from qserver.control.database_records import DatabaseRecords
from qserver.control.databases import Databases, OpenDatabase
from qserver.control.keys import Keys
from qserver.control.open_transactions import OpenTransactions
from qserver.control.organizations import Organizations
from qserver.control.rates import Allowance, Rates, SignupRates, SlidingLogs
from qserver.control.records import Grant
from qserver.control.reset import Reset
from qserver.control.sessions import Sessions
from qserver.control.shares import Share, Shares
from qserver.control.space import Space
from qserver.control.store import Store
from qserver.control.tiers import TIERS, Tier
from qserver.control.tokens import Mint, check_key
from qserver.engine.world import World
from qserver.errors import InvalidRequest, QserverError, first_of
from qserver.limits import (
    RATE_WINDOW_SECONDS,
    SIGNUPS_MAX,
    SIGNUPS_OF_ADDRESS_MAX,
    SPACE_POLL_SECONDS,
    SWEEP_SECONDS,
)

CONTROL: Final = "control"
_OWNER: Final = """select o.id, o.tier, o.limits from databases d join organizations o
    on o.id = d.organization_id where d.id = $1"""


class ControlPlane:
    """Start `run` in a nursery; it runs `databases` too."""

    def __init__(
        self,
        databases: Databases,
        world: World,
        secrets: Callable[[int], bytes],
        *,
        default_tier: str | None = None,
        first_key: str | None = None,
        signups_per_address: int = SIGNUPS_OF_ADDRESS_MAX,
        signups_per_hour: int = SIGNUPS_MAX,
        tiers: Mapping[str, Tier] = TIERS,
        shares: Shares | None = None,
    ) -> None:
        self._tier = default_tier or "unlimited"
        if self._tier not in TIERS:
            raise InvalidRequest(
                f"there is no tier {self._tier!r}", hint=f"Tiers are {', '.join(TIERS)}."
            )
        if first_key is not None:
            check_key(first_key)
        self._first_key = first_key
        self._world = world
        self.databases = databases
        databases.keep_history(CONTROL, 0.0)  # what was revoked or deleted there is not for anybody
        self._store = Store(world.now)
        self._rates = Rates(SlidingLogs(trio.current_time, RATE_WINDOW_SECONDS))
        self.signup_rates = SignupRates(trio.current_time, signups_per_address, signups_per_hour)
        self._background_tasks = BackgroundTasks()
        mint = Mint(secrets)
        shares = shares or Shares(tiers=tiers)
        self.space = Space(self._store, databases, shares)
        self._shares = shares
        databases.share_of = self._share_of
        access = Access(self._store, databases, world.now, shares)
        self.grant_nowait = access.grant_nowait  # on every request, as are the three below
        self.authenticate = access.authenticate
        self.database_nowait = access.database_nowait
        self.database = access.database
        self.records = DatabaseRecords(
            self._store, access, databases, self._background_tasks, mint, world.report, self.space
        )
        self.open_transactions = OpenTransactions(mint, world.now)
        self.keys = Keys(self._store, access, mint, self.open_transactions.finish_key)
        self.sessions = Sessions(self._store, access, mint, self.open_transactions.finish_session)
        self.organizations = Organizations(
            self._store,
            self.records,
            self.keys,
            self._rates,
            self._background_tasks,
            mint,
            self.space,
            shares,
        )
        self.reset = Reset(self._store, access).reset

    def version(self) -> int | None:
        """Return the version of the control records; None while they are not available."""
        return self._store.version()

    def take_request(self, grant: Grant, cost: int = 1) -> Allowance:
        """Count a request of the grant's organization; raise RateLimited if it is one too many."""
        limit = grant.limits.requests_per_minute
        cost = cost if limit is None else min(cost, limit)
        return self._rates.take(grant.organization_id, Tier(grant.tier, limit), cost)

    async def run(
        self, *, task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run until cancelled. Started with the secret of the first key, if one was made."""
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.databases.run)
                with await self.databases.use(CONTROL) as control:
                    await self._live(control, task_status)
        except ExceptionGroup as errors:  # the caller gets the cause, not a group
            raise first_of(errors) from errors

    async def _live(self, control: OpenDatabase, task_status: trio.TaskStatus[str | None]) -> None:
        async with trio.open_nursery() as nursery:
            self._background_tasks.begin(nursery)
            try:
                await self._store.open(control.sql)
                task_status.started(await self._prepare())
                nursery.start_soon(self.open_transactions.run)
                nursery.start_soon(self._measure_for_ever)
                await self._sweep_for_ever()
            finally:
                self._background_tasks.end()

    async def _prepare(self) -> str | None:
        await self.records.load_histories()
        await self.organizations.undo_cut_short()
        await self.records.finish_cut_short()
        await self.records.delete_expired()
        return await self.organizations.ensure_default(self._tier, self._first_key)

    async def _share_of(self, database_id: str) -> Share | None:
        """Return the share of a database's organization; `control` has none."""
        rows = [] if database_id == CONTROL else await self._store.rows(_OWNER, database_id)
        return self._shares.share(*rows[0]) if rows else None

    async def _sweep_for_ever(self) -> None:
        while True:
            await trio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
            except QserverError as error:
                self._world.report("the sweep of the control database failed", error)

    async def _measure_for_ever(self) -> None:
        while True:
            await trio.sleep(SPACE_POLL_SECONDS)
            try:
                await self.space.measure()
            except (QserverError, OSError) as error:
                self._world.report("files could not be measured", error)

    async def sweep(self) -> None:
        """Remove what is long dead, and go on with what was cut short."""
        self._rates.forget_old()
        self.signup_rates.forget_old()
        await self.sessions.sweep()
        await self.keys.sweep()
        await self.records.finish_cut_short()
        await self.records.delete_expired()
        await self.records.take_back_records()

    def __repr__(self) -> str:
        return f"the control plane, with {self.databases!r}"

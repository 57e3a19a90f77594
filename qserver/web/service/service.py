"""The service behind the routes: the control plane, its databases, and their health.

    create_app ─► Service ─► running: nursery ─┬─ databases, opened on demand
                                               └─ control plane

Routes ask it who calls, which database the caller means, and how healthy the service is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from time import monotonic
from typing import Any, Final, Protocol

import trio

from qserver.config import Settings
from qserver.control.databases import Databases
from qserver.control.logs import Logs
from qserver.control.nodes.node import Node
from qserver.control.nodes.replicas import NodeReplicas
from qserver.control.owners import Owners
from qserver.control.plane import CONTROL, ControlPlane, PlaneOptions
from qserver.control.records import Grant
from qserver.control.replicas import Replicas
from qserver.control.shares import Shares
from qserver.durability.page_cache import PageCache
from qserver.engine.database import DatabaseState, DatabaseStatistics
from qserver.engine.observers import Observer
from qserver.engine.world import World
from qserver.errors import (
    DatabaseUnavailable,
    Forbidden,
    OutOfMemory,
    QserverError,
    RateLimited,
    StorageTestFailed,
    Unauthorized,
)
from qserver.http1 import Counters, Transport
from qserver.limits import BODIES_BYTES_MAX
from qserver.pgwire import Statistics
from qserver.pgwire.texts import Texts
from qserver.query.memory_pool import MemoryPool
from qserver.query.statement_counting import MS
from qserver.query.statement_statistics import SlowRun, StatementStatistics
from qserver.replication.replicated_folder import ReplicatedFolder
from qserver.replication.replicated_logs import StreamStatistics
from qserver.web.service.audit import AuditLog
from qserver.web.service.machine import half_of_memory
from qserver.web.service.metrics import Metrics
from qserver.web.service.processes import Member
from qserver.web.service.slow_statements import report_to_log
from qserver.web.service.storage_test import StorageReport, storage_test
from qserver.web.statuses import Pairs
from qserver.web.streaming.readers import Readers
from qserver.workloads.measuring import Bench

BEARER: Final = b"bearer "
STORAGE_POLL_SECONDS: Final = 1.0
"""The minimum interval between two storage tests, however often /health is called."""
logger: Final = logging.getLogger("qserver")


class Traces(Protocol):
    """What traces what the service does, see `tracing`."""

    def statement(self, run: SlowRun) -> None: ...
    def appends(self, database: str) -> Observer: ...
    def traced(self, endpoint: Any) -> Any: ...
    def close(self) -> None: ...


class ServiceState(Enum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Service:
    postgres: Callable[[], Statistics] | None = None
    """The numbers of sessions over PostgreSQL's protocol, if that is served."""
    tunnel: Callable[[str, Transport, bytes], Awaitable[None]] | None = None
    """Serves the same inside a WebSocket: to a client, over a transport, from these bytes on."""

    def __init__(
        self,
        settings: Settings,
        world: World,
        logs: Logs,
        secrets: Callable[[int], bytes],
        counters: Counters | None = None,
        member: Member | None = None,
        replica_logs: Logs | None = None,
        node: Node | None = None,
        traces: Traces | None = None,
    ) -> None:
        """`member` is given for one of several processes, `node` for one of several machines."""
        self.traces = traces
        self.settings = settings
        self.world = world
        self.logs = logs
        self.counters = counters
        self.state = ServiceState.STARTING
        self.metrics = Metrics()
        self.bench, self.texts = Bench(), Texts()
        self.streams: Callable[[], Sequence[StreamStatistics]] = tuple
        """Those of a replicated log that this process writes."""
        self._storage = "ok"
        self._storage_again = 0.0
        self.started = monotonic()
        self.pages, self.memory, self.bodies = _memory_of(settings)
        self.audit = None if settings.audit is None else AuditLog(settings.audit)
        options = self._options_of_databases(settings)
        self.databases = Databases(logs, world, **options)
        if traces is not None:
            self.databases.observers_of = lambda database: (traces.appends(database),)
        self.replicas: Replicas | None = None
        if replica_logs is not None and member is not None:
            self.replicas = Replicas(member.versions, replica_logs, world, **options)
        elif isinstance(logs, ReplicatedFolder) and node is not None:
            self.replicas = NodeReplicas(logs, world, **options)
        self.shares = Shares(
            self.memory,
            self.bodies,
            statement_seconds=settings.statement_timeout,
            statement_seconds_max=settings.statement_timeout_max,
        )
        self.plane = ControlPlane(
            self.databases,
            world,
            secrets,
            _options_of_plane(settings),
            shares=self.shares,
            owners=_owners(member, node, settings.replicas),
            windows=None if member is None else member.windows,
            replicas=self.replicas,
            node=node,
        )
        self.plane.organizations.count_open = self._count_open
        self.live_queries = Readers("live queries", self.plane.version)
        self.feed_readers = Readers("readers of changes", self.plane.version)

    def _options_of_databases(self, settings: Settings) -> dict[str, Any]:
        """Return what the databases of this process, and its replicas, are opened with."""
        return {
            "shards": settings.shards,
            "idle_seconds": settings.database_idle_s,
            "open_max": settings.databases_open_max,
            "pool": self.memory,
            "cache": self.pages,
            "value_bytes_most": settings.value_bytes_max,
            "history": settings.history,
            "statements": StatementStatistics(*self._watched_runs(settings)),
        }

    def _watched_runs(
        self, settings: Settings
    ) -> tuple[float | None, Callable[[SlowRun], None] | None]:
        """Return from how many seconds on runs of statements are looked at, and by what."""
        slow = None if settings.slow_ms is None else settings.slow_ms / MS
        to_log = report_to_log(self._name_of_database)
        every: list[Callable[[SlowRun], None]] = []
        if self.audit is not None and settings.audit_statements:
            every.append(self.audit.write_run)
        if self.traces is not None:
            every.append(self.traces.statement)
        if not every:
            return slow, to_log

        def look(run: SlowRun) -> None:
            for note in every:
                note(run)
            if slow is not None and run.seconds >= slow:
                to_log(run)

        return 0.0, look

    def _name_of_database(self, database_id: str) -> str:
        for each in self.databases.all_open():
            if each.id == database_id:
                return each.name
        return database_id

    def _count_open(self, organization_id: str) -> tuple[int, int, int]:
        """An organization's open transactions, feeds and live queries."""
        return (
            self.plane.open_transactions.count(organization_id),
            self.feed_readers.count(organization_id),
            self.live_queries.count(organization_id),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str | None]:
        """Run the service during the block. Yields the first key, if it was just made."""
        async with trio.open_nursery() as nursery:
            first_key: str | None = await nursery.start(self.plane.run)
            nursery.start_soon(self.live_queries.run)
            nursery.start_soon(self.feed_readers.run)
            self.state = ServiceState.READY
            try:
                yield first_key
            finally:
                self.drain()
                nursery.cancel_scope.cancel()

    def drain(self) -> None:
        """Make /ready report that the service is stopping, and end what would never end."""
        self.state = ServiceState.DRAINING
        self.live_queries.end()
        self.feed_readers.end()

    # --- authentication ---

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Grant:
        """The caller's grant; raises Unauthorized without a valid key or token."""
        value = headers.get(b"authorization")
        if value is None:
            raise Unauthorized("this route needs an API key", hint=_KEY_HINT)
        if value[:7].lower() != BEARER:
            raise Unauthorized("the Authorization header is not a bearer token", hint=_KEY_HINT)
        if self.state is ServiceState.STARTING:
            raise DatabaseUnavailable("the service is starting", hint="Try again in a moment.")
        token = value[7:].decode("latin-1")
        return self.plane.grant_nowait(token) or await self.plane.authenticate(token.strip())

    async def check_still_allowed(
        self, headers: Mapping[bytes, bytes], before: Grant, database_id: str, texts: Iterable[str]
    ) -> None:
        """Raise if an admitted caller may no longer run statements that read a database."""
        grant = await self.authenticate(headers)
        if before.statements is not None:
            now = {each.sql for each in (grant.statements or {}).values()}
            if not now.issuperset(texts):
                raise Forbidden("the key no longer has this statement")
        if not grant.may_use(database_id) or (before.may_read and not grant.may_read):
            raise Forbidden("the key has been narrowed and may no longer read this")

    def count_request(self, grant: Grant, headers: Pairs, cost: int = 1) -> None:
        """Charge the organization's rate limit; appends the rate limit headers to `headers`."""
        if grant.is_unlimited:
            headers += UNLIMITED
            return
        tier = grant.tier.encode()
        quota = grant.limits.requests_per_minute or 0
        headers.append((b"ratelimit-policy", b'"%b";q=%d;w=60' % (tier, quota)))
        try:
            allowance = self.plane.take_request(grant, cost)
        except RateLimited as error:
            self.metrics.rate_limited += 1
            headers.append((b"ratelimit", b'"%b";r=0;t=%d' % (tier, error.retry_after_seconds)))
            raise
        left, seconds = allowance.remaining or 0, allowance.reset_seconds
        headers.append((b"ratelimit", b'"%b";r=%d;t=%d' % (tier, left, seconds)))

    # --- health ---

    def uptime_s(self) -> float:
        return round(monotonic() - self.started, 3)

    async def checks(self) -> dict[str, str]:
        """One check for each part that can fail: "ok", or the problem.

        After a log or a checkpoint has failed, the check tests the storage, because the next write
        may be far off.
        """
        checks = {"control": "starting", "databases": "ok", "storage": "ok"}
        if self.state is ServiceState.STARTING:
            return checks
        if not self.plane.owners.is_leader and self.plane.version() is not None:
            checks["control"] = "ok"
        for name, trouble in self.databases.troubles.items():
            kind = trouble.name if isinstance(trouble, QserverError) else "internal_error"
            checks["databases"] = f"{name} cannot be opened: {kind}"
        for each in self.databases.statistics():
            part = CONTROL if each.id == CONTROL else "databases"
            if each.database.state != DatabaseState.OPEN.value:
                checks[part] = f"{each.id} is {each.database.state}"
            elif part == CONTROL:
                checks[part] = "ok"
            if each.database.pages_trouble is not None:
                checks["storage"] = f"{each.id} cannot be read: {each.database.pages_trouble}"
            elif each.database.log_failed or _checkpoint_failed(each.database):
                checks["storage"] = await self._storage_now()
        return checks

    async def test_storage(self) -> StorageReport:
        return await storage_test(self.logs, process=self.plane.owners.process)

    async def _storage_now(self) -> str:
        if trio.current_time() >= self._storage_again:
            try:
                await self.test_storage()
                self._storage = "ok"
            except StorageTestFailed as error:
                self._storage = error.message
            self._storage_again = trio.current_time() + STORAGE_POLL_SECONDS
        return self._storage

    def known(self, error: Exception, request_id: str = "") -> QserverError:
        """Count and return the error that a client is told of: a bug is not described to it.

        Nobody looks at its frames any more. They go now: where a function raises what one of its
        variables holds, they would keep a snapshot, and its pages, until the collector comes.
        """
        if not isinstance(error, QserverError):
            error = self._internal_error(error, request_id)
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.metrics.errors[error.code] += 1
        return error

    def _internal_error(self, error: Exception, request_id: str) -> QserverError:
        """Log a bug in full; return an error that tells the caller only that it happened."""
        if isinstance(error, MemoryError):
            logger.error("request %s met the end of memory", request_id)
            return OutOfMemory("the service has no memory left", hint="Try again later.")
        self.metrics.internal_errors += 1
        logger.error("request %s met a bug", request_id, exc_info=error)
        return QserverError(
            "internal error",
            hint="This is a bug of qserver; the server's log has the details.",
        )


def _options_of_plane(settings: Settings) -> PlaneOptions:
    return PlaneOptions(
        settings.default_tier,
        settings.api_key,
        settings.signups_per_address,
        settings.signups_per_hour,
    )


def _owners(member: Member | None, node: Node | None, replicas: int) -> Owners | None:
    if member is not None:
        return Owners(member.number, member.count, replicas)
    return None if node is None else node.owners


def _memory_of(settings: Settings) -> tuple[PageCache, MemoryPool, MemoryPool]:
    """The memory of pages, of statements and of arriving requests; pages make room for the rest."""
    pages = PageCache(settings.memory or half_of_memory())
    statements = MemoryPool(min(settings.memory_bytes_max, pages.most // 2))
    bodies = MemoryPool(
        min(BODIES_BYTES_MAX, statements.most),
        "requests that are arriving",
        "Try again later, or send rows in bulk, which are read as they arrive.",
    )
    for pool in (statements, bodies):
        pool.make_room = pages.make_room
        pages.users.append(pool)
    return pages, statements, bodies


def _checkpoint_failed(database: DatabaseStatistics) -> bool:
    living = database.generation
    return living is not None and living.checkpoints.trouble is not None


_KEY_HINT: Final = "Send the header Authorization: Bearer svc_k_…"
UNLIMITED: Final = [(b"ratelimit-policy", b'"unlimited"'), (b"ratelimit", b'"unlimited"')]

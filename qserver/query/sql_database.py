"""Runs SQL requests: statements in, rows out.

    perform ─► parameterize ─► find or make plans ─┬─ only reads: on the newest durable snapshot
                                                   └─ writes: a transaction's body, see `gateway`

A request is one generator (`perform`), see `work`. It runs as far as it goes without waiting; its
caller decides who waits for the rest. `execute` and `transaction` are for callers that await.

A request that only reads sends no message and waits for nothing, except that it yields between
pages. `Gateway.transact` runs a request that writes or defines, perhaps more than once. If all of
its plans are kept, and none has ever yielded, it goes to the coordinator untried.

Effects outside of the transaction happen between two runs of it, see `sequence_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import trio

from qserver.engine.database import Database
from qserver.engine.freshness import STRONG, Freshness
from qserver.engine.gateway import Outcome
from qserver.engine.history import AsOf
from qserver.engine.messages import Work
from qserver.engine.stored_answers import StoredAnswer, find_answer
from qserver.engine.work import FOREVER, Step, before, run
from qserver.engine.world import World
from qserver.errors import (
    ProgramLimitExceeded,
    ReadOnlyTransaction,
    RequestInProgress,
    SerializationFailure,
)
from qserver.functions.context import BYTES_UNNOTICED_MAX
from qserver.limits import (
    ANSWER_STORED_SECONDS,
    RETRIES_DEFAULT,
    TRANSACTION_MEMORY_BYTES_MAX,
    TRANSACTION_STATEMENTS_MAX,
    VALUE_BYTES_MAX,
)
from qserver.query.basis import Basis, basis_of
from qserver.query.beginning import Beginning, Beginnings
from qserver.query.body import read_in_runs, read_statements, run_and_undo, run_statements
from qserver.query.idempotency import answered, run_once, stored
from qserver.query.live_query import Lines, LiveQuery
from qserver.query.memory_pool import MemoryPool
from qserver.query.open_transaction import OpenTransaction
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.query.plan_cache import CachedPlan, KeptPlans, PlanCacheStatistics
from qserver.query.planning import Planner, Unplanned
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.preparing import are_short, find_plans, make_plans, new_plan, only_read
from qserver.query.read_only import run_read_only
from qserver.query.refusals import check_as_of, not_a_query, not_live
from qserver.query.request import LongReadsPort, Request, RequestEnvironment
from qserver.query.results import Body, Once, Result, RunOptions, Statement, TransactionResult
from qserver.query.row_stream import RowStream, reading_stream, stream_of
from qserver.query.savepoints import run_with_savepoints, savepoint_alone
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.server_facts import ServerFacts
from qserver.query.session import (
    NeedsSession,
    Session,
    as_transaction,
    in_session,
    run_in_session,
)
from qserver.query.sql_port import ReadableDatabase, WritableDatabase
from qserver.query.statement_counting import count_conflict, count_retries
from qserver.query.statement_statistics import DatabaseStatements
from qserver.query.storage_quota import StorageQuota
from qserver.query.transaction_control import NeedsSavepoints
from qserver.query.unchanged import check_reads, run_unchanged
from qserver.sql import Described, Given
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction

__all__ = ["Result", "RunOptions", "SqlDatabase", "Statement", "TransactionResult"]


class SqlDatabase:
    """Runs SQL on a database, which runs elsewhere.

    A database without a writer can be read, and refuses everything else.
    """

    def __init__(
        self,
        database: ReadableDatabase,
        world: World,
        pool: MemoryPool | None = None,
        value_bytes_most: int = VALUE_BYTES_MAX,
        quota: StorageQuota | None = None,
        plans: KeptPlans | None = None,
        statements: DatabaseStatements | None = None,
    ) -> None:
        """`statements` counts the runs of statements; None: nobody asks for them."""
        self._database = database
        self.snapshots = database.snapshots
        self._writer: WritableDatabase | None = database.writer
        self.planner = Planner(compute=world.compute, plans=plans, statements=statements)
        locks = None if self._writer is None else self._writer.advisory_locks
        self.server = ServerFacts(started=world.now(), now=world.now, locks=locks)
        self._running: set[bytes] = set()
        """The names of requests that are applied once and have not ended."""
        self._environment = RequestEnvironment(
            world.now,
            trio.lowlevel.current_clock().current_time,  # the same for as long as Trio runs
            world.chance,
            None if self._writer is None else self._writer.sequences,
            pool or MemoryPool(),
            value_bytes_most,
            database.page_cache,
            quota or StorageQuota(),
            writer=self._writer,
            server=self.server,
            statements=statements,
        )
        self.beginnings = Beginnings(self.planner, self.snapshots, self._environment)

    @property
    def long_reads(self) -> LongReadsPort:
        return self._environment.long_reads

    @property
    def database(self) -> Database:
        """The engine behind it, for inspection; a follower has none."""
        assert isinstance(self._database, Database), "there is no engine behind it"
        return self._database

    def perform(
        self,
        statements: Sequence[Statement],
        options: RunOptions,
        request_id: str | None = None,
        once: Once | None = None,
    ) -> Generator[Step, Any, TransactionResult]:
        """Return the steps of a request, see `work`."""
        request = self.request_of(options, request_id, once)
        if once is not None:
            return self._perform_once(request, statements, options)
        perform = self._perform if request.session is None else self._perform_in_session
        return perform(request, statements, options)

    async def execute(
        self,
        sql: str,
        parameters: Given = None,
        *,
        max_retries: int = RETRIES_DEFAULT,
        timeout_ms: float | None = None,
        max_rows: int | None = None,
        cut_rows: int | None = None,
        allowed: Allowed = EVERYTHING,
    ) -> Result:
        """Run one statement; its changes are durable when this returns."""
        options = RunOptions(max_retries, timeout_ms, max_rows, cut_rows, allowed)
        outcome = await run(self.perform((Statement(sql, parameters),), options))
        return outcome.results[0]  # type: ignore[no-any-return]

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        max_retries: int = RETRIES_DEFAULT,
        timeout_ms: float | None = None,
        max_rows: int | None = None,
        cut_rows: int | None = None,
        allowed: Allowed = EVERYTHING,
        max_affected: int | None = None,
        dry_run: bool = False,
        once: Once | None = None,
        if_version: int | None = None,
        as_of: AsOf | None = None,
        request_id: str | None = None,
    ) -> TransactionResult:
        """Run all statements or none. An error's `statement` is the index of the failed one."""
        limits = max_retries, timeout_ms, max_rows, cut_rows
        options = RunOptions(*limits, allowed, max_affected, dry_run, as_of, if_version)
        done: TransactionResult = await run(self.perform(statements, options, request_id, once))
        return done

    async def stream(
        self,
        sql: str,
        parameters: Given = None,
        *,
        timeout_ms: float | None = None,
        max_retries: int = RETRIES_DEFAULT,
        allowed: Allowed = EVERYTHING,
        max_affected: int | None = None,
        if_version: int | None = None,
        request_id: str | None = None,
        as_of: AsOf | None = None,
        freshness: Freshness = STRONG,
        only_queries: bool = False,
        session: Session | None = None,
    ) -> RowStream:
        """Begin a statement and hand out its rows as they come, the first before the last is known.

        A statement that writes runs to its end first: before the commit nothing may be shown.
        `only_queries`: it is refused.
        """
        limits = max_retries, timeout_ms, None, None
        asked = RunOptions(*limits, allowed, max_affected, False, as_of, if_version, freshness)
        session = session or Session(lasts=False)
        options = msgspec.structs.replace(asked, session=session)
        beginning = Beginning(self.request_of(options, request_id))
        beginning.request.limit(session.settings.statement_timeout_ms)
        steps = self.streaming(Statement(sql, parameters), options, beginning, only_queries)
        stream: RowStream = await run(steps)
        return stream

    def request_of(
        self, options: RunOptions, request_id: str | None = None, once: Once | None = None
    ) -> Request:
        """Return a request that begins now, and that its owner may cancel."""
        name = request_id or options.request_id
        about = options.timeout_ms, options.allowed, name, once, options.session, options.counts
        return self._environment.request(*about)

    def streaming(
        self,
        statement: Statement,
        options: RunOptions,
        beginning: Beginning,
        only_queries: bool = False,
    ) -> Generator[Step, Any, RowStream]:
        """Return the steps of `stream`, of a statement that has begun."""
        request, session = beginning.request, beginning.request.session
        assert session is not None, "streams are of sessions"
        begun = None if beginning.found is None else [beginning.found]
        snapshot, found, reads = yield from self._prepare(request, (statement,), options, begun)
        if reads:
            return reading_stream(found[0], snapshot, request)
        if only_queries:
            raise not_a_query()
        writing = self._write(request, found, options, snapshot)
        outcome: TransactionResult = yield from as_transaction(session, writing)
        return stream_of(outcome.results[0], snapshot, request)

    async def read(
        self, statement: Statement, options: RunOptions, is_known: Callable[[Basis | None], bool]
    ) -> TransactionResult | None:
        """Run a query; None if its result is known, which `is_known` decides by its basis."""
        request = self.request_of(options)
        snapshot, found, reads = await run(self._prepare(request, (statement,), options))
        if not reads:
            raise not_a_query()
        request.allowed.check_read()
        if is_known(basis_of(found[0], snapshot, options.as_of is not None)):
            return None
        request.session = Session(lasts=False)
        steps = read_in_runs(request, found, options, snapshot)
        results = await run(in_session(request.session, steps))
        return TransactionResult(results, snapshot.version)

    async def live(
        self,
        sql: str,
        parameters: Given = None,
        *,
        lines_of: Callable[[CachedPlan], Lines],
        timeout_ms: float | None = None,
        allowed: Allowed = EVERYTHING,
        freshness: Freshness = STRONG,
        request_id: str | None = None,
    ) -> LiveQuery:
        """Begin a live query. Each run of it may take `timeout_ms`."""
        request = self._environment.request(timeout_ms, allowed, request_id)
        asked = (Statement(sql, parameters),)
        options = RunOptions(allowed=allowed, freshness=freshness)
        snapshot, (found,), reads = await run(self._prepare(request, asked, options))
        if not reads:
            raise not_live()
        new_plan = partial(self._plan_again, found)
        return LiveQuery(self._database, found, snapshot, request, lines_of, new_plan)

    async def describe(self, sql: str, timeout_ms: float | None = None) -> Described:
        """Check a statement that is stored for later, against the newest durable snapshot."""
        deadline = self._environment.request(timeout_ms, EVERYTHING).deadline
        snapshot = self.snapshots.take()
        if snapshot is None:
            snapshot = await self._database.wait_durable_snapshot(deadline)
        described: Described = await before(deadline, self.planner.describe, sql, snapshot)
        return described

    async def wait_fresh(self, freshness: Freshness, deadline: float = FOREVER) -> Snapshot:
        """Return a snapshot that is fresh enough, or raise NotFreshEnough."""
        return await self._database.wait_fresh(freshness, deadline)

    # --- open transactions ---

    def open_nowait(
        self,
        read_only: bool = False,
        freshness: Freshness = STRONG,
        session: Session | None = None,
    ) -> OpenTransaction | None:
        """Open a transaction on the newest durable snapshot; None if none may be shown now."""
        snapshot = self.snapshots.take_fresh(freshness)
        if snapshot is None:
            return None
        return OpenTransaction(snapshot, read_only, self._environment.pool, session=session)

    async def open(
        self,
        read_only: bool = False,
        timeout_ms: float | None = None,
        as_of: AsOf | None = None,
        bytes_most: int | None = None,
        freshness: Freshness = STRONG,
        session: Session | None = None,
    ) -> OpenTransaction:
        """Open a transaction on the newest durable snapshot, or on the version at `as_of`.

        The caller must call `release`. An older version is read-only. It may hold `bytes_most`.
        """
        deadline = self._environment.request(timeout_ms).deadline
        if as_of is not None:
            snapshot = await self._database.snapshot_at(as_of, deadline)
            check_as_of(snapshot, freshness)
            return OpenTransaction(snapshot, True, self._environment.pool, session=session)
        snapshot = await self._database.wait_fresh(freshness, deadline)
        return OpenTransaction(snapshot, read_only, self._environment.pool, bytes_most, session)

    @property
    def bulk_bytes_most(self) -> int:
        """Memory for a bulk insert: half of a transaction's, and of that of all."""
        pool, pages = self._environment.pool, self._environment.pages
        most = TRANSACTION_MEMORY_BYTES_MAX // 2
        if pool is not None:
            most = min(most, pool.most // 2)
        if pages is not None:
            most = min(most, max(pages.most // 4, BYTES_UNNOTICED_MAX))  # as of a transaction
        return most

    def perform_inside(
        self, transaction: OpenTransaction, statements: Sequence[Statement], options: RunOptions
    ) -> Generator[Step, Any, TransactionResult]:
        """Return the steps of a request that is a step of an open transaction."""
        return transaction.perform(self.planner, self.request_of(options), statements, options)

    async def inside(
        self, transaction: OpenTransaction, statements: Sequence[Statement], options: RunOptions
    ) -> TransactionResult:
        """Run statements as a step of an open transaction."""
        done: TransactionResult = await run(self.perform_inside(transaction, statements, options))
        return done

    async def stream_inside(
        self, transaction: OpenTransaction, statement: Statement, options: RunOptions
    ) -> RowStream:
        """Begin a statement of an open transaction whose rows are streamed."""
        work = transaction.stream(self.planner, self.request_of(options), statement, options)
        return await run(work)  # type: ignore[no-any-return]

    def committing(
        self,
        transaction: OpenTransaction,
        options: RunOptions,
        answer: tuple[bytes, StoredAnswer] | None = None,
        request_id: str | None = None,
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of a commit, which ends the transaction, and stores `answer` by name."""
        request = self._environment.request(options.timeout_ms, options.allowed, request_id)
        if self._writer is None:
            raise ReadOnlyTransaction("this database can only be read here")
        return transaction.commit(self.planner, self._writer, request, answer)

    # --- a request ---

    def _perform(
        self, request: Request, statements: Sequence[Statement], options: RunOptions
    ) -> Generator[Step, Any, TransactionResult]:
        """Run statements to their end: on a snapshot if they only read, else in a transaction."""
        if len(statements) > TRANSACTION_STATEMENTS_MAX:
            raise ProgramLimitExceeded(
                f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements"
            )
        is_plain = options.is_plain and request.session is None
        snapshot = self.snapshots.take() if is_plain else None
        found = [] if snapshot is None else find_plans(self.planner, statements, snapshot)
        try:
            if snapshot is None or len(found) < len(statements) or found[-1].plan is None:
                steps = self._prepare(request, statements, options, found)
                snapshot, found, reads = yield from steps
            else:
                reads = only_read(found, request)
            if not reads:
                return (yield from self._write(request, found, options, snapshot))
            while True:  # as `read_in_runs`, without its frame
                try:
                    results = yield from read_statements(request, found, options, snapshot)
                    return TransactionResult(results, snapshot.version)
                except NeedsSequenceValues as needs:
                    yield partial(request.supply, needs)
        except NeedsSession:
            request.session = Session(lasts=False)
        finally:
            if request.drawn:
                request.give_back_unused()
        return (yield from self._perform_in_session(request, statements, options))

    def _perform_in_session(
        self, request: Request, statements: Sequence[Statement], options: RunOptions
    ) -> Generator[Step, Any, TransactionResult]:
        """Run statements that see, and change, the settings of a session."""
        session = request.session
        assert session is not None
        session.serve(len(statements))
        request.limit(session.settings.statement_timeout_ms)
        work = as_transaction(session, self._perform(request, statements, options), options.dry_run)
        return (yield from work)  # type: ignore[no-any-return]

    def _prepare(
        self,
        request: Request,
        statements: Sequence[Statement],
        options: RunOptions,
        found: list[PreparedStatement] | None = None,
    ) -> Generator[Step, Any, tuple[Snapshot, list[PreparedStatement], bool]]:
        """Take a snapshot and find the plans of statements on it, or go on with those `found`.

        Return also whether the request only reads. A reading one fails here if what it reads has
        changed since `if_version`; a writing one checks that in its transaction.
        """
        writer, snapshot = self._writer, self.snapshots.take_fresh(options.freshness)
        if options.as_of is not None:
            writer, request.environment = None, replace(request.environment, sequences=None)
            snapshot = yield partial(self._database.snapshot_at, options.as_of, request.deadline)
            check_as_of(snapshot, options.freshness)
        elif snapshot is None:
            snapshot = yield partial(self.wait_fresh, options.freshness, request.deadline)
        snapshot = request.over(snapshot)
        found = found or find_plans(self.planner, statements, snapshot, request.scope)
        if len(found) < len(statements) or found[-1].plan is None:
            steps = make_plans(self.planner, request, statements, found, snapshot, writer is None)
            yield from steps
        reads = only_read(found, request)
        if request.session is not None and len(statements) > 1:
            reads = False  # one may change what the next one means
        if not options.is_plain:
            if options.dry_run:
                reads, request.dry_run = False, True
            if options.if_version is not None and reads:
                yield from self._check_reads(options.if_version, found, snapshot, writer)
        return snapshot, found, reads

    def _write(
        self,
        request: Request,
        found: list[PreparedStatement],
        options: RunOptions,
        snapshot: Snapshot,
    ) -> Generator[Step, Any, TransactionResult]:
        """Run statements in a transaction; without a writer, only those that write nothing."""
        writer = self._writer if options.as_of is None else None
        if writer is None:
            return (yield from run_read_only(self.planner, request, found, options, snapshot))
        body: Body = partial(run_statements, self.planner, request, found, options)
        try:
            while True:
                try:
                    return (yield from self._transact(writer, request, found, options, body))
                except NeedsSequenceValues as needs:
                    yield partial(request.supply, needs)
                except NeedsSavepoints:
                    if len(found) == 1:
                        raise savepoint_alone() from None
                    body = partial(run_with_savepoints, self.planner, request, found, options)
        except SerializationFailure as error:
            count_conflict(found, error)
            if options.if_version is not None:
                yield partial(writer.check_kept, options.if_version)
            raise
        finally:
            if request.drawn:
                request.give_back_unused(everything=options.dry_run)

    @staticmethod
    def _check_reads(
        version: int,
        found: list[PreparedStatement],
        snapshot: Snapshot,
        writer: WritableDatabase | None,
    ) -> Generator[Step, Any, None]:
        """Raise SerializationFailure, with its cause, if what is read has changed since."""
        try:
            check_reads(version, found, snapshot)
        except SerializationFailure as error:
            if writer is not None:
                yield partial(writer.explain, error)
                yield partial(writer.check_kept, version)
            raise

    def _transact(
        self,
        writer: WritableDatabase,
        request: Request,
        found: list[PreparedStatement],
        options: RunOptions,
        body: Body,
    ) -> Generator[Step, Any, TransactionResult]:
        """Run statements in a transaction and commit it, or undo it if it is a dry run."""
        if options.if_version is not None:
            body = partial(run_unchanged, body, options.if_version)
        if request.session is not None:
            body = partial(run_in_session, request.session, body)
        work: Work = body
        if options.dry_run:
            work = partial(run_and_undo, body, request, options)
            tried = yield from writer.transacting(work, 0, request.deadline, False)
            results, diff = tried.result
            return TransactionResult(results, tried.version, diff=diff)
        once = request.once
        if once is not None:
            work = partial(run_once, once, request.time, request.environment.quota, work)
        outcome = yield from writer.transacting(
            work, options.max_retries, request.deadline, are_short(found), request.id
        )
        if once is not None:
            return answered(outcome.result, outcome.version)
        if outcome.retries:
            count_retries(found, outcome.retries)
        for result in outcome.result:
            result.committed(outcome.version, outcome.retries)
        committed = request.changes
        return TransactionResult(outcome.result, outcome.version, outcome.retries, committed)

    def _perform_once(
        self, request: Request, statements: Sequence[Statement], options: RunOptions
    ) -> Generator[Step, Any, Any]:
        """Return the stored answer of a request; perform the request if there is none."""
        once, snapshot = request.once, self.snapshots.take()
        assert once is not None
        if snapshot is None:
            snapshot = yield partial(self._database.wait_durable_snapshot, request.deadline)
        known = stored(once, snapshot, request.time)
        if known is not None:
            return answered(known, snapshot.version)
        self._begin_once(once.name)
        try:
            perform = self._perform if request.session is None else self._perform_in_session
            return (yield from perform(request, statements, options))
        finally:
            self._running.discard(once.name)

    @contextmanager
    def running(self, name: bytes) -> Iterator[None]:
        """Refuse a duplicate of an idempotent request while it runs."""
        self._begin_once(name)
        try:
            yield
        finally:
            self._running.discard(name)

    def _begin_once(self, name: bytes) -> None:
        if name in self._running:
            raise RequestInProgress(
                "a request with this Idempotency-Key is running",
                hint="Try again after a pause, with the same key.",
            )
        self._running.add(name)

    def stored_answer(self, reader: Transaction | Snapshot, name: bytes) -> StoredAnswer | None:
        return find_answer(reader, name, self._environment.now())

    def new_answer(self, fingerprint: bytes, head: bytes, tail: bytes) -> StoredAnswer:
        """An answer to store with a commit, for as long as answers are kept."""
        expires = self._environment.now() + ANSWER_STORED_SECONDS
        return StoredAnswer(fingerprint, expires, head, tail)

    async def _plan_again(
        self, statement: PreparedStatement, snapshot: Snapshot, deadline: float
    ) -> CachedPlan:
        """Return a new plan for a query whose plan a change of definitions invalidated."""
        sql, given, parameterized = statement.sql, statement.given, statement.parameterized
        assert parameterized is not None
        plan = self.planner.find(parameterized, snapshot.catalog, snapshot, given)
        if plan is None:
            about = sql, parameterized, snapshot.catalog, snapshot, given
            asked = Unplanned(*about, to_read=True)
            plan = await run(new_plan(self.planner, asked, deadline))
        assert plan is not None, "it is a query"
        return plan

    def statistics(self) -> PlanCacheStatistics:
        return self.planner.cache.statistics()

    def __repr__(self) -> str:
        return f"SQL on {self._database!r}, with {self.planner.cache!r}"

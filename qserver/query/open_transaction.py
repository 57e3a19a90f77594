"""A transaction that stays open between requests: a snapshot, and the writes over it.

    step ─► results          all statements of a request, or none of them
    SAVEPOINT, RELEASE, ROLLBACK TO: among the statements of a step, or alone; ROLLBACK alone
    commit                   once, as it is: nobody can run it again

    active ── a step fails ──► failed ── ROLLBACK TO ──► active
       └───────── commit, ROLLBACK, or its owner releases it ──► gone

It takes no locks, waits for nobody, and only keeps the pages of its snapshot from being forgotten.
A read-only one keeps no footprint, because it has nothing to commit.

Its owner runs one step at a time, see `control.open_transactions`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from qserver.engine.disposal import dispose
from qserver.engine.gateway import Outcome
from qserver.engine.stored_answers import StoredAnswer, store_answer
from qserver.engine.work import Step, begin
from qserver.errors import (
    ActiveTransaction,
    FailedTransaction,
    FeatureNotSupported,
    InvalidRequest,
    OutOfMemory,
    ProtocolViolation,
    QserverError,
)
from qserver.limits import (
    OPEN_TRANSACTION_BYTES_MAX,
    TRANSACTION_STATEMENTS_MAX,
)
from qserver.query.affected import diff_of
from qserver.query.body import run_statements
from qserver.query.cursor import Cursor, StatementSteps
from qserver.query.memory_pool import MemoryPool
from qserver.query.named_statement import held_by_text
from qserver.query.planning import Planner, Prepared, Unplanned
from qserver.query.portals import Portal
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request, RequestContext
from qserver.query.results import Diff, Result, RunOptions, Statement, TransactionResult
from qserver.query.row_stream import RowStream, stream_of
from qserver.query.savepoints import ListedSavepoints, check_room
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.session import Moment, Session, in_session
from qserver.query.sql_port import WritableDatabase
from qserver.query.statement_port import Controls, Opening
from qserver.query.statements import StatementRun
from qserver.query.temporary import TemporarySchema
from qserver.query.transaction_control import command_of
from qserver.sql import Given, NotShort, Rows, ast, parse
from qserver.storage.snapshot import Snapshot
from qserver.storage.stepped import SteppedTransaction, StepTransaction
from qserver.storage.transaction import Transaction
from qserver.values.sizes import size_of_all

Status: TypeAlias = Literal["active", "failed"]

OpenPortal: TypeAlias = Callable[[Opening], StatementSteps]

Named: TypeAlias = tuple[bytes, StoredAnswer]
"""An answer to store, and its name."""

CONTROL_LENGTH_MAX: Final = 1000
"""A longer text is no ROLLBACK."""

_NO_FAULT_OF_A_STEP: Final = (InvalidRequest, ProtocolViolation)
"""Requests that are refused as such leave the transaction as it was."""


def _size_of_given(given: Given) -> int:
    return size_of_all(given.values() if isinstance(given, Mapping) else given or ())


class OpenTransaction:
    def __init__(
        self,
        snapshot: Snapshot,
        read_only: bool,
        pool: MemoryPool | None = None,
        bytes_most: int | None = None,
        session: Session | None = None,
    ) -> None:
        self.session = Session() if session is None else session
        self._lends_session = session is not None
        """Whether the session is another's, and goes on."""
        self.session.begin()
        if read_only is not self.session.settings.read_only:
            self.session.set("transaction_read_only", ["on" if read_only else "off"])
        self.bytes_most = OPEN_TRANSACTION_BYTES_MAX if bytes_most is None else bytes_most
        self.version = snapshot.version
        self.read_only = read_only
        self.statements = 0
        """Statements that were run, or tried."""
        self.failed = False
        self.is_over = False
        """Whether its owner has to let it go: it was rolled back, or is too large."""
        self._base = snapshot
        self._stepped = SteppedTransaction(self.session.over(snapshot), read_only)
        self._pool = pool
        self._pooled = 0

    @property
    def state(self) -> Status:
        return "failed" if self.failed else "active"

    @property
    def rows_changed(self) -> int:
        return self._stepped.affected_rows

    @property
    def bytes(self) -> int:
        return self._stepped.bytes

    @property
    def transaction(self) -> Transaction:
        """The whole, for the commit."""
        return self._stepped.whole

    # --- steps ---

    def perform(
        self,
        planner: Planner,
        request: Request,
        statements: Sequence[Statement],
        options: RunOptions,
    ) -> Generator[Step, Any, TransactionResult]:
        """Run statements as one step: keep all their writes, or none."""
        request.session, request.is_step = self.session, True
        return in_session(self.session, self._perform(planner, request, statements, options))

    def _perform(
        self,
        planner: Planner,
        request: Request,
        statements: Sequence[Statement],
        options: RunOptions,
    ) -> Generator[Step, Any, TransactionResult]:
        self._check_ready(statements)
        step = self._step()
        self.statements += len(statements)
        beginning = self.session.begin_step()
        before, *_ = beginning
        try:
            while True:
                try:
                    attempt = self._attempt(planner, request, statements, options, step, before)
                    return (yield from attempt)
                except NeedsSequenceValues as needs:
                    self.session.repeat_step(beginning, request.environment.pool)
                    yield partial(request.supply, needs)
                    dispose(step.writes.values())
                    step.begin_again()
        except _NO_FAULT_OF_A_STEP:
            self.session.go_back_to(before)
            raise
        except BaseException:  # also if the client has left: it cannot know how far this came
            self.session.go_back_to(before)
            self._fail(step)
            raise
        finally:
            self.session.settle()
            step.report_reads()
            if request.drawn:
                request.give_back_unused(everything=options.dry_run)

    def _attempt(
        self,
        planner: Planner,
        request: Request,
        statements: Sequence[Statement],
        options: RunOptions,
        step: StepTransaction,
        before: Moment,
    ) -> Generator[Step, Any, TransactionResult]:
        request.dry_run = options.dry_run
        asked = [
            PreparedStatement(each.sql, each.parameters, each.parameterized) for each in statements
        ]
        results: list[Result] = []
        open_portal = partial(self.open_portal, planner, request, options)
        listed = ListedSavepoints(self._stepped, step, results, self.session, open_portal)
        controls: Controls = partial(self._control, not options.dry_run, open_portal)
        if len(statements) > 1 and not options.dry_run:
            controls = listed.perform
        body = run_statements(planner, request, asked, options, step, controls, results)
        diff: Diff | None = None
        try:
            _, rest = begin(body)
            if rest is not None:
                yield from rest.go_on(request.deadline)
            kept = (listed.begun or step.changes_anything) and not options.dry_run
            if kept:
                yield from listed.end()
            elif options.dry_run:
                self.session.go_back_to(before)
                diff = yield from self._diff(request, step, options)
        except BaseException:
            listed.undo()
            raise
        step.report_reads()
        self._charge()
        return TransactionResult(results, self.version, committed=kept, diff=diff)

    def _diff(
        self, request: Request, step: StepTransaction, options: RunOptions
    ) -> Generator[Step, Any, Diff]:
        context = RequestContext(request, step)
        try:
            return (yield from diff_of(step, options, context))
        finally:
            context.release()

    def _check_ready(self, statements: Sequence[Statement]) -> None:
        if len(statements) > TRANSACTION_STATEMENTS_MAX:
            raise InvalidRequest(f"a step has at most {TRANSACTION_STATEMENTS_MAX} statements")
        if self.failed and not (len(statements) == 1 and _rolls_back(statements[0].sql)):
            raise in_failed()

    def _step(self) -> StepTransaction:
        return self._stepped.step(self.statements)

    def _fail(self, step: StepTransaction) -> None:
        """Accept nothing but a rollback; what the error has shown stays in the footprint.

        Nobody knows which definitions a statement looked for that could not be planned, so the
        whole catalog counts as read.
        """
        self.failed = True
        step.whole_catalog_seen = True

    def fail(self) -> None:
        """Fail because of a statement that no step has run: it could not be planned, or read."""
        self.failed = self._stepped.whole.whole_catalog_seen = True

    def _charge(self) -> None:
        """Charge the memory of the transaction; end the transaction if it holds too much."""
        size = self._stepped.bytes
        if size > self.bytes_most:
            self.is_over = True
            raise OutOfMemory(
                "the transaction holds more than an open one may, and was rolled back",
                detail=f"The limit is {self.bytes_most} bytes of what it has read and written.",
                hint="Write the rows in several transactions.",
            )
        if self._pool is not None:
            if size > self._pooled:
                self._pool.take(size - self._pooled)
            else:
                self._pool.give_back(self._pooled - size)
            self._pooled = size

    def release(self) -> None:
        """Drop the snapshot and the writes; the transaction is unusable from now on."""
        self.session.roll_back()  # closes portals, which charge what they have read
        if not self._lends_session:
            self.session.statements.clear()
            if self.session.locks is not None:
                self.session.locks.close()
        self.session.settle()
        if self._pool is not None:
            self._pool.give_back(self._pooled)
            self._pooled = 0
        if not self._lends_session and self.session.temporary is not None:
            self.session.temporary.release()
        del self._stepped

    # --- statements that control it ---

    def open_portal(
        self, planner: Planner, request: Request, options: RunOptions, asked: Opening
    ) -> StatementSteps:
        """Open a cursor over what the transaction has now."""
        node, own = asked.node, request.environment.request(request.timeout_ms, request.allowed)
        own.take_time_of(request)
        own.session = self.session
        parameterized = yield from planner.parameterizing(node.text)
        if asked.declared is not None:
            parameterized = parameterized.with_declared(asked.declared)
        statement = Statement(node.text, asked.given, parameterized)
        made = None
        if asked.plan is not None:
            made = Prepared(asked.parsed, asked.plan)
        stream = yield from self._stream(planner, own, statement, options, made)
        self.session.portals[node.name] = Portal(
            node.name,
            node.source,
            stream,
            own.time,
            self._pool,
            hold=node.hold,
            scroll=bool(node.scroll),
            is_binary=node.binary,
            table=asked.table,
            kept=held_by_text(node.text) + _size_of_given(asked.given),
        )
        return 0

    def _control(
        self,
        is_single: bool,
        open_portal: OpenPortal | None,
        node: ast.TransactionControl | Opening,
    ) -> StatementSteps:
        if isinstance(node, Opening):
            assert open_portal is not None
            return (yield from open_portal(node))
        kind, name = command_of(node)
        if kind is None:
            raise ActiveTransaction(
                f"{node.kind.upper()} is not a statement of an open transaction",
                hint="POST /v1/transaction/{id}/commit commits it.",
            )
        if not is_single:
            raise FeatureNotSupported(
                f"{node.kind.upper()} is a step of its own",
                hint="Send it alone, and not as a dry run.",
            )
        if name is None:
            self.is_over = True
        elif kind == "savepoint":
            check_room(self._stepped)
            self._stepped.set_savepoint(name)
            self.session.set_savepoint(name)
        elif kind == "release":
            yield from self._stepped.release(name)
            self.session.release(name)
        else:
            yield from self.session.make_way()
            yield from self._stepped.roll_back_to(name)
            self.session.roll_back_to(name)
            self.failed = False
        return 0

    # --- streams ---

    def stream(
        self, planner: Planner, request: Request, statement: Statement, options: RunOptions
    ) -> Generator[Step, Any, RowStream]:
        """Begin a statement; stream its rows as they come if it only reads."""
        request.session = self.session
        return in_session(self.session, self._stream(planner, request, statement, options))

    def _stream(
        self,
        planner: Planner,
        request: Request,
        statement: Statement,
        options: RunOptions,
        made: Prepared | None = None,
    ) -> Generator[Step, Any, RowStream]:
        """`made`: the plan by which it reads, in place of that of its text."""
        self._check_ready([statement])
        step = self._step()
        try:
            if made is None:
                asked, made = yield from self._reading_plan(planner, request, step, statement)
            else:
                about = statement.sql, statement.parameters, statement.parameterized
                asked = PreparedStatement(*about, made.plan)
        except _NO_FAULT_OF_A_STEP:
            raise
        except BaseException:
            self.statements += 1
            self._fail(step)
            step.report_reads()
            raise
        if asked is None:
            request.is_step = True
            step.report_reads()
            outcome = yield from self._perform(planner, request, [statement], options)
            return stream_of(outcome.results[0], step.snapshot, request)
        self.statements += 1

        def new_cursor() -> Cursor:
            step.begin_again()
            step.mark()
            again = StatementRun(planner, step, request)
            return again.start(asked, made)

        try:
            return StepStream(self, step, new_cursor, request)
        except QserverError:
            self.failed = True
            raise

    def _reading_plan(
        self, planner: Planner, request: Request, step: StepTransaction, statement: Statement
    ) -> Generator[Step, Any, tuple[PreparedStatement | None, Prepared | None]]:
        """Return a statement that only reads with its plan, and what was made; None for others."""
        sql, given, parameterized = statement.sql, statement.parameters, statement.parameterized
        catalog, snapshot, scope = step.catalog, step.snapshot, self.session.scope
        if parameterized is None:
            parameterized = yield from planner.parameterizing(sql, given)
        plan, made = planner.find(parameterized, catalog, snapshot, given, scope), None
        if plan is None:
            database = request.environment.server.database
            about = sql, parameterized, catalog, snapshot, given
            asked = Unplanned(*about, scope=scope, database=database)
            try:
                made = planner.prepare_nowait(asked)
            except NotShort:
                made = yield partial(planner.prepare, asked)
            plan = made.plan
        reads = plan is not None and not plan.writes
        return (PreparedStatement(sql, given, parameterized, plan) if reads else None), made

    def stream_ended(self, step: StepTransaction) -> None:
        step.report_reads()
        self._stepped.keep_positions(step)
        try:
            self._charge()
        except OutOfMemory:
            self.failed = True

    # --- the end ---

    def check_active(self) -> None:
        if self.failed:
            raise in_failed()

    def commit(
        self, planner: Planner, writer: WritableDatabase, request: Request, answer: Named | None
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of the commit, which succeeds if everything that was read still holds.

        `answer` is stored under its name by the same commit.
        """
        self.check_active()
        transaction = self._stepped.whole
        if transaction.changes_rows:
            request.allowed.check_write()
        if transaction.changes_catalog:
            request.allowed.check_define()
        return self._committing(planner, writer, request, answer)

    def _committing(
        self, planner: Planner, writer: WritableDatabase, request: Request, answer: Named | None
    ) -> Generator[Step, Any, Outcome]:
        if self.session.deferred.changes:
            yield from self._check_deferred(planner, request)
        yield from self._hold(request)
        transaction = self._stepped.whole
        if self.session.temporary is not None:
            yield from self._end_temporary(self.session.temporary, planner, request)
        if answer is not None:
            store_answer(transaction, *answer)
        self.session.begin_commit()
        outcome = yield from writer.committing(transaction, request.deadline, request.id)
        self.session.commit()
        self.session.settle()
        return outcome

    def commit_nothing(self, request: Request) -> Generator[Step, Any, None]:
        """End a transaction that has changed nothing, which needs no commit."""
        yield from self._hold(request)
        self.session.commit()
        self.session.settle()

    def _hold(self, request: Request) -> Generator[Step, Any, None]:
        """Let cursors WITH HOLD keep their rows, if the session outlives the transaction."""
        if self._lends_session and self.session.portals:
            yield from in_session(self.session, self.session.hold(request))

    def _end_temporary(
        self, temporary: TemporarySchema, planner: Planner, request: Request
    ) -> Generator[Step, Any, None]:
        """Take temporary relations out of the transaction, after their ON COMMIT."""
        if self._lends_session:
            with self._last_step(planner, request) as (step, run):
                yield from run.act_on_commit()
                yield from self._stepped.keep(step, 0)
        yield from temporary.take_out(self._stepped.whole, self._base)

    def _check_deferred(self, planner: Planner, request: Request) -> Generator[Step, Any, None]:
        """Check the keys that have waited."""
        with self._last_step(planner, request) as (_, run):
            yield from in_session(self.session, run.check_deferred())

    @contextmanager
    def _last_step(
        self, planner: Planner, request: Request
    ) -> Iterator[tuple[StepTransaction, StatementRun]]:
        """`with` a step that belongs to the commit: an error ends the transaction."""
        step, request.session = self._step(), self.session
        run = StatementRun(planner, step, request)
        try:
            yield step, run
        except QserverError:
            self.failed = self.is_over = True
            raise
        finally:
            run.context.release()
            step.report_reads()


class StepStream(RowStream):
    """The rows of a statement inside an open transaction; the step ends with the stream."""

    def __init__(
        self,
        transaction: OpenTransaction,
        step: StepTransaction,
        new_cursor: Any,
        request: Request,
    ) -> None:
        super().__init__(new_cursor, request, transaction.version)
        self._transaction = transaction
        self._step = step

    async def step(self) -> Rows | None:
        try:
            return await super().step()
        except Exception:
            self._transaction.failed = True
            raise

    def stepping(self) -> Generator[Step, Any, Rows | None]:
        try:
            return (yield from super().stepping())
        except Exception:
            self._transaction.failed = True
            raise

    def _end(self) -> None:
        is_first = not self.ended
        super()._end()
        if is_first:
            self._transaction.stream_ended(self._step)


def _rolls_back(sql: str) -> bool:
    if len(sql) > CONTROL_LENGTH_MAX:
        return False
    try:
        statement = parse(sql).statement
    except QserverError:
        return False
    return isinstance(statement, ast.TransactionControl) and statement.kind in ("rollback", "abort")


def in_failed() -> FailedTransaction:
    return FailedTransaction(
        "current transaction is aborted, commands ignored until end of transaction block",
        hint="Send ROLLBACK, or ROLLBACK TO a savepoint.",
    )

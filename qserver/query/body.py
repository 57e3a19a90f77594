"""The body of a request: runs its statements one after the other.

    read_statements     on a snapshot: a request that only reads
    run_statements      in a transaction: a request that writes, or defines; tried by the gateway,
                        perhaps more than once, or run by the coordinator

A body is a generator, see `work`, and the same everywhere: its caller decides only what happens
when it yields.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from qserver.engine.work import Step
from qserver.errors import QserverError
from qserver.functions.context import STEPS_BETWEEN_PAUSES
from qserver.query.affected import AffectedGuard, diff_of
from qserver.query.catalog.reader import CatalogReader
from qserver.query.cursor import END, Cursor, StatementSteps
from qserver.query.idempotency import needs_a_change
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Planner, Unplanned, slots_of
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request, RequestContext
from qserver.query.results import Body, Diff, Result, RunOptions
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.slots import run_heavy
from qserver.query.statement_port import Controls
from qserver.query.statements import StatementRun
from qserver.sql import NotShort, is_heavy
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction

COST_BETWEEN_PAUSES = 128
"""What statements of a request may cost (see `StatementRun.cost`) before others may run."""


def read_statements(
    request: Request, statements: list[PreparedStatement], options: RunOptions, snapshot: Snapshot
) -> Generator[Step, Any, list[Result]]:
    """Return the results of all statements; each has a plan that only reads."""
    now, max_rows, cut_rows = request.environment.now, options.max_rows, options.cut_rows
    context, began = RequestContext(request, snapshot), request.time
    results: list[Result] = []
    try:
        for statement in statements:
            cursor = open_reading(statement, snapshot, request, context)
            step = cursor.gather(None, max_rows, cut_rows)
            if step is None and not results:  # a later one may yield because of those before
                _blame(cursor.plan)
                if options.may_leave and request.once is None:
                    request.environment.long_reads.give_away(snapshot.version)
            while step is not END:
                sent = yield from _aside(cursor, step or request.pause(), now)
                step = cursor.gather(sent, max_rows, cut_rows)
            ended = now()
            results.append(cursor.result(snapshot.version, began, ended))
            began = ended
        return results
    except (QserverError, NeedsSequenceValues) as error:
        error.statement = len(results)
        raise
    finally:
        context.release()


def read_in_runs(
    request: Request, statements: list[PreparedStatement], options: RunOptions, snapshot: Snapshot
) -> Generator[Step, Any, list[Result]]:
    """Do the same, again after each wait for something that a run cannot wait for."""
    try:
        while True:
            try:
                return (yield from read_statements(request, statements, options, snapshot))
            except NeedsSequenceValues as needs:
                yield partial(request.supply, needs)
    finally:
        request.give_back_unused()


def run_statements(
    planner: Planner,
    request: Request,
    statements: list[PreparedStatement],
    options: RunOptions,
    transaction: Transaction,
    controls: Controls | None = None,
    results: list[Result] | None = None,
) -> Generator[Step, Any, list[Result]]:
    """Run all statements in a transaction, and return their results.

    `results` is filled one by one, for `controls` to look at.
    """
    now, max_rows, cut_rows = request.environment.now, options.max_rows, options.cut_rows
    run = StatementRun(planner, transaction, request, controls)
    version, context, began = transaction.snapshot.version, run.context, now()
    results, index = [] if results is None else results, 0
    most, heaviest = 0, None  # the work of the heaviest statement since others last ran, its plan
    guard = None if options.max_affected is None else AffectedGuard(run, options.max_affected)
    try:
        for index, statement in enumerate(statements):
            if transaction.marks is not None:
                transaction.mark()
            try:
                cursor = run.start(statement)
            except NotShort:
                cursor = yield from start_slowly(run, statement)
            before = context.work
            step = cursor.gather(None, max_rows, cut_rows)
            if step is END:
                work = context.work - before
                if work > most:
                    most, heaviest = work, cursor.plan
            else:
                if step is None:
                    _blame(cursor.plan if STEPS_BETWEEN_PAUSES - before >= most else heaviest)
                yield from _gather_rest(cursor, step, options, guard, now)
                most = 0
            if guard is not None:
                guard.check_after(cursor)
            ended = now()
            results.append(cursor.result(version, began, ended))
            began = ended
            if run.cost >= COST_BETWEEN_PAUSES and index + 1 < len(statements):
                run.cost = 0
                yield None
        if (run.deferred is not None or run.session is not None) and not request.is_step:
            yield from run.before_commit()
        request.changes = run.changes
        if request.once is not None and not run.changes:
            raise needs_a_change()
        return results
    except (QserverError, NeedsSequenceValues) as error:
        error.statement = index
        raise
    finally:
        context.release()


def _gather_rest(
    cursor: Cursor,
    step: Any,
    options: RunOptions,
    guard: AffectedGuard | None,
    now: Callable[[], float],
) -> Generator[Step, Any, None]:
    """Run a statement to its end that has yielded once."""
    while step is not END:
        if guard is not None:
            guard.check_midway(cursor)
        sent = yield from _aside(cursor, step, now)
        step = cursor.gather(sent, options.max_rows, options.cut_rows)


def run_and_undo(
    body: Body, request: Request, options: RunOptions, transaction: Transaction
) -> Generator[Step, Any, tuple[list[Result], Diff]]:
    """Do a dry run: return the results and what would change. Nothing is left to commit."""
    results = yield from body(transaction)
    context = RequestContext(request, transaction)
    try:
        diff = yield from diff_of(transaction, options, context)
    finally:
        context.release()
    transaction.forget_writes()
    return results, diff


def _aside(cursor: Cursor, step: Step, now: Callable[[], float]) -> Generator[Step, Any, Any]:
    """Let others run, or wait; note how long that was."""
    left = now()
    sent = yield step
    cursor.waited += max(0.0, now() - left)
    return sent


def _blame(heaviest: CachedPlan | None) -> None:
    """Keep the heaviest plan away from the coordinator: the statements together were not short."""
    if heaviest is not None:
        heaviest.may_yield = True


def open_reading(
    statement: PreparedStatement,
    base: Snapshot | Transaction,
    request: Request,
    context: RequestContext,
) -> Cursor:
    """Begin a statement that only reads. A transaction is for its footprint."""
    given, parameterized, plan = statement.given, statement.parameterized, statement.plan
    assert plan is not None and parameterized is not None and not plan.writes
    request.allowed.check_read()
    reader: Snapshot | Transaction | CatalogReader = base
    if plan.system_tables:
        assert isinstance(base, Snapshot)
        about = request.session, request.environment.server, request.allowed
        reader = CatalogReader(Transaction(base), context, *about)
    slots = statement.slots
    if slots is not None:
        steps = plan.compiled.run(reader, slots, context)
    elif given and is_heavy(given):
        run = partial(_run_plan, plan, reader, context)
        steps = run_heavy(plan, parameterized.literals, given, context, run)
    else:
        steps = plan.compiled.run(reader, slots_of(plan, parameterized.literals, given), context)
    return Cursor(steps, context, statement.sql, plan)


def _run_plan(plan: CachedPlan, reader: Any, context: RequestContext, slots: Any) -> StatementSteps:
    return plan.compiled.run(reader, slots, context)


def start_slowly(run: StatementRun, statement: PreparedStatement) -> Generator[Step, Any, Cursor]:
    """Begin a statement that takes long to prepare; other tasks run meanwhile."""
    planner, sql, given = run.planner, statement.sql, statement.given
    parameterized = statement.parameterized
    if parameterized is None:
        parameterized = yield from planner.parameterizing(sql, given)
        statement = PreparedStatement(sql, given, parameterized, statement.plan)
    try:
        return run.start(statement)
    except NotShort:
        catalog, snapshot = run.transaction.catalog, run.transaction.snapshot
    about = sql, parameterized, catalog, snapshot, given
    asked = Unplanned(*about, scope=run.scope, database=run.database)
    made = yield partial(planner.prepare, asked)
    return run.start(statement, made)

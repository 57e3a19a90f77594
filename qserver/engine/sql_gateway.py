"""The door for SQL: statements in, rows out.

    execute ─► lift ─► plan, kept or made ─┬─ only reads: run on the newest durable view, at once
                                           └─ writes: the body of a transaction, see `gateway`

A statement that only reads sends no message and waits for nobody, except that it gives way between
pages. One that writes, or defines, is run by `Gateway.transact`, perhaps more than once.

Whatever a statement needs from outside of its transaction (numbers of a sequence, the effect
of setval) is done here between two runs, see `drawing`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from decimal import Overflow
from functools import partial
from typing import Any, TypeAlias

import msgspec
import trio

from qserver.engine.at_once import AtOnceContext, NotAtOnce
from qserver.engine.database import Database
from qserver.engine.drawing import NeedsNumbers
from qserver.engine.gateway import Done, Outcome
from qserver.engine.giving_way import give_way
from qserver.engine.memory_pool import MemoryPool
from qserver.engine.permissions import EVERYTHING, Allowed
from qserver.engine.plan_cache import Plan, PlanCacheStatistics
from qserver.engine.planning import Planner, Prepared, locate, slots_of
from qserver.engine.request import FOREVER, Request, RequestContext, Supplies
from qserver.engine.row_stream import RowStream
from qserver.engine.slots import slots_given
from qserver.engine.statements import Started, StatementRun
from qserver.engine.system_tables import SystemReader
from qserver.engine.work import GaveWay, Step, before
from qserver.engine.world import World
from qserver.errors import ProgramLimitExceeded, QserverError
from qserver.limits import (
    ANSWER_BYTES_WHOLE,
    RETRIES_DEFAULT,
    TRANSACTION_STATEMENTS_MAX,
    VALUE_BYTES_MAX,
)
from qserver.sql.effort import NotShort
from qserver.sql.execution import STEPS_BETWEEN_PAUSES, Rows, out_of_memory
from qserver.sql.functions.numeric_math import overflow_error
from qserver.sql.lift import Lifted
from qserver.sql.parameter_steps import is_heavy
from qserver.sql.parameters import Given
from qserver.storage.transaction import Transaction
from qserver.storage.view import View
from qserver.values.types import SqlType

COST_BETWEEN_PAUSES = 128
"""What statements of a transaction may cost (see `StatementRun.cost`) before others may run."""


class Result(msgspec.Struct, frozen=True):
    """What a statement came to."""

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: Rows
    affected_rows: int
    version: int
    retries: int = 0
    truncated: bool = False
    """Were there more rows than the request wanted?"""
    held_bytes: int = 0
    """What its rows, and those of statements before it in the transaction, count for as memory."""
    exec_us: int = 0
    """Microseconds of its planning and execution, where it is one of a transaction."""


class TransactionResult(msgspec.Struct, frozen=True):
    """What the statements of a transaction came to, one after the other."""

    results: list[Result]
    version: int
    retries: int = 0


class Statement(msgspec.Struct, frozen=True):
    """One statement of a transaction, with its parameters."""

    sql: str
    parameters: Given = None
    lifted: Lifted | None = None
    plan: Plan | None = None
    """What was found for it already; it need not hold any more."""


TransactionDone: TypeAlias = Done[TransactionResult]
"""Told what became of a transaction that nobody waits for."""


class SqlDatabase:
    """A database that understands SQL. `database` runs elsewhere; this only talks to it."""

    def __init__(
        self,
        database: Database,
        world: World,
        pool: MemoryPool | None = None,
        value_bytes_most: int = VALUE_BYTES_MAX,
    ) -> None:
        self.database = database
        self.planner = Planner(compute=world.compute)
        self._supplies = Supplies(
            world.now,
            trio.current_time,
            world.chance,
            database.sequences,
            pool or MemoryPool(),
            value_bytes_most,
        )

    # --- one statement ---

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
        """Run one statement; what it changes is durable when this returns.

        More than `max_rows` rows are an error; of more than `cut_rows`, the first are given.
        """
        request = Request(self._supplies, _deadline(timeout_ms), allowed)
        view = self.database.durable_view()
        if view is None:
            view = await self.database.wait_durable_view(request.deadline)
        try:
            lifted = self.planner.lift(sql, parameters)
        except NotShort:
            lifted = await before(request.deadline, self.planner.lift_long(sql))
        plan = self.planner.find(lifted, view.catalog, view, parameters)
        if plan is None:
            plan = await self._new_plan(sql, lifted, view, request, parameters)
        if plan is not None and not plan.writes:
            allowed.check_read()
            slots = await slots_given(
                plan, lifted.literals, parameters, RequestContext(request, view)
            )
            try:
                return await self._read(plan, slots, request, view, max_rows, cut_rows)
            except QserverError as error:
                locate(error, sql)
                raise
            finally:
                if request.drawn:
                    request.give_back_unused()
        statement = Statement(sql, parameters, lifted, plan)
        body = _Body(self.planner, request, (statement,), max_rows, cut_rows)
        outcome = await self._transact(body, request, max_retries)
        (result,) = outcome.result
        return result  # type: ignore[no-any-return]

    def read_nowait(
        self, sql: str, parameters: Given = None, allowed: Allowed = EVERYTHING
    ) -> Result | None:
        """The answer of a statement that only reads, and whose kept plan gives one page at most.

        None if it takes more than that, in whatever way; then nothing has been done.
        """
        found = self.look(sql, parameters)
        return None if found is None else self.read_found(found, allowed)

    def look(self, sql: str, parameters: Given = None) -> Statement | None:
        """The statement with its kept plan, if it has one that can be run where one stands."""
        view = self.database.durable_view()
        if view is None or is_heavy(parameters):
            return None
        try:
            lifted = self.planner.lift(sql, parameters)
        except NotShort:
            return None
        plan = self.planner.look(lifted, view.catalog, parameters)
        return None if plan is None else Statement(sql, parameters, lifted, plan)

    def read_found(self, found: Statement, allowed: Allowed = EVERYTHING) -> Result | None:
        """The same as `read_nowait` for a statement that was looked up just now."""
        lifted, plan, view = found.lifted, found.plan, self.database.durable_view()
        assert lifted is not None and plan is not None and view is not None
        if plan.writes:
            return None
        allowed.check_read()
        slots = slots_of(plan, lifted.literals, found.parameters)
        context = AtOnceContext.of(Request(self._supplies, FOREVER, allowed), view)
        rows: Rows = []
        try:
            for page in plan.compiled.run(view, slots, context):
                if page is None or rows:
                    raise NotAtOnce
                rows = page
        except NotAtOnce:
            plan.takes_turns = True
            return None
        except QserverError as error:
            locate(error, found.sql)
            raise
        finally:
            context.release()
        self.planner.cache.count_use(plan)
        return Result(plan.columns, plan.types, rows, 0, view.version)

    async def _new_plan(
        self, sql: str, lifted: Lifted, view: View, request: Request, given: Given
    ) -> Plan | None:
        """A plan for a statement that can be run on a view; for any other, None."""
        planner, catalog = self.planner, view.catalog
        try:
            return planner.prepare_nowait(sql, lifted, catalog, view, given, to_read=True).plan
        except NotShort:
            preparing = planner.prepare(sql, lifted, catalog, view, given, to_read=True)
        made: Prepared = await before(request.deadline, preparing)
        return made.plan

    async def _read(
        self,
        plan: Plan,
        slots: Any,
        request: Request,
        view: View,
        max_rows: int | None,
        cut_rows: int | None,
    ) -> Result:
        while True:
            context = RequestContext(request, view)
            reader = SystemReader(Transaction(view)) if plan.system_tables else view
            rows: Rows = []
            turns = 0
            try:
                for page in plan.compiled.run(reader, slots, context):
                    turns += 1
                    if turns > 1 or page is None:  # a short answer comes at once
                        await before(request.deadline, give_way())
                    if page is None:
                        continue
                    if rows:
                        rows += page
                    else:
                        rows = page
                    if turns > 1 or max_rows is not None:
                        _check_size(context, plan.compiled.long_columns, page, rows, max_rows)
                    if cut_rows is not None and len(rows) > cut_rows:
                        break
            except NeedsNumbers as needs:
                await request.supply(needs)
                continue
            except Overflow:
                raise overflow_error() from None
            except MemoryError:
                raise out_of_memory(context.memory_bytes_most) from None
            finally:
                context.release()
            truncated = cut_rows is not None and _cut(rows, cut_rows)
            return Result(
                plan.columns,
                plan.types,
                rows,
                0,
                view.version,
                truncated=truncated,
                held_bytes=context.held,
            )

    # --- several statements ---

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        max_retries: int = RETRIES_DEFAULT,
        timeout_ms: float | None = None,
        max_rows: int | None = None,
        cut_rows: int | None = None,
        allowed: Allowed = EVERYTHING,
    ) -> TransactionResult:
        """All of them or none. An error has `statement`, the index of the one that failed."""
        if len(statements) > TRANSACTION_STATEMENTS_MAX:
            raise ProgramLimitExceeded(
                f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements"
            )
        request = Request(self._supplies, _deadline(timeout_ms), allowed)
        body = _Body(self.planner, request, tuple(statements), max_rows, cut_rows)
        outcome = await self._transact(body, request, max_retries)
        return TransactionResult(outcome.result, outcome.version, outcome.retries)

    def write_nowait(
        self, statements: Sequence[Statement], done: TransactionDone, allowed: Allowed = EVERYTHING
    ) -> bool:
        """Send statements to be run and committed; `done` is told later what became of it.

        False: it takes more than that, in whatever way; then nothing has been done.
        """
        found: list[Statement] = []
        writes = False
        for each in statements:
            statement = self.look(each.sql, each.parameters) if each.plan is None else each
            if statement is None or statement.plan is None:
                return False
            found.append(statement)
            writes = writes or statement.plan.writes
        if not writes:
            return False
        body = _ShortBody(self.planner, Request(self._supplies, FOREVER, allowed), found)
        return self.database.transact_nowait(body, done, TransactionResult)

    async def _transact(self, body: _Body, request: Request, max_retries: int) -> Outcome:
        outcome: Outcome | None = None
        try:
            while outcome is None:
                try:
                    outcome = await self.database.transact(
                        body, max_retries=max_retries, deadline=request.deadline
                    )
                except NeedsNumbers as needs:
                    await request.supply(needs)
        finally:
            if request.drawn:
                request.give_back_unused()
        version, retries = outcome.version, outcome.retries
        results = [_committed(result, version, retries) for result in outcome.result]
        return Outcome(results, version, retries)

    # --- page by page ---

    async def stream(
        self,
        sql: str,
        parameters: Given = None,
        *,
        timeout_ms: float | None = None,
        max_retries: int = RETRIES_DEFAULT,
        allowed: Allowed = EVERYTHING,
    ) -> RowStream:
        """Begin a statement and hand out its rows as they come; the first before the last is known.

        What writes is run to its end first: only then is there anything to tell.
        """
        request = Request(self._supplies, _deadline(timeout_ms), allowed)
        view = self.database.durable_view()
        if view is None:
            view = await self.database.wait_durable_view(request.deadline)
        try:
            lifted = self.planner.lift(sql, parameters)
        except NotShort:
            lifted = await before(request.deadline, self.planner.lift_long(sql))
        plan = self.planner.find(lifted, view.catalog, view, parameters)
        if plan is None:
            plan = await self._new_plan(sql, lifted, view, request, parameters)
        if plan is None or plan.writes:
            result = await self.execute(
                sql, parameters, timeout_ms=timeout_ms, max_retries=max_retries, allowed=allowed
            )
            return RowStream(
                result.columns,
                result.types,
                result.version,
                [result.rows],
                affected_rows=result.affected_rows,
            )
        allowed.check_read()
        slots = await slots_given(plan, lifted.literals, parameters, RequestContext(request, view))
        return RowStream.reading(plan, slots, request, view)

    def statistics(self) -> PlanCacheStatistics:
        return self.planner.cache.statistics()

    def __repr__(self) -> str:
        return f"SQL on {self.database!r}, with {self.planner.cache!r}"


class _Body:
    """The body of a transaction: its statements, run one after the other on whatever view."""

    def __init__(
        self,
        planner: Planner,
        request: Request,
        statements: tuple[Statement, ...],
        max_rows: int | None,
        cut_rows: int | None,
    ) -> None:
        self.planner = planner
        self.request = request
        self.statements = statements
        self.max_rows = max_rows
        self.cut_rows = cut_rows

    def __call__(self, transaction: Transaction) -> Generator[Step, Any, list[Result]]:
        run = StatementRun(self.planner, transaction, self.request)
        try:
            return (yield from self._all(run))
        finally:
            run.context.release()

    def _all(self, run: StatementRun) -> Generator[Step, Any, list[Result]]:
        results = []
        for index, statement in enumerate(self.statements):
            try:
                result = yield from self._one(run, statement)
            except Overflow:
                raise _of_statement(index, overflow_error()) from None
            except MemoryError:
                lack = out_of_memory(run.context.memory_bytes_most)
                raise _of_statement(index, lack) from None
            except (QserverError, NeedsNumbers) as error:
                error.statement = index
                if isinstance(error, QserverError):
                    locate(error, statement.sql)
                raise
            results.append(result)
            if run.cost >= COST_BETWEEN_PAUSES and index + 1 < len(self.statements):
                run.cost = 0
                yield None
        return results

    def _started(self, run: StatementRun, statement: Statement) -> Generator[Step, Any, Started]:
        sql, given = statement.sql, statement.parameters
        lifted = statement.lifted
        try:
            lifted = lifted or self.planner.lift(sql, given)
        except NotShort:
            lifted = yield partial(self.planner.lift_long, sql)
        try:
            return run.start(sql, given, lifted, statement.plan)
        except NotShort:
            catalog, view = run.transaction.catalog, run.transaction.view
            made = yield partial(self.planner.prepare, sql, lifted, catalog, view, given)
        return run.start(sql, given, lifted, prepared=made)

    def _one(self, run: StatementRun, statement: Statement) -> Generator[Step, Any, Result]:
        now = self.request.supplies.now
        began = now()
        started = yield from self._started(run, statement)
        rows: Rows = []
        steps = started.steps
        sent = None
        while True:
            try:
                page = steps.send(sent)
            except StopIteration as end:
                return Result(
                    started.columns,
                    started.types,
                    rows,
                    end.value,
                    run.transaction.view.version,
                    0,
                    self.cut_rows is not None and _cut(rows, self.cut_rows),
                    run.context.held,
                    _microseconds(now() - began),
                )
            sent = None
            if callable(page):
                sent = yield page
                continue
            if page is None or rows:  # one page is short; what has more lets others run
                yield None
            if page is not None:
                rows += page
                _check_size(run.context, started.long_columns, page, rows, self.max_rows)


class _ShortBody:
    """The same for statements whose plans are kept: run in one go, or not at all."""

    __slots__ = ("_planner", "_request", "_statements")

    def __init__(self, planner: Planner, request: Request, statements: list[Statement]) -> None:
        self._planner = planner
        self._request = request
        self._statements = statements

    def __call__(self, transaction: Transaction) -> list[Result]:
        run = StatementRun(self._planner, transaction, self._request)
        results: list[Result] = []
        rows_seen: list[int] = []
        running = self._statements[0]
        try:
            for statement in self._statements:
                running = statement
                before = run.context.work
                results.append(self._one(run, statement))
                rows_seen.append(run.context.work - before)
        except Exception as error:
            if isinstance(error, GaveWay):
                self._blame(rows_seen)
            run.context.release()
            self._request.give_back_all()
            if isinstance(error, QserverError):
                locate(error, running.sql)
            raise
        run.context.release()
        return results

    def _blame(self, rows_seen: list[int]) -> None:
        """Of what was run, and together was not short, the heaviest is not to be run so again."""
        rows_seen.append(STEPS_BETWEEN_PAUSES - sum(rows_seen))
        plan = self._statements[rows_seen.index(max(rows_seen))].plan
        assert plan is not None
        plan.takes_turns = True

    def _one(self, run: StatementRun, statement: Statement) -> Result:
        lifted, plan = statement.lifted, statement.plan
        assert lifted is not None and plan is not None
        now = self._request.supplies.now
        began = now()
        try:
            started = run.start(statement.sql, statement.parameters, lifted, plan)
        except NotShort:
            raise GaveWay from None
        rows: Rows = []
        affected = 0
        steps = started.steps
        try:
            while True:
                page = next(steps)
                if page is None or rows:
                    steps.close()
                    raise GaveWay
                rows += page
                _check_size(run.context, plan.compiled.sized_columns, page, rows, None)
                if run.context.held > ANSWER_BYTES_WHOLE:
                    steps.close()
                    raise GaveWay  # a long answer is sent in parts
        except StopIteration as end:
            affected = end.value
        self._planner.cache.count_use(plan)
        version, exec_us = run.transaction.view.version, _microseconds(now() - began)
        return Result(
            started.columns,
            started.types,
            rows,
            affected,
            version,
            held_bytes=run.context.held,
            exec_us=exec_us,
        )


def _of_statement(index: int, error: QserverError) -> QserverError:
    error.statement = index
    return error


def _committed(result: Result, version: int, retries: int) -> Result:
    """The same result at the version that its transaction has made, after so many retries."""
    return Result(
        result.columns,
        result.types,
        result.rows,
        result.affected_rows,
        version,
        retries,
        result.truncated,
        result.held_bytes,
        result.exec_us,
    )


def _microseconds(seconds: float) -> int:
    return max(0, int(seconds * 1_000_000))  # the clock may have been set back


def _check_size(
    context: RequestContext,
    long: tuple[int, ...],
    page: Rows,
    rows: Rows,
    max_rows: int | None,
) -> None:
    """A result counts as memory, and may be told not to be large."""
    context.hold_page(page, len(page[0]) if page else 0, long)
    if max_rows is not None and len(rows) > max_rows:
        raise ProgramLimitExceeded(
            f"the result has more than {max_rows} rows",
            hint="Add a LIMIT, or have the rows streamed.",
        )


def _cut(rows: Rows, cut_rows: int) -> bool:
    if len(rows) <= cut_rows:
        return False
    del rows[cut_rows:]
    return True


def _deadline(timeout_ms: float | None) -> float:
    return FOREVER if timeout_ms is None else trio.current_time() + timeout_ms / 1000

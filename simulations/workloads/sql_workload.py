"""What the workloads in SQL share: statements as a client sends them, and checks of trees.

    select ─┬─ by HTTP       to the application, as a whole or as a stream of events
            ├─ execute       on the newest durable snapshot
            ├─ begin         the same, and an answer without waiting where it is short
            ├─ stream        page by page, with pauses in which others commit
            └─ transaction   the same; without a cached plan on the newest snapshot of all, and an
                             answer when that is durable

All of them must give the same kind of answer: one version, none older than any version already
answered. A workload names the errors that a statement may end in; any other is a problem.

    write ─┬─ by HTTP                what the response says is what counts
           ├─ execute, transaction   a task waits for the end
           └─ begin                  a callback is called with the end, or with the rest of the work
                                     where that has to wait for something else

Whether a plan may yield is a hint, which decides whether a transaction is tried before its commit
is sent, or left to the coordinator. Any hint must do, so it is set at random before each statement.

At the end, and now and then before it, the trees are compared below SQL: whatever a plan would
choose to read, each index has an entry for each row and no other, and no reference leads nowhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.mailbox import Reply
from qserver.engine.work import Rest, begin, finish, when_replied
from qserver.errors import (
    CheckViolation,
    ForeignKeyViolation,
    OutcomeUnknown,
    QserverError,
    QueryCanceled,
    Unauthorized,
    UniqueViolation,
)
from qserver.query.sql_database import (
    Result,
    RunOptions,
    SqlDatabase,
    Statement,
    TransactionResult,
)
from qserver.storage.transaction import Transaction
from qserver.values.schema import Index, Table
from simulations.faults import Profile
from simulations.inspection import reference_problems
from simulations.service import Service
from simulations.web.client import SqlClient
from simulations.web.front import Front
from simulations.workloads.workload import Workload

PAUSE = Statement("SELECT count(*) FROM generate_series(1, 3000)")
"""A statement that yields, so that the transaction around it is a long one."""

BY_HTTP: Final = 0.6
"""How often a request goes to the application; otherwise it goes straight to the engine."""

BEGUN_AT_ONCE: Final = 0.5
"""How often a write is begun without a task that waits for its end."""

TRIED: Final = 0.8
"""How often a write is tried before its commit is sent."""

IMPATIENT: Final = 0.1
"""How often a write has a deadline."""

REFUSALS: Final[dict[type[QserverError], str]] = {
    UniqueViolation: "a unique key was refused",
    ForeignKeyViolation: "a foreign key was refused",
    CheckViolation: "a check was refused",
    QueryCanceled: "a statement ran into its deadline",
}


class SqlWorkload(Workload):
    """`setup` makes `tables`; `check_rows` checks the end state in SQL."""

    tables: ClassVar[tuple[str, ...]]

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self.http = SqlClient(self.chance, profile.delay_seconds)

    async def setup(self, service: Service) -> None:
        for statement in self.tables:
            await self.must(service, statement)

    @abstractmethod
    async def check_rows(self, service: Service) -> None:
        """Check the end state, and add what is wrong to `problems`."""

    async def check(self, service: Service) -> None:
        await self.compare_trees(service)
        await self.check_rows(service)

    async def compare_trees(self, service: Service) -> None:
        await self.complain(service, tree_problems)

    async def complain(self, service: Service, work: Callable[[Transaction], list[str]]) -> None:
        """Check below SQL: `work` returns what is wrong."""
        try:
            outcome = await service.read(work)
        except QserverError as error:
            self._judge_error(service, error, ())
        else:
            self.problems += outcome.result

    # --- statements that change something ---

    async def execute(
        self,
        service: Service,
        sql: str,
        *parameters: Any,
        number: int | None = None,
        may: tuple[type[QserverError], ...] = (),
    ) -> Result | QserverError:
        """Run one statement, and note it in the book; return its result or error."""
        statement = Statement(sql, list(parameters))
        done = await self._send_statements(service, [statement], number, may, single=True)
        return done.results[0] if isinstance(done, TransactionResult) else done

    async def together(
        self,
        service: Service,
        statements: Sequence[Statement],
        *,
        number: int | None = None,
        may: tuple[type[QserverError], ...] = (),
    ) -> TransactionResult | QserverError:
        """Run several statements in one transaction."""
        return await self._send_statements(service, statements, number, may, single=False)

    async def _send_statements(
        self,
        service: Service,
        statements: Sequence[Statement],
        number: int | None,
        may: tuple[type[QserverError], ...],
        *,
        single: bool,
    ) -> TransactionResult | QserverError:
        """Send statements, by HTTP or straight to the engine."""
        timeout_ms = self._timeout(service)
        options = RunOptions(self.profile.max_retries, timeout_ms)
        at_once = self.chance.random() < BEGUN_AT_ONCE

        async def send(database: SqlDatabase) -> Outcome:
            result = await self._write(service, database, statements, options, at_once)
            return Outcome(result, result.version, result.retries)

        async def post(front: Front) -> Outcome:
            self._hint(front.sql)
            result = await self.http.write(front, statements, options, single=single)
            return Outcome(result, result.version, result.retries)

        may = may if timeout_ms is None else (*may, QueryCanceled)
        by_http = self.chance.random() < BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        return await self._sent(asked, service, number, may)  # type: ignore[no-any-return]

    def _timeout(self, service: Service) -> float | None:
        """Return a short timeout for some clients, while faults strike."""
        if not service.world.faults.on or self.chance.random() >= IMPATIENT:
            return None
        return self.chance.uniform(0.0, 100.0)

    async def _write(
        self,
        service: Service,
        database: SqlDatabase,
        statements: Sequence[Statement],
        options: RunOptions,
        at_once: bool,
    ) -> TransactionResult:
        """Write by a task that waits for the end, or by a callback."""
        self._hint(database)
        if at_once:
            return await self._begin(service, database, statements, options)
        return await database.transaction(
            statements, max_retries=options.max_retries, timeout_ms=options.timeout_ms
        )

    def _hint(self, database: SqlDatabase, tried: float = TRIED) -> None:
        """Mark all plans as short, or none."""
        may_yield = self.chance.random() < tried
        for kept in database.planner.cache._fingerprints.values():
            for plan in kept.plans.values():
                plan.may_yield = may_yield

    async def _begin(
        self,
        service: Service,
        database: SqlDatabase,
        statements: Sequence[Statement],
        options: RunOptions,
    ) -> TransactionResult:
        """Begin the statements without waiting, and wait here for the callback."""
        world = service.world
        ended = trio.Event()
        outcomes: list[TransactionResult | Exception | Rest] = []
        left = False

        def done(outcome: TransactionResult | Exception | Rest) -> None:
            self.expect(not outcomes, f"told of one end twice: {outcomes}, {outcome!r}")
            if left and isinstance(outcome, Rest):
                outcome.close()
            outcomes.append(outcome)
            ended.set()

        result, rest = begin(database.perform(statements, options))
        if rest is None:
            return result  # type: ignore[no-any-return]
        if not when_replied(rest, done):
            return await finish(rest)  # type: ignore[no-any-return]
        self.expect(not outcomes, f"told of the end before it was begun: {outcomes}")
        world.reach("a transaction was begun without waiting")
        try:
            await ended.wait()
        finally:
            left = True
        outcome = outcomes[0]
        if isinstance(outcome, Rest):
            world.reach("a transaction begun without waiting had to wait after all")
            return await finish(outcome)  # type: ignore[no-any-return]
        if isinstance(outcome, OutcomeUnknown):
            world.reach("the outcome of a transaction begun without waiting was unknown")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def must(self, service: Service, sql: str, *parameters: Any) -> Result:
        """Run a statement at a time when nothing goes wrong."""
        result = await self.execute(service, sql, *parameters)
        assert isinstance(result, Result), result
        return result

    async def _sent(
        self,
        asked: Coroutine[Any, Any, Outcome],
        service: Service,
        number: int | None,
        may: tuple[type[QserverError], ...],
    ) -> Any:
        try:
            outcome = await asked
        except QserverError as error:
            self._judge_error(service, error, may)
            if number is not None:
                self.book.note(number, error)
            return error
        if number is not None:
            self.book.note(number, None)
        return outcome.result

    def _judge_error(
        self, service: Service, error: QserverError, may: tuple[type[QserverError], ...]
    ) -> None:
        if isinstance(error, may):
            point = REFUSALS.get(type(error))
            if point is not None:
                service.world.reach(point)
        elif not service.world.explains(error):
            self.problems.append(f"an error that nothing explains: {error!r}")

    # --- statements that only read ---

    async def select(self, service: Service, sql: str, *parameters: Any) -> Result | None:
        """Read in one of the ways there are; None on an error."""
        way = self.chance.choice((_execute, _begin_reading, self._stream, _transaction))

        async def send(database: SqlDatabase) -> Outcome:
            result = await way(service, database, sql, list(parameters))
            return Outcome(result, result.version)

        async def post(front: Front) -> Outcome:
            done = await self.http.read(front, Statement(sql, list(parameters)))
            return Outcome(done.results[0], done.version, done.retries)

        by_http = self.chance.random() < BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        result = await self._sent(asked, service, None, (Unauthorized,))
        return result if isinstance(result, Result) else None

    async def _stream(
        self, service: Service, database: SqlDatabase, sql: str, parameters: list[Any]
    ) -> Result:
        stream = await database.stream(sql, parameters)
        rows: list[Any] = []
        async with aclosing(stream):  # also if the client is gone
            async for page in stream:
                rows += page
                await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 10)
        snapshot = database.database.snapshots.take()
        if snapshot is not None and snapshot.version > stream.version and len(rows) > 1:
            service.world.reach("a stream went on while others committed")
        return Result(stream.columns, stream.types, rows, 0, stream.version)


async def _execute(_: Service, database: SqlDatabase, sql: str, parameters: list[Any]) -> Result:
    return await database.execute(sql, parameters)


async def _begin_reading(
    service: Service, database: SqlDatabase, sql: str, parameters: list[Any]
) -> Result:
    result, rest = begin(database.perform((Statement(sql, parameters),), RunOptions()))
    if rest is None:
        service.world.reach("a statement was answered without waiting")
    else:
        assert not isinstance(rest.step, Reply), "who only reads sends no commit"
        result = await finish(rest)
    return result.results[0]  # type: ignore[no-any-return]


async def _transaction(
    _: Service, database: SqlDatabase, sql: str, parameters: list[Any]
) -> Result:
    done = await database.transaction([Statement(sql, parameters)])
    return done.results[0]


# --- below SQL -----------------------------------------------------------------------------------


def tree_problems(transaction: Transaction) -> list[str]:
    """Return rows under wrong keys, indexes that disagree with rows, and orphans."""
    problems = []
    for _, table in sorted(transaction.snapshot.catalog.tables.items()):
        rows = []
        for keys, values in transaction.scan(table.id):
            rows += values
            if keys != [table.key_of(row) for row in values]:
                problems.append(f"rows of {table.name} under other keys: {keys}, {values}")
        for index in table.indexes:
            problems += _index_problems(transaction, table, index, rows)
        for key in table.foreign_keys:
            problems += reference_problems(transaction.snapshot, table, key)
    return problems


def _index_problems(
    transaction: Transaction, table: Table, index: Index, rows: list[Any]
) -> list[str]:
    expected = dict(table.entries(index, row) for row in rows)
    found: dict[Any, Any] = {}
    for keys, values in transaction.scan(index.id):
        found.update(zip(keys, values, strict=True))
    if found != expected:
        return [f"index {index.name} says {found}, the rows {expected}"]
    if len(expected) != len(rows):
        return [f"two rows share an entry of index {index.name}: {rows}"]
    return []

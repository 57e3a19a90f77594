"""Requests that are begun, with a callback for their end, and a database to try that on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.engine.work import PENDING
from qserver.errors import QserverError
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.query.plan_cache import Plan
from qserver.query.sql_database import (
    Options,
    SqlDatabase,
    Statement,
    TransactionResult,
    Waiting,
)
from qserver.sql.parameters import Given
from tests.engine.fakes import HeldLog, Laboratory, opened

TABLES = (
    "CREATE TABLE parents (id INT PRIMARY KEY, name TEXT UNIQUE)",
    """CREATE TABLE t (id SERIAL PRIMARY KEY, a TEXT DEFAULT 'none', n INT NOT NULL DEFAULT 7
        CHECK (n >= 0), parent INT REFERENCES parents, at TIMESTAMPTZ DEFAULT now(), x NUMERIC)""",
    "CREATE TABLE wards (id INT PRIMARY KEY, parent INT REFERENCES parents ON DELETE CASCADE)",
    "CREATE TABLE counters (id INT PRIMARY KEY, hits INT NOT NULL)",
    "INSERT INTO parents SELECT i, 'parent ' || i FROM generate_series(0, 29) AS s(i)",
    "INSERT INTO wards SELECT i, i % 30 FROM generate_series(0, 59) AS s(i)",
    "INSERT INTO t (a, n, parent) SELECT 'row ' || i, i, i FROM generate_series(0, 19) AS s(i)",
    "INSERT INTO counters VALUES (0, 0), (1, 10)",
)

INCREMENT = "UPDATE counters SET hits = hits + 1 WHERE id = $1 RETURNING hits"
SERIAL = "INSERT INTO t (n) VALUES ($1) RETURNING id"


class Ends:
    """What a callback was called with; to be called twice fails the test."""

    def __init__(self) -> None:
        self.told: list[TransactionResult | Exception | Waiting] = []
        self._event = trio.Event()

    def __call__(self, outcome: TransactionResult | Exception | Waiting) -> None:
        self.told.append(outcome)
        self._event.set()

    async def wait(self) -> TransactionResult | Exception | Waiting:
        await self._event.wait()
        await wait_all_tasks_blocked()
        return self.outcome

    async def result(self) -> TransactionResult:
        """What it came to, also where it had to wait."""
        outcome = await self.wait()
        if isinstance(outcome, Coroutine):
            return await outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def outcome(self) -> TransactionResult | Exception | Waiting:
        (outcome,) = self.told
        return outcome


async def filled(database: SqlDatabase) -> None:
    for sql in TABLES:
        await database.execute(sql)


async def known(database: SqlDatabase, sql: str, given: Given = None) -> None:
    """Let the plan of a statement be kept."""
    try:
        await database.execute(sql, given)
    except QserverError as error:
        assert error.code.startswith("23"), error


def send(
    database: SqlDatabase, statements: Sequence[Statement], allowed: Allowed = EVERYTHING
) -> Ends:
    """A request that is begun without a task. What ends or waits there is told as well."""
    ends = Ends()
    begun: Any
    try:
        begun = database.begin(statements, Options(allowed=allowed), ends)
    except QserverError as error:
        begun = error
    assert ends.told == [], "nobody is told before the caller goes on"
    if begun is not PENDING:
        ends(begun)
    return ends


def begin(database: SqlDatabase, sql: str, given: Given = None) -> Ends:
    return send(database, [Statement(sql, given)])


async def ended(
    database: SqlDatabase, statements: Sequence[Statement], allowed: Allowed = EVERYTHING
) -> TransactionResult:
    """What a request that is begun comes to, however that is told."""
    ends = Ends()
    begun = database.begin(statements, Options(allowed=allowed), ends)
    if begun is PENDING:
        return await ends.result()
    assert ends.told == []
    return await begun if isinstance(begun, Coroutine) else begun


async def hits(database: SqlDatabase, counter: int = 0) -> int:
    result = await database.execute("SELECT hits FROM counters WHERE id = $1", [counter])
    return result.rows[0][0]  # type: ignore[no-any-return]


def plan_of(database: SqlDatabase, sql: str) -> Plan:
    """The plan that is kept for a text without pinned literals."""
    parameterized = database.planner.parameterize(sql, None)
    kept = database.planner.cache._fingerprints[parameterized.fingerprint, parameterized.kinds]
    (plan,) = kept.plans.values()
    return plan


def count_runs(plan: Plan) -> list[None]:
    """Grows by one whenever the plan is run."""
    runs: list[None] = []
    run = plan.compiled.run

    def counted(*arguments: Any) -> Generator[Any, Any, int]:
        runs.append(None)
        return run(*arguments)

    plan.compiled = replace(plan.compiled, run=counted)
    return runs


def plain(result: TransactionResult) -> TransactionResult:
    """The result without what it took."""
    results = [msgspec.structs.replace(each, seconds=0.0) for each in result.results]
    return msgspec.structs.replace(result, results=results)


async def outcome_of(
    database: SqlDatabase, statements: Sequence[Statement]
) -> TransactionResult | str:
    try:
        return plain(await ended(database, statements))
    except QserverError as error:
        return repr(error)


@asynccontextmanager
async def in_laboratory() -> AsyncIterator[tuple[SqlDatabase, Laboratory, HeldLog]]:
    world, log = Laboratory(), HeldLog()
    world.capacities["coordinator"] = 2
    async with opened(log, world) as database:
        sql = SqlDatabase(database, world)
        await filled(sql)
        yield sql, world, log

"""Requests that are begun, with a callback for their end, and a database to try that on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.engine import work
from qserver.engine.work import Rest, finish, when_replied
from qserver.errors import QserverError
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.query.plan_cache import CachedPlan
from qserver.query.sql_database import (
    RunOptions,
    SqlDatabase,
    Statement,
    TransactionResult,
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
        self.told: list[TransactionResult | Exception | Rest] = []
        self._event = trio.Event()

    def __call__(self, outcome: TransactionResult | Exception | Rest) -> None:
        self.told.append(outcome)
        self._event.set()

    async def wait(self) -> TransactionResult | Exception | Rest:
        await self._event.wait()
        await wait_all_tasks_blocked()
        return self.outcome

    async def result(self) -> TransactionResult:
        """What it came to, also where it had to wait."""
        outcome = await self.wait()
        if isinstance(outcome, Rest):
            return await finish(outcome)  # type: ignore[no-any-return]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def outcome(self) -> TransactionResult | Exception | Rest:
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
    begun: TransactionResult | Exception | Rest | None
    try:
        begun = begin_nowait(database, statements, RunOptions(allowed=allowed), ends)
    except QserverError as error:
        begun = error
    assert ends.told == [], "nobody is told before the caller goes on"
    if begun is not None:
        ends(begun)
    return ends


def begin_nowait(
    database: SqlDatabase, statements: Sequence[Statement], options: RunOptions, ends: Ends
) -> TransactionResult | Rest | None:
    """The result, or the rest that a task has to wait for; None if `ends` is told of the end."""
    result, rest = work.begin(database.perform(statements, options))
    if rest is None:
        return result  # type: ignore[no-any-return]
    return None if when_replied(rest, ends) else rest


def begin(database: SqlDatabase, sql: str, given: Given = None) -> Ends:
    return send(database, [Statement(sql, given)])


async def ended(
    database: SqlDatabase, statements: Sequence[Statement], allowed: Allowed = EVERYTHING
) -> TransactionResult:
    """What a request that is begun comes to, however that is told."""
    return await send(database, statements, allowed).result()


async def hits(database: SqlDatabase, counter: int = 0) -> int:
    result = await database.execute("SELECT hits FROM counters WHERE id = $1", [counter])
    return result.rows[0][0]  # type: ignore[no-any-return]


def plan_of(database: SqlDatabase, sql: str) -> CachedPlan:
    """The plan that is kept for a text without pinned literals."""
    parameterized = database.planner.parameterize(sql, None)
    kept = database.planner.cache._fingerprints[parameterized.fingerprint, parameterized.kinds]
    (plan,) = kept.plans.values()
    return plan


def count_runs(plan: CachedPlan) -> list[None]:
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

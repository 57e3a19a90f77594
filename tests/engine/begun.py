"""Transactions that are begun without waiting, and a database on which that can be tried."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.engine.permissions import EVERYTHING, Allowed
from qserver.engine.sql_gateway import SqlDatabase, Statement, TransactionResult
from qserver.errors import QserverError
from qserver.sql.parameters import Given
from tests.engine.fakes import HeldLog, Laboratory, opened

USES_UNTIL_KNOWN = 9
"""Whether a plan suits is looked at often while it is young; then for some uses it is not."""

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
    """What was told of the end of one transaction; to be told twice fails the test."""

    def __init__(self) -> None:
        self.told: list[TransactionResult | Exception | None] = []
        self._event = trio.Event()

    def __call__(self, outcome: TransactionResult | Exception | None) -> None:
        self.told.append(outcome)
        self._event.set()

    async def wait(self) -> TransactionResult | Exception | None:
        await self._event.wait()
        await wait_all_tasks_blocked()
        return self.outcome

    @property
    def outcome(self) -> TransactionResult | Exception | None:
        (outcome,) = self.told
        return outcome


async def filled(database: SqlDatabase) -> None:
    for sql in TABLES:
        await database.execute(sql)


async def known(database: SqlDatabase, sql: str, *givens: Given) -> None:
    """Let the plan of a statement be kept, and not be looked at for some time."""
    for at in range(USES_UNTIL_KNOWN):
        try:
            await database.execute(sql, givens[at % len(givens)] if givens else None)
        except QserverError as error:
            assert error.code.startswith("23"), error


def begin(database: SqlDatabase, sql: str, given: Given = None) -> Ends:
    """One statement that must be taken on."""
    ends = Ends()
    assert database.write_nowait([Statement(sql, given)], ends)
    assert ends.told == [], "nobody is told before the caller goes on"
    return ends


async def hits(database: SqlDatabase, counter: int = 0) -> int:
    result = await database.execute("SELECT hits FROM counters WHERE id = $1", [counter])
    return result.rows[0][0]  # type: ignore[no-any-return]


def footprint(database: SqlDatabase) -> tuple[Any, ...]:
    """Whatever a transaction could have changed, or the sending of it."""
    return database.database.statistics(), database.statistics(), *remains(database)


def remains(database: SqlDatabase) -> tuple[Any, ...]:
    """Whatever a transaction could have changed: data, numbers of sequences, what is counted.

    But a use of a plan counts when it has been run, whatever becomes of the transaction.
    """
    view = database.database.durable_view()
    in_hand = in_hand_of(database)
    statistics = database.database.statistics()
    assert statistics.incarnation is not None
    commits = statistics.incarnation.coordinator.commits
    plans = msgspec.structs.replace(database.statistics(), hits=0)
    return view, commits, statistics.gateway, plans, in_hand


def in_hand_of(database: SqlDatabase) -> dict[int, tuple[int, int]]:
    """The next number of each sequence that is in hand, and how many there are."""
    hands = database.database.sequences._hands
    return {
        number: (hand._next if hand._left else hand._more[0].start, hand.length)
        for number, hand in hands.items()
        if hand.length
    }


async def refused(database: SqlDatabase, statements: Sequence[Statement]) -> None:
    """It is not taken on, and nothing is done."""
    ends = Ends()
    before = footprint(database)
    assert database.write_nowait(statements, ends) is False
    assert footprint(database) == before
    await wait_all_tasks_blocked()
    assert footprint(database) == before
    assert ends.told == []


async def came_to_nothing(
    database: SqlDatabase, statements: Sequence[Statement], allowed: Allowed = EVERYTHING
) -> None:
    """It is taken on, told None, and nothing is left of it."""
    ends = Ends()
    before = remains(database)
    assert database.write_nowait(statements, ends, allowed)
    assert remains(database) == before, "nothing is run where it is begun"
    assert await ends.wait() is None
    assert remains(database) == before


def shape_of(database: SqlDatabase, sql: str) -> Any:
    lifted = database.planner.lift(sql, None)
    return lifted.shape, lifted.kinds


def plain(result: TransactionResult) -> TransactionResult:
    """Every result with what holds for all, and without what it took."""
    return msgspec.structs.replace(
        result,
        results=[
            msgspec.structs.replace(
                each, version=result.version, retries=result.retries, exec_us=0, held_bytes=0
            )
            for each in result.results
        ],
    )


async def by_any_way(
    database: SqlDatabase, statements: list[Statement]
) -> tuple[TransactionResult | str, bool]:
    """What comes of it, without waiting if that is possible; and whether it was."""
    ends = Ends()
    if database.write_nowait(statements, ends):
        outcome = await ends.wait()
        if outcome is not None:
            assert isinstance(outcome, TransactionResult)
            return plain(outcome), True
    return await by_transaction(database, statements), False


async def by_transaction(
    database: SqlDatabase, statements: list[Statement]
) -> TransactionResult | str:
    try:
        return plain(await database.transaction(statements))
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

"""Vector trees answer as row code does wherever a query may stand: cursors, views, own changes, the
past, other values of its parameters; and what they read is validated as what row code reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from qserver.engine.work import run
from qserver.errors import OutOfMemory, QserverError, QueryCanceled, SerializationFailure
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from tests.query.connections import Connection
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.test_execution import begun
from tests.sql.vectors.test_own_changes import change
from tests.sql.vectors.test_trees import answer, by_rows, filled, trees_everywhere
from tests.sql.vectors.tree_queries import TreeWriter

QUERIES = 8


class Asked:
    """A query with its parameters, and changes that come before or beside it."""

    def __init__(self, writer: TreeWriter) -> None:
        chance = writer.chance
        self.sql = writer.tree()
        self.parameters: list[Any] = list(writer.parameters)
        self.changes = [
            change(chance, writer, rows)
            .replace(" t ", f" {table} ")
            .replace("INTO t", f"INTO {table}")
            for table, rows in (("t", 150), ("u", 60), ("w", 15))
        ]
        self.chance = chance.randrange(2**30)
        self.past: int | None = None


Context = Callable[[SqlDatabase, Asked], Awaitable[str]]


def in_any_order(rows: list[Any]) -> str:
    return repr(sorted(map(repr, rows)))


async def after_own_changes(database: SqlDatabase, asked: Asked) -> str:
    connection = Connection(database)
    await connection.run("BEGIN")
    try:
        for each in asked.changes:
            await connection.run(each)
        return in_any_order((await connection.run(asked.sql, asked.parameters)).rows)
    finally:
        await connection.run("ROLLBACK")


async def by_a_cursor(database: SqlDatabase, asked: Asked) -> str:
    """What others write between two FETCHes is not in it."""
    connection, found = Connection(database), []
    await connection.run("BEGIN")
    try:
        declare = f"DECLARE c SCROLL CURSOR FOR {asked.sql}"
        await connection.run(declare, asked.parameters)
        found += (await connection.run("FETCH 2 FROM c")).rows
        await connection.run("INSERT INTO w (id, i4) SELECT max(id) + 1, 5 FROM w")
        await connection.run("UPDATE t SET i4 = 1, i2 = 1, tx = 'other'")
        found += (await connection.run("FETCH ALL FROM c")).rows
        again = [*(await connection.run("FETCH ABSOLUTE 0 FROM c")).rows]
        again += (await connection.run("FETCH ALL FROM c")).rows
        assert again == found
        return in_any_order(found)
    finally:
        await connection.run("ROLLBACK")


async def as_of_the_past(database: SqlDatabase, asked: Asked) -> str:
    """At the version before the changes, which the first call makes."""
    if asked.past is None:
        asked.past = (await database.execute("SELECT 1")).version
        for each in asked.changes:
            await answer(database, each)
    statement = Statement(asked.sql, asked.parameters)
    done = await run(database.perform((statement,), RunOptions(as_of=asked.past)))
    return in_any_order(done.results[0].rows)


async def streamed(database: SqlDatabase, asked: Asked) -> str:
    stream = await database.stream(asked.sql, asked.parameters)
    return in_any_order([row async for page in stream for row in page])


async def in_a_view(database: SqlDatabase, asked: Asked) -> str:
    if asked.parameters:
        return in_any_order((await database.execute(asked.sql, asked.parameters)).rows)
    width = len((await database.execute(asked.sql)).columns)
    names = ", ".join([f"c{at}" for at in range(width)])
    await database.execute(f"CREATE VIEW v ({names}) AS {asked.sql}")
    try:
        counted = await database.execute("SELECT count(*), count(DISTINCT c0) FROM v")
        rows = (await database.execute("SELECT * FROM v")).rows
        assert counted.rows[0][0] == len(rows)
        return in_any_order([*counted.rows, *rows])
    finally:
        await database.execute("DROP VIEW v")


async def with_other_parameters(database: SqlDatabase, asked: Asked) -> str:
    chance, found = Random(asked.chance), []
    for _ in range(3):
        given = list(asked.parameters)
        found.append(await answer(database, asked.sql, given))
        for at, value in enumerate(given):
            other = value + 1 if type(value) is int and abs(value) < 1000 else value
            given[at] = chance.choice((None, value, other))
        found.append(await answer(database, asked.sql, given))
    return repr(found)


CONTEXTS = (
    *(after_own_changes, by_a_cursor, as_of_the_past, streamed, in_a_view, with_other_parameters),
)


async def outcome(context: Context, database: SqlDatabase, asked: Asked) -> str:
    try:
        return await context(database, asked)
    except QserverError as error:
        return f"error {error.code}"


@asynccontextmanager
async def tables(seed: int) -> AsyncIterator[tuple[SqlDatabase, TreeWriter]]:
    writer = TreeWriter(Random(seed))
    writer.extremes = 0.0
    async with opened_sql() as database:
        database.database.keep_history(3600.0)
        await filled(database, writer)
        yield database, writer


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(12), 2))
@pytest.mark.parametrize("context", CONTEXTS)
async def test_a_tree_answers_as_row_code_does(context: Context, seed: int) -> None:
    with trees_everywhere() as counts:
        async with tables(seed) as (database, writer):
            for _ in range(QUERIES):
                asked = Asked(writer)
                by_tree = await outcome(context, database, asked)
                expected = await outcome(context, by_rows(database), asked)
                assert by_tree == expected, (asked.sql, asked.parameters, asked.changes)
    assert counts["answered"]


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(12), 2))
async def test_what_a_tree_has_read_is_validated(seed: int) -> None:
    """Two transactions read by a tree and write. If both commit, the second one has not seen less
    than it would have after the first."""
    commits = conflicts = 0
    with trees_everywhere() as counts:
        async with tables(seed) as (database, writer):
            for _ in range(2 * QUERIES):
                first, second = Asked(writer), Asked(writer)
                one, other = Connection(database), Connection(database)
                await one.run("BEGIN")
                await other.run("BEGIN")
                try:
                    await one.run(first.sql, first.parameters)
                    seen = in_any_order((await other.run(second.sql, second.parameters)).rows)
                    await one.run(writer.chance.choice(first.changes))
                    await other.run(writer.chance.choice(second.changes))
                    assert other.transaction is not None
                    if not other.transaction.transaction.changes_anything:
                        continue  # it is as of its snapshot
                    await one.run("COMMIT")
                except QserverError:
                    await one.run("ROLLBACK")
                    await other.run("ROLLBACK")
                    continue
                between = (await database.execute("SELECT 1")).version
                try:
                    await other.run("COMMIT")
                except SerializationFailure:
                    conflicts += 1
                    continue
                commits += 1
                rows = by_rows(database)
                statement = Statement(second.sql, second.parameters)
                done = await run(rows.perform((statement,), RunOptions(as_of=between)))
                assert in_any_order(done.results[0].rows) == seen, (second.sql, first.changes)
    assert commits and conflicts and counts["answered"]


SKEW = (
    "SELECT count(*) FROM doctors d JOIN shifts s ON d.shift = s.id"
    " WHERE s.name = 'night' AND d.here"
)


@pytest.mark.parametrize("way", ["tree", "rows"])
async def test_write_skew_over_a_join_is_refused(way: str) -> None:
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await database.execute("CREATE TABLE shifts (id INT PRIMARY KEY, name TEXT)")
            await database.execute(
                "CREATE TABLE doctors (id INT PRIMARY KEY, shift INT, here BOOLEAN NOT NULL)"
            )
            await database.execute("INSERT INTO shifts VALUES (1, 'day'), (2, 'night')")
            await database.execute(
                "INSERT INTO doctors SELECT n, 1 + n % 2, n < 5 FROM generate_series(1, 300) n"
            )
            used = database if way == "tree" else by_rows(database)
            one, other = Connection(used), Connection(used)
            for connection, doctor in ((one, 1), (other, 3)):
                await connection.run("BEGIN")
                assert (await connection.run(SKEW)).rows == [(2,)]
                await connection.run(f"UPDATE doctors SET here = false WHERE id = {doctor}")
            await one.run("COMMIT")
            with pytest.raises(SerializationFailure):
                await other.run("COMMIT")
            unread = Connection(used)  # what the conditions leave out is no conflict
            await unread.run("BEGIN")
            assert (await unread.run(SKEW)).rows == [(1,)]
            await unread.run("UPDATE shifts SET name = 'noon' WHERE id = 1")
            await database.execute("UPDATE shifts SET name = 'early' WHERE name = 'evening'")
            await database.execute("INSERT INTO doctors VALUES (1000, 2, false)")
            await unread.run("COMMIT")
    assert counts["answered"] == (3 if way == "tree" else 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(6), 1))
async def test_a_tree_ends_at_any_of_its_steps_and_holds_nothing(seed: int) -> None:
    """At a deadline or a cancellation, which a check raises, and where memory ends."""
    ended = 0
    with trees_everywhere():
        async with tables(seed) as (database, writer):
            pool = database._environment.pool
            assert pool is not None
            for _ in range(4):
                asked = writer.tree()
                if writer.parameters:
                    continue
                expected = await answer(by_rows(database), asked)
                for at in (1, 2, 3, 5, 8, 13):
                    ended += stopped(database, asked, at)
                    await wait_all_tasks_blocked()  # large lists are freed by a task
                    assert pool.held == 0
                for bytes_most in (1_000, 20_000, 60_000, 200_000):
                    found = within(database, asked, bytes_most)
                    assert found in (None, expected)
                    await wait_all_tasks_blocked()
                    assert pool.held == 0
    assert ended


def stopped(database: SqlDatabase, sql: str, at: int) -> bool:
    """Run a statement until its check is asked for the so-manieth time."""
    _, statement, steps = begun(database, sql)
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == at:
            raise QueryCanceled("enough")

    context = statement.context
    vars(context)["check"] = check
    try:
        for _ in steps:
            context.work += 2000
    except QueryCanceled:
        return True
    finally:
        context.release()
    return False


def within(database: SqlDatabase, sql: str, bytes_most: int) -> str | None:
    _, statement, steps = begun(database, sql)
    statement.context.memory_bytes_most = bytes_most
    try:
        return in_any_order([row for page in steps if page for row in page])
    except OutOfMemory:
        return None
    except QserverError as error:
        return f"error {error.code}: {error.message}"
    finally:
        statement.context.release()

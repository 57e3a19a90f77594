"""Transactions that stay open, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from qserver.engine.work import run
from qserver.errors import (
    FailedTransaction,
    OutOfMemory,
    ProgramLimitExceeded,
    SerializationFailure,
)
from qserver.query import open_transaction as module
from qserver.query.open_transaction import OpenTransaction
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.storage.conflict import Conflict
from tests.sql.databases import opened_sql


@asynccontextmanager
async def with_rows(rows: int = 3) -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)")
        await database.execute(
            f"INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, {rows}) n"
        )
        yield database


async def do(database: SqlDatabase, transaction: OpenTransaction, *sql: str) -> list[object]:
    outcome = await database.inside(transaction, [Statement(each) for each in sql], RunOptions())
    return [row[0] for row in outcome.results[-1].rows]


def conflict_of(error: SerializationFailure) -> Conflict:
    assert isinstance(error.conflict, Conflict)
    return error.conflict


async def test_thousands_open_hold_nothing_back_and_cost_little() -> None:
    async with with_rows() as database:
        many = [await database.open() for _ in range(2000)]
        for at, transaction in enumerate(many):
            assert transaction.bytes < 1000
            if at % 500 == 0:
                assert await do(database, transaction, "SELECT count(*) FROM t") == [3]
        await database.execute("INSERT INTO t VALUES (4, 'four')")
        assert await do(database, many[7], "SELECT count(*) FROM t") == [3]
        for transaction in many:
            transaction.release()


async def test_one_that_grows_too_large_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_TRANSACTION_BYTES_MAX", 100_000)
    async with with_rows() as database:
        pool = database._environment.pool
        assert pool is not None
        transaction = await database.open()
        await do(database, transaction, "INSERT INTO t SELECT n FROM generate_series(10, 200) n")
        assert 30_000 < transaction.bytes < 100_000
        assert pool.held == transaction.bytes
        with pytest.raises(OutOfMemory, match="rolled back"):
            await do(
                database, transaction, "INSERT INTO t SELECT n FROM generate_series(1000, 2000) n"
            )
        assert transaction.is_over
        transaction.release()
        assert pool.held == 0


async def test_reading_counts_as_memory_and_a_rollback_gives_back_what_was_written() -> None:
    async with with_rows(rows=5000) as database:
        transaction = await database.open()
        await do(database, transaction, "SAVEPOINT a")
        start = transaction.bytes
        await do(database, transaction, "UPDATE t SET a = 'x' WHERE id <= 2000")
        written = transaction.bytes
        assert written - start > 2000 * 200
        await do(database, transaction, "ROLLBACK TO a")
        assert start < transaction.bytes < written
        transaction.release()


async def test_there_are_only_so_many_savepoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.query.savepoints.SAVEPOINTS_MAX", 3)
    async with with_rows() as database:
        transaction = await database.open()
        for _ in range(3):
            await do(database, transaction, "SAVEPOINT a")
        with pytest.raises(ProgramLimitExceeded):
            await do(database, transaction, "SAVEPOINT a")
        with pytest.raises(FailedTransaction):
            await do(database, transaction, "SELECT 1")
        transaction.release()


async def test_values_of_sequences_are_drawn_once_however_often_a_step_runs() -> None:
    async with with_rows() as database:
        await database.execute("CREATE TABLE s (id SERIAL PRIMARY KEY, n INT)")
        one, other = await database.open(), await database.open()
        insert = "INSERT INTO s (n) SELECT n FROM generate_series(1, 300) n RETURNING id"
        first = await do(database, one, "SELECT 1", insert)
        second = await do(database, other, insert)
        third = await do(database, one, "INSERT INTO s (n) VALUES (0) RETURNING id")
        ids = [*first, *second, *third]
        assert len(set(ids)) == len(ids) == 601
        for transaction in (one, other):
            await run(database.committing(transaction, RunOptions()))
        assert (await database.execute("SELECT count(*) FROM s")).rows == [(601,)]


async def test_a_conflict_names_the_statement_that_read_first() -> None:
    async with with_rows() as database:
        transaction = await database.open()
        await do(database, transaction, "SELECT 1", "SELECT a FROM t WHERE id = 2")
        await do(database, transaction, "SAVEPOINT s")
        await do(database, transaction, "SELECT a FROM t WHERE id = 1")
        await do(database, transaction, "ROLLBACK TO s")
        await do(database, transaction, "UPDATE t SET a = 'mine' WHERE id = 3")
        await do(database, transaction, "SELECT a FROM t WHERE id IN (1, 2)")
        await database.execute("UPDATE t SET a = 'theirs' WHERE id = 1")
        with pytest.raises(SerializationFailure) as caught:
            await run(database.committing(transaction, RunOptions()))
        assert conflict_of(caught.value).statement == 3
        transaction.release()


async def test_a_redefinition_meanwhile_is_a_conflict() -> None:
    async with with_rows() as database:
        transaction = await database.open()
        await do(database, transaction, "UPDATE t SET a = 'mine' WHERE id = 3")
        await database.execute("ALTER TABLE t ADD COLUMN b INT")
        assert await do(database, transaction, "SELECT a FROM t WHERE id = 3") == ["mine"]
        with pytest.raises(SerializationFailure) as caught:
            await run(database.committing(transaction, RunOptions()))
        assert conflict_of(caught.value).table == "t"
        transaction.release()


async def streamed(database: SqlDatabase, transaction: OpenTransaction, sql: str) -> list[object]:
    stream = await database.stream_inside(transaction, Statement(sql), RunOptions())
    found: list[object] = []
    while (rows := await stream.step()) is not None:
        found += [row[0] for row in rows]
    stream.close()
    return found


async def test_a_streamed_change_gives_its_rows_and_ends() -> None:
    async with with_rows() as database:
        change = "INSERT INTO t SELECT 7 RETURNING id"
        alone = [page async for page in await database.stream(change)]
        transaction = await database.open()
        inside = await streamed(database, transaction, "DELETE FROM t WHERE id = 7 RETURNING id")
        assert (alone, inside) == ([[(7,)]], [7])
        transaction.release()


async def test_a_streamed_statement_moves_a_sequence_that_the_transaction_made() -> None:
    async with with_rows() as database:
        transaction = await database.open()
        await do(database, transaction, "CREATE SEQUENCE s")
        draw = "SELECT nextval('s') FROM generate_series(1, 2)"
        assert await streamed(database, transaction, draw) == [1, 2]
        await do(database, transaction, "SAVEPOINT a")
        assert await streamed(database, transaction, "SELECT setval('s', 77)") == [77]
        assert await streamed(database, transaction, draw) == [78, 79]
        await do(database, transaction, "ROLLBACK TO a")
        assert await streamed(database, transaction, draw) == [3, 4]
        await run(database.committing(transaction, RunOptions()))
        assert (await database.execute("SELECT nextval('s')")).rows == [(5,)]

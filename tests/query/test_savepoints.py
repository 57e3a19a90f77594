"""Savepoints among the statements of one request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from qserver.engine.work import run
from qserver.errors import (
    ActiveTransaction,
    DivisionByZero,
    FailedTransaction,
    FeatureNotSupported,
    InvalidSavepoint,
    ProgramLimitExceeded,
    SerializationFailure,
    TooManyAffected,
    UndefinedTable,
)
from qserver.query.open_transaction import OpenTransaction
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.savepoints import run_with_savepoints
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.storage.conflict import Conflict
from qserver.storage.transaction import Transaction
from tests.sql.databases import opened_sql
from tests.steps import taken


@asynccontextmanager
async def with_rows(rows: int = 3) -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as sql:
        await sql.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        await sql.execute(f"INSERT INTO t SELECT n, n FROM generate_series(1, {rows}) n")
        yield sql


async def send(sql: SqlDatabase, *texts: str, **options: Any) -> list[Any]:
    done = await sql.transaction([Statement(each) for each in texts], **options)
    return [each.rows for each in done.results]


async def do(sql: SqlDatabase, transaction: OpenTransaction, *texts: str) -> list[Any]:
    done = await sql.inside(transaction, [Statement(each) for each in texts], RunOptions())
    return [each.rows for each in done.results]


async def rows(sql: SqlDatabase) -> list[Any]:
    return list((await sql.execute("SELECT id, a FROM t ORDER BY id")).rows)


async def test_what_was_rolled_back_is_not_applied_and_the_rest_is() -> None:
    async with with_rows() as sql:
        results = await send(
            sql,
            "INSERT INTO t VALUES (4, 4)",
            "SAVEPOINT a",
            "DELETE FROM t",
            "CREATE TABLE gone (x INT)",
            "SELECT count(*) FROM t",
            "ROLLBACK TO a",
            "SELECT count(*) FROM t",
            "UPDATE t SET a = 40 WHERE id = 4",
        )
        assert results == [[], [], [], [], [(0,)], [], [(4,)], []]
        assert await rows(sql) == [(1, 1), (2, 2), (3, 3), (4, 40)]
        with pytest.raises(UndefinedTable):
            await sql.execute("SELECT * FROM gone")


async def test_ranges_among_many_writes_follow_a_rollback() -> None:
    """As many rows, others among them, with the same last key."""
    ranges = "SELECT count(*) FROM t WHERE id BETWEEN 100 AND 200"
    fill = "INSERT INTO t SELECT n, n FROM generate_series({}) n"
    async with with_rows() as sql:
        results = await send(
            sql,
            fill.format("50, 90"),
            ranges,
            "SAVEPOINT a",
            fill.format("100, 120"),
            ranges,
            "ROLLBACK TO a",
            ranges,
            fill.format("300, 319"),
            "INSERT INTO t VALUES (120, 120)",
            ranges,
        )
        assert [results[at] for at in (1, 4, 6, 9)] == [[(0,)], [(21,)], [(0,)], [(1,)]]


async def test_if_all_is_rolled_back_no_version_is_made() -> None:
    async with with_rows() as sql:
        before = (await sql.execute("SELECT 1")).version
        await send(sql, "SAVEPOINT a", "DELETE FROM t", "CREATE TABLE x (a INT)", "ROLLBACK TO a")
        assert (await sql.execute("SELECT 1")).version == before


async def test_an_error_applies_nothing_and_names_its_statement() -> None:
    async with with_rows() as sql:
        with pytest.raises(DivisionByZero) as failed:
            await send(sql, "DELETE FROM t WHERE id = 1", "SAVEPOINT a", "SELECT 1 / 0")
        assert failed.value.statement == 2
        with pytest.raises(InvalidSavepoint) as unknown:
            await send(sql, "DELETE FROM t WHERE id = 1", "SAVEPOINT a", "RELEASE b")
        assert unknown.value.statement == 2
        for text in ("BEGIN", "COMMIT", "ROLLBACK", "ABORT"):
            with pytest.raises(ActiveTransaction) as refused:
                await send(sql, "SAVEPOINT a", "DELETE FROM t", text)
            assert refused.value.statement == 2
        assert len(await rows(sql)) == 3


async def test_sequences_that_came_back_begin_anew() -> None:
    async with with_rows() as sql:
        make = "CREATE SEQUENCE s"
        results = await send(
            sql,
            "SAVEPOINT a",
            make,
            "SELECT nextval('s'), nextval('s')",
            "ROLLBACK TO a",
            make,
            "SELECT nextval('s')",
        )
        assert results[2] == [(1, 2)]
        assert results[5] == [(1,)]
        assert (await sql.execute("SELECT nextval('s')")).rows == [(2,)]


async def test_values_of_sequences_are_drawn_once_however_often_the_list_runs() -> None:
    async with with_rows() as sql:
        await sql.execute("CREATE TABLE u (id SERIAL PRIMARY KEY, a INT)")
        insert = "INSERT INTO u (a) SELECT 1 FROM generate_series(1, 300)"
        texts = ("SAVEPOINT a", insert, "ROLLBACK TO a", insert, "SAVEPOINT b", insert)
        await send(sql, *texts)
        found = (await sql.execute("SELECT min(id), max(id), count(*) FROM u")).rows
        assert found == [(301, 900, 600)]
        open_ = await sql.open()
        await do(sql, open_, *texts)
        await run(sql.committing(open_, RunOptions()))
        found = (await sql.execute("SELECT max(id), count(*) FROM u")).rows
        assert found == [(1800, 1200)]


async def test_dry_runs_and_guards_see_the_whole_list() -> None:
    async with with_rows() as sql:
        texts = ["UPDATE t SET a = 9 WHERE id = 1", "SAVEPOINT a", "DELETE FROM t WHERE id = 2"]
        tried = await sql.transaction(
            [Statement(each) for each in [*texts, "SAVEPOINT b", "DELETE FROM t", "ROLLBACK TO b"]],
            dry_run=True,
        )
        assert tried.diff is not None
        assert [(each.before, each.after) for each in tried.diff.changes] == [
            ((1, 1), (1, 9)),
            ((2, 2), None),
        ]
        with pytest.raises(TooManyAffected):
            await send(sql, *texts, max_affected=1)
        seen = (await sql.execute("SELECT 1")).version
        await send(sql, *texts, max_affected=2, if_version=seen)
        with pytest.raises(SerializationFailure) as refused:
            undone = ("SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a")
            await send(sql, *undone, if_version=seen)
        assert isinstance(refused.value.conflict, Conflict)
        assert await rows(sql) == [(1, 9), (3, 3)]


async def test_what_was_read_before_a_rollback_still_counts() -> None:
    async with with_rows() as sql:
        texts = (
            "SAVEPOINT a",
            "UPDATE t SET a = a + 1 WHERE id = 1",
            "SELECT count(*) FROM t",
            "ROLLBACK TO a",
            "INSERT INTO t VALUES (10, 0)",
        )
        transaction = Transaction(await sql.database.wait_durable_snapshot())
        found = [PreparedStatement(text, None) for text in texts]
        request = sql._environment.request()
        taken(run_with_savepoints(sql.planner, request, found, RunOptions(), transaction))
        (tree,) = transaction.writes
        assert set(transaction.writes[tree]) == {(10,)}
        assert set(transaction.keys[tree]) == {(1,), (10,)}
        assert [each.counted for each in transaction.ranges] == [True]
        assert transaction.marks is not None and len(transaction.marks) == len(texts)


async def test_a_list_in_an_open_transaction_is_one_step_and_its_savepoints_stay() -> None:
    async with with_rows() as sql:
        open_ = await sql.open()
        await do(sql, open_, "INSERT INTO t VALUES (4, 4)", "SAVEPOINT a", "DELETE FROM t")
        assert open_.rows_changed == 5
        await do(sql, open_, "ROLLBACK TO a")
        assert open_.rows_changed == 1
        await do(sql, open_, "SAVEPOINT b", "UPDATE t SET a = 0", "SAVEPOINT c", "DELETE FROM t")
        assert await do(sql, open_, "ROLLBACK TO b") == [[]]
        with pytest.raises(InvalidSavepoint):
            await do(sql, open_, "ROLLBACK TO c")
        await do(sql, open_, "ROLLBACK TO a")
        await run(sql.committing(open_, RunOptions()))
        assert await rows(sql) == [(1, 1), (2, 2), (3, 3), (4, 4)]


async def test_a_list_that_fails_leaves_nothing_of_it_not_even_its_savepoints() -> None:
    async with with_rows() as sql:
        open_ = await sql.open()
        await do(sql, open_, "INSERT INTO t VALUES (4, 4)", "SAVEPOINT a")
        size = open_.bytes
        with pytest.raises(DivisionByZero):
            await do(sql, open_, "DELETE FROM t", "SAVEPOINT b", "SAVEPOINT a", "SELECT 1 / 0")
        with pytest.raises(FailedTransaction):
            await do(sql, open_, "SELECT 1", "ROLLBACK TO a")
        await do(sql, open_, "ROLLBACK TO a")
        assert open_.bytes <= size + 10_000
        assert await do(sql, open_, "SELECT count(*) FROM t") == [[(4,)]]
        for text in ("ROLLBACK TO b", "RELEASE b"):
            with pytest.raises(InvalidSavepoint):
                await do(sql, open_, text)
            await do(sql, open_, "ROLLBACK TO a")
        await do(sql, open_, "RELEASE a")
        with pytest.raises(InvalidSavepoint):
            await do(sql, open_, "ROLLBACK TO a")


async def test_an_older_savepoint_is_a_step_of_its_own() -> None:
    async with with_rows() as sql:
        open_ = await sql.open()
        await do(sql, open_, "SAVEPOINT a")
        for text in ("ROLLBACK TO a", "RELEASE a"):
            for texts in ((text, "SELECT 1"), ("DELETE FROM t", "SAVEPOINT b", text)):
                with pytest.raises(FeatureNotSupported) as caught:
                    await do(sql, open_, *texts)
                assert "could not be brought back" in str(caught.value.detail)
                await do(sql, open_, "ROLLBACK TO a")
        assert await do(sql, open_, "SELECT count(*) FROM t") == [[(3,)]]
        await do(sql, open_, "SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a", "RELEASE a")
        await do(sql, open_, "ROLLBACK TO a")


async def test_savepoints_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.query.savepoints.SAVEPOINTS_MAX", 5)
    async with with_rows() as sql:
        with pytest.raises(ProgramLimitExceeded):
            await send(sql, *(["SAVEPOINT a"] * 9))


async def test_a_conflict_names_the_statement_of_the_list() -> None:
    async with with_rows() as sql:
        open_ = await sql.open()
        read = "SELECT a FROM t WHERE id = 2"
        await do(sql, open_, "SAVEPOINT a", "SELECT 1", read, "ROLLBACK TO a")
        await do(sql, open_, "INSERT INTO t VALUES (7, 7)")
        await sql.execute("UPDATE t SET a = 0 WHERE id = 2")
        with pytest.raises(SerializationFailure) as refused:
            await run(sql.committing(open_, RunOptions()))
        assert isinstance(refused.value.conflict, Conflict)
        assert refused.value.conflict.statement == 2


@pytest.mark.parametrize("drop", ["DROP TABLE u", "DROP SEQUENCE s", "ALTER SEQUENCE s RESTART"])
async def test_a_sequence_that_is_there_again_can_be_drawn_from(drop: str) -> None:
    """Its state was read to redefine it; what the transaction draws must not conflict with that."""
    async with with_rows() as sql:
        await sql.execute("CREATE TABLE u (id SERIAL PRIMARY KEY)")
        await sql.execute("CREATE SEQUENCE s")
        draw = "SELECT nextval('s'), nextval('u_id_seq')"
        open_ = await sql.open()
        for text in ("INSERT INTO t VALUES (9, 9)", "SAVEPOINT a", drop, "ROLLBACK TO a", draw):
            await do(sql, open_, text)
        await run(sql.committing(open_, RunOptions()))
        await send(sql, "SAVEPOINT a", drop, "ROLLBACK TO a", draw, max_retries=0)
        found = (await sql.execute(draw)).rows
        assert found == [(3, 3)]


async def test_a_drop_before_the_savepoint_still_depends_on_the_position() -> None:
    async with with_rows() as sql:
        await sql.execute("CREATE SEQUENCE s")
        open_ = await sql.open()
        await do(sql, open_, "DROP SEQUENCE s", "SAVEPOINT a", "SELECT 1", "ROLLBACK TO a")
        await sql.execute("SELECT nextval('s')")
        with pytest.raises(SerializationFailure):
            await run(sql.committing(open_, RunOptions()))

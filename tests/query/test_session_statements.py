"""Prepared statements and cursors where a session lasts, and where none does."""

from __future__ import annotations

import pytest

from qserver.engine.work import run
from qserver.errors import FeatureNotSupported, NoActiveTransaction, OutOfMemory, QserverError
from qserver.query.results import RunOptions, Statement
from qserver.query.session import Session
from qserver.query.sql_database import SqlDatabase
from tests.query.connections import Connection
from tests.sql.databases import opened_sql


async def step(database: SqlDatabase, transaction: object, *statements: str) -> list[list[object]]:
    asked = [Statement(each) for each in statements]
    done = await database.inside(transaction, asked, RunOptions())  # type: ignore[arg-type]
    return [[row[0] for row in result.rows] for result in done.results]


async def test_a_request_alone_has_no_session_for_what_lasts() -> None:
    async with opened_sql() as database:
        with pytest.raises(FeatureNotSupported, match="PREPARE needs a session"):
            await database.execute("PREPARE p AS SELECT 1")
        with pytest.raises(NoActiveTransaction, match="only be used in transaction blocks"):
            await database.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1")
        for sql, expected in (("EXECUTE p", "26000"), ("FETCH c", "34000"), ("CLOSE c", "34000")):
            with pytest.raises(QserverError) as caught:
                await database.execute(sql)
            assert caught.value.code == expected
        for sql in ("CLOSE ALL", "DEALLOCATE ALL", "DISCARD ALL"):
            assert (await database.execute(sql)).rows == []


async def test_a_step_declares_fetches_and_sees_what_it_wrote() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a int PRIMARY KEY)")
        transaction = await database.open()
        got = await step(
            database,
            transaction,
            "INSERT INTO t VALUES (1), (2), (3)",
            "DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a",
            "FETCH 2 FROM c",
            "DELETE FROM t",
            "FETCH c",
        )
        assert got[2:] == [[1, 2], [], [3]]
        transaction.release()


async def test_a_step_that_fails_closes_what_it_declared() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a int PRIMARY KEY)")
        transaction = await database.open()
        await step(database, transaction, "SAVEPOINT s")
        with pytest.raises(QserverError):
            await step(
                database,
                transaction,
                "INSERT INTO t VALUES (1)",
                "DECLARE c CURSOR FOR SELECT a FROM t",
                "SELECT nope",
            )
        await step(database, transaction, "ROLLBACK TO s")
        assert await step(database, transaction, "SELECT a FROM t") == [[]]
        with pytest.raises(QserverError, match='cursor "c" does not exist'):
            await step(database, transaction, "FETCH c")
        transaction.release()


async def test_a_step_that_runs_again_for_numbers_fetches_the_same_rows() -> None:
    """A sequence without numbers at hand makes a step begin anew, cursors included."""
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id serial PRIMARY KEY, a int)")
        transaction = await database.open()
        await step(database, transaction, "DECLARE c CURSOR FOR SELECT generate_series(1, 9)")
        assert await step(database, transaction, "FETCH 2 FROM c") == [[1, 2]]
        got = await step(
            database,
            transaction,
            "FETCH 2 FROM c",
            "INSERT INTO t (a) SELECT generate_series(1, 300)",
            "FETCH 2 FROM c",
        )
        assert got == [[3, 4], [], [5, 6]]
        transaction.release()


async def test_a_step_that_runs_again_for_numbers_prepares_and_closes_once() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a serial)")
        transaction = await database.open()
        await step(
            database, transaction, "PREPARE old AS SELECT 1", "DECLARE c CURSOR FOR SELECT 2"
        )
        got = await step(
            database,
            transaction,
            "DEALLOCATE old",
            "PREPARE new AS SELECT 3",
            "CLOSE c",
            "DECLARE c CURSOR FOR SELECT 4",
            "INSERT INTO t DEFAULT VALUES RETURNING a",
            "EXECUTE new",
            "FETCH c",
        )
        assert got[4:] == [[1], [3], [4]]
        transaction.release()


async def test_cursors_of_an_open_transaction_end_with_it() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a int PRIMARY KEY)")
        transaction = await database.open()
        await step(database, transaction, "DECLARE c CURSOR FOR SELECT generate_series(1, 10000)")
        await step(database, transaction, "FETCH c", "INSERT INTO t VALUES (1)")
        session = transaction.session
        await run(database.committing(transaction, RunOptions()))
        transaction.release()
        assert not session.portals


async def test_rows_that_a_portal_keeps_count_as_memory() -> None:
    async with opened_sql() as database:
        pool = database.request_of(RunOptions()).environment.pool
        assert pool is not None
        pool.most = 300_000
        await database.execute("CREATE TABLE t (a int PRIMARY KEY)")
        connection = Connection(database)
        await connection.run("BEGIN")
        await connection.run("DECLARE c CURSOR FOR SELECT generate_series(1, 1000)")
        await connection.run("INSERT INTO t VALUES (1)")
        held = pool.held
        assert held >= 90_000, "the cursor keeps its rows, because the table might be its own"
        await connection.run("CLOSE c")
        assert pool.held <= held - 90_000
        await connection.run("DECLARE c CURSOR FOR SELECT generate_series(1, 100000)")
        with pytest.raises(OutOfMemory):
            await connection.run("DELETE FROM t")
        await connection.run("ROLLBACK")
        assert pool.held == 0


async def test_texts_that_a_session_keeps_count_as_memory() -> None:
    async with opened_sql() as database:
        pool = database.request_of(RunOptions()).environment.pool
        assert pool is not None
        connection = Connection(database)
        long = "x" * 200_000
        await connection.run("BEGIN")
        await connection.run(f"PREPARE p AS SELECT '{long}'")
        prepared = pool.held
        assert prepared >= 600_000
        await connection.run(f"DECLARE c CURSOR FOR SELECT length('{long}')")
        assert pool.held >= prepared + 600_000
        assert (await connection.run("FETCH c")).rows == [(200_000,)]
        pool.most = pool.held + 100_000
        await connection.run("SAVEPOINT a")
        for sql in (f"PREPARE q AS SELECT '{long}'", f"DECLARE d CURSOR FOR SELECT '{long}'"):
            with pytest.raises(OutOfMemory):
                await connection.run(sql)
            await connection.run("ROLLBACK TO a")
        await connection.run("CLOSE c")
        await connection.run("COMMIT")
        assert 0 < pool.held <= prepared
        await connection.run("DEALLOCATE ALL")
        assert pool.held == 0


async def test_a_transaction_that_ends_gives_back_its_prepared_statements() -> None:
    async with opened_sql() as database:
        pool = database.request_of(RunOptions()).environment.pool
        assert pool is not None
        transaction = await database.open()
        await step(database, transaction, f"PREPARE p AS SELECT '{'x' * 200_000}'")
        assert pool.held >= 600_000
        transaction.release()
        assert pool.held == 0


async def test_the_plan_of_a_prepared_statement_is_kept() -> None:
    async with opened_sql() as database:
        session = Session()

        async def ask(sql: str) -> object:
            done = await run(database.perform([Statement(sql)], RunOptions(session=session)))
            return done.results[0].rows

        await ask("PREPARE p (int) AS SELECT $1 + 1")
        assert await ask("EXECUTE p (1)") == [(2,)]
        misses = database.statistics().misses
        assert await ask("EXECUTE p (2)") == [(3,)]
        assert await ask("EXECUTE p (3)") == [(4,)]
        assert database.statistics().misses - misses <= 4, "only the arguments are planned"

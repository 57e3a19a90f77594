"""Temporary relations: as ordinary ones for their session, and nothing for everybody else."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from qserver.engine.work import run
from qserver.errors import FeatureNotSupported, OutOfMemory, QserverError
from qserver.query.memory_pool import MemoryPool
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from tests.query.connections import Connection, outcome
from tests.sampling import sampled
from tests.sql.databases import NOON, opened_sql, quiet_world


async def told(connection: Connection, sql: str, parameters: Any = None) -> Any:
    found = await outcome(connection, sql, parameters)
    return found if isinstance(found, str) else (found.columns, found.rows, found.affected_rows)


async def rows(connection: Connection, sql: str, parameters: Any = None) -> Any:
    found = await outcome(connection, sql, parameters)
    return found if isinstance(found, str) else found.rows


def newest(database: SqlDatabase) -> Any:
    snapshot = database.snapshots.take(newest=True)
    assert snapshot is not None
    return snapshot


# --- generated: a temporary table is to its session what a table is to a database of its own -----

NAMES = ("t", "u")


def a_statement(chance: Random) -> str:
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    n, m = chance.randrange(6), chance.randrange(6)
    return chance.choice(
        (
            f"CREATE TEMP TABLE {name} (a int PRIMARY KEY, b text, c serial)",
            f"CREATE TEMP TABLE {name} (a int, b text UNIQUE, c int GENERATED ALWAYS AS IDENTITY)",
            f"CREATE TEMP TABLE {name} AS SELECT {n} AS a, 'x' AS b, {m} AS c",
            f"INSERT INTO {name} (a, b) VALUES ({n}, 'b{m}')",
            f"INSERT INTO {name} (a, b) VALUES ({n}, 'b{m}') RETURNING a, c",
            f"INSERT INTO {name} (a, b) SELECT a + {n}, b || {m} FROM {other}",
            f"INSERT INTO {name} (a, b) SELECT n, n::text FROM generate_series(1, 300) n",
            f"UPDATE {name} SET b = b || 'u' WHERE a >= {n}",
            f"DELETE FROM {name} WHERE a = {n}",
            f"SELECT a, b, c FROM {name} ORDER BY a, b, c",
            f"SELECT count(*), sum(a) FROM {name}",
            f"SELECT a, b FROM {name} WHERE a = {n}",
            f"SELECT one.a, two.b FROM {name} one JOIN {other} two USING (a) ORDER BY 1, 2",
            f"ALTER TABLE {name} ADD COLUMN d{n} int DEFAULT {m}",
            f"CREATE INDEX ON {name} (b, a)",
            f"TRUNCATE {name}",
            f"DROP TABLE {name}",
            f"CREATE TEMP VIEW v AS SELECT a FROM {name}",
            "SELECT a FROM v ORDER BY a",
            "DROP VIEW v",
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT s",
            "ROLLBACK TO s",
        )
    )


@pytest.mark.parametrize("seed", sampled(range(12), 4))
async def test_programs_of_three_sessions_run_as_if_each_had_a_database(seed: int) -> None:
    """Statements of all alternate, so plans of one are there when another asks for the same."""
    chance = Random(seed)
    async with opened_sql() as shared, opened_sql() as a, opened_sql() as b, opened_sql() as c:
        lasting = Connection(shared)
        await lasting.run("CREATE TABLE t (a int PRIMARY KEY, b text)")
        await lasting.run("INSERT INTO t VALUES (7, 'lasting')")
        before = newest(shared).version
        pairs = [(Connection(shared), Connection(own)) for own in (a, b, c)]
        for here, _ in pairs:  # else a name would mean the lasting table
            await here.run("CREATE TEMP TABLE t (a int)")
            await here.run("DROP TABLE pg_temp.t")
        for _ in range(120):
            here, alone = chance.choice(pairs)
            sql = a_statement(chance)
            is_open = here.transaction is not None
            if (sql == "BEGIN") == is_open and sql in ("BEGIN", "COMMIT", "ROLLBACK"):
                continue
            if "SAVEPOINT" in sql and not is_open:
                continue
            mine = sql.replace(" t ", " pg_temp.t ").replace("TABLE t", "TABLE pg_temp.t")
            mine = mine if not mine.endswith(" t") else f"{mine[:-2]} pg_temp.t"
            wanted = await told(alone, sql.replace("TEMP ", ""))
            assert await told(here, mine) == wanted, sql
        for here, alone in pairs:
            await here.run("ROLLBACK")
            await alone.run("ROLLBACK")
            here.session.end()
        assert newest(shared).version == before
        assert await rows(lasting, "SELECT * FROM t") == [(7, "lasting")]
        assert set(newest(shared).catalog.tables) == {"t"}
        assert newest(shared).catalog.others == {}


# --- what others notice ---


async def test_nobody_else_sees_it_and_the_database_stays_as_it_was() -> None:
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run("CREATE TABLE lasting (a int)")
        before = newest(database)
        await one.run("CREATE TEMP TABLE t (id serial, a int)")
        await one.run("INSERT INTO t (a) VALUES (1)")
        await one.run("CREATE INDEX ON t (a)")
        await one.run("SELECT nextval('t_id_seq')")
        await one.run("CREATE TEMP VIEW v AS SELECT * FROM t")
        assert newest(database) is before
        for relation in ("t", "v", "pg_temp.t", "t_id_seq"):
            assert await rows(other, f"SELECT * FROM {relation}") == "42P01"
        await other.run("CREATE TEMP TABLE t (b text)")
        assert await rows(other, "SELECT * FROM t") == []
        assert await rows(one, "SELECT * FROM t") == [(1, 1)]
        one.session.end()
        other.session.end()
        assert newest(database) is before


async def test_a_transaction_with_both_kinds_commits_only_what_lasts() -> None:
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run("CREATE TABLE lasting (a int PRIMARY KEY)")
        await one.run("BEGIN")
        await one.run("CREATE TEMP TABLE t AS SELECT 1 AS a")
        await one.run("CREATE TABLE made (a int)")
        await one.run("INSERT INTO lasting SELECT a FROM t")
        await one.run("COMMIT")
        catalog = newest(database).catalog
        assert set(catalog.tables) == {"lasting", "made"} and not catalog.schemas
        assert await rows(other, "SELECT * FROM lasting") == [(1,)]
        assert await rows(one, "SELECT * FROM t") == [(1,)]
        await one.run("DROP TABLE t, made")
        assert set(newest(database).catalog.tables) == {"lasting"}


async def test_temporary_reads_and_writes_conflict_with_nobody() -> None:
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run("CREATE TABLE lasting (a int PRIMARY KEY, b int)")
        await one.run("INSERT INTO lasting VALUES (1, 1), (2, 2)")
        await one.run("BEGIN")
        await one.run("CREATE TEMP TABLE t (a int PRIMARY KEY)")
        await one.run("INSERT INTO t VALUES (1), (2)")
        await one.run("SELECT * FROM t")
        await one.run("UPDATE lasting SET b = 10 WHERE a = 1")
        await other.run("CREATE TABLE another (a int)")  # a definition, meanwhile
        await other.run("CREATE TEMP TABLE t (a int)")
        await other.run("UPDATE lasting SET b = 20 WHERE a = 2")
        await one.run("COMMIT")
        assert await rows(other, "SELECT b FROM lasting ORDER BY a") == [(10,), (20,)]
        await one.run("BEGIN")
        await one.run("INSERT INTO t SELECT a + 10 FROM lasting")
        await one.run("UPDATE lasting SET b = 0 WHERE a = 1")
        await other.run("UPDATE lasting SET b = 5 WHERE a = 2")
        assert await outcome(one, "COMMIT") == "40001"  # it has read what the other has changed
        assert await rows(one, "SELECT count(*) FROM t") == [(2,)]


async def test_a_statement_that_meets_a_conflict_runs_again() -> None:
    """Outside of a transaction; the temporary table changes once."""
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run("CREATE TABLE n (a int)")
        await one.run("INSERT INTO n VALUES (0)")
        await one.run("CREATE TEMP TABLE t (a int)")
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(other.database.execute, "UPDATE n SET a = a + 1")
            for _ in range(20):
                await one.run(
                    "WITH up AS (UPDATE n SET a = a + 1 RETURNING a) INSERT INTO t SELECT a FROM up"
                )
        assert await rows(one, "SELECT a FROM n") == [(40,)]
        assert await rows(one, "SELECT count(*), count(DISTINCT a) FROM t") == [(20, 20)]


# --- requests over HTTP ---


async def test_a_list_of_statements_has_them_until_its_end() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE lasting (a int)")
        done = await database.transaction(
            [
                Statement("CREATE TEMP TABLE t (a int PRIMARY KEY) ON COMMIT DROP"),
                Statement("INSERT INTO t VALUES ($1), ($2)", [1, 2]),
                Statement("SAVEPOINT a"),
                Statement("INSERT INTO t VALUES (3)"),
                Statement("ROLLBACK TO a"),
                Statement("INSERT INTO lasting SELECT a * 10 FROM t"),
                Statement("SELECT sum(a) FROM t"),
            ]
        )
        assert done.results[-1].rows == [(3,)]
        assert (await database.execute("SELECT sum(a) FROM lasting")).rows == [(30,)]
        assert set(newest(database).catalog.tables) == {"lasting"}
        version = newest(database).version
        for dry_run in (True, False):
            done = await database.transaction(
                [
                    Statement("CREATE TEMP TABLE t AS SELECT 1 AS a"),
                    Statement("SELECT * FROM t"),
                ],
                dry_run=dry_run,
            )
            assert done.results[-1].rows == [(1,)]
            assert done.diff is None or not done.diff.changes
        assert newest(database).version == version


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TEMP TABLE t (a int)",
        "CREATE TABLE pg_temp.t (a int)",
        "SELECT 1 AS a INTO TEMP t",
        "CREATE TEMP VIEW v AS SELECT 1 AS a",
        "CREATE TEMPORARY SEQUENCE s",
    ],
)
async def test_a_statement_alone_is_told_where_they_work(sql: str) -> None:
    async with opened_sql() as database:
        for _ in range(2):
            with pytest.raises(FeatureNotSupported) as caught:
                await database.execute(sql)
            assert "POST /v1/transaction" in (caught.value.hint or "")
        with pytest.raises(FeatureNotSupported):
            await database.stream(sql)


async def test_an_open_transaction_has_them_until_its_end() -> None:
    async with opened_sql() as database:
        transaction = await database.open()
        options = RunOptions()
        for sql in ("CREATE TEMP TABLE t (a int)", "INSERT INTO t VALUES (1)"):
            await database.inside(transaction, [Statement(sql)], options)
        tried = await database.inside(
            transaction, [Statement("DELETE FROM t")], RunOptions(dry_run=True)
        )
        assert tried.results[0].affected_rows == 1
        found = await database.inside(transaction, [Statement("SELECT * FROM t")], options)
        assert found.results[0].rows == [(1,)]
        before = newest(database).version
        await run(database.committing(transaction, options))
        transaction.release()
        assert newest(database).version == before and not newest(database).catalog.tables


# --- memory ---


async def test_their_rows_count_until_they_are_gone() -> None:
    pool = MemoryPool(40 * 1024 * 1024)
    async with opened_sql() as database:
        one = Connection(SqlDatabase(database.database, quiet_world(NOON), pool))
        await one.run("CREATE TEMP TABLE t (a int PRIMARY KEY, b text)")
        fill = "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n"
        await one.run(fill)
        held = pool.held
        assert held > 20_000 * 100
        await one.run("BEGIN")
        await one.run("DELETE FROM t")
        await one.run("ROLLBACK")
        assert pool.held == held
        await one.run("UPDATE t SET b = ''")
        assert 0 < pool.held < held
        await one.run("TRUNCATE t")
        assert pool.held == 0
        await one.run(fill)
        assert pool.held == held
        one.session.end()
        assert pool.held == 0


async def test_more_than_there_is_room_for_is_refused_and_nothing_is_lost() -> None:
    pool = MemoryPool(12 * 1024 * 1024)
    async with opened_sql() as database:
        one = Connection(SqlDatabase(database.database, quiet_world(NOON), pool))
        await one.run("CREATE TEMP TABLE t (a int, b text)")
        added = 0
        with pytest.raises(OutOfMemory):
            for _ in range(50):
                await one.run(
                    "INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series(1, 2000) n"
                )
                added += 2000
        assert 0 < added < 100_000
        assert await rows(one, "SELECT count(*) FROM t") == [(added,)]
        await one.run("DISCARD ALL")
        assert pool.held == 0


# --- plans ---


async def test_the_same_text_means_what_its_session_sees_each_time() -> None:
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run("CREATE TABLE t (a int)")
        await one.run("INSERT INTO t VALUES (0)")
        for text, parameters in (("SELECT a FROM t", None), ("SELECT a FROM t WHERE a < $1", [9])):
            for _ in range(2):
                for number, connection in enumerate((one, other), 1):
                    await connection.run("CREATE TEMP TABLE t (a int)")
                    await connection.run(f"INSERT INTO t VALUES ({number})")
                for _ in range(2):
                    assert await rows(one, text, parameters) == [(1,)]
                    assert await rows(other, text, parameters) == [(2,)]
                    assert (await database.execute(text, parameters)).rows == [(0,)]
                await one.run("DROP TABLE t")
                assert await rows(one, text, parameters) == [(0,)]
                assert await rows(other, text, parameters) == [(2,)]
                await other.run("DISCARD TEMP")
                assert await rows(other, text, parameters) == [(0,)]


async def test_a_default_of_a_lasting_table_draws_from_its_own_sequence() -> None:
    async with opened_sql() as database:
        one = Connection(database)
        for kind in ("serial", "int GENERATED ALWAYS AS IDENTITY"):
            await one.run(f"CREATE TABLE t (id {kind}, a int)")
            await one.run("INSERT INTO t (a) VALUES (1), (2), (3)")
            await one.run(f"CREATE TEMP TABLE t (id {kind}, a int)")
            for wanted in (4, 5):
                found = await rows(one, "INSERT INTO public.t (a) VALUES (0) RETURNING id")
                assert found == [(wanted,)]
            assert await rows(one, "INSERT INTO t (a) VALUES (0) RETURNING id") == [(1,)]
            await one.run("DROP TABLE t")
            await one.run("DROP TABLE t")


async def test_rows_of_a_large_one_come_as_a_stream() -> None:
    async with opened_sql() as database:
        one = Connection(database)
        await one.run("CREATE TEMP TABLE t AS SELECT n AS a FROM generate_series(1, 30000) n")
        stream = await database.stream("SELECT a FROM t", session=one.session)
        await one.run("DROP TABLE t")
        found = 0
        while not stream.ended:
            found += len(await stream.step() or ())
        assert found == 30_000


async def test_an_error_leaves_the_session_as_it_was() -> None:
    async with opened_sql() as database:
        one = Connection(database)
        await one.run("CREATE TEMP TABLE t (a int PRIMARY KEY)")
        await one.run("INSERT INTO t VALUES (1)")
        for sql in (
            "INSERT INTO t VALUES (2), (1)",
            "INSERT INTO t SELECT 10 / (n - 50) FROM generate_series(1, 100) n",
            "CREATE TEMP TABLE u AS SELECT 1 / 0 AS a",
            "ALTER TABLE t ADD CHECK (a > 1)",
        ):
            with pytest.raises(QserverError):
                await one.run(sql)
            assert await rows(one, "SELECT a FROM t") == [(1,)]
            assert await rows(one, "SELECT * FROM u") == "42P01"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x (LIKE t INCLUDING ALL)",
        "CREATE TABLE x (a int DEFAULT nextval('s'))",
        "CREATE TABLE x (a mood)",
        "CREATE TABLE x (a mood[])",
        "CREATE TABLE x AS SELECT 'a'::mood AS m",
        "ALTER TABLE lasting ADD COLUMN m mood",
        "ALTER TABLE lasting ALTER COLUMN b TYPE mood USING 'a'",
        "ALTER TABLE lasting ALTER COLUMN a SET DEFAULT nextval('s')",
        "CREATE VIEW public.v AS SELECT * FROM t",
        "CREATE SEQUENCE public.q OWNED BY t.id",
        "ALTER TABLE lasting ADD FOREIGN KEY (a) REFERENCES t",
    ],
)
async def test_what_lasts_cannot_depend_on_it(sql: str) -> None:
    async with opened_sql() as database:
        one = Connection(database)
        await one.run("CREATE TABLE lasting (a int, b text)")
        await one.run("CREATE TEMP TABLE t (id serial PRIMARY KEY)")
        await one.run("CREATE TEMP SEQUENCE s")
        await one.run("CREATE TYPE pg_temp.mood AS ENUM ('a')")
        before = newest(database).catalog
        for _ in range(2):
            assert await outcome(one, sql) in ("42P16", "55000")
        assert newest(database).catalog is before
        await one.run("CREATE TEMP TABLE mine (m mood)")
        await one.run("INSERT INTO mine VALUES ('a')")


async def test_a_default_of_a_view_comes_before_the_sequence_of_its_column() -> None:
    async with opened_sql() as database:
        one = Connection(database)
        await one.run("CREATE TABLE t (id serial, a int)")
        await one.run("CREATE VIEW v AS SELECT * FROM t")
        await one.run("ALTER VIEW v ALTER id SET DEFAULT 50")
        assert await rows(one, "INSERT INTO v (a) VALUES (1) RETURNING id") == [(50,)]
        assert await rows(one, "UPDATE v SET id = DEFAULT RETURNING id") == [(50,)]
        await one.run("ALTER VIEW v ALTER id DROP DEFAULT")
        assert await rows(one, "INSERT INTO v (a) VALUES (1) RETURNING id") == [(1,)]

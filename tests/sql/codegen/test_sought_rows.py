"""Scans whose key is in the rows of a query: few are looked up, many scanned for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from qserver.engine.work import run
from qserver.errors import QserverError
from qserver.query.planning import Planner
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.sql.optimizer import RULES
from qserver.sql.optimizer.access_path_selection import access_path_selection
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.sql.databases import opened_sql

TABLES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, big BIGINT, s TEXT, v VARCHAR(9), c CHAR(5),"
    " d DATE, at TIMESTAMP, u UUID, m mood, b BYTEA, x NUMERIC, UNIQUE (big))",
    "CREATE TABLE k (a INT, b TEXT, n INT, PRIMARY KEY (a, b))",
    *[f"CREATE INDEX t_{name} ON t ({name})" for name in ("n", "s", "v", "c", "at", "u", "m", "x")],
    "CREATE INDEX t_d ON t (d DESC)",
    "CREATE INDEX t_b ON t (b, n)",
    "INSERT INTO t SELECT i, nullif(i % 50, 7), i * 3, nullif('s' || i % 40, 's3'), 'v' || i % 30,"
    " 'c' || i % 20, date '2024-01-01' + i % 60, timestamp '2024-01-01' + i * interval '1 hour',"
    " lpad(to_hex(i % 80), 32, '0')::uuid, (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood,"
    " decode(lpad(to_hex(i % 70), 4, '0'), 'hex'), i % 25 FROM generate_series(1, 600) i",
    "INSERT INTO k SELECT i % 8, 'b' || i, nullif(i % 9, 2) FROM generate_series(1, 600) i",
)
COLUMNS = ("id", "n", "big", "s", "v", "c", "d", "at", "u", "m", "b", "x")
QUERIES = (
    *[
        f"SELECT id FROM t WHERE {name} IN (SELECT {name} FROM t WHERE id {rows})"
        for name in COLUMNS
        for rows in ("< 4", "> 20", "< 0", "IN (7, 57, 103)")
    ],
    *[f"SELECT id FROM t WHERE id = ANY (ARRAY(SELECT {each} FROM t))" for each in ("n", "big")],
    "SELECT id FROM t WHERE big IN (SELECT id FROM t WHERE n = 3)",
    "SELECT id FROM t WHERE id IN (SELECT big FROM t WHERE n = 3)",
    "SELECT id FROM t WHERE s IN (SELECT v FROM t) OR n IN (SELECT id FROM t)",
    "SELECT id FROM t WHERE v IN (SELECT 'v' || id FROM t WHERE id < 3)",
    "SELECT id FROM t WHERE id IN (VALUES (3), (NULL), (3), (77))",
    "SELECT id FROM t WHERE id IN (SELECT n FROM k UNION SELECT a FROM k)",
    "SELECT id FROM t WHERE id IN (SELECT unnest(ARRAY[4, 5, NULL, 4]))",
    "SELECT id FROM t WHERE id NOT IN (SELECT a FROM k)",
    "SELECT id FROM t WHERE id <> ALL (ARRAY(SELECT n FROM k))",
    "SELECT id FROM t WHERE id < ANY (ARRAY(SELECT a FROM k))",
    "SELECT id FROM t WHERE s LIKE ANY (ARRAY(SELECT 's' || a || '%' FROM k))",
    "SELECT id FROM t WHERE id IN (SELECT a FROM k) AND n > 2 AND s IS NOT NULL",
    "SELECT id FROM t WHERE id IN (SELECT a FROM k) AND id IN (SELECT n FROM k)",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t ORDER BY id DESC LIMIT 3) ORDER BY id DESC",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t LIMIT 9) ORDER BY id LIMIT 2 OFFSET 1",
    "SELECT max(id), min(id), count(*) FROM t WHERE id IN (SELECT id FROM t WHERE n = 8)",
    "SELECT n, count(*), sum(x) FROM t WHERE d IN (SELECT d FROM t WHERE n < 3) GROUP BY n",
    "SELECT a, b FROM k WHERE a IN (SELECT n FROM t WHERE id < 3)",
    "SELECT a, b FROM k WHERE a = 3 AND b IN (SELECT 'b' || id FROM t WHERE id < 30)",
    "SELECT a, b FROM k WHERE a = 3 AND b IN (SELECT 'b' || id FROM t)",
    "SELECT a, b FROM k WHERE a = NULL AND b IN (SELECT 'b' || id FROM t)",
    "SELECT id FROM t WHERE b IN (SELECT b FROM t WHERE id = 5) AND n IN (SELECT n FROM k)",
    "SELECT id FROM t WHERE (id, n) IN (SELECT id, n FROM t WHERE id < 9)",
    "SELECT t.id, k.a FROM t JOIN k ON k.a = t.id WHERE t.id IN (SELECT n FROM k)",
    "SELECT t.id, k.b FROM k LEFT JOIN t ON t.id = k.n AND t.id IN (SELECT a FROM k) WHERE a = 3",
    "SELECT k.b, (SELECT count(*) FROM t WHERE t.n = k.n AND t.id IN (SELECT a FROM k)) FROM k",
    "SELECT k.a, (SELECT count(*) FROM t WHERE id IN (SELECT l.n FROM k l WHERE l.a = k.a)) FROM k",
    "WITH w AS (SELECT n FROM k WHERE a = 2) SELECT id FROM t WHERE id IN (SELECT n FROM w)",
    "WITH RECURSIVE w AS (SELECT 1 AS id UNION SELECT t.id + 1 FROM t JOIN w USING (id)"
    " WHERE t.id IN (SELECT n FROM k)) SELECT * FROM w",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM k WHERE k.a = t.n)"
    " AND id IN (SELECT id FROM t WHERE n = 5)",
    "SELECT id FROM t WHERE id IN (SELECT 1 / (a - 3) FROM k)",
    "UPDATE t SET n = -n WHERE id IN (SELECT id FROM t WHERE n = 4 ORDER BY id LIMIT 5)"
    " RETURNING id, n",
    "UPDATE t SET id = id + 1000 WHERE id IN (SELECT id FROM t WHERE n = 4) RETURNING id",
    "DELETE FROM t WHERE n IN (SELECT n FROM t WHERE id < 3) RETURNING id",
    "DELETE FROM k WHERE b IN (SELECT 'b' || id FROM t WHERE n = 8) RETURNING a, b",
    "INSERT INTO k SELECT id, s, n FROM t WHERE n IN (SELECT n FROM t WHERE id = 5) RETURNING a",
    "MERGE INTO t USING (SELECT a FROM k WHERE n = 3) s ON t.id = s.a"
    " WHEN MATCHED AND t.id IN (SELECT n FROM k) THEN DELETE",
)


def plainly(database: SqlDatabase) -> SqlDatabase:
    """The same database, without access paths."""
    other = SqlDatabase.__new__(SqlDatabase)
    other.__dict__.update(database.__dict__)
    other.planner = Planner(tuple([rule for rule in RULES if rule is not access_path_selection]))
    return other


@asynccontextmanager
async def with_tables(rows: int = 600) -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as database:
        for text in TABLES:
            await database.execute(text.replace("(1, 600)", f"(1, {rows})"))
        yield database


async def outcome(database: SqlDatabase, sql: str) -> Any:
    """The rows in any order, or the error."""
    try:
        return sorted((await database.execute(sql)).rows, key=repr)
    except QserverError as error:
        return type(error)


@contextmanager
def whole_scans() -> Iterator[list[int]]:
    """Note the trees that are read from end to end."""
    trees: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for reader in (Snapshot, Transaction):
            original = reader.scan_values

            def scan(
                self: Any,
                tree: int,
                low: Any = None,
                high: Any = None,
                *more: Any,
                read: Any = original,
            ) -> Any:
                if low is None and high is None:
                    trees.append(tree)
                return read(self, tree, low, high, *more)

            patch.setattr(reader, "scan_values", scan)
        yield trees


@pytest.mark.long
async def test_every_query_answers_as_without_access_paths() -> None:
    """Each begins with the same rows, and is run twice, the second time with the plan at hand."""
    for sql in QUERIES:
        changes = not sql.startswith(("SELECT", "WITH"))
        async with with_tables() as database, with_tables() as other:
            expected = await outcome(plainly(other), sql)
            assert await outcome(database, sql) == expected, sql
            if not changes:
                assert await outcome(database, sql) == expected, sql
                continue
            for table in ("t", "k"):
                rows = f"SELECT * FROM {table}"
                assert await outcome(database, rows) == await outcome(other, rows), sql


@pytest.mark.parametrize(
    ("sql", "found", "reads_all"),
    [
        ("SELECT id FROM t WHERE id IN (SELECT n FROM k WHERE a = 3 AND b < 'b2')", 7, False),
        ("SELECT id FROM t WHERE s IN (SELECT 's' || n FROM k WHERE a = 3 AND b = 'b3')", 0, False),
        ("SELECT id FROM t WHERE d IN (SELECT d FROM t WHERE id IN (1, 2))", 20, False),
        ("SELECT a FROM k WHERE a = 1 AND b IN (SELECT s FROM t WHERE id = 1)", 0, False),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE id < 500)", 499, True),
        ("DELETE FROM t WHERE id = ANY (ARRAY(SELECT n FROM t WHERE id = 3))", 1, False),
        ("UPDATE t SET x = 1 WHERE n IN (SELECT n FROM t WHERE id IN (3, 4))", 24, False),
    ],
)
async def test_few_rows_are_looked_up_and_many_are_scanned_for(
    sql: str, found: int, reads_all: bool
) -> None:
    async with with_tables() as database:
        plan = "\n".join(row[0] for row in (await database.execute(f"EXPLAIN {sql}")).rows)
        assert "IN (SubPlan)" in plan
        assert "Else: reads all, for more than" in plan
        with whole_scans() as trees:
            result = await database.execute(sql)
        assert (len(result.rows) or result.affected_rows) == found
        assert bool(trees) == reads_all


async def test_takers_of_jobs_conflict_with_nobody_else() -> None:
    sql = "UPDATE t SET n = 0 WHERE id IN (SELECT id FROM t WHERE n = 5 AND id = 55) RETURNING id"
    async with with_tables() as database:
        transaction = await database.open()
        outcome = await database.inside(transaction, [Statement(sql)], RunOptions())
        assert outcome.results[-1].rows == [(55,)]
        await database.execute("UPDATE t SET s = 'other' WHERE id = 56")
        await database.execute("INSERT INTO t (id) VALUES (9999)")
        await run(database.committing(transaction, RunOptions()))
        assert (await database.execute("SELECT n FROM t WHERE id = 55")).rows == [(0,)]


async def test_a_parameter_and_a_table_that_grows_keep_the_outcome() -> None:
    sql = "SELECT count(*) FROM t WHERE id IN (SELECT i FROM generate_series(1, $1) i)"
    async with with_tables(30) as database:
        for rows in (30, 3000):
            for last in (0, 1, 20, 160, rows, 0):
                found = await database.execute(sql, [last])
                assert found.rows == [(min(last, rows),)]
            await database.execute(
                "INSERT INTO t (id) SELECT generate_series(31, 3000) ON CONFLICT DO NOTHING"
            )


async def test_a_small_table_is_read() -> None:
    async with with_tables(15) as database:
        with whole_scans() as trees:
            sql = "SELECT id FROM t WHERE id IN (SELECT a FROM k WHERE a = 3 AND b = 'b3')"
            assert (await database.execute(sql)).rows == [(3,)]
        assert trees

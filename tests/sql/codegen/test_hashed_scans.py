"""Correlated scans: any number of runs reads a table a few times, and answers as always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from qserver.query.planning import Planner
from qserver.query.sql_database import SqlDatabase
from qserver.sql.codegen import hashed_scans
from qserver.sql.optimizer import RULES
from qserver.sql.optimizer.scan_hashing import scan_hashing
from qserver.storage.snapshot import Snapshot
from tests.sql.databases import opened_sql
from tests.sql.vectors.vectors import answer

TABLES = (
    "CREATE TABLE o (id INT PRIMARY KEY, a INT, b TEXT, f DOUBLE PRECISION, n NUMERIC(9, 2))",
    "CREATE TABLE i (id INT PRIMARY KEY, a BIGINT, b VARCHAR(9), f DOUBLE PRECISION, n NUMERIC,"
    " d INT)",
    "INSERT INTO o SELECT g, nullif(g % 50, 7), nullif('t' || g % 3, 't1'),"
    " CASE WHEN g % 9 = 0 THEN 'NaN'::float8 ELSE g % 5 END, g % 4 FROM generate_series(1, 200) g",
    "INSERT INTO i SELECT g, nullif(g % 60, 9), nullif('t' || g % 4, 't2'),"
    " CASE WHEN g % 7 = 0 THEN 'NaN'::float8 ELSE g % 6 END, g % 3 + 0.00, g % 10"
    " FROM generate_series(1, 400) g",
)

QUERIES = (
    "SELECT o.id FROM o WHERE o.id > (SELECT avg(i.id) FROM i WHERE i.a = o.a)",
    "SELECT o.id FROM o WHERE o.id > (SELECT sum(i.d) FROM i WHERE i.a = o.a AND i.b = o.b)",
    "SELECT o.id, (SELECT count(*) FROM i WHERE i.f = o.f AND i.n = o.n) FROM o",
    "SELECT o.id, (SELECT min(i.id) FROM i WHERE o.a = i.a AND i.d < o.id % 10) FROM o",
    "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.a = o.a AND i.d > 3) OR o.b IS NULL",
    "SELECT o.id, x.n FROM o, LATERAL (SELECT max(i.id) AS n FROM i WHERE i.a = o.a + 1) x",
    "SELECT o.id, (SELECT string_agg(i.b, ',') FROM i WHERE i.a = o.a) FROM o",
    "SELECT o.id, ARRAY(SELECT i.id FROM i WHERE i.n = o.n AND i.d = 3) FROM o",
    "SELECT o.id, (SELECT i.id FROM i WHERE i.a = o.a AND i.b = o.b LIMIT 1) FROM o",
    "SELECT o.id, (SELECT sum(p.id) FROM i JOIN i p ON p.a = i.a WHERE i.b = o.b AND i.d = 1)"
    " FROM o WHERE o.id < 90",
    "SELECT o.id, (SELECT sum((SELECT count(*) FROM i p WHERE p.a = i.a AND p.b = o.b)) FROM i"
    " WHERE i.a = o.a) FROM o",
    "SELECT o.id, (SELECT sum(i.d) FROM i WHERE i.id > 20 AND i.id < 300 AND i.a = o.a) FROM o",
    "SELECT o.id, (SELECT sum(i.d) FROM i WHERE i.id > o.id AND i.a = o.a) FROM o",
    # a row that nobody looks for may be one that raises
    "SELECT o.id, (SELECT sum(10 / i.d) FROM i WHERE i.a = o.a AND i.d <> 0) FROM o",
    "SELECT o.id, (SELECT sum(i.id) FROM i WHERE i.a = o.a + 1000 AND 10 / i.d > 2) FROM o",
    "SELECT o.id, (SELECT sum(i.id) FROM i WHERE i.a = o.a AND 10 / i.d > 2) FROM o",
    "UPDATE o SET a = (SELECT max(p.a) + 1 FROM o p WHERE p.b = o.b) RETURNING id, a",
)


def plainly(database: SqlDatabase) -> SqlDatabase:
    """The same database, without the rule."""
    other = SqlDatabase.__new__(SqlDatabase)
    other.__dict__.update(database.__dict__)
    other.planner = Planner(tuple([rule for rule in RULES if rule is not scan_hashing]))
    return other


@contextmanager
def counted_scans() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("scan_values", "scan_chunks"):
            original = getattr(Snapshot, name)

            def scan(*given: Any, original: Any = original, name: str = name) -> Any:
                counts[name] += 1
                return original(*given)

            patch.setattr(Snapshot, name, scan)
        yield counts


@pytest.mark.parametrize("sql", QUERIES)
async def test_a_correlated_scan_answers_as_without_a_hash_table(sql: str) -> None:
    async with opened_sql() as database, opened_sql() as other:
        for text in TABLES:
            await database.execute(text)
            await other.execute(text)
        assert await answer(database, sql) == await answer(plainly(other), sql)


@pytest.mark.parametrize("rows", [400, 9000])
async def test_a_correlated_aggregate_reads_its_table_a_few_times(rows: int) -> None:
    """By rows, and over vectors, which read it more often before they stop to."""
    async with opened_sql() as database:
        for text in TABLES:
            await database.execute(text.replace("(1, 400)", f"(1, {rows})"))
        with counted_scans() as counts:
            sql = "SELECT id, (SELECT sum(i.d) FROM i WHERE i.a = o.id AND i.b = o.b) FROM o"
            result = await database.execute(sql)
        assert len(result.rows) == 200
        assert 2 < counts.total() <= hashed_scans.RUNS_OVER_VECTORS + 3


async def test_a_table_that_is_too_large_is_read_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hashed_scans, "ROWS_HASHED_MAX", 100)
    monkeypatch.setattr(hashed_scans, "ROWS_BETWEEN_CHECKS", 16)
    async with opened_sql() as database:
        for text in TABLES:
            await database.execute(text)
        sql = QUERIES[1]
        with counted_scans() as counts:
            given_up = await answer(database, sql)
        assert counts.total() > 90
        assert given_up == await answer(plainly(database), sql)

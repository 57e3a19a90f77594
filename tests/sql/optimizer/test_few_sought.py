"""EXISTS whose few rows are looked up in the outer table answers as a semi-join does."""

from __future__ import annotations

import pytest

from qserver.query.planning import Planner
from qserver.sql import RULES
from qserver.sql.optimizer.subquery_unnesting import subquery_unnesting
from tests.sql.databases import opened_sql

ROWS = 4000
DEFINITIONS = (
    "CREATE TABLE t (id int PRIMARY KEY, g int, s text, n numeric, d date)",
    "CREATE INDEX t_g ON t (g, s)",
    "CREATE UNIQUE INDEX t_s ON t (s)",
    "CREATE INDEX t_d ON t (d DESC)",
    f"INSERT INTO t SELECT i, nullif(i % 900, 5), 's' || i, i / 3, DATE '2020-01-01' + i % 700"
    f" FROM generate_series(1, {ROWS}) i",
    "CREATE TABLE few (k int, s text, n numeric, d date, w int)",
    "INSERT INTO few VALUES (5, 's3', 4.0, '2020-02-02', 1), (17, 's17', 4, '2020-02-02', 2),"
    " (17, NULL, 2, NULL, 3), (NULL, 'none', NULL, '2021-01-01', 4), (12345, 's9', 1, NULL, 5)",
)
SOUGHT = (
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few WHERE few.k = t.id)",
    "SELECT id FROM t WHERE EXISTS (SELECT w FROM few WHERE t.g = few.k AND few.w < $1)",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few WHERE few.s = t.s) AND id > 3",
    "SELECT id FROM t WHERE EXISTS (SELECT DISTINCT w FROM few WHERE few.d = t.d ORDER BY w)",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few a JOIN few b USING (k) WHERE a.k = t.id)",
    "SELECT t.id, o.id FROM t JOIN t o ON o.id = t.id + 1"
    " WHERE EXISTS (SELECT 1 FROM few WHERE few.k = t.g)",
    "SELECT t.id FROM t LEFT JOIN few f ON f.k = t.id"
    " WHERE EXISTS (SELECT 1 FROM few WHERE few.k = t.id)",
)
JOINED = (
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few WHERE few.n = t.n)",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM few WHERE few.k = t.id) AND id < 30",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few WHERE few.k = t.id AND few.w < t.g)",
    "SELECT w FROM few WHERE EXISTS (SELECT 1 FROM t WHERE few.k = t.id)",
)


@pytest.mark.half
@pytest.mark.parametrize("grown", [False, True])
async def test_few_rows_that_are_sought_find_what_a_join_finds(grown: bool) -> None:
    without = tuple(rule for rule in RULES if rule is not subquery_unnesting)
    async with opened_sql() as database:
        for each in DEFINITIONS:
            await database.execute(each)
        ordinary = database.planner
        for sql in (*SOUGHT, *JOINED):
            given = [3] if "$1" in sql else None
            lines = (await database.execute(f"EXPLAIN {sql}", given)).rows
            assert any(" IN (SubPlan)" in line for (line,) in lines) == (sql in SOUGHT), sql
            await database.execute(sql, given)
        if grown:  # the plans that are kept were made for fewer rows
            await database.execute(
                "INSERT INTO few SELECT n, 's' || n FROM generate_series(1, 4) n"
            )
        for sql in (*SOUGHT, *JOINED):
            given = [3] if "$1" in sql else None
            found = sorted((await database.execute(sql, given)).rows, key=str)
            database.planner = Planner(without)
            expected = sorted((await database.execute(sql, given)).rows, key=str)
            database.planner = ordinary
            assert found == expected, sql
            assert found or "few.n" in sql

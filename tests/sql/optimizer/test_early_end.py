"""Groups and distinct rows in the order of an index are those of the whole table."""

from __future__ import annotations

import pytest

from qserver.query.planning import Planner
from qserver.sql import RULES
from qserver.sql.optimizer.sort_elimination import sort_elimination
from tests.sql.databases import opened_sql

ROWS = 6000
DEFINITIONS = (
    "CREATE TABLE t (id int PRIMARY KEY, g int, h text, n numeric)",
    "CREATE INDEX t_g ON t (g, id)",
    "CREATE INDEX t_h ON t (h DESC, g)",
    "CREATE INDEX t_n ON t (n)",
    "CREATE TABLE pair (a int, b int, c int, PRIMARY KEY (a, b))",
    f"INSERT INTO t SELECT i, nullif(i * 7919 % 1500, 7), 'h' || i % 900, (i % 700)::numeric / 4"
    f" FROM generate_series(1, {ROWS}) i",
    f"INSERT INTO pair SELECT i % 800, i / 800, i FROM generate_series(1, {ROWS}) i",
)
QUERIES = (
    "SELECT g, count(*), sum(id) FROM t GROUP BY g ORDER BY g LIMIT {limit}",
    "SELECT g, min(h), array_agg(id ORDER BY id DESC) FROM t GROUP BY g ORDER BY g DESC"
    " LIMIT {limit} OFFSET 3",
    "SELECT h, g, count(DISTINCT n) FROM t GROUP BY g, h ORDER BY h DESC, g LIMIT {limit}",
    "SELECT n + 1, avg(id) FROM t GROUP BY n ORDER BY n LIMIT {limit}",
    "SELECT a, sum(c), count(*) FILTER (WHERE b > 2) FROM pair GROUP BY a ORDER BY a LIMIT {limit}",
    "SELECT a, sum(c) FROM pair WHERE c % 5 = 1 GROUP BY a ORDER BY a DESC LIMIT {limit}",
    "SELECT a, count(*) FROM pair GROUP BY a LIMIT {limit}",
    "SELECT DISTINCT g FROM t ORDER BY g LIMIT {limit}",
    "SELECT DISTINCT h, g FROM t ORDER BY h DESC, g LIMIT {limit} OFFSET 5",
    "SELECT DISTINCT ON (g) g, id, h FROM t ORDER BY g, id LIMIT {limit}",
    "SELECT DISTINCT ON (h) h, g FROM t ORDER BY h DESC, g LIMIT {limit}",
    "SELECT x.s FROM (SELECT g, sum(id) s FROM t GROUP BY g ORDER BY g LIMIT {limit}) x"
    " JOIN pair ON pair.a = x.g WHERE pair.b = 1 ORDER BY x.s",
)


@pytest.mark.long
@pytest.mark.parametrize("limit", [0, 1, 10, 5000])
async def test_what_ends_early_is_what_all_rows_give(limit: int) -> None:
    without = tuple(rule for rule in RULES if rule is not sort_elimination)
    async with opened_sql() as database:
        for each in DEFINITIONS:
            await database.execute(each)
        ordinary, ended = database.planner, 0
        for query in QUERIES:
            sql = query.format(limit=limit)
            found = (await database.execute(sql)).rows
            assert (await database.execute(sql)).rows == found
            plan = (await database.execute(f"EXPLAIN {sql}")).rows
            ended += not any("Sort" in line.split("(")[0] for (line,) in plan)
            database.planner = Planner(without)
            expected = (await database.execute(sql)).rows
            database.planner = ordinary
            assert found == expected, sql
        assert ended >= len(QUERIES) - 2

"""A plan is the same whatever ran before: one made for small tables is renewed as they grow."""

from __future__ import annotations

import re

import pytest

from qserver.query.sql_database import SqlDatabase
from qserver.sql.explain import explain
from qserver.sql.parameters import Given
from tests.sampling import sampled
from tests.speed.tpch.queries import QUERIES
from tests.speed.tpch.tables import TABLES
from tests.sql.databases import opened_sql

QUERY_20 = next(query for query in QUERIES if query.number == 20)
LITERAL = re.compile(r"\?\d+|'[^']*'(?:::\w+)?|\b\d+\.\d+\b")
GROWN = (
    "INSERT INTO nation SELECT n, 'CANADA', 1, '' FROM generate_series(1, 25) n",
    "INSERT INTO supplier SELECT n, 's' || n, '', n % 25, '', 1, '' FROM generate_series(1, 50) n",
    "INSERT INTO part SELECT n, 'forest', '', '', '', 1, '', 1, '' FROM generate_series(1, 400) n",
    "INSERT INTO partsupp SELECT n % 400, n / 400, 9, 1, '' FROM generate_series(1, 1600) n",
    "INSERT INTO lineitem SELECT n, n % 400, n % 4, 1, 1, 1, 0, 0, '', '', '1994-05-05',"
    " '1994-05-05', '1994-05-05', '', '', '' FROM generate_series(1, 3000) n",
)


async def executed(database: SqlDatabase, sql: str, given: Given) -> list[str]:
    """Run the statement, and return the lines that EXPLAIN would have for the plan that ran."""
    await database.execute(sql, given)
    snapshot = database.snapshots.take()
    assert snapshot is not None
    parameterized = database.planner.parameterize(sql, given)
    plan = database.planner.find(parameterized, snapshot.catalog, snapshot, given)
    assert plan is not None
    return without_literals(explain(plan.statement))


async def explained(database: SqlDatabase, sql: str, given: Given) -> list[str]:
    lines = (await database.execute(f"EXPLAIN {sql}", given)).rows
    return without_literals([line for (line,) in lines])


def without_literals(lines: list[str]) -> list[str]:
    """A plan that is kept has the numbers of literals where EXPLAIN has their values."""
    return [LITERAL.sub("?", line) for line in lines]


@pytest.mark.parametrize("uses", sampled([0, 1, 2, 9, 40], 2))
@pytest.mark.parametrize("bound", [False, True])
async def test_the_plan_that_runs_is_the_one_that_is_explained(uses: int, bound: bool) -> None:
    sql = QUERY_20.sql if bound else QUERY_20.with_literals
    given = list(QUERY_20.parameters) if bound else None
    async with opened_sql() as database:
        for table, columns in TABLES.items():
            await database.execute(f"CREATE TABLE {table} ({columns})")
        for _ in range(uses):
            await database.execute(sql, given)
        before = await explained(database, sql, given)
        for statement in GROWN:
            await database.execute(statement)
        after = await explained(database, sql, given)
        assert after != before, "the plan depends on the sizes"
        assert await executed(database, sql, given) == after
        for table in TABLES:
            await database.execute(f"DELETE FROM {table}")
        assert await executed(database, sql, given) == before

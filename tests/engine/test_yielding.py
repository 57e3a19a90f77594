"""A long statement lets others run, and ends when its time is over, whatever its loops are."""

from __future__ import annotations

import pytest

from qserver.errors import QueryCanceled
from qserver.query.sql_database import SqlDatabase, Statement
from tests.engine.passes import counted_passes
from tests.sampling import sampled
from tests.sql.databases import opened_sql

ENDLESS = {
    "function": "SELECT count(*) FROM generate_series(1, 1000000000000)",
    "function beside a table": "SELECT count(*) FROM t a, generate_series(1, 100000000000) g",
    "lateral function": "SELECT count(*) FROM t a, t b, LATERAL generate_series(a.id, 100000) g",
    "nested loop": "SELECT count(*) FROM t a JOIN t b ON a.id + b.id > 0 JOIN t c ON c.id <> a.id",
    "product": "SELECT count(*) FROM t a, t b, t c",
    "hash join of few keys": "SELECT count(*) FROM t a JOIN t b ON a.id % 2 = b.id % 2 JOIN t c"
    " ON c.id % 2 = a.id % 2",
    "left join": "SELECT count(*) FROM t a LEFT JOIN t b ON a.id + b.id > 0"
    " LEFT JOIN t c ON b.id + c.id > 0",
    "full join": "SELECT count(*) FROM t a JOIN t b ON a.id <> b.id FULL JOIN t c"
    " ON a.id + b.id + c.id < 0",
    "not exists": "SELECT count(*) FROM t a, t b WHERE NOT EXISTS"
    " (SELECT 1 FROM t c WHERE a.id + b.id + c.id < 0)",
    "exists": "SELECT count(*) FROM t a WHERE EXISTS"
    " (SELECT 1 FROM t b, t c WHERE a.id + b.id + c.id < 0)",
    "scalar subquery": "SELECT (SELECT count(*) FROM t b, t c WHERE b.id + c.id > a.id) FROM t a",
    "subquery once": "SELECT id FROM t WHERE id > (SELECT count(*) FROM t b, t c, t d)",
    "subquery of a subquery": "SELECT id FROM t a WHERE id IN (SELECT b.id FROM t b WHERE b.id >"
    " (SELECT count(*) FROM t c, t d WHERE c.id + d.id > b.id + a.id))",
    "subquery in a change": "UPDATE t a SET id = id"
    " WHERE id > (SELECT count(*) FROM t b, t c, t d)",
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 FROM r)"
    " SELECT count(*) FROM r",
}


@pytest.mark.parametrize("name", sampled(tuple(ENDLESS), 6))
async def test_an_endless_statement_gives_way_and_ends_in_time(name: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        await database.execute("INSERT INTO t SELECT * FROM generate_series(1, 2000)")
        async with counted_passes() as passes:
            with pytest.raises(QueryCanceled):
                await database.execute(ENDLESS[name], timeout_ms=500)
    assert passes.count > 2


async def test_a_transaction_gives_way_between_the_pages_of_its_results() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        await database.execute("INSERT INTO t SELECT * FROM generate_series(1, 50000)")
        for sql in (
            "SELECT id FROM t",
            "SELECT id FROM t WHERE id % 400 >= 0",
            "SELECT id FROM t WHERE id > 0 ORDER BY id",
            "UPDATE t SET id = id RETURNING id",
        ):
            async with counted_passes() as passes:
                outcome = await database.transaction([Statement(sql)])
            assert len(outcome.results[0].rows) == 50_000
            assert passes.count > 10, sql
        async with counted_passes() as passes:
            sparse = await database.transaction([Statement("SELECT id FROM t WHERE id % 400 = 0")])
        assert len(sparse.results[0].rows) == 125
        assert passes.count > 10, "few rows at each pause, but always some"


@pytest.mark.parametrize("action", ["ADD COLUMN c{} INTEGER", "ALTER COLUMN a SET DEFAULT {}"])
async def test_an_alter_table_of_many_actions_gives_way_after_each(action: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
        async with counted_passes() as passes:
            actions = ", ".join(action.format(number) for number in range(20))
            await database.execute(f"ALTER TABLE t {actions}")
    assert passes.count >= 20


async def fill_with_long_numbers(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE long (id INTEGER PRIMARY KEY, x NUMERIC)")
    await database.execute(
        "INSERT INTO long SELECT i, (repeat('9', 20000) || i)::numeric"
        " FROM generate_series(1, 40) AS s(i)"
    )


@pytest.mark.half
@pytest.mark.parametrize("frame", ["", "ROWS 3 PRECEDING"])
@pytest.mark.parametrize("name", ["stddev", "variance"])
async def test_deviations_of_long_numbers_give_way_for_each_row_of_a_window(
    name: str, frame: str
) -> None:
    """Numbers of 20,000 digits are multiplied and divided, and roots are drawn."""
    sql = f"SELECT count(v) FROM (SELECT {name}(x) OVER (ORDER BY id {frame}) AS v FROM long) q"
    async with opened_sql() as database:
        await fill_with_long_numbers(database)
        async with counted_passes() as passes:
            assert (await database.execute(sql)).rows == [(39,)]
    assert passes.count >= 40


@pytest.mark.parametrize("name", ["stddev", "variance"])
async def test_deviations_of_long_numbers_give_way_for_each_group(name: str) -> None:
    counts = []
    async with opened_sql() as database:
        await fill_with_long_numbers(database)
        for rows in (20, 2):
            sql = f"SELECT count(*) FROM (SELECT {name}(x) AS v FROM long GROUP BY id / {rows}) q"
            async with counted_passes() as passes:
                await database.execute(sql)
            counts.append(passes.count)
    few, many = counts
    assert many >= few + 18, "the same rows in 3 groups, and in 21"

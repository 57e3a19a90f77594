"""Vector trees over nothing: empty tables, joins without a match, keys that are all NULL."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from qserver.query.sql_database import SqlDatabase
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.vectors.test_trees import answer, by_rows, trees_everywhere

TABLE: Final = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, k INT, v BIGINT, n NUMERIC(10, 2), t TEXT, d DATE,"
    " o BOOLEAN)"
)
STATES: Final = {
    "empty": "",
    "one": "VALUES (1, 1, 1, 1.50, 'w1', '2020-01-01', true)",
    "nulls": "SELECT g, NULL, NULL, NULL, NULL, NULL, NULL FROM generate_series(1, 90) g",
    "rows": "SELECT g, CASE WHEN g % 4 > 0 THEN g % 9 END, CASE WHEN g % 5 > 0 THEN g % 11 END,"
    " CASE WHEN g % 7 > 0 THEN (g % 13) * 0.25 END, CASE WHEN g % 6 > 0 THEN 'w' || g % 5 END,"
    " CASE WHEN g % 8 > 0 THEN DATE '2020-01-01' + g % 6 END,"
    " CASE WHEN g % 3 > 0 THEN g % 2 = 0 END FROM generate_series(1, 90) g",
    "others": "SELECT g, 100 + g, 100 + g, 7.25, 'zz' || g, DATE '1999-01-01' + g, NULL"
    " FROM generate_series(1, 90) g",
}
GROUPED: Final = "SELECT k, sum(v) s, avg(n) av, count(*) n FROM b GROUP BY k"
QUERIES: Final = (
    "SELECT sum(a.v), count(*), avg(a.v), min(b.d), max(a.n), sum(b.n), count(DISTINCT b.t)"
    " FROM a JOIN b ON a.k = b.k",
    "SELECT sum(a.v), count(*), avg(b.n), min(b.d), max(b.n), sum(b.v), count(DISTINCT b.t),"
    " sum(CASE WHEN b.v > 1 THEN b.n * 1.5 ELSE 0 END) FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT b.t, b.d, b.o, sum(b.v), sum(b.n), avg(b.v), count(b.t) FROM a LEFT JOIN b ON"
    " a.k = b.k GROUP BY b.t, b.d, b.o",
    "SELECT b.t, b.d, sum(b.v), sum(b.n), avg(b.v), count(DISTINCT b.t), count(DISTINCT b.n)"
    " FROM a JOIN b ON a.k = b.k GROUP BY b.t, b.d",
    "SELECT a.id, a.t, b.t, b.n, b.d, b.o, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.t = b.t",
    "SELECT a.id, a.t, b.t, b.n, b.d, b.o, b.v FROM a JOIN b ON a.k = b.k AND a.n = b.n",
    "SELECT sum(a.v), sum(a.n) FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)",
    "SELECT sum(a.v), sum(a.n) FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v <> a.v)",
    "SELECT sum(a.v), sum(a.n) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)",
    "SELECT sum(a.v), sum(a.n) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND"
    " b.v <> a.v)",
    "SELECT a.id FROM a WHERE a.k IN (SELECT k FROM b)",
    "SELECT a.id FROM a WHERE a.t IN (SELECT t FROM b)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT k FROM b)",
    "SELECT sum(a.v) FROM a WHERE a.t NOT IN (SELECT t FROM b)",
    "SELECT a.id FROM a WHERE a.n > (SELECT avg(b.n) FROM b)",
    "SELECT a.id FROM a WHERE a.n > (SELECT avg(b.v) FROM b WHERE b.k = a.k)",
    "SELECT a.id FROM a WHERE a.v >= (SELECT sum(b.v) FROM b WHERE b.k = a.k) OR a.v IS NULL",
    "SELECT sum(a.v) FROM a WHERE a.n > (SELECT sum(b.v) FROM b WHERE b.v < 0)",
    f"SELECT a.id, g.s, g.av, g.n FROM a JOIN ({GROUPED}) g ON g.k = a.k WHERE g.s > a.v OR"
    " g.av > 0",
    f"SELECT a.id, g.s, g.av, g.n FROM a LEFT JOIN ({GROUPED}) g ON g.k = a.k WHERE g.s > a.v"
    " OR g.av IS NULL OR g.av > 0",
    "SELECT g.c, g.av, g.k FROM (SELECT a.k, sum(CASE WHEN b.v > 1 THEN b.n * 1.50 ELSE 0"
    " END) c, avg(b.n) av FROM a JOIN b ON a.k = b.k GROUP BY a.k) g WHERE g.c > 0 OR g.c IS"
    " NULL",
    "SELECT n, count(*), sum(s), min(k) FROM (SELECT a.k, count(b.id) n, sum(b.v) s FROM a"
    " LEFT JOIN b ON a.k = b.k GROUP BY a.k) x GROUP BY n",
    "SELECT count(*), sum(s), avg(s), max(s) FROM (SELECT a.k, count(b.id) n, sum(b.v) s"
    " FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k) x",
    "SELECT a.t, sum(a.v) FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.t HAVING sum(a.v) >"
    " avg(b.n) OR count(b.id) = 0",
    "SELECT a.o, count(*) FILTER (WHERE b.o), sum(a.v) FILTER (WHERE b.v > 3) FROM a LEFT"
    " JOIN b ON a.t = b.t GROUP BY a.o",
    "SELECT a.id, c.id FROM a LEFT JOIN (SELECT x.id, x.k FROM b x JOIN b y ON x.k = y.k) c"
    " ON c.k = a.k",
    "SELECT sum(a.v + 0.5), sum(b.v * b.n) FROM a LEFT JOIN b ON a.k = b.k WHERE b.v IS NULL"
    " OR b.v > 2",
    "SELECT b.t, b.n FROM b LEFT JOIN a ON a.d = b.d WHERE a.id IS NULL",
    "SELECT count(*) FROM a JOIN b ON a.o = b.o LEFT JOIN b c ON c.t = b.t",
)


async def with_tables(database: SqlDatabase, *states: str) -> None:
    for name, state in zip("ab", states, strict=True):
        await database.execute(TABLE.format(t=name))
        if STATES[state]:
            await database.execute(f"INSERT INTO {name} {STATES[state]}")


@pytest.mark.long
@pytest.mark.parametrize("states", sampled(tuple(product(STATES, STATES)), 4))
async def test_nothing_is_answered_as_row_code_does(states: tuple[str, str]) -> None:
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await with_tables(database, *states)
            for sql in QUERIES:
                by_tree = await answer(database, sql)
                assert by_tree == await answer(by_rows(database), sql), sql
    assert counts["answered"] > len(QUERIES) // 2, counts


async def test_a_sum_of_bigints_is_a_numeric_with_rows_and_without() -> None:
    sql = "SELECT sum(a.v), count(*) FROM a JOIN b ON a.k = b.k"
    with trees_everywhere() as counts:
        for state, expected in (("empty", "(None, 0)"), ("one", "(Decimal('1'), 1)")):
            async with opened_sql() as database:
                await with_tables(database, "one", state)
                assert await answer(database, sql) == repr([expected])
    assert counts == {"answered": 2}


async def test_an_average_keeps_its_digits_in_an_outer_join() -> None:
    sql = (
        f"SELECT a.id, g.av FROM a LEFT JOIN ({GROUPED}) g ON g.k = a.k"
        " WHERE g.av IS NULL OR g.av > 0"
    )
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await with_tables(database, "empty", "rows")
            await database.execute("INSERT INTO a (id, k) VALUES (1, 1), (2, 7777)")
            expected = repr(["(1, Decimal('1.5625000000000000'))", "(2, None)"])
            assert await answer(database, sql) == expected
    assert counts == {"answered": 1}

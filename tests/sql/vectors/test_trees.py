"""Vector trees answer as row code does, or leave the answer to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any

import pytest

from qserver.errors import OutOfMemory, QserverError, QueryCanceled
from qserver.query.planning import Planner
from qserver.query.sql_database import Result, SqlDatabase
from qserver.sql.optimizer import RULES
from qserver.sql.optimizer.vector_trees import vector_trees
from qserver.sql.vectors import hash_tables, tree_digits, tree_folding, tree_grouping, tree_run
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.test_execution import begun
from tests.sql.vectors.join_queries import TABLES, JoinWriter
from tests.sql.vectors.test_own_changes import change, undone
from tests.sql.vectors.tree_queries import TreeWriter
from tests.sql.vectors.vectors import tiny_chunks

QUERIES = 30


@contextmanager
def trees_everywhere() -> Iterator[Counter[str]]:
    """Every plan that has a tree runs it. Counts the trees that answer, and those refused."""
    counts: Counter[str] = Counter()
    original = tree_run.TreeRun.rows

    def rows(self: tree_run.TreeRun, most: float) -> Generator[None, None, Any]:
        found = yield from original(self, most)
        counts["refused" if found is None else "answered"] += 1
        return found

    with pytest.MonkeyPatch.context() as patch, tiny_chunks():
        patch.setattr(import_module("qserver.sql.optimizer.vector_trees"), "VECTOR_ROWS_MIN", 0)
        patch.setattr(import_module("qserver.sql.optimizer.vector_choice"), "START_OF_TREE", -1e9)
        patch.setattr(tree_run, "BATCH_ROWS_MAX", 40)
        patch.setattr(tree_run, "PAIRS_MAX", 100)
        patch.setattr(tree_folding, "WAITING_MAX", 30)
        patch.setattr(tree_folding, "FOLDED_AT_ONCE_MIN", 10)
        patch.setattr(tree_folding, "GROUPS_FOLDED_MIN", 8)
        patch.setattr(hash_tables, "VALUES_AT_ONCE", 7)
        patch.setattr(tree_grouping, "VALUES_AT_ONCE", 7)
        patch.setattr(tree_run.TreeRun, "rows", rows)
        yield counts


def by_rows(database: SqlDatabase) -> SqlDatabase:
    """The same database with a planner that knows no trees."""
    other = SqlDatabase.__new__(SqlDatabase)
    other.__dict__.update(database.__dict__)
    other.planner = Planner(tuple([rule for rule in RULES if rule is not vector_trees]))
    return other


async def answer(database: SqlDatabase, sql: str, parameters: Any = None) -> str:
    """Rows in any order, told apart to the last digit and type, or the error."""
    try:
        result = await database.execute(sql, parameters)
    except QserverError as error:
        return f"error {error.code}: {error.message}"
    assert isinstance(result, Result)
    return repr(sorted(map(repr, result.rows)))


async def filled(database: SqlDatabase, writer: JoinWriter) -> None:
    for table in TABLES:
        await database.execute(table)
    for table, rows in {"t": 150, "u": 60, "w": 15}.items():
        await database.execute(writer.rows_of(table, rows))


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(24), 3))
async def test_random_trees_answer_as_row_code_does(seed: int) -> None:
    chance = Random(seed)
    writer = TreeWriter(chance)
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await filled(database, writer)
            for _ in range(QUERIES):
                sql = writer.tree()
                by_tree = await answer(database, sql, writer.parameters)
                expected = await answer(by_rows(database), sql, writer.parameters)
                if not (by_tree.startswith("[") and expected.startswith("error")):
                    assert by_tree == expected, (sql, writer.parameters)
            if writer.extremes == 0.0:
                assert counts["answered"] > 5, counts


async def test_averages_of_groups_that_a_join_drops_are_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0
    exact = tree_digits.OwnDigits._exact

    def counted(vector: tree_digits.OwnDigits) -> list[Any]:
        nonlocal made
        found = exact(vector)
        made += len(found)
        return found

    monkeypatch.setattr(tree_digits.OwnDigits, "_exact", counted)
    sql = """SELECT sum(b.n) FROM b JOIN few f ON f.k = b.k
        WHERE b.n < (SELECT 0.9 * avg(i.n) FROM b i WHERE i.k = f.k)"""
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await database.execute("CREATE TABLE b (id INT PRIMARY KEY, k INT, n NUMERIC(9, 2))")
            await database.execute(
                "INSERT INTO b SELECT n, n % 500, n % 13 FROM generate_series(1, 2000) n"
            )
            await database.execute("CREATE TABLE few (k INT PRIMARY KEY)")
            await database.execute("INSERT INTO few VALUES (1), (3), (5)")
            assert await answer(database, sql) == await answer(by_rows(database), sql)
            assert counts["answered"] and 0 < made <= 3 * 4, "of the rows that are joined alone"


async def test_a_transaction_sees_its_own_writes() -> None:
    chance = Random(5)
    writer = TreeWriter(chance)
    writer.extremes = 0.0
    sums = (
        "SELECT u.i4 % 3, count(*), sum(t.i4) FROM t JOIN u ON t.i2 = u.i2 GROUP BY 1 ORDER BY 1",
        "SELECT count(*), sum(t.id) FROM t WHERE t.i4 NOT IN (SELECT id FROM u)",
    )
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await filled(database, writer)
            for _ in range(6):
                changes = [change(chance, writer, 150), change(chance, writer, 60)]
                changes[1] = changes[1].replace(" t ", " u ")
                for sql in sums:
                    by_tree = undone(database, [*changes, sql])
                    assert by_tree == undone(by_rows(database), [*changes, sql]), changes
    assert counts["answered"]


NOT_IN = (
    ("1, 2, NULL", "(7), (NULL), (1)", "[]"),
    ("", "(7), (NULL), (1)", "['(1,)', '(2,)', '(3,)']"),
    ("1, 2", "(7), (NULL), (1)", "['(1,)']"),
)


@pytest.mark.parametrize(("inside", "outside", "expected"), NOT_IN)
async def test_not_in_knows_null(inside: str, outside: str, expected: str) -> None:
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await database.execute("CREATE TABLE a (id SERIAL PRIMARY KEY, k INT)")
            await database.execute("CREATE TABLE b (id SERIAL PRIMARY KEY, k INT)")
            await database.execute(f"INSERT INTO a (k) VALUES {outside}")
            for each in filter(None, inside.split(", ")):
                await database.execute(f"INSERT INTO b (k) VALUES ({each})")
            sql = "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b)"
            assert await answer(database, sql) == expected
            assert counts["answered"] == 1


ROWS = 20_000
SUM = "SELECT b.g, sum(a.v), count(DISTINCT a.t) FROM a JOIN b ON a.k = b.id GROUP BY b.g"


async def large(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE a (id INT PRIMARY KEY, k INT, v INT, t TEXT)")
    await database.execute("CREATE TABLE b (id INT PRIMARY KEY, g INT)")
    await database.execute(
        f"INSERT INTO a SELECT g, g % 5000, g, 'text ' || g FROM generate_series(1, {ROWS}) g"
    )
    await database.execute("INSERT INTO b SELECT g, g % 7 FROM generate_series(0, 4999) g")


async def test_a_tree_yields_checks_the_deadline_and_counts_its_memory() -> None:
    async with opened_sql() as database:
        await large(database)
        plan = await database.execute(f"EXPLAIN {SUM}")
        assert isinstance(plan, Result)
        assert any("Tree: 2 scans, 1 joins, 1 groupings" in row[0] for row in plan.rows)
        expected = await answer(by_rows(database), SUM)
        assert await answer(database, SUM) == expected
        _, _, steps = begun(database, SUM)
        assert None in list(steps)
        with pytest.raises(QueryCanceled):
            await database.execute(SUM, timeout_ms=0)
        _, run, steps = begun(database, SUM)
        run.context.memory_bytes_most = 8 * ROWS
        with pytest.raises(OutOfMemory):
            list(steps)


async def test_a_sum_that_may_be_too_long_is_left_to_row_code() -> None:
    with trees_everywhere() as counts:
        async with opened_sql() as database:
            await database.execute("CREATE TABLE a (id INT PRIMARY KEY, k INT, v BIGINT)")
            await database.execute("CREATE TABLE b (id INT PRIMARY KEY)")
            await database.execute(
                "INSERT INTO a SELECT g, 1, 9223372036854775807 FROM generate_series(1, 50) g"
            )
            await database.execute("INSERT INTO b VALUES (1)")
            sql = "SELECT sum(a.v) FROM a JOIN b ON a.k = b.id"
            assert await answer(database, sql) == "[\"(Decimal('461168601842738790350'),)\"]"
            assert counts["refused"] == 1


async def test_rows_of_small_pages_that_have_no_vectors_are_left_to_row_code() -> None:
    """Each column is asked for alone: that another one has a vector says nothing about this one."""
    async with opened_sql() as database:
        await large(database)
        await database.execute("CREATE TABLE c (id INT PRIMARY KEY, g INT, n NUMERIC(30, 9))")
        await database.execute("INSERT INTO c VALUES (1, 1, 1.5), (2, 2, 'NaN'), (3, 3, 1e20)")
        sql = "SELECT c.g, sum(a.v), max(c.n) FROM a JOIN c ON a.k = c.id GROUP BY c.g"
        plan = await database.execute(f"EXPLAIN {sql}")
        assert isinstance(plan, Result)
        assert any("Tree: 2 scans" in row[0] for row in plan.rows)
        expected = await answer(by_rows(database), sql)
        assert "NaN" in expected
        assert await answer(database, sql) == expected

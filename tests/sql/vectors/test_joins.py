"""Joins over vectors answer exactly as row code does: the same rows in the same order."""

from __future__ import annotations

from importlib import import_module
from random import Random

import pytest

from qserver.errors import OutOfMemory
from qserver.query.cursor import END
from qserver.query.planning import Planner
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from qserver.sql.optimizer import RULES
from qserver.sql.optimizer.vectorization import vectorization
from qserver.sql.vectors import builds, joins
from qserver.storage.transaction import Transaction
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.test_execution import begun
from tests.sql.vectors.join_queries import TABLES, JoinWriter
from tests.sql.vectors.test_own_changes import change, range_of, undone
from tests.sql.vectors.vectors import answer, counted_chunks, tiny_chunks

ROWS = {"t": 100, "u": 40, "w": 15}
QUERIES = 25


def by_rows(database: SqlDatabase) -> SqlDatabase:
    """The same database with a planner that knows no vectors."""
    other = SqlDatabase.__new__(SqlDatabase)
    other.__dict__.update(database.__dict__)
    other.planner = Planner(tuple([rule for rule in RULES if rule is not vectorization]))
    return other


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(16), 2))
async def test_random_joins_answer_as_row_code_does(seed: int) -> None:
    chance = Random(seed)
    writer = JoinWriter(chance)
    with tiny_chunks(chance.choice((1, 40, 1000))):
        async with opened_sql() as database:
            for table in TABLES:
                await database.execute(table)
            for table, rows in ROWS.items():
                await database.execute(writer.rows_of(table, rows))
            with counted_chunks() as counts:
                for _ in range(QUERIES):
                    sql = writer.join()
                    over_vectors = await answer(database, sql, writer.parameters)
                    expected = await answer(by_rows(database), sql, writer.parameters)
                    assert over_vectors == expected, (sql, writer.parameters)
            if writer.extremes < 0.1:  # otherwise most chunks are refused
                assert counts["aggregated"] > 5, counts


SUMS = (
    "SELECT u.i4 % 3, count(*), sum(t.i4), max(u.id) FROM t JOIN u ON t.i2 = u.i2 GROUP BY 1",
    "SELECT t.i2, count(u.id), sum(u.i4) FROM t LEFT JOIN u ON t.i4 = u.id GROUP BY 1",
    "SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.i4 = t.id)",
)


@pytest.mark.parametrize("seed", range(4))
async def test_a_transaction_joins_its_own_writes(seed: int) -> None:
    chance = Random(seed)
    writer = JoinWriter(chance)
    writer.extremes = 0.0
    with tiny_chunks():
        async with opened_sql() as database:
            for table in TABLES[:2]:
                await database.execute(table)
            await database.execute(writer.rows_of("t", 200))
            await database.execute(writer.rows_of("u", 60))
            for _ in range(4):
                changes = [change(chance, writer, 200), change(chance, writer, 60)]
                changes[1] = changes[1].replace(" t ", " u ")
                for sql in SUMS:
                    with counted_chunks() as counts:
                        over_vectors = undone(database, [*changes, sql])
                    assert counts["aggregated"]
                    assert over_vectors == undone(by_rows(database), [*changes, sql]), changes


@pytest.mark.half
@pytest.mark.parametrize("seed", range(2))
async def test_rows_that_change_between_joins_are_seen(seed: int) -> None:
    chance = Random(seed)
    writer = JoinWriter(chance)
    writer.extremes = 0.0
    with tiny_chunks():
        async with opened_sql() as database:
            for table in TABLES[:2]:
                await database.execute(table)
            await database.execute(writer.rows_of("t", 200))
            await database.execute(writer.rows_of("u", 60))
            for _ in range(10):
                changed = change(chance, writer, 60)
                await answer(database, chance.choice((changed, changed.replace(" t ", " u "))))
                for sql in SUMS:
                    assert await answer(database, sql) == await answer(by_rows(database), sql)


EXTREMES = {
    "integers of 64 bits": (
        "BIGINT",
        ["9223372036854775807", "-9223372036854775808", "0", "9007199254740993", "NULL"],
    ),
    "texts with one beginning": ("TEXT", ["'abc'", "'abcd'", "'ab'", "''", "'abc '", "NULL"]),
    "dates": ("DATE", ["'0001-01-01'", "'9999-12-31'", "'2020-02-29'", "NULL"]),
    "numerics": ("NUMERIC(20, 4)", ["1.0000", "0.0001", "9999999999999999.9999", "'NaN'", "NULL"]),
    "booleans": ("BOOLEAN", ["TRUE", "FALSE", "NULL"]),
}


@pytest.mark.parametrize("right_rows", [0, 1, 7, 300])
@pytest.mark.parametrize("name", sampled(tuple(EXTREMES), 2))
async def test_extreme_keys_meet_as_in_row_code(name: str, right_rows: int) -> None:
    """Empty right sides, those larger than the left side, and duplicates on both sides."""
    kind, values = EXTREMES[name]
    chance = Random(right_rows)
    with tiny_chunks():
        async with opened_sql() as database:
            for table, rows in (("a", 90), ("b", right_rows)):
                await database.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, k {kind})")
                for at in range(rows):
                    value = chance.choice(values)
                    await database.execute(f"INSERT INTO {table} VALUES ({at}, {value})")
            for source in (
                "a JOIN b ON a.k = b.k",
                "a LEFT JOIN b ON a.k = b.k",
                "a LEFT JOIN b ON a.k = b.k AND a.id = b.id",
                "a LEFT JOIN b ON a.k = b.k WHERE b.id IS NULL",
                "a JOIN b ON a.k = b.k AND b.id > a.id",
            ):
                sql = f"SELECT count(*), count(b.k), sum(a.id), sum(b.id), min(b.k) FROM {source}"
                assert await answer(database, sql) == await answer(by_rows(database), sql), sql


async def test_both_sides_count_as_read_as_in_row_code() -> None:
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute("CREATE TABLE a (id INT PRIMARY KEY, k INT, v INT)")
            await database.execute("CREATE TABLE b (id INT PRIMARY KEY, w INT)")
            await database.execute("INSERT INTO a SELECT g, g % 9, g FROM generate_series(1, 99) g")
            await database.execute("INSERT INTO b SELECT g, g FROM generate_series(1, 20) g")
            snapshot = database.database.snapshots.take()
            assert snapshot is not None
            sql = "SELECT sum(v) FROM a JOIN b ON a.k = b.id WHERE v > 3 AND w < 8"
            read = []
            for each in (database, by_rows(database)):
                transaction = Transaction(snapshot)
                run = StatementRun(each.planner, transaction, each._environment.request())
                assert [
                    page for page in iter(run.start(PreparedStatement(sql, None)).step, END) if page
                ]
                read.append(range_of(transaction))
            assert read[0] == read[1]
            assert len(read[0]) == 2


@pytest.mark.parametrize("distinct", [40, 400])
async def test_a_right_side_of_many_texts_is_left_to_row_code(
    distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of few texts each may have many together, and sorting those would take long."""
    monkeypatch.setattr(joins, "WORDS_MAX", 64)
    monkeypatch.setattr(builds, "ROWS_AT_ONCE", 20)
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute("CREATE TABLE a (id INT PRIMARY KEY, k INT)")
            await database.execute("CREATE TABLE b (id INT PRIMARY KEY, k INT, t TEXT)")
            await database.execute("INSERT INTO a SELECT g, g FROM generate_series(1, 99) g")
            await database.execute(
                f"INSERT INTO b SELECT g, g, 'text ' || g * 7 % {distinct}"
                " FROM generate_series(1, 400) g"
            )
            sql = "SELECT min(b.t), max(b.t), count(b.t) FROM a LEFT JOIN b ON a.k + 1 = b.k"
            with counted_chunks() as counts:
                over_vectors = await answer(database, sql)
            assert over_vectors == await answer(by_rows(database), sql)
            assert (counts["aggregated"] > 0) == (distinct < joins.WORDS_MAX)


@pytest.mark.parametrize("by_tree", [False, True])
async def test_the_table_of_a_right_side_counts_as_memory(
    by_tree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 20_000
    if not by_tree:
        rule = import_module("qserver.sql.optimizer.vector_trees")
        monkeypatch.setattr(rule, "VECTOR_ROWS_MIN", rows + 1)
    async with opened_sql() as database:
        await database.execute("CREATE TABLE a (id INT PRIMARY KEY, k BIGINT)")
        await database.execute("CREATE TABLE b (id INT PRIMARY KEY, k BIGINT)")
        for table in "ab":
            await database.execute(
                f"INSERT INTO {table} SELECT g, g * 79190000::bigint"
                f" FROM generate_series(1, {rows}) g"
            )
        sql = "SELECT count(b.k) FROM a LEFT JOIN b ON a.k = b.k"
        with counted_chunks() as counts:
            assert await answer(database, sql) == f"[({rows},)]"
        assert bool(counts["aggregated"]) != by_tree
        _, run, steps = begun(database, sql)
        run.context.memory_bytes_most = 16 * rows  # a key takes 8 bytes, and several slots
        with pytest.raises(OutOfMemory):
            list(steps)

"""Vectors answer exactly as row code does: the same rows in the same order, the same errors."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.vectors.queries import TABLE, Writer
from tests.sql.vectors.vectors import answer, both, counted_chunks, tiny_chunks

ROWS = 100
QUERIES = 40


@pytest.mark.parametrize("seed", sampled(range(16), 2))
async def test_random_queries_answer_as_row_code_does(seed: int) -> None:
    chance = Random(seed)
    writer = Writer(chance)
    with tiny_chunks(chance.choice((1, 40, 1000))):
        async with opened_sql() as database:
            await database.execute(TABLE)
            await database.execute(writer.rows(0, ROWS))
            with counted_chunks() as counts:
                for _ in range(QUERIES):
                    sql = writer.query()
                    over_vectors, by_rows = await both(database, sql, writer.parameters)
                    assert over_vectors == by_rows, (sql, writer.parameters)
            assert_some_were_taken(counts)


def assert_some_were_taken(counts: Counter[str]) -> None:
    """Otherwise the test would compare row code with itself."""
    assert counts.total() - counts["refused"] > 5, counts


@pytest.mark.parametrize(
    ("array", "given"),
    [
        ("$1::int[]", [[1, 2, 3]]),
        ("'{1, 2, 3, NULL}'::int[]", []),
        ("ARRAY[$1, 2, 3]", [1]),
        ("$1::int[]", [list(range(0, 90, 2))]),
    ],
)
@pytest.mark.parametrize("comparison", ["= ANY", "<> ALL"])
async def test_a_statement_with_an_array_answers_the_same_each_time(
    comparison: str, array: str, given: list[Any]
) -> None:
    """The first run reads rows, the second fills vectors, the third has them."""
    sql = f"SELECT count(*), sum(id) FROM p WHERE k {comparison} ({array})"
    async with opened_sql() as database:
        await database.execute("CREATE TABLE p (id INT PRIMARY KEY, k INT)")
        await database.execute(
            "INSERT INTO p SELECT g, nullif(g % 100, 50) FROM generate_series(1, 5000) g"
        )
        with counted_chunks() as counts:
            first, *others = [await answer(database, sql, given) for _ in range(4)]
        assert others == [first] * 3
        assert "error" not in first
        assert counts["aggregated"]


@pytest.mark.parametrize(
    "choice",
    [
        "CASE WHEN k > 5 THEN 100000 ELSE k END",
        "CASE WHEN k > 5 THEN k ELSE 100000 END",
        "CASE WHEN k > 5 THEN 5000000000 WHEN k > 3 THEN k END",
        "coalesce(nothing, 100000)",
        "CASE WHEN k > 5 THEN 99999.99 ELSE price END",
        "CASE WHEN k > 5 THEN DATE '9999-12-31' ELSE day END",
        "CASE WHEN k > 5 THEN TIMESTAMP '9999-12-31' ELSE at END",
    ],
)
async def test_a_constant_beside_a_column_of_small_numbers_stays_large(choice: str) -> None:
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute(
                "CREATE TABLE t (k integer PRIMARY KEY, nothing smallint, price numeric(9, 2),"
                " day date, at timestamp)"
            )
            await database.execute(
                "INSERT INTO t SELECT k, CASE WHEN k < 9 THEN k END, 0.01 * k, '0001-01-09',"
                " '1970-01-01 00:00:00.000001' FROM generate_series(0, 99) k"
            )
            for call in (f"min({choice}), max({choice})", f"count(*), {choice}"):
                sql = f"SELECT {call} FROM t {f'GROUP BY {choice}' if 'count' in call else ''}"
                with counted_chunks() as counts:
                    over_vectors, by_rows = await both(database, sql)
                assert over_vectors == by_rows, sql
                assert counts["aggregated"], sql

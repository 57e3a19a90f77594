"""Vectors answer exactly as row code does: the same rows in the same order, the same errors."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.sql.databases import opened_sql
from tests.sql.vectors.queries import TABLE, Writer
from tests.sql.vectors.vectors import both, counted_chunks, tiny_chunks

ROWS = 100
QUERIES = 40


@pytest.mark.parametrize("seed", range(16))
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
                    over_vectors, by_rows = await both(database, sql)
                    assert over_vectors == by_rows, sql
            assert_some_were_taken(counts)


def assert_some_were_taken(counts: Counter[str]) -> None:
    """Otherwise the test would compare row code with itself."""
    assert counts.total() - counts["refused"] > 5, counts

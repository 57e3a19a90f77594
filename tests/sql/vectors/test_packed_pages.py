"""Vectors of pages that stay packed are read from what is stored, and answer the same."""

from __future__ import annotations

from random import Random

import pytest

from qserver.durability.page_cache import PageCache
from qserver.storage.page import Leaf, Value, read_stored
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.vectors.queries import TABLE, Writer
from tests.sql.vectors.test_same_answers import assert_some_were_taken
from tests.sql.vectors.vectors import LogWithoutColumns, both, counted_chunks, tiny_chunks

ROWS = 100
QUERIES = 30


@pytest.mark.parametrize("seed", sampled(range(200, 216), 2))
async def test_random_queries_answer_the_same_over_packed_pages(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every column is filled anew, from leaves of which some have no unpacked entries."""
    chance = Random(seed)
    writer = Writer(chance)
    monkeypatch.setattr(PageCache, "may_unpack", lambda *_: chance.random() < 0.1)
    stored = 0

    def counted(leaf: Leaf) -> tuple[list[Value], bool]:
        nonlocal stored
        found = read_stored(leaf)
        stored += found[1]
        return found

    monkeypatch.setattr("qserver.storage.columns.read_stored", counted)
    log = LogWithoutColumns()
    with tiny_chunks(chance.choice((1, 40, 1000))):
        async with opened_sql(log) as database:
            await database.execute(TABLE)
            await database.execute(writer.rows(0, ROWS))
            await database.database.checkpoint()
        async with opened_sql(log) as database:
            vectors = database.database.page_cache.vectors
            with counted_chunks() as counts:
                for _ in range(QUERIES):
                    sql = writer.query()
                    vectors.clear()
                    over_vectors, by_rows = await both(database, sql, writer.parameters)
                    assert over_vectors == by_rows, (sql, writer.parameters)
    assert_some_were_taken(counts)
    assert stored > QUERIES


@pytest.mark.parametrize(
    ("sql", "fills"),
    [
        ("SELECT sum(i4) FROM t", True),
        ("SELECT id FROM t WHERE i4 > -100 LIMIT 1", False),
    ],
)
async def test_a_first_scan_fills_columns_of_packed_pages_if_it_reads_all(
    sql: str, fills: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To unpack the rows would take longer than to fill a column."""
    monkeypatch.setattr(PageCache, "may_unpack", lambda *_: False)
    log = LogWithoutColumns()
    async with opened_sql(log) as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, i4 INT NOT NULL)")
        await database.execute("INSERT INTO t SELECT n, n FROM generate_series(1, 10000) n")
        await database.database.checkpoint()
        await database.execute(sql)
        assert database.database.page_cache.vectors.columns == 0, "the rows are here, unpacked"
    async with opened_sql(log) as database:
        await database.execute(sql)
        assert (database.database.page_cache.vectors.columns > 0) is fills

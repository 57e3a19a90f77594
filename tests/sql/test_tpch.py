"""The queries of TPC-H answer as DuckDB does: the first time, again, and with parameters.

By day a third of the 22 are asked. Without `tpchgen-cli`, which makes the data, the test is
skipped. A nightly run has more of it.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from qserver.durability.page_cache import PageCache
from qserver.query.scratch import scratch_database
from qserver.web.service.machine import half_of_memory
from tests.sampling import NIGHTLY, drawn
from tests.speed.tpch.queries import QUERIES
from tests.speed.tpch.tables import generate, generator, load, load_duckdb
from tests.sql.databases import quiet_world

SCALE = 0.05 if NIGHTLY else 0.01
LONG_ANSWERS = [query for query in QUERIES if query.number == 16]
PRECISION = 1e-9
"""DuckDB divides decimals as doubles."""


@pytest.mark.long
@pytest.mark.skipif(generator() is None, reason="tpchgen-cli is not installed")
async def test_queries_answer_as_duckdb_does(tmp_path: Path) -> None:
    generate(tmp_path, SCALE)
    found = 0
    cache = PageCache(half_of_memory())  # as a server has it: all tables stay in memory
    async with scratch_database(quiet_world(), cache=cache) as database:
        duck = load_duckdb(tmp_path)
        await load(tmp_path, database)
        for query in QUERIES if NIGHTLY else drawn(QUERIES, 7, LONG_ANSWERS):
            expected = duck.execute(query.with_literals).fetchall()
            found += len(expected)
            for text, given in (
                (query.with_literals, None),
                (query.with_literals, None),
                (query.sql, list(query.parameters)),
                (query.sql, list(query.parameters)),
            ):
                result = await database.execute(text, given)
                assert same(result.rows, expected), f"query {query.number}"
        duck.close()
    assert found > 100, "answers without rows compare nothing"


def same(rows: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    return len(rows) == len(expected) and all(map(_same_row, rows, expected))


def _same_row(row: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return len(row) == len(expected) and all(map(_same_value, row, expected))


def _same_value(value: Any, expected: Any) -> bool:
    if isinstance(value, Decimal | float) and isinstance(expected, Decimal | float | int):
        return abs(float(value) - float(expected)) <= PRECISION * max(1.0, abs(float(expected)))
    return bool(value == expected)


def test_every_query_has_values_for_its_parameters() -> None:
    assert [query.number for query in QUERIES] == list(range(1, 23))
    for query in QUERIES:
        assert "$" not in query.with_literals
        assert f"${len(query.parameters) + 1}" not in query.sql

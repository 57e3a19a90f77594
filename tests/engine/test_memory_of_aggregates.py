"""What an aggregate keeps counts as memory of its statement, however it is kept."""

from __future__ import annotations

import pytest

from qserver.errors import OutOfMemory
from qserver.limits import STATEMENT_MEMORY_BYTES_MAX
from qserver.query.request import RequestContext
from tests.sql.databases import opened_sql

MANY = "FROM generate_series(1, 1000000000) n"
TOO_MUCH = {
    "array": f"SELECT array_agg(n) {MANY}",
    "array by group": f"SELECT n % 2, array_agg(n) {MANY} GROUP BY 1",
    "ordered": f"SELECT array_agg(n ORDER BY n DESC) {MANY}",
    "distinct": f"SELECT count(DISTINCT n) {MANY}",
    "json": f"SELECT json_agg(n) {MANY}",
    "percentile": f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) {MANY}",
    "first of many": f"SELECT n {MANY} ORDER BY -n LIMIT 1000000000",
    "few long texts": "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 100000)",
}


@pytest.mark.parametrize("statement", TOO_MUCH.values(), ids=TOO_MUCH)
async def test_more_than_a_statement_may_hold_is_refused(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestContext, "memory_bytes_most", STATEMENT_MEMORY_BYTES_MAX // 8)
    async with opened_sql() as database:
        with pytest.raises(OutOfMemory):
            await database.execute(statement, timeout_ms=600_000)


@pytest.mark.long
async def test_rows_that_are_not_kept_do_not_count() -> None:
    statement = "SELECT count(DISTINCT n % 10), sum(n) FROM generate_series(1, 3000000) n"
    async with opened_sql() as database:
        result = await database.execute(statement)
    assert result.rows == [(10, 4_500_001_500_000)]


@pytest.mark.long
async def test_rows_that_are_kept_for_a_while_do_not_count_for_ever() -> None:
    texts = "SELECT n, repeat('x', 10000) || n AS x FROM generate_series(1, 60000) AS s(n)"
    statement = f"SELECT n FROM ({texts}) q ORDER BY x DESC LIMIT 3"
    async with opened_sql() as database:
        result = await database.execute(statement)
    assert result.rows == [(9999,), (9998,), (9997,)]

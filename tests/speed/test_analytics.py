"""The works of the benchmark give the same answers everywhere, and its table has them all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from qserver.query.sql_database import Result
from tests.speed import analytics
from tests.sql.databases import opened_sql


@pytest.mark.long
async def test_duckdb_and_qserver_give_the_same_answers() -> None:
    async with opened_sql() as database:
        _, duck = await analytics.filled(database, 2000)
        for work in analytics.WORKS:
            theirs = duck.execute(work.sql).fetchall()
            for _ in range(3):  # by rows, filled, warm
                ours = await database.execute(work.sql)
                assert isinstance(ours, Result)
                assert plain(ours.rows) == plain(theirs), work.name


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Rows in any order, with averages to a few digits: DuckDB's are floats."""
    return sorted(
        tuple(round(float(each), 4) if isinstance(each, float | Decimal) else each for each in row)
        for row in rows
    )


@pytest.mark.long
async def test_the_table_has_a_line_for_each_work() -> None:
    lines: list[str] = []
    async with opened_sql() as database:
        await analytics.compare(database, 2000, lines.append)
    assert [line[:26].rstrip() for line in lines[1:]] == [work.name for work in analytics.WORKS]

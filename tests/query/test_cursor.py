"""A cursor: rows that are too big to be answered are refused before anything is committed."""

from __future__ import annotations

import pytest

from qserver.errors import ProgramLimitExceeded
from qserver.limits import ROW_BYTES_MAX
from tests.sql.databases import opened_sql

QUARTER = ROW_BYTES_MAX // 4


async def test_a_row_of_the_largest_size_is_answered_and_one_of_a_byte_more_is_refused() -> None:
    four = ", ".join(["(SELECT text FROM long)"] * 4)
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        await database.execute("CREATE TABLE long (text TEXT)")
        await database.execute(f"INSERT INTO long VALUES (repeat('x', {QUARTER}))")
        result = await database.execute(f"INSERT INTO t VALUES (1) RETURNING id, {four}")
        assert sum(map(len, result.rows[0][1:])) == ROW_BYTES_MAX
        with pytest.raises(ProgramLimitExceeded, match=f"size {ROW_BYTES_MAX + 1}, maximum"):
            await database.execute(f"INSERT INTO t VALUES (2) RETURNING id, {four}, 'x'")
        assert (await database.execute("SELECT id FROM t")).rows == [(1,)]


async def test_rows_may_be_larger_together_than_one_may_be() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        await database.execute("CREATE TABLE long (text TEXT)")
        await database.execute(f"INSERT INTO long VALUES (repeat('x', {QUARTER}))")
        result = await database.execute(
            "INSERT INTO t SELECT * FROM generate_series(1, 5)"
            " RETURNING id, (SELECT text FROM long)"
        )
        assert sum(len(text) for _, text in result.rows) == 5 * QUARTER

"""A long expression means what a short one means, though it is cut into functions."""

from __future__ import annotations

import linecache

import pytest

from tests.sampling import sampled
from tests.sql.databases import opened_sql

LENGTHS = [3, 70, 300, 1200]


def listed(item: str, count: int, between: str = ", ") -> str:
    return between.join([item.replace("#", str(at)) for at in range(count)])


@pytest.mark.parametrize("length", sampled(LENGTHS, 1))
async def test_a_long_expression_is_worth_the_same(length: int) -> None:
    last = length - 1
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
        await database.execute(f"INSERT INTO t VALUES (0, NULL), (1, {last}), (2, {length})")

        async def column(expression: str, given: list[int] | None = None) -> list[object]:
            sql = f"SELECT {expression} FROM t ORDER BY id"
            return [row[0] for row in (await database.execute(sql, given)).rows]

        assert await column(listed("a = #", length, " OR ")) == [None, True, False]
        assert await column(listed("a <> #", length, " AND ")) == [None, False, True]
        whens = listed("WHEN a = # THEN # + 1", length, " ")
        assert await column(f"CASE {whens} ELSE -1 END") == [-1, length, -1]
        nulls = listed("nullif(a, a + # - #)", length)
        assert await column(f"COALESCE({nulls}, -5)") == [-5, -5, -5]
        assert await column(f"COALESCE({nulls}, a)") == [None, last, length]
        array = f"(ARRAY[{listed('a + #', length)}])[{length}]"
        assert await column(array) == [None, 2 * last, length + last]
        assert await column(f"a IN ({listed('#', length)})") == [None, True, False]
        given = list(range(length))
        assert await column(f"a NOT IN ({listed('?', length)})", given) == [None, False, True]


@pytest.mark.parametrize("length", LENGTHS)
async def test_rows_of_parameters_are_all_there(length: int) -> None:
    async with opened_sql() as database:
        for width in (1, 2, 3):
            row = f"({listed('?', width)})"
            rows = listed(row, length)
            given = list(range(width * length))
            first = f"VALUES ({listed('0::integer', width)}), {rows}"
            answer = await database.execute(first, given)
            wanted = [tuple(given[at : at + width]) for at in range(0, len(given), width)]
            assert answer.rows == [(0,) * width, *wanted]


async def test_the_source_of_a_statement_is_forgotten_with_it() -> None:
    def known() -> int:
        return sum(name.startswith("<statement ") for name in linecache.cache)

    async with opened_sql() as database:
        await database.execute("SELECT 1")
        before = known()
        for number in range(20):
            await database.execute(f"EXPLAIN SELECT 1 AS c{number}")  # its plan is not kept
        assert known() == before
        await database.execute("SELECT 2 AS kept")
        assert known() == before + 1

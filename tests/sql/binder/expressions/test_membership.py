"""= ANY and <> ALL of an array that comes with the statement are look-ups, and know NULL."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.databases import opened_sql

CASES: list[tuple[str, Any, int]] = [
    ("a = ANY($1)", [1, 2, 2], 2),
    ("a = ANY($1)", [1, None], 1),
    ("a = ANY($1)", [], 0),
    ("a = ANY($1)", None, 0),
    ("a = ANY($1)", [[1, 2], [3, 4]], 4),
    ("a <> ALL($1)", [1], 4),
    ("a <> ALL($1)", [1, None], 0),
    ("a <> ALL($1)", [], 6),
    ("a <> ALL($1)", None, 0),
    ("NOT (a = ANY($1))", [], 6),
    ("NOT (a = ANY($1))", [1], 4),
    ("NOT (a = ANY($1))", [None], 0),
    ("(a = ANY($1)) IS NULL", [], 0),
    ("(a = ANY($1)) IS NULL", [1], 1),
    ("(a = ANY($1)) IS NULL", None, 6),
    ("f = ANY($1)", ["NaN", -0.0], 2),
    ("f IN ('NaN', 7)", None, 1),
    ("n = ANY($1)", ["NaN", "1.00"], 2),
    ("b = ANY($1)", ["x1", "x9"], 1),
]


@pytest.mark.parametrize(("condition", "given", "count"), CASES)
async def test_it_finds_what_postgresql_finds(condition: str, given: Any, count: int) -> None:
    async with opened_sql() as database:
        await database.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, f FLOAT8, n NUMERIC)"
        )
        await database.execute(
            "INSERT INTO t VALUES (0, NULL, NULL, 'NaN', 'NaN'), (1, 1, 'x1', 0, 1),"
            " (2, 2, 'x2', 2, 2), (3, 3, 'x3', 3, 3), (4, 4, 'x4', 4, 4), (5, 5, 'x5', 5, 5)"
        )
        parameters = [given] if "$1" in condition else None
        for sql in (
            f"SELECT count(*) FROM t WHERE {condition}",
            f"SELECT count(*) FROM (SELECT 1) one LEFT JOIN t ON true WHERE {condition}",
        ):
            assert (await database.execute(sql, parameters)).rows == [(count,)]
        update = f"UPDATE t SET b = b WHERE {condition}"
        assert (await database.execute(update, parameters)).affected_rows == count


async def test_a_key_is_looked_up_for_each_element() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        answer = await database.execute("EXPLAIN SELECT id FROM t WHERE id = ANY('{5,6}')")
        assert any("Key Lookup on t" in line for (line,) in answer.rows)

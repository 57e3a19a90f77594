"""Vector trees and the limit on memory: many groups fit, and row code begins with what it had."""

from __future__ import annotations

import pytest

from qserver.errors import OutOfMemory
from qserver.query.sql_database import SqlDatabase
from qserver.sql.vectors import tree_folding
from tests.sql.databases import opened_sql
from tests.sql.test_execution import begun
from tests.sql.vectors.test_trees import by_rows, trees_everywhere

ROWS, GROUPS = 40_000, 10_000
MANY_GROUPS = (
    "SELECT count(*), sum(n), max(s), min(k) FROM (SELECT d.s AS k, count(*) AS n, sum(f.v) AS s,"
    " avg(f.v) AS a FROM f JOIN d ON f.k = d.id GROUP BY d.s) x WHERE a > 1"
)
LONG_SUM = "SELECT d.g, sum(f.b) FROM f JOIN d ON f.k = d.id GROUP BY d.g"
DIFFERENT = "SELECT d.g, count(DISTINCT f.id) FROM f JOIN d ON f.k = d.id GROUP BY d.g"


async def filled(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE d (id INT PRIMARY KEY, s BIGINT, g INT)")
    await database.execute("CREATE TABLE f (id INT PRIMARY KEY, k INT, v INT, b BIGINT)")
    await database.execute(
        f"INSERT INTO d SELECT i, i * 1000003::bigint, i % 7 FROM generate_series(1, {GROUPS}) i"
    )
    await database.execute(
        f"INSERT INTO f SELECT i, i * 7919::bigint % {GROUPS} + 1, i % 1000, 9e18::bigint"
        f" FROM generate_series(1, {ROWS}) i"
    )


def answered(database: SqlDatabase, sql: str, bytes_most: int) -> list[str] | None:
    """The rows, in any order; None if they need more memory."""
    _, run, steps = begun(database, sql)
    run.context.memory_bytes_most = bytes_most
    try:
        found = sorted(repr(row) for page in steps if page for row in page)
    except OutOfMemory:
        return None
    finally:
        run.context.release()
    return found


def need(database: SqlDatabase, sql: str) -> int:
    """The least memory with which a statement is answered, within a sixteenth."""
    low, high = 0, 2**26
    while high - low > high // 16:
        middle = (low + high) // 2
        low, high = (middle, high) if answered(database, sql, middle) is None else (low, middle)
    return high


@pytest.mark.long
@pytest.mark.parametrize(("sql", "groups"), [(MANY_GROUPS, GROUPS), (DIFFERENT, ROWS)])
async def test_the_memory_of_a_tree_is_that_of_its_groups(
    sql: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_folding, "WAITING_MAX", 2**10)
    monkeypatch.setattr(tree_folding, "FOLDED_AT_ONCE_MIN", 2**10)
    monkeypatch.setattr(tree_folding, "GROUPS_FOLDED_MIN", 2**8)
    async with opened_sql() as database:
        await filled(database)
        expected = answered(by_rows(database), sql, 2**28)
        with trees_everywhere() as counts:
            assert answered(database, sql, 250 * groups) == expected
        assert counts == {"answered": 1}


@pytest.mark.long
@pytest.mark.parametrize("sql", [LONG_SUM, MANY_GROUPS])
async def test_row_code_has_all_memory_when_a_tree_gives_up(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused for a sum that may be too long, or for its own memory: what it held is free."""
    async with opened_sql() as database:
        await filled(database)
        rows = by_rows(database)
        least = need(rows, sql)
        if sql is MANY_GROUPS:  # a tree that holds more than row code
            monkeypatch.setattr(tree_folding.Folded, "size", property(lambda _: 2 * least))
        with trees_everywhere() as counts:
            assert answered(database, sql, least) == answered(rows, sql, 2**28)
        assert counts == {"refused": 1}


@pytest.mark.long
async def test_a_tree_holds_nothing_but_its_answer_when_it_has_ended() -> None:
    async with opened_sql() as database:
        await filled(database)
        with trees_everywhere() as counts:
            _, run, steps = begun(database, DIFFERENT)
            assert sum(len(page) for page in steps if page) == 7
        assert counts == {"answered": 1}
        assert run.context.held < 5_000

"""A cast that leaves values as they are costs nothing where a statement runs."""

from __future__ import annotations

import pytest

from tests.sql.databases import opened_sql


@pytest.mark.parametrize(
    ("query", "casts", "row"),
    [
        ("SELECT k, t FROM narrow", False, (2147483646, "7")),  # VARCHAR to TEXT, too
        ("SELECT k + 1, t FROM narrow WHERE k > 0", False, (2147483647, "7")),
        ("SELECT t::integer, k::text FROM narrow", True, (7, "2147483646")),
    ],
)
async def test_a_cast_is_called_only_where_it_changes_something(
    query: str, casts: bool, row: tuple[int, str]
) -> None:
    async with opened_sql() as sql:
        await sql.execute("CREATE TABLE narrow (k INTEGER NOT NULL, t VARCHAR NOT NULL)")
        await sql.execute("CREATE TABLE wide (k BIGINT, t TEXT)")
        await sql.execute("INSERT INTO narrow VALUES (2147483646, '7')")
        text = f"INSERT INTO wide {query}"
        assert (await sql.execute(text)).affected_rows == 1
        snapshot = sql.snapshots.take()
        assert snapshot is not None
        found = sql.planner.find(sql.planner.parameterize(text, None), snapshot.catalog, snapshot)
        assert found is not None
        assert ("cast_" in found.compiled.source) is casts
        assert (await sql.execute("SELECT k, t FROM wide")).rows == [row]


async def test_a_wider_integer_is_computed_as_such() -> None:
    async with opened_sql() as sql:
        await sql.execute("CREATE TABLE narrow (k INTEGER)")
        await sql.execute("INSERT INTO narrow VALUES (2147483647), (NULL)")
        query = "SELECT k::bigint + 1, pg_typeof(k::bigint)::text FROM narrow ORDER BY k"
        assert (await sql.execute(query)).rows == [(2147483648, "bigint"), (None, "bigint")]

"""EXPLAIN (FORMAT JSON): the nodes of the text, by the names that PostgreSQL's tools look for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from qserver.errors import InvalidParameterValue
from qserver.query.sql_database import SqlDatabase
from qserver.values.types import JSON, TEXT
from tests.sql.databases import opened_sql

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, a int, b text)",
    "CREATE INDEX t_a ON t (a)",
    "INSERT INTO t SELECT n, n % 7, 'x' FROM generate_series(1, 100) n",
)
STATEMENTS = (
    "SELECT * FROM t WHERE id = 1",
    "SELECT b, count(*) FROM t u WHERE a = 3 GROUP BY b ORDER BY 2 DESC LIMIT 3",
    "SELECT x.b FROM t x LEFT JOIN t y ON y.id = x.a WHERE x.id > 5",
    "SELECT count(*) FROM t",
    "SELECT max(id) FROM t",
    "SELECT (SELECT max(a) FROM t v WHERE v.id < t.id) FROM t",
    "WITH c AS (SELECT a FROM t), d AS (SELECT 1 AS a) SELECT * FROM c, d",
    "SELECT a FROM t UNION ALL SELECT 1 EXCEPT SELECT id FROM t",
    "SELECT * FROM t WHERE b = ': on using x' ORDER BY id DESC",
    "INSERT INTO t VALUES (1000, 1, 'y') ON CONFLICT DO NOTHING",
    "UPDATE t SET a = a + 1 WHERE id IN (SELECT id FROM t WHERE a < 2)",
    "DELETE FROM t WHERE a = 1",
)


async def explained(sql: SqlDatabase, statement: str, options: str = "") -> dict[str, Any]:
    first, result = [
        await sql.execute(f"EXPLAIN (FORMAT JSON{options}) {statement}")
        for _ in range(2)  # the second time with a plan that is kept
    ]
    assert (result.columns, result.types) == (("QUERY PLAN",), (JSON,))
    assert first.rows == result.rows
    ((text,),) = result.rows
    (found,) = json.loads(text)
    assert isinstance(found, dict)
    return found


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for below in tree.get("Plans", ()):
        assert below["Parent Relationship"] in ("Outer", "Inner", "Member", "SubPlan")
        yield from nodes(below)


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_it_has_every_node_and_detail_of_the_text(statement: str) -> None:
    async with opened_sql() as sql:
        for each in TABLES:
            await sql.execute(each)
        found = list(nodes((await explained(sql, statement))["Plan"]))
        text = await sql.execute(f"EXPLAIN {statement}")
    assert text.types == (TEXT,)
    lines = [line.strip().removeprefix("->  ") for (line,) in text.rows]
    titles = [line for line in lines if "  (rows=" in line or " on t" in line.split(": ")[0]]
    details = [line for line in lines if line not in titles and not line.startswith("SubPlan ")]
    assert len(titles) == len(found)
    for title, node in zip(titles, found, strict=True):
        if node["Node Type"] == "ModifyTable":
            assert title == f"{node['Operation']} on {node['Relation Name']}"
            continue
        assert title.startswith(node["Node Type"])
        assert title.endswith(f"(rows={node['Plan Rows']})")
        for name in ("Relation Name", "Index Name"):
            assert str(node.get(name, "")) in title
    told = [f"{key}: {value}" for node in found for key, value in node.items()]
    assert [line for line in details if line not in told] == []


async def test_analyze_counts_rows_and_changes() -> None:
    async with opened_sql() as sql:
        for each in TABLES:
            await sql.execute(each)
        untimed = ", ANALYZE, TIMING OFF, SUMMARY OFF"
        read = await explained(sql, "SELECT * FROM t WHERE a = 1", untimed)
        assert read["Plan"]["Actual Rows"] == 15 and "Changed Rows" not in read
        assert "Execution Time" not in read and "Planning Time" not in read
        wrote = await sql.execute("EXPLAIN (FORMAT JSON, ANALYZE) DELETE FROM t WHERE a = 1")
        assert json.loads(wrote.rows[0][0])[0]["Changed Rows"] == 15 == wrote.affected_rows
        assert (await sql.execute("SELECT count(*) FROM t WHERE a = 1")).rows == [(0,)]


async def test_other_options_have_their_place() -> None:
    async with opened_sql() as sql:
        for each in TABLES:
            await sql.execute(each)
        found = await explained(sql, "SELECT * FROM t", ", LIVE, CODE")
        assert found["Live"] == "looks at changed rows only" and "def " in found["Code"]
        result = await sql.execute("EXPLAIN (FORMAT JSON, FORMAT TEXT) SELECT 1")
        assert result.types == (TEXT,)
        with pytest.raises(InvalidParameterValue, match="unrecognized value"):
            await sql.execute("EXPLAIN (FORMAT png) SELECT 1")

"""EXPLAIN ANALYZE: what each node of a plan has done, over rows and over vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from qserver.errors import (
    DivisionByZero,
    Forbidden,
    InvalidStatementName,
    QserverError,
    ReadOnlyTransaction,
)
from qserver.query.permissions import Allowed
from qserver.query.results import Statement
from qserver.query.sql_database import SqlDatabase
from tests.query.connections import Connection
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.golden import parse_script
from tests.sql.vectors.vectors import tiny_chunks

SCRIPTS = sorted((Path(__file__).parent.parent / "sql/scripts").rglob("*.script"))
MEASURED = "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, SUMMARY OFF)"
_NOT_EXPLAINED = re.compile(r"\binto\b|\bsetval\b", re.IGNORECASE)
"""SELECT INTO, and what a dry run refuses."""
TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, a int, b text)",
    "CREATE INDEX t_a ON t (a)",
    "INSERT INTO t SELECT n, n % 7, 'x' FROM generate_series(1, 5000) n",
    "CREATE TABLE d (id int PRIMARY KEY, k int, name text)",
    "INSERT INTO d SELECT n, n % 50, 'n' || n FROM generate_series(1, 400) n",
)

SKIPPED = {
    "JSON": '[\n  "CREATE TABLE AS"\n]',
    "YAML": '- "CREATE TABLE AS"',
    "XML": '<explain xmlns="http://www.postgresql.org/2009/explain">\n'
    "  <CREATE-TABLE-AS />\n</explain>",
}


async def filled(sql: SqlDatabase) -> None:
    for each in TABLES:
        await sql.execute(each)


async def measured(sql: SqlDatabase, statement: str, options: str = MEASURED) -> dict[str, Any]:
    ((text,),) = (await sql.execute(f"{options} {statement}")).rows
    (found,) = json.loads(text)
    assert isinstance(found, dict)
    return found


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for below in tree.get("Plans", ()):
        yield from nodes(below)


def counts(tree: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(each["Node Type"], each["Actual Rows"], each["Actual Loops"]) for each in nodes(tree)]


@pytest.mark.parametrize("chunks", [nullcontext, tiny_chunks], ids=["by rows", "by vectors"])
@pytest.mark.parametrize("path", sampled(SCRIPTS, 3), ids=lambda path: path.stem)
async def test_the_first_node_counts_the_rows_of_the_answer(path: Path, chunks: Any) -> None:
    cases, _ = parse_script(path.read_text())  # noqa: ASYNC240  # a small file, in a test
    with chunks():
        async with opened_sql() as sql:
            for case in cases:
                if not case.sql.lower().startswith(("select", "with", "values", "table")):
                    await _tried(sql, case.sql)
                    continue
                found = await _tried(sql, f"{MEASURED} {case.sql}", dry_run=True)
                plain = await _tried(sql, case.sql)
                if isinstance(plain, QserverError) or _NOT_EXPLAINED.search(case.sql):
                    continue
                ((text,),) = found.rows
                assert json.loads(text)[0]["Plan"]["Actual Rows"] == len(plain.rows), case.sql


async def _tried(sql: SqlDatabase, statement: str, *, dry_run: bool = False) -> Any:
    try:
        done = await sql.transaction([Statement(statement)], dry_run=dry_run)
        return done.results[0]
    except QserverError as error:
        return error


async def test_the_rows_of_joins_and_filters_are_counted_over_vectors() -> None:
    statement = (
        "SELECT d.name, count(*), sum(t.id::float8) FROM t JOIN d ON d.k = t.a"
        " WHERE t.id > 10 AND d.id < 300 AND d.id + t.id < 2000 GROUP BY 1"
    )
    with tiny_chunks():
        async with opened_sql() as sql:
            await filled(sql)
            await sql.execute("DROP INDEX t_a")
            found = await measured(sql, statement)
            joined = await sql.execute(
                statement.replace("d.name, count(*), sum(t.id::float8)", "1").split("GROUP")[0]
            )
    join = next(each for each in nodes(found["Plan"]) if "Join" in each["Node Type"])
    assert join["Vectors"] == "join" and join["Actual Rows"] == len(joined.rows)
    assert {each["Relation Name"]: each["Actual Rows"] for each in join["Plans"]} == {
        "t": 4990,
        "d": 299,
    }


JOINED = (
    "SELECT d.name, count(*) FROM t JOIN d ON d.k = t.a"
    " WHERE t.id > 10 AND d.id < 300 AND d.id + t.id < 2000 GROUP BY 1 HAVING count(*) > 200"
)


async def test_a_vector_tree_tells_the_rows_of_its_parts() -> None:
    with tiny_chunks():
        async with opened_sql() as sql:
            await filled(sql)
            await sql.execute("DROP INDEX t_a")
            found = await measured(sql, JOINED)
            timed = await measured(sql, JOINED, "EXPLAIN (ANALYZE, FORMAT JSON)")
            text = await sql.execute(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {JOINED}")
            plain = await sql.execute(JOINED)
            joined = JOINED.replace("d.name, count(*)", "1").split(" GROUP")[0]
            rows = len((await sql.execute(joined)).rows)
            names = len((await sql.execute(joined.replace("1 FROM", "DISTINCT d.name FROM"))).rows)
    every = list(nodes(found["Plan"]))
    at = next(at for at, each in enumerate(every) if each["Node Type"] == "Vectors")
    assert counts(every[at]) == [
        ("Vectors", len(plain.rows), 1),
        ("Filter", len(plain.rows), 1),
        ("GroupAggregate", names, 1),
        ("Hash Join", rows, 1),
        ("Scan", 4990, 1),
        ("Scan", 299, 1),
    ]
    removed = [each.get("Rows Removed by Filter") for each in every[at + 1 :]]
    assert removed == [names - len(plain.rows), None, None, 10, 101]
    assert [each["Hash Key"] for each in every if "Hash Key" in each] == ["t.a = d.k"]
    assert [each["Relation Name"] for each in every if "Relation Name" in each] == ["t", "d"]
    assert f"      ->  Hash Join (actual rows={rows} loops=1)" in [line for (line,) in text.rows]
    (tree,) = [each for each in nodes(timed["Plan"]) if each["Node Type"] == "Vectors"]
    for above in nodes(tree):
        below = [each["Actual Total Time"] for each in above.get("Plans", ())]
        assert above["Actual Total Time"] >= round(sum(below) - 0.01, 3)
    assert tree["Actual Total Time"] > 0


async def test_a_tree_that_is_refused_tells_of_the_row_code_that_ran() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        await sql.execute("CREATE TABLE l (id int PRIMARY KEY, v bigint)")
        await sql.execute("INSERT INTO l SELECT n, 9e18::bigint FROM generate_series(1, 5000) n")
        with tiny_chunks(), pytest.MonkeyPatch.context() as patch:
            choice = import_module("qserver.sql.optimizer.vector_choice")
            patch.setattr(choice, "START_OF_TREE", -1e9)
            found = await measured(sql, "SELECT sum(l.v) FROM l JOIN t ON t.id = l.id")
    every = list(nodes(found["Plan"]))
    assert "Vectors" in [each["Node Type"] for each in every]
    assert all("Actual Rows" in each and "Plan Rows" in each for each in every)


async def test_a_filter_over_vectors_tells_the_rows_that_it_removed() -> None:
    with tiny_chunks():
        async with opened_sql() as sql:
            await filled(sql)
            await sql.execute("DROP INDEX t_a")
            found = await measured(sql, "SELECT sum(id) FROM t WHERE a = 3")
            again = await measured(sql, "SELECT id FROM t WHERE a = 3")
    for each in (found, again):
        scan = list(nodes(each["Plan"]))[-1]
        assert scan["Vectors"] == "filter"
        assert (scan["Actual Rows"], scan["Rows Removed by Filter"]) == (714, 4286)


async def test_nodes_that_run_again_and_that_never_run_say_so() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        found = await measured(sql, "SELECT (SELECT count(*) FROM t WHERE t.a = d.k) FROM d")
        assert counts(found["Plan"]) == [
            ("Project", 400, 1),
            ("Scan", 400, 1),
            ("Project", 1, 50),  # what was found for a value is remembered
            ("Count", 1, 50),
        ]
        never = (
            "SELECT * FROM d, LATERAL (SELECT count(*) FROM t WHERE t.id < d.k) q WHERE d.id < 0"
        )
        lines = await sql.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {never}")
        assert [line for (line,) in lines.rows if line.endswith("(never executed)")]


async def test_times_and_the_time_of_planning_are_told() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        timed = await measured(
            sql, "SELECT a, count(*) FROM t GROUP BY a ORDER BY 2", "EXPLAIN (ANALYZE, FORMAT JSON)"
        )
        assert timed["Planning Time"] > 0 and timed["Execution Time"] > 0
        whole = timed["Plan"]["Actual Total Time"]
        assert 0 < whole <= timed["Execution Time"]
        for each in nodes(timed["Plan"]):
            assert 0 <= each["Actual Startup Time"] <= each["Actual Total Time"] <= whole
            below = sum(inner["Actual Total Time"] for inner in each.get("Plans", ()))
            assert each["Actual Total Time"] >= below - 0.01


async def test_an_error_of_the_statement_is_that_of_its_explanation() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        with pytest.raises(DivisionByZero):
            await sql.execute("EXPLAIN ANALYZE SELECT 1 / (id - 4000) FROM t")
        assert (await sql.execute("SELECT count(*) FROM t")).rows == [(5000,)]


async def test_changes_happen_and_their_rows_are_counted() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        found = await measured(sql, "UPDATE d SET k = 0 WHERE id <= 20 RETURNING id")
        assert found["Changed Rows"] == 20
        assert counts(found["Plan"]) == [("ModifyTable", 20, 1), ("Key Range Scan", 20, 1)]
        inside = await measured(
            sql, "WITH gone AS (DELETE FROM d WHERE id <= 7 RETURNING id) SELECT 1 FROM gone"
        )
        assert ("ModifyTable", 7, 1) in counts(inside["Plan"])
        many = await measured(sql, "INSERT INTO d VALUES (900, 1, 'a'), (901, 2, 'b')")
        assert counts(many["Plan"]) == [("ModifyTable", 0, 1), ("Values", 2, 1)]
        assert (await sql.execute("SELECT count(*) FROM d")).rows == [(395,)]


async def test_all_formats_tell_the_same() -> None:
    asked = "SELECT a, (SELECT max(id) FROM d) FROM t WHERE b = '<&>' OR b = E'\"' LIMIT 1"
    async with opened_sql() as sql:
        await filled(sql)
        found = await measured(sql, asked)
        ((text,),) = (await sql.execute(f"{MEASURED.replace('JSON', 'XML')} {asked}")).rows
        ((yaml,),) = (await sql.execute(f"{MEASURED.replace('JSON', 'YAML')} {asked}")).rows
    name = "{http://www.postgresql.org/2009/explain}"
    root = ElementTree.fromstring(text)
    assert root.tag == name + "explain"
    values = {each.tag.removeprefix(name): each.text for each in root.iter()}
    for node in nodes(found["Plan"]):
        for key, value in node.items():
            assert key.replace(" ", "-") in values
            if key != "Plans":
                assert f"{key}: {json.dumps(value, ensure_ascii=False)}" in yaml
    assert values["Filter"] == next(
        each["Filter"] for each in nodes(found["Plan"]) if "Filter" in each
    )
    assert yaml.startswith("- Plan: \n    Node Type: ")


async def test_execute_and_declare_are_explained() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        connection = Connection(sql)
        await connection.run("PREPARE p (int) AS SELECT name FROM d WHERE k = $1")
        lines = await connection.run("EXPLAIN (COSTS OFF) EXECUTE p (1 + 2)")
        assert [line for (line,) in lines.rows] == [
            "Project",
            "->  Scan on d",
            "      Filter: (d.k = $1)",
        ]
        ran = await connection.run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE p ('3')")
        assert ran.rows[0] == ("Project (actual rows=8 loops=1)",)
        with pytest.raises(InvalidStatementName):
            await connection.run("EXPLAIN EXECUTE gone")
        await connection.run("BEGIN")
        await connection.run("PREPARE w AS INSERT INTO d VALUES ($1, 1, 'w')")
        wrote = await connection.run("EXPLAIN ANALYZE EXECUTE w (5000)")
        assert wrote.affected_rows == 1
        shown = await connection.run("EXPLAIN DECLARE c SCROLL CURSOR WITH HOLD FOR TABLE d")
        assert shown.rows[1][0].startswith("->  Scan on d")
        counted = await connection.run(
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) DECLARE c CURSOR FOR TABLE d"
        )
        assert counted.rows[0] == ("Project (actual rows=401 loops=1)",)
        with pytest.raises(QserverError, match='cursor "c" does not exist'):
            await connection.run("FETCH c")
        await connection.run("ROLLBACK")
        assert (await sql.execute("SELECT count(*) FROM d")).rows == [(400,)]


async def test_create_table_as_is_explained_and_made_by_analyze() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        await measured(sql, "CREATE TABLE made AS TABLE d", "EXPLAIN (FORMAT JSON)")
        with pytest.raises(QserverError, match='relation "made" does not exist'):
            await sql.execute("TABLE made")
        found = await measured(sql, "CREATE TABLE made AS SELECT * FROM d WHERE k = 1")
        assert found["Changed Rows"] == 8 == found["Plan"]["Actual Rows"]
        assert (await sql.execute("SELECT count(*) FROM made")).rows == [(8,)]
        for options in ("", "ANALYZE"):
            with pytest.raises(QserverError, match='relation "made" already exists'):
                await sql.execute(f"EXPLAIN {options} CREATE TABLE made AS TABLE d")
            skipped = f"EXPLAIN {options} CREATE TABLE IF NOT EXISTS made AS TABLE d"
            assert (await sql.execute(skipped)).rows == []
        for form, text in SKIPPED.items():
            again = f"EXPLAIN (FORMAT {form}) CREATE TABLE IF NOT EXISTS made AS TABLE d"
            assert (await sql.execute(again)).rows == [(text,)]
        empty = await measured(sql, "CREATE TABLE none AS TABLE d WITH NO DATA")
        assert counts(empty["Plan"])[0] == ("Project", 0, 0)


async def test_what_may_not_be_run_may_not_be_analyzed() -> None:
    cases: list[tuple[Allowed, str, type[QserverError] | None]] = [
        (Allowed(read_only=True), "EXPLAIN CREATE TABLE n AS TABLE d", None),
        (Allowed(read_only=True), "EXPLAIN ANALYZE CREATE TABLE n AS TABLE d", ReadOnlyTransaction),
        (Allowed(read_only=True), "EXPLAIN ANALYZE DELETE FROM d", ReadOnlyTransaction),
        (Allowed(define=False), "EXPLAIN CREATE TABLE n AS TABLE d", Forbidden),
        (Allowed(read=False), "EXPLAIN CREATE TABLE n AS TABLE d", Forbidden),
        (Allowed(write=False), "EXPLAIN DELETE FROM d", Forbidden),
    ]
    async with opened_sql() as sql:
        await filled(sql)
        for allowed, text, refused in cases:
            context: AbstractContextManager[Any] = (
                nullcontext() if refused is None else pytest.raises(refused)
            )
            with context:
                await sql.execute(text, allowed=allowed)


async def test_others_run_beside_a_statement_that_is_measured() -> None:
    """The second time, too: the meters are of one execution."""
    async with opened_sql() as sql:
        await filled(sql)
        for _ in range(2):
            found = await measured(sql, "SELECT count(*) FROM t x JOIN t y ON y.a = x.id % 500")
            assert found["Plan"]["Actual Loops"] == 1

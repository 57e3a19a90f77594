"""Paths are run in bounded time, whatever is in them, and what the docs show is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from qserver.errors import QserverError
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.json.json_paths import path_length
from qserver.limits import JSON_DEPTH_MAX
from qserver.query.sql_database import SqlDatabase
from qserver.values.json_path_input import json_path_from_text
from qserver.values.jsonb import Jsonb
from qserver.values.text_output import shown_function
from tests.sql.databases import opened_sql

DOCS = Path(__file__).parents[3] / "docs" / "sql.md"
EXAMPLES = re.findall(
    r"^(SELECT .*;) *-- (.*)$",
    DOCS.read_text().partition("### Paths into JSON")[2].partition("## ")[0],
    re.MULTILINE,
)
NUMBERS = json.dumps(list(range(2000)))
DEEP = "[" * JSON_DEPTH_MAX + "]" * JSON_DEPTH_MAX


async def answer(database: SqlDatabase, sql: str, parameters: list[object] | None = None) -> str:
    try:
        result = await database.execute(sql, parameters)
    except QserverError as error:
        return f"error {error.code}"
    show = shown_function(result.types[0])
    shown = ["NULL" if row[0] is None else show(row[0]) for row in result.rows]
    return ", ".join({"true": "t", "false": "f"}.get(each, each) for each in shown)


async def test_the_examples_of_the_docs_are_so() -> None:
    assert len(EXAMPLES) > 5
    async with opened_sql() as database:
        for sql, said in EXAMPLES:
            assert await answer(database, sql) == said, sql


@pytest.mark.parametrize(
    "path",
    [
        "$ ? (@[*] == $[*])",
        "$[*] ? ($[*] < $[*])",
        "$[0 to last, 0 to last][0, 0, 0][0, 0, 0][0, 0, 0][0, 0, 0]",
        "$.**.**.** ? (@ == $.**)",
    ],
)
async def test_a_path_that_multiplies_is_refused(path: str) -> None:
    async with opened_sql() as database:
        for sql in (
            "SELECT jsonb_path_query_array($1::jsonb, $2::jsonpath)",
            "SELECT * FROM jsonb_path_query($1::jsonb, $2::jsonpath)",
            "SELECT $1::jsonb @? $2::jsonpath AND $1::jsonb @@ $2::jsonpath",
        ):
            assert await answer(database, sql, [NUMBERS, f"{path} ? (@ == -1)"]) == "error 54000"


async def test_a_short_document_can_be_refused_too() -> None:
    path = "$" + ".keyvalue()" * 30
    async with opened_sql() as database:
        sql = f"SELECT jsonb_path_query_array('{{\"a\": 1}}', '{path}')"
        assert await answer(database, sql) == "error 54000"


def test_only_paths_that_cannot_multiply_are_called_without_a_charge() -> None:
    short = Jsonb("[1, 2]")
    for text, is_short in (
        ("$.a[*].b", True),
        ("$ ? (@.a == 1 && @.b > 2)", True),
        ("$.** ? (@ == 1)", False),
        ("$[0, 0]", False),
        ("$.keyvalue()", False),
        ("$ ? (exists(@ ? (@ == $)))", False),
    ):
        assert (path_length(short, json_path_from_text(text)) < BYTES_SMALL) is is_short
    assert path_length(Jsonb("9" * BYTES_SMALL), "$") >= BYTES_SMALL


async def test_deep_documents_are_walked() -> None:
    async with opened_sql() as database:
        assert await answer(
            database, "SELECT count(*) FROM jsonb_path_query($1::jsonb, '$.**')", [DEEP]
        ) == str(JSON_DEPTH_MAX)
        path = "$" + "[0]" * 99
        assert await answer(database, f"SELECT $1::jsonb @? '{path}'", [DEEP]) == "t"
        filters = "$.**" + " ? (@.size() >= 0 && exists(@" * 30 + "[0]" + "))" * 30
        assert await answer(database, f"SELECT $1::jsonb @? '{filters}'", [DEEP]) == "t"


async def test_work_is_charged_after_a_call() -> None:
    """A row of many calls gives way between them, so a deadline ends it."""
    calls = ", ".join(
        ["'[1,2,3,4,5,6,7,8,9]'::jsonb || i::text::jsonb @? '$.** ? ($.** == -1)'"] * 3
    )
    async with opened_sql() as database:
        with pytest.raises(QserverError) as raised:
            await database.execute(
                f"SELECT {calls} FROM generate_series(1, 1000000) i", timeout_ms=100
            )
    assert raised.value.code == "57014"


async def test_a_parameter_is_a_path_and_is_prepared_once() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, d JSONB)")
        await database.execute("INSERT INTO t VALUES (1, '{\"a\": 1}'), (2, '{\"a\": 2}')")
        for path, found in (("$.a ? (@ > 1)", "2"), ("$.a", "1, 2"), ("$.b", "")):
            sql = "SELECT id FROM t WHERE d @? $1 ORDER BY id"
            assert await answer(database, sql, [path]) == found
            query = "SELECT id FROM t, jsonb_path_query(d, $1) ORDER BY id"
            assert await answer(database, query, [path]) == found
        assert await answer(database, "SELECT d @? $1 FROM t", ["$."]) == "error 42601"
        assert await answer(database, "SELECT count(*) FROM t WHERE d @@ $1", [None]) == "0"


async def test_zones_are_used_by_those_that_say_so() -> None:
    path = '$.datetime() < "2020-01-01".datetime()'
    async with opened_sql() as database:
        for name, said in (("", "error 0A000"), ("_tz", "t")):
            sql = f"SELECT jsonb_path_match{name}('\"2019-12-31 23:59:59+00\"', '{path}')"
            assert await answer(database, sql) == said


async def test_the_limits_of_visits_are_those_that_the_docs_say() -> None:
    text = DOCS.read_text().partition("### Paths into JSON")[2]
    plain, filtered = (
        int(each.replace(",", ""))
        for each in re.findall(r"([0-9,]+) (?:parts of a document|with a filter)", text)
    )
    sql = "SELECT jsonb_path_exists(jsonb_agg(i), $1) FROM generate_series(1, $2) i"
    async with opened_sql() as database:
        for most, path, said in ((plain, "$[*]", "t"), (filtered, "$[*] ? (@ == -1)", "f")):
            assert await answer(database, sql, [path, most + 10]) == "error 54000"
            assert await answer(database, sql, [path, most * 9 // 10]) == said

"""Tools that only read: what they show, what they refuse, and how much they answer at most."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ReadResourceResult, TextResourceContents

from qserver.client import Client
from qserver.limits import MCP_ANSWER_BYTES_MAX, MCP_ROWS_MAX, MCP_TEXT_LENGTH_MAX
from tests.mcp.calls import tools

WRITES = (
    "DELETE FROM books",
    "INSERT INTO authors VALUES (3, 'Grace')",
    "WITH gone AS (DELETE FROM books RETURNING id) SELECT * FROM gone",
    "CREATE TABLE more (id INTEGER)",
    "SELECT nextval('numbers')",
    "SELECT setval('numbers', 7)",
    "EXPLAIN ANALYZE DELETE FROM books",
    "WITH off AS (SELECT set_config('transaction_read_only', 'off', true)) DELETE FROM books",
)

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000)"


async def test_a_query_gives_rows_and_their_types(shop: Client) -> None:
    async with tools(shop) as call:
        found = await call("query", sql="SELECT id, name FROM authors ORDER BY id")
    assert found["columns"] == ["id", "name"] and found["types"] == ["integer", "text"]
    assert found["rows"] == [[1, "Ada"], [2, None]]
    assert found["truncated"] is False and found["row_count"] == 2


async def test_values_are_bound_by_number_and_by_name(shop: Client) -> None:
    async with tools(shop) as call:
        one = await call("query", sql="SELECT name FROM authors WHERE id = $1", params=[1])
        two = await call("query", sql="SELECT :a::text AS a", params={"a": "'; DROP TABLE books"})
    assert (one["rows"], two["rows"]) == ([["Ada"]], [["'; DROP TABLE books"]])


@pytest.mark.parametrize("may_change", [False, True])
async def test_a_query_that_writes_is_refused(shop: Client, may_change: bool) -> None:
    """Also where other tools may change something: `query` says that it changes nothing."""
    shop.query("CREATE SEQUENCE numbers")
    before = shop.versions(shop.database or "")
    async with tools(shop, may_change=may_change) as call:
        for sql in WRITES:
            assert (await call.error("query", sql=sql))["code"] == "25006", sql
        refused = await call.error("explain", sql="DELETE FROM books", analyze=True)
        assert refused["code"] == "25006"
        assert (await call.error("explain", sql="ANALYZE DELETE FROM books"))["code"] == "25006"
        assert (await call.error("query", sql="SELECT 1; DELETE FROM books"))["code"] == "42601"
    assert shop.versions(shop.database or "") == before
    assert shop.query("SELECT nextval('numbers')").rows == [(1,)]


async def test_rows_are_bounded_and_the_answer_says_so(shop: Client) -> None:
    async with tools(shop) as call:
        some = await call("query", sql="SELECT id FROM books ORDER BY id")
        all_ = await call("query", sql="SELECT id FROM books", max_rows=300)
        refused = await call.error("query", sql="SELECT 1", max_rows=MCP_ROWS_MAX + 1)
    assert len(some["rows"]) == 100 and some["truncated"] and "max_rows" in some["note"]
    assert len(all_["rows"]) == 300 and not all_["truncated"]
    assert refused["code"] == "QS001" and "max_rows" in refused["message"]


async def test_an_answer_is_bounded_in_bytes(shop: Client) -> None:
    sql = "SELECT id, repeat('é', 1000) AS long FROM books ORDER BY id"
    async with tools(shop) as call:
        found = await call("query", sql=sql, max_rows=300)
        text = await call("query", sql="SELECT repeat('x', 5000) AS x, array_fill(1, ARRAY[500])")
    assert len(json.dumps(found["rows"], ensure_ascii=False).encode()) <= MCP_ANSWER_BYTES_MAX * 1.1
    assert found["truncated"] and 10 < found["row_count"] == len(found["rows"]) < 300
    assert text["rows"][0][0] == "x" * MCP_TEXT_LENGTH_MAX + "… (5,000 characters)"
    assert text["rows"][0][1][-1] == "… (500 elements)" and len(text["rows"][0][1]) == 101


async def test_a_row_of_many_columns_keeps_all_of_them(shop: Client) -> None:
    columns = ", ".join(f"{n} AS c{n}" for n in range(300))
    async with tools(shop) as call:
        found = await call("query", sql=f"SELECT {columns}")
    assert found["rows"] == [list(range(300))]


async def test_a_query_ends_after_its_time(shop: Client) -> None:
    async with tools(shop) as call:
        late = await call.error("query", sql=ENDLESS, timeout_ms=1)
    assert late["code"] == "57014"


async def test_older_versions_can_be_read(shop: Client) -> None:
    before = shop.query("SELECT 1").version
    shop.query("DELETE FROM books")
    async with tools(shop) as call:
        now = await call("query", sql="SELECT count(*) FROM books")
        then = await call("query", sql="SELECT count(*) FROM books", as_of=before)
        versions = await call("list_versions", limit=1)
        difference = await call("show_difference", since=before, limit=5)
    assert (now["rows"], then["rows"]) == ([[0]], [[300]])
    assert versions["versions"][0]["rows_changed"] == 300 and versions["truncated"]
    assert len(difference["diff"]) == 5 and difference["diff_truncated"]


async def test_a_branch_is_compared_with_its_parent(shop: Client) -> None:
    branch = f"{shop.database}-compared"
    shop.create_database(branch, shop.database)
    shop.query("DELETE FROM books WHERE id > 2", database=branch)
    try:
        async with tools(shop) as call:
            found = await call(
                "show_difference", database=branch, from_database=shop.database, limit=3
            )
            counted = await call(
                "show_difference", database=branch, from_database=shop.database, count=True
            )
            missing = await call.error("show_difference", database=branch)
    finally:
        shop.delete_database(branch)
    assert [each["op"] for each in found["diff"]] == ["delete"] * 3 and found["diff_truncated"]
    assert found["from_database"] == shop.database
    assert counted["counts"] == [
        {"table": "books", "schema": 0, "insert": 0, "update": 0, "delete": 298}
    ]
    assert (missing["code"], missing["message"]) == ("QS001", "show_difference: since is missing")


async def test_the_schema_is_described(shop: Client) -> None:
    async with tools(shop) as call:
        everything = await call("describe_schema")
        one = await call("describe_schema", tables=["books"])
        missing = await call.error("describe_schema", tables=["shelves"])
        databases = await call("list_databases")
    assert [table["name"] for table in everything["tables"]] == ["authors", "books"]
    assert everything["database"] == shop.database
    assert [column["name"] for column in one["tables"][0]["columns"]] == ["id", "title", "author"]
    assert one["tables"][0]["foreign_keys"] and one["tables"][0]["row_count"] == 300
    assert missing["code"] == "42P01"
    assert shop.database in [each["name"] for each in databases["databases"]]


async def test_many_tables_are_described_by_their_names(shop: Client) -> None:
    columns = ", ".join(f"a_rather_long_name_of_a_column_{n} TEXT" for n in range(60))
    shop.transaction([f"CREATE TABLE wide{n:03} ({columns})" for n in range(25)])
    async with tools(shop) as call:
        found = await call("describe_schema")
        resources = await call.client.list_resources()
    assert found["truncated"] and "wide024" in found["names"] and "tables" not in found
    assert len(resources.resources) == 27


async def test_a_dry_run_shows_the_change_and_applies_nothing(shop: Client) -> None:
    async with tools(shop) as call:
        found = await call("dry_run", statements=["DELETE FROM authors WHERE id = 1"])
        refused = await call.error("dry_run", statements=["DELETE FROM books"], max_affected=9)
        wrong = await call.error("dry_run", statements=["SELECT 1", "SELEC 1"])
    assert found["diff"][0]["op"] == "delete" and found["diff_truncated"]
    assert found["applied"] is False and found["affected_rows"] == 1
    assert refused["code"] == "QS003" and wrong["code"] == "42601"
    assert shop.query("SELECT count(*) FROM books").rows == [(300,)]


async def test_a_plan_is_shown_and_not_run(shop: Client) -> None:
    async with tools(shop) as call:
        plan = await call("explain", sql="DELETE FROM books WHERE id = $1", params=[3])
        measured = await call("explain", sql="SELECT * FROM books", analyze=True)
    assert "Delete on books" in plan["plan"][0]
    assert any("rows=300 loops=1" in line for line in measured["plan"])


async def test_errors_have_a_code_and_a_place(shop: Client) -> None:
    async with tools(shop) as call:
        error = await call.error("query", sql="SELECT nam FROM authors")
        unfit = await call.error("query", sql="SELECT 1", rows=3)
        with pytest.raises(MCPError, match="no tool 'drop'"):
            await call("drop")
    assert error["code"] == "42703" and error["position"] == 8
    assert unfit["code"] == "QS001" and "rows" in unfit["message"]


async def test_what_the_key_may_not_do_is_refused(shop: Client) -> None:
    reader = shop.create_key("reader", ["data:read"], [shop.database or ""])["key"]
    async with tools(shop, key=reader, may_change=True, database=None) as call:
        found = await call("query", sql="SELECT count(*) FROM books")
        refused = await call.error("change", statements=["DELETE FROM books"])
        unseen = await call.error("query", sql="SELECT 1", database="main")
    async with tools(shop, key="svc_k_wrong") as call:
        unknown = await call.error("describe_schema")
    assert found["rows"] == [[300]]
    assert (refused["code"], unseen["code"], unknown["code"]) == ("QS005", "QS005", "QS002")


def text_of(found: ReadResourceResult) -> dict[str, Any]:
    (content,) = found.contents
    assert isinstance(content, TextResourceContents)
    return dict(json.loads(content.text))


async def test_tables_are_resources(shop: Client) -> None:
    shop.query('CREATE TABLE "odd name/ß" ("select" TEXT)')
    async with tools(shop) as call:
        listed = (await call.client.list_resources()).resources
        for resource in listed:
            found = await call.client.read_resource(resource.uri)
            assert text_of(found)["name"] == resource.name
            rows = await call.client.read_resource(f"{resource.uri}/rows")
            assert text_of(rows)["rows"] is not None
        assert [resource.name for resource in listed] == ["authors", "books", "odd name/ß"]
        for wrong in (f"qserver://{shop.database}/tables/gone", "https://example.org/tables/books"):
            with pytest.raises(MCPError):
                await call.client.read_resource(wrong)
        templates = (await call.client.list_resource_templates()).resource_templates
    assert [each.name for each in templates] == ["table", "rows"]

"""Tools that change something: only where they were asked for, and each can be taken back."""

from __future__ import annotations

import pytest
from mcp_types import Tool, ToolAnnotations

from qserver.client import Client
from qserver.limits import MCP_BRANCHES_MAX
from qserver.mcp.tools import CHANGING, READING
from tests.mcp.calls import tools

COUNT = "SELECT count(*) FROM books"


def hints_of(tool: Tool) -> ToolAnnotations:
    assert tool.annotations is not None
    return tool.annotations


async def test_without_the_flag_no_tool_changes(shop: Client) -> None:
    async with tools(shop) as call:
        offered = (await call.client.list_tools()).tools
    assert [tool.name for tool in offered] == [tool.name for tool in READING]
    assert all(hints_of(tool).read_only_hint for tool in offered)
    assert not any(hints_of(tool).destructive_hint for tool in offered)


async def test_each_tool_says_in_a_line_what_it_may_change(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        offered = {tool.name: tool for tool in (await call.client.list_tools()).tools}
    assert list(offered) == [tool.name for tool in (*READING, *CHANGING)]
    for tool in offered.values():
        changes = (tool.description or "").splitlines()[-1]
        assert changes.startswith("May change: ")
        assert (changes == "May change: nothing.") is hints_of(tool).read_only_hint
        assert tool.input_schema["type"] == "object"
    destructive = {name for name, tool in offered.items() if hints_of(tool).destructive_hint}
    assert destructive == {"promote_branch", "discard_branch", "change", "undo"}


async def test_a_change_is_undone(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        done = await call("change", statements=["DELETE FROM books WHERE id > 10"])
        assert done["affected_rows"] == 290 and shop.query(COUNT).rows == [(10,)]
        undone = await call("undo", version=done["version"])
        again = await call.error("undo", version=done["version"])
    assert shop.query(COUNT).rows == [(300,)]
    assert undone["as_of"] == done["version"] - 1 and undone["version"] == done["version"] + 1
    assert again["code"] == "40001" and again["conflict"]["table"] == "books"


async def test_what_came_later_is_not_undone(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        done = await call("change", statements=["DELETE FROM books WHERE id = 1"])
        shop.query("INSERT INTO authors VALUES (9, 'Later')")
        refused = await call.error("undo", version=done["version"])
    assert refused["code"] == "40001" and not refused.get("retryable")
    conflict = refused["conflict"]
    assert conflict["table"] == "authors"
    assert (conflict["read_version"], conflict["changed_version"]) == (
        *(done["version"], done["version"] + 1),
    )
    assert shop.query("SELECT name FROM authors WHERE id = 9").rows == [("Later",)]


LATER = (
    "INSERT INTO authors VALUES (9, 'Later')",
    "UPDATE authors SET name = name WHERE id = 1",
    "DROP TABLE authors CASCADE",
    "CREATE TABLE more (a INTEGER)",
    "ALTER TABLE authors ADD COLUMN born DATE",
    "CREATE VIEW written AS SELECT title FROM books",
    "CREATE TYPE mood AS ENUM ('sad')",
)


@pytest.mark.parametrize("sql", LATER)
async def test_nothing_that_came_later_is_undone(shop: Client, sql: str) -> None:
    async with tools(shop, may_change=True) as call:
        done = await call("change", statements=["DELETE FROM books WHERE id = 1"])
        later = shop.query(sql).version
        if later == done["version"]:
            return  # it has changed nothing
        before = shop.versions(done["database"])
        refused = await call.error("undo", version=done["version"])
        assert (
            refused["code"] == "40001" and refused["conflict"]["changed_version"] > done["version"]
        )
        assert shop.versions(done["database"]) == before


async def test_a_number_that_was_drawn_since_does_not_keep_a_change(shop: Client) -> None:
    shop.query("CREATE SEQUENCE numbers")
    async with tools(shop, may_change=True) as call:
        done = await call("change", statements=["DELETE FROM books WHERE id = 1"])
        for _ in range(3):
            shop.query("SELECT nextval('numbers')")
        await call("undo", version=done["version"])
    assert shop.query(COUNT).rows == [(300,)]


async def test_more_rows_than_allowed_are_not_changed(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        refused = await call.error("change", statements=["DELETE FROM books"], max_affected=5)
    assert refused["code"] == "QS003" and shop.query(COUNT).rows == [(300,)]


async def test_a_branch_is_tried_and_promoted(shop: Client) -> None:
    statements = ["ALTER TABLE books ADD price INTEGER", "UPDATE books SET price = id"]
    async with tools(shop, may_change=True) as call:
        tried = await call("try_on_branch", statements=statements)
        looked = await call("query", sql="SELECT sum(price) FROM books", database=tried["branch"])
        assert looked["rows"] == [[45150]]
        assert (await call.error("query", sql="SELECT price FROM books"))["code"] == "42703"
        done = await call("promote_branch", branch=tried["branch"])
        again = await call.error("promote_branch", branch=tried["branch"])
    assert shop.query("SELECT sum(price) FROM books").rows == [(45150,)]
    assert tried["affected_rows"] == done["affected_rows"] == 300
    assert again["code"] == "QS001" and "try" in again["hint"].lower()
    assert tried["branch"] not in [each["name"] for each in shop.databases()]


async def test_a_branch_of_what_has_changed_since_is_not_promoted(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        tried = await call("try_on_branch", statements=["DELETE FROM books WHERE id < 10"])
        shop.query("UPDATE books SET title = 'new' WHERE id = 5")
        refused = await call.error("promote_branch", branch=tried["branch"])
        assert refused["code"] == "40001" and refused["conflict"]["table"] == "books"
        assert shop.query(COUNT).rows == [(300,)]
        await call("discard_branch", branch=tried["branch"])
    assert tried["branch"] not in [each["name"] for each in shop.databases()]


async def test_only_branches_are_discarded(shop: Client) -> None:
    async with tools(shop, may_change=True) as call:
        refused = await call.error("discard_branch", branch=shop.database)
        missing = await call.error("discard_branch", branch="nowhere")
    assert refused["code"] == "QS001" and missing["code"] == "QS006"
    assert shop.query(COUNT).rows == [(300,)]


async def test_a_failed_change_leaves_no_branch(shop: Client) -> None:
    before = [each["name"] for each in shop.databases()]
    async with tools(shop, may_change=True) as call:
        refused = await call.error("try_on_branch", statements=["SELECT 1 / 0"])
        too_many = await call.error("change", statements=["SELECT 1"] * (MCP_BRANCHES_MAX + 1))
    assert refused["code"] == "22012" and too_many["code"] == "QS001"
    assert [each["name"] for each in shop.databases()] == before


async def test_without_a_named_database_the_keys_own_is_meant(shop: Client) -> None:
    own = shop.create_key("own", ["data:read", "data:write", "schema"], [shop.database or ""])
    async with tools(shop, key=own["key"], may_change=True, database=None) as call:
        done = await call("change", statements=["DELETE FROM books WHERE id = 1"])
        await call("undo", version=done["version"])
    assert done["database"] == shop.database and shop.query(COUNT).rows == [(300,)]

"""What the statements of a database cost: in SQL, over HTTP, for its own organization alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.http1.serving import Answer
from tests.web.served import Served, message, query, serving

MAIN = "/v1/databases/main/statements"


async def run(opened: Served, sql: str, params: Any = None, **options: Any) -> Any:
    return await opened.admin("POST", "/v1/query", {"sql": sql, "params": params, **options})


async def ask(opened: Served, sent: bytes, method: str = "POST") -> Answer:
    async with await opened.client() as client:
        return await client.ask(sent, method)


async def counted(opened: Served, columns: str = "calls, rows") -> dict[str, Any]:
    found = await run(opened, f"SELECT query, {columns} FROM pg_stat_statements")
    return {each.pop("query"): each for each in found["rows"]}


async def test_runs_of_a_statement_are_counted_by_its_normal_form() -> None:
    async with serving() as opened:
        await run(opened, "CREATE TABLE t (id int PRIMARY KEY, n text DEFAULT 'secret')")
        for number in range(40):
            await run(opened, f"INSERT INTO t VALUES ({number}, 'secret {number}')")
        for number in range(50):
            await run(opened, "SELECT n FROM t WHERE id = $1", [number])
        await run(opened, "UPDATE t SET n = 'secret' WHERE id IN (1, 2, 3)")
        found = await counted(opened)
        assert found["INSERT INTO t VALUES ($1, $2)"] == {"calls": 40, "rows": 40}
        assert found["SELECT n FROM t WHERE id = $1"] == {"calls": 50, "rows": 40}
        assert found["UPDATE t SET n = $1 WHERE id IN ($2, ...)"] == {"calls": 1, "rows": 3}
        assert found["CREATE TABLE t (id int PRIMARY KEY, n text DEFAULT $1)"]["calls"] == 1
        assert "secret" not in str(found)


async def test_a_failed_statement_is_not_counted() -> None:
    async with serving() as opened:
        for _ in range(2):
            await run(opened, "SELECT 1 / 0")
        assert "SELECT $1 / $2" not in await counted(opened)


async def test_each_way_to_run_a_statement_counts_it_once() -> None:
    async with serving() as opened:
        await run(opened, "CREATE TABLE t (id int PRIMARY KEY)")
        await run(opened, "INSERT INTO t SELECT generate_series(1, 3000)")
        await ask(opened, query("/*+ STREAM */ SELECT id FROM t"))
        await ask(opened, query("SELECT id FROM t", Accept="text/csv"))
        body = {"statements": ["SELECT id FROM t", "DELETE FROM t WHERE id = 1"]}
        await opened.admin("POST", "/v1/transaction", body)
        inside = await opened.admin("POST", "/v1/transaction/open", {})
        await run(opened, "SELECT id FROM t", transaction=inside["transaction"]["id"])
        found = await counted(opened, "calls, rows, cpu_time >= 0 AS ok, memory_bytes_max")
        everything = found["SELECT id FROM t"]
        assert (everything["calls"], everything["rows"]) == (4, 3000 + 3000 + 3000 + 2999)
        assert everything["ok"] and everything["memory_bytes_max"] > 100_000
        assert found["DELETE FROM t WHERE id = $1"]["calls"] == 1


async def test_conflicts_and_retries_are_counted() -> None:
    sql = "UPDATE t SET n = n + 1 WHERE id = 1"
    async with serving() as opened:
        await run(opened, "CREATE TABLE t (id int PRIMARY KEY, n int)")
        await run(opened, "INSERT INTO t VALUES (1, 0)")

        async def often(options: dict[str, int]) -> None:
            for _ in range(10):
                await ask(opened, message("POST", "/v1/query", {"sql": sql, **options}))

        async with trio.open_nursery() as nursery:
            for options in ({}, {}, {"max_retries": 0}, {"max_retries": 0}):
                nursery.start_soon(often, options)
        (found,) = [
            each
            for text, each in (await counted(opened, "calls, retries, conflicts")).items()
            if text.startswith("UPDATE")
        ]
        assert found["calls"] - found["retries"] >= 40 - found["conflicts"]


async def test_a_reset_begins_anew_for_one_statement_or_for_all() -> None:
    async with serving() as opened:
        await run(opened, "SELECT 1")
        await run(opened, "SELECT 1 AS two")
        number = (await counted(opened, "queryid::text AS id"))["SELECT $1"]["id"]
        await run(opened, f"SELECT pg_stat_statements_reset(0, 0, {number})")
        found = await counted(opened)
        assert "SELECT $1" not in found and "SELECT $1 AS two" in found
        await run(opened, "SELECT pg_stat_statements_reset()")
        assert "SELECT $1 AS two" not in await counted(opened)


async def test_an_organization_sees_its_own_databases_alone() -> None:
    async with serving() as opened:
        await run(opened, "SELECT 1 AS mine")
        other = await opened.admin("POST", "/v1/signup", {"organization": "acme"})
        token = other["key"]
        answer = await ask(opened, query("SELECT query FROM pg_stat_statements", token=token))
        assert b"mine" not in answer.body
        database = (await opened.admin("GET", "/v1/databases"))["databases"][0]["id"]
        sent = message("GET", f"/v1/databases/{database}/statements", None, token)
        assert (await ask(opened, sent, "GET")).status == 404
        sent = message("DELETE", f"/v1/databases/{database}/statements", None, token)
        assert (await ask(opened, sent, "DELETE")).status == 404
        assert "SELECT $1 AS mine" in await counted(opened)


async def test_a_key_that_only_reads_cannot_reset() -> None:
    async with serving() as opened:
        await run(opened, "SELECT 1")
        made = await opened.admin("POST", "/v1/keys", {"name": "r", "scopes": ["data:read"]})
        sent = query("SELECT pg_stat_statements_reset()", token=made["key"])
        assert json.loads((await ask(opened, sent)).body)["success"] is False
        sent = message("DELETE", MAIN, None, made["key"])
        assert (await ask(opened, sent, "DELETE")).status == 403
        assert (await ask(opened, message("GET", MAIN, None, made["key"]), "GET")).status == 200
        assert "SELECT $1" in await counted(opened)


async def test_the_route_lists_the_costliest_first() -> None:
    async with serving() as opened:
        for times, sql in enumerate(("SELECT 1 AS a", "SELECT 1 AS b", "SELECT 1 AS c"), 1):
            for _ in range(times):
                await run(opened, sql)
        found = await opened.admin("GET", f"{MAIN}?order=calls&limit=2")
        assert [each["query"] for each in found["statements"]] == [
            "SELECT $1 AS c",
            "SELECT $1 AS b",
        ]
        assert found["database"] == "main" and found["statements"][0]["calls"] == 3
        answer = await ask(opened, message("GET", f"{MAIN}?order=name"), "GET")
        assert answer.status == 400 and b"order is one of total_ms" in answer.body
        await opened.admin("DELETE", MAIN)
        assert (await opened.admin("GET", MAIN))["statements"] == []


async def test_statistics_outlive_that_their_database_is_closed() -> None:
    async with serving(QSERVER_DATABASE_IDLE_S="0.05") as opened:
        await run(opened, "SELECT 1")
        while opened.service.databases.all_open()[1:]:  # noqa: ASYNC110
            await trio.sleep(0.02)
        assert (await counted(opened))["SELECT $1"]["calls"] == 1


async def test_a_relation_of_that_name_is_the_users_own() -> None:
    async with serving() as opened:
        await run(opened, "CREATE TABLE pg_stat_statements (a int)")
        assert (await run(opened, "SELECT * FROM pg_stat_statements"))["rows"] == []
        found = await run(opened, "SELECT query FROM pg_stat_statements(false) LIMIT 1")
        assert found["rows"] == [{"query": None}]


@pytest.mark.parametrize("sql", ["SELECT * FROM pg_stat_statements"])
async def test_statistics_are_no_live_query(sql: str) -> None:
    async with serving() as opened:
        answer = await ask(opened, message("POST", "/v1/query", {"sql": sql, "live": True}))
        assert json.loads(answer.body)["success"] is False
        assert b"internal" not in answer.body

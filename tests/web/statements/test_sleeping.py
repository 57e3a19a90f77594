"""pg_sleep and txid_current change nothing: a key that only reads may call them, for a while."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import trio

from tests.http1.serving import Answer, Client
from tests.web.served import Served, message, opened_transaction, query, serving

EVENTS: Final = {"Accept": "text/event-stream"}
ON: Final = {"transaction_read_only": "on"}
WAYS: Final[dict[str, Callable[[str, str, int], bytes]]] = {
    "query": lambda sql, key, ms: message(
        "POST", "/v1/query", {"sql": sql, "timeout_ms": ms, "settings": ON}, key
    ),
    "url": lambda sql, key, ms: message(
        "GET", "/v1/query?" + urlencode({"sql": sql, "timeout_ms": ms}), None, key
    ),
    "events": lambda sql, key, ms: message(
        "POST", "/v1/query", {"sql": sql, "timeout_ms": ms}, key, EVENTS
    ),
    "lines": lambda sql, key, ms: message(
        "POST", "/v1/query", {"sql": sql, "timeout_ms": ms}, key, {"Accept": "text/csv"}
    ),
    "transaction": lambda sql, key, ms: message(
        "POST", "/v1/transaction", {"statements": [sql], "timeout_ms": ms}, key
    ),
    "past": lambda sql, key, ms: message(
        "POST", "/v1/query", {"sql": sql, "timeout_ms": ms, "as_of": 0}, key
    ),
}
FOREVER: Final = "select pg_sleep(3000)"


async def reading(served: Served) -> str:
    made = await served.admin("POST", "/v1/keys", {"name": "r", "scopes": ["data:read"]})
    return str(made["key"])


async def ask(client: Client, data: bytes) -> Answer:
    return await client.ask(data, data.partition(b" ")[0].decode())


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_that_only_reads_sleeps_until_its_time_is_over(way: str) -> None:
    async with serving() as served, await served.client() as client:
        key = await reading(served)
        short = "select pg_sleep(0.001), i from generate_series(1, 3) i"
        answer = await ask(client, WAYS[way](short, key, 20_000))
        assert answer.status == 200 and b"error" not in answer.body, answer
        endless = ("select pg_sleep_for('1 day')", "select pg_sleep('infinity')", FOREVER)
        for sql in endless:
            answer = await ask(client, WAYS[way](sql, key, 20))
            assert b"57014" in answer.body, answer
        if way != "past":
            answer = await ask(client, WAYS[way]("select txid_current() > 0 as ok", key, 20_000))
            assert b"true" in answer.body, answer


async def test_all_statements_of_a_transaction_have_its_number() -> None:
    async with serving() as served, await served.client() as client:
        key = await reading(served)

        async def number(**fields: Any) -> Any:
            body = {"sql": "select txid_current() as n", **fields}
            return json.loads((await client.ask(message("POST", "/v1/query", body, key))).body)

        name = await opened_transaction(client, token=key)
        first, again = await number(transaction=name), await number(transaction=name)
        assert first["rows"] == again["rows"] != (await number())["rows"]
        asked = {"statements": ["select txid_current() as n"] * 2}
        both = json.loads((await client.ask(message("POST", "/v1/transaction", asked, key))).body)
        one, other = (each["rows"] for each in both["results"])
        assert one == other not in (first["rows"], again["rows"])


async def test_to_end_connections_still_needs_a_key_that_writes() -> None:
    async with serving() as served, await served.client() as client:
        key = await reading(served)
        for name in ("pg_cancel_backend", "pg_terminate_backend"):
            answer = await client.ask(query(f"select {name}(1)", token=key))
            assert answer.status == 403, answer


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select pg_sleep('NaN')", None),
        ("select pg_sleep('-infinity')", None),
        ("select pg_sleep_for('-1 day')", None),
        ("select pg_sleep_for('178000000 years')", "22008"),
        ("select pg_sleep_until('2001-01-01')", None),
    ],
)
async def test_odd_lengths_of_time_do_not_sleep(sql: str, code: str | None) -> None:
    async with serving() as served, await served.client() as client:
        found = json.loads((await client.ask(query(sql))).body)
        assert (found["error"]["code"] if code else found["success"]) == (code or True), found


async def test_others_are_served_while_one_organization_sleeps() -> None:
    async with serving() as served, await served.client() as client:
        made = await served.admin("POST", "/v1/signup", {"organization": "acme"})
        most = 5
        limits = {"limits": {"connections": most}}
        await served.admin("PATCH", "/v1/organizations/acme", limits)
        async with AsyncExitStack() as stack:
            for _ in range(most):
                sleeper = await stack.enter_async_context(await served.client())
                await sleeper.send(query(FOREVER, token=made["key"]))
            one_more = query("select 1", token=made["key"])
            while (answer := await client.ask(one_more)).status == 200:
                await trio.lowlevel.checkpoint()
            assert answer.status == 503
            assert json.loads((await client.ask(query("select 1 as n"))).body)["rows"] == [{"n": 1}]


@pytest.mark.parametrize("sql", ["table pg_stat_statements", "select txid_current()"])
async def test_what_waits_beside_its_tables_is_read_by_url_each_time(sql: str) -> None:
    async with serving() as served, await served.client() as client:
        for _ in range(2):
            asked = message("GET", "/v1/query?" + urlencode({"sql": sql}))
            answer = await client.ask(asked, "GET")
            assert answer.status == 200 and answer.header("etag") is None, answer

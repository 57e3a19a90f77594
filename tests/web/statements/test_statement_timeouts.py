"""How long a request may take: a setting of the server, up to which a request may ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.http1.serving import Client
from tests.web.served import code_of, message, query, serving

ENDLESS = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"
LONG = "x" * 200_000
"""Makes a body that is decoded in steps."""


def asking(timeout_ms: int) -> list[bytes]:
    """A request of each kind that takes a timeout, all asking for this one."""
    sql: dict[str, Any] = {"sql": "select 1", "timeout_ms": timeout_ms}
    long = {"sql": "select $1 as a", "params": [LONG], "timeout_ms": timeout_ms}
    parameter = {"sql": "select $1 as a", "params": [LONG]}
    several = {"statements": ["select 1"], "timeout_ms": timeout_ms}
    return [
        message("POST", "/v1/query", sql),
        message("POST", "/v1/query", long),
        message("POST", "/v1/query", sql, headers={"Accept": "application/x-ndjson"}),
        message("POST", "/v1/transaction", several),
        message("POST", "/v1/transaction", {**several, "statements": [parameter]}),
        message("GET", f"/v1/query?sql=select+1&timeout_ms={timeout_ms}"),
        message("GET", f"/v1/tables/t/rows?timeout_ms={timeout_ms}"),
    ]


async def made(client: Client) -> None:
    assert (await client.ask(query("create table t (id int primary key)"))).status == 200


async def test_a_request_may_ask_for_as_much_time_as_the_setting_says() -> None:
    async with serving(QSERVER_STATEMENT_TIMEOUT_MAX="10m") as served:
        async with await served.client() as client:
            await made(client)
            for request in asking(600_000):
                assert (await client.ask(request)).status == 200, request[:100]
            for request in asking(600_001):
                answer = await client.ask(request)
                assert code_of(answer) == (400, "QS001"), request[:100]
                assert b"600000" in answer.body


async def test_without_the_setting_it_may_ask_for_no_more_than_it_has_anyway() -> None:
    async with serving(QSERVER_STATEMENT_TIMEOUT="5m") as served:
        async with await served.client() as client:
            await made(client)
            for request in asking(300_000):
                assert (await client.ask(request)).status == 200
            for request in asking(300_001):
                assert code_of(await client.ask(request)) == (400, "QS001")
            limits = (await served.admin("GET", "/v1/organization"))["limits"]
    assert limits["statement_timeout_ms"] == limits["statement_timeout_max_ms"] == 300_000


@pytest.mark.parametrize(
    "request_",
    [
        query(ENDLESS),
        message("POST", "/v1/transaction", {"statements": [ENDLESS]}),
        message("POST", "/query", ENDLESS.encode(), headers={"Content-Type": "text/plain"}),
    ],
)
async def test_a_statement_that_takes_longer_than_the_setting_is_ended(request_: bytes) -> None:
    async with serving(
        QSERVER_STATEMENT_TIMEOUT="0.05", QSERVER_STATEMENT_TIMEOUT_MAX="60"
    ) as served:
        async with await served.client() as client:
            answer = await client.ask(request_)
            assert json.loads(answer.body)["error"]["code"] == "57014"

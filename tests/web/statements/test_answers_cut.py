"""A long answer ends when its key does, unless it is that of a committed change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.served import Served, message, serving

ROWS = 20_000
LONG = f"select n, repeat('x', 1000) as x from generate_series(1, {ROWS}) as n"
"""More than the kernel keeps for a reader that does not read."""

STATEMENTS = {
    "query": ("/v1/query", {"sql": LONG}),
    "transaction": ("/v1/transaction", {"statements": ["select 1", LONG]}),
    "dry run": ("/v1/query", {"sql": f"insert into t {LONG} returning *", "dry_run": True}),
}


async def ended(opened: Served, path: str, body: Any) -> bytes:
    """What is left of an answer whose key is revoked after its first part."""
    made = await opened.admin(
        "POST", "/v1/keys", {"name": "k", "scopes": ["data:read", "data:write"]}
    )
    async with await opened.client() as client:
        await client.send(message("POST", path, body, made["key"]))
        head = await client.until(b"\r\n\r\n")
        assert b" 200 " in head and b"chunked" in head.lower()
        await client.exactly(100_000)
        await opened.admin("DELETE", f"/v1/keys/{made['id']}")
        return await client.rest()


@pytest.mark.parametrize("kind", STATEMENTS)
async def test_an_answer_is_cut_off_when_its_key_is_revoked(kind: str) -> None:
    path, body = STATEMENTS[kind]
    async with serving() as opened:
        await opened.admin("POST", "/v1/query", {"sql": "create table t (n int, x text)"})
        rest = await ended(opened, path, body)
        assert not rest.endswith(b"0\r\n\r\n") and len(rest) < ROWS * 1000


@pytest.mark.half
async def test_the_answer_of_a_committed_change_goes_on() -> None:
    async with serving() as opened:
        await opened.admin("POST", "/v1/query", {"sql": "create table t (n int, x text)"})
        sql = f"insert into t {LONG} returning *"
        made = await opened.admin(
            "POST", "/v1/keys", {"name": "k", "scopes": ["data:read", "data:write"]}
        )
        async with await opened.client() as client:
            await client.send(message("POST", "/v1/query", {"sql": sql}, made["key"]))
            head = await client.until(b"\r\n\r\n")
            client.buffer = head + b"\r\n\r\n" + client.buffer
            await opened.admin("DELETE", f"/v1/keys/{made['id']}")
            answer = await client.answer("POST")
        assert json.loads(answer.body)["affected_rows"] == ROWS

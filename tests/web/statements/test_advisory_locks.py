"""Advisory locks over HTTP: of a request, and of an open transaction."""

from __future__ import annotations

import json
from typing import Any

from tests.web.served import Served, message, serving


async def query(served: Served, sql: str, **fields: Any) -> Any:
    answer = await served.admin("POST", "/v1/query", {"sql": sql, **fields})
    return answer["rows"][0] if answer["success"] else answer["error"]["code"]


async def opened_transaction(served: Served) -> str:
    answer = await served.admin("POST", "/v1/transaction/open", {})
    return str(answer["transaction"]["id"])


async def test_a_request_alone_locks_for_its_transaction_only() -> None:
    async with serving() as served:
        for sql in ("SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1, 2)"):
            assert await query(served, sql) == "0A000"
        for _ in range(2):
            assert await query(served, "SELECT pg_try_advisory_xact_lock(1) AS a") == {"a": True}
            assert await query(served, "SELECT pg_advisory_xact_lock(1) AS a") == {"a": ""}
        assert await query(served, "SELECT pg_advisory_unlock(1) AS a") == {"a": False}
        assert await query(served, "SELECT pg_advisory_xact_lock(NULL) AS a") == {"a": None}


async def test_locks_of_an_open_transaction_end_with_it() -> None:
    tried = "SELECT pg_try_advisory_xact_lock(1) AS a, pg_try_advisory_xact_lock(2) AS b"
    async with serving() as served:
        for method, end in (("POST", "/commit"), ("DELETE", "")):
            one = await opened_transaction(served)
            await query(served, "SELECT pg_advisory_lock(1)", transaction=one)
            await query(served, "SELECT pg_advisory_xact_lock(2)", transaction=one)
            assert await query(served, tried) == {"a": False, "b": False}
            waiting = "SELECT pg_advisory_xact_lock(1)"
            assert await query(served, waiting, timeout_ms=50) == "57014"
            assert await query(served, "SELECT pg_advisory_unlock(1) AS a", transaction=one) == {
                "a": True
            }
            assert await query(served, tried) == {"a": True, "b": False}
            await query(served, "SELECT pg_advisory_lock(1)", transaction=one)
            await served.admin(method, f"/v1/transaction/{one}{end}")
            assert await query(served, tried) == {"a": True, "b": True}


async def test_a_key_that_only_reads_locks_nothing_and_may_unlock() -> None:
    async with serving() as served:
        made = await served.admin("POST", "/v1/keys", {"name": "k", "scopes": ["data:read"]})
        async with await served.client() as client:
            for sql, code in (
                ("SELECT pg_try_advisory_xact_lock(1)", "QS005"),
                ("SELECT pg_advisory_unlock_all()", None),
            ):
                answer = await client.ask(message("POST", "/v1/query", {"sql": sql}, made["key"]))
                assert json.loads(answer.body).get("error", {"code": None})["code"] == code

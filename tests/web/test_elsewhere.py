"""What a request takes along to the process that it belongs to, and gets if that is away."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from typing import Any

import pytest

from qserver.control.logs import MemoryLogs
from qserver.control.plane import CONTROL
from qserver.http1 import Elsewhere, Request
from qserver.web.app import Application
from qserver.web.service.service import Service
from tests.web.served import ADMIN, serving

PAGE = b"https://app.example.com"
SETTINGS = {"QSERVER_STATEMENT_TIMEOUT": "2000", "QSERVER_CORS_ORIGINS": PAGE.decode()}
HEADERS = (
    (b"host", b"a"),
    (b"authorization", f"Bearer {ADMIN}".encode()),
    (b"content-type", b"application/json"),
    (b"origin", PAGE),
)


async def elsewhere(service: Service, method: str, path: str, query: bytes, body: Any) -> Elsewhere:
    """What the endpoint answers when another process owns the database."""
    assert isinstance(service.logs, MemoryLogs)
    (family,) = [each for each in service.logs.names() if each != CONTROL]
    owners = service.plane.owners
    owners.count = 2
    owners.process = 1 - owners.owner_of(family)
    try:
        endpoint = Application(service, service.running, "test-").endpoint(
            Request(method, path, query, HEADERS)
        )
        sent = b"" if body is None else json.dumps(body).encode()
        values = {b"x-request-id": b"mine-7"}
        answer = endpoint.handle(sent, None, lambda answer: True, values)
        if isinstance(answer, Coroutine):
            answer = await answer
        assert isinstance(answer, Elsewhere) and answer.process == owners.owner_of(family)
        return answer
    finally:
        owners.count, owners.process = 1, 0


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "seconds"),
    [
        ("POST", "/v1/query", b"", {"sql": "select 1"}, 2000),
        ("POST", "/v1/query", b"", {"sql": "select 1", "timeout_ms": 700000}, 700),
        ("GET", "/v1/query", b"sql=select%201&timeout_ms=700000", None, 700),
        ("POST", "/v1/transaction", b"", {"statements": [{"sql": "select 1"}]}, 2000),
        ("POST", "/v1/transaction/open", b"", {}, 2000),
        ("POST", "/v1/tables/t/rows", b"", [], 2000),
        ("GET", "/v1/changes", b"since=0", None, 2000),
        ("GET", "/v1/notifications", b"channel=a", None, 2000),
    ],
)
async def test_a_request_waits_for_another_process_no_longer_than_it_may_take(
    method: str, path: str, query: bytes, body: Any, seconds: float
) -> None:
    async with serving(**SETTINGS) as served:
        answer = await elsewhere(served.service, method, path, query, body)
        assert seconds / 2 < answer.seconds <= seconds
        refused = answer.refused()
        assert isinstance(refused.body, bytes)
        told = json.loads(refused.body)["error"]
        assert refused.status == 503 and told["retryable"] is True
        assert (told["code"], told["name"]) == ("QS023", "database_moved")
        assert refused.request_id == told["request_id"] == "mine-7"
        headers = dict(refused.headers.pairs)
        assert headers[b"access-control-allow-origin"] == PAGE
        assert headers[b"retry-after"] == b"1"
        assert served.service.metrics.errors["QS023"] == 1

"""What cannot be brought about from outside: bugs, starting and draining."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from qserver.config import load
from qserver.http1 import ServerOptions
from qserver.http1.head import parse_head
from qserver.sql import parser
from qserver.web.app import Application
from qserver.web.asgi import AsgiApplication, Message
from qserver.web.service.create import create_application
from qserver.web.statements.query_calls import QueryCall
from tests.web.contract.servers import error_of

KEY = "svc_k_0123456789abcdef"
SECRET = "the engine's own business"


def new_app() -> Application:
    settings = load({"QSERVER_DATA_DIR": ":memory:", "QSERVER_API_KEY": KEY, "QSERVER_SHARDS": "1"})
    return create_application(settings, lambda first_key: None)


def client_of(app: Application) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=AsgiApplication(app))
    headers = {"Authorization": f"Bearer {KEY}"}
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)


@asynccontextmanager
async def running(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    """The app between startup and shutdown, as a server would run it."""
    to_app, from_server = trio.open_memory_channel[Message](1)
    to_server, from_app = trio.open_memory_channel[Message](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            AsgiApplication(app), {"type": "lifespan"}, from_server.receive, to_server.send
        )
        await to_app.send({"type": "lifespan.startup"})
        assert (await from_app.receive())["type"] == "lifespan.startup.complete"
        async with client_of(app) as client:
            yield client
        await to_app.send({"type": "lifespan.shutdown"})
        assert (await from_app.receive())["type"] == "lifespan.shutdown.complete"


@pytest.mark.parametrize(
    ("lines", "repeated"),
    [
        (b"X-Request-Id: a-1.b_C:9\r\n", "a-1.b_C:9"),
        (b"X-Request-Id: a b\r\n", None),
        (b'X-Request-Id: "><script>\r\n', None),
        (b"X-Request-Id: %b\r\n" % (b"x" * 129), None),
        (b"X-Request-Id: a\r\nX-Request-Id: b\r\n", None),
        (b"X-Request-Id: \r\n", None),
        (b"", None),
    ],
)
def test_server_and_application_repeat_the_same_request_ids(
    lines: bytes, repeated: str | None
) -> None:
    raw = b"POST /v1/query HTTP/1.1\r\nHost: a\r\nAuthorization: none\r\n%b\r\n" % lines
    app = new_app()
    head = parse_head(raw, ServerOptions(), app.varying)
    assert head.request_id == repeated
    call = QueryCall(app.endpoint(head.request), b"", None, head.values)
    assert (call.request_id == repeated) is (repeated is not None)


def fail(*arguments: object) -> object:
    raise ZeroDivisionError(SECRET)


async def fail_too(*arguments: object) -> object:
    raise ZeroDivisionError(SECRET)


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/query"), ("GET", "/v1/organization")])
async def test_a_bug_is_500_without_internals_and_logged_with_the_request_id(
    method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app()
    async with running(app) as client:
        await client.post("/v1/query", json={"sql": "select 1"})  # so that all of it is known
        app.service.plane.database_nowait = fail  # type: ignore[assignment]
        app.service.plane.organizations.overview = fail_too  # type: ignore[assignment]
        with caplog.at_level(logging.ERROR):
            answer = await client.request(
                method, path, json={"sql": "select 1"}, headers={"X-Request-Id": "trace-7"}
            )
    error = error_of(answer, 500)
    assert (error["message"], error["request_id"]) == ("internal error", "trace-7")
    assert SECRET not in answer.text and "ZeroDivision" not in answer.text
    assert "trace-7" in caplog.text and SECRET in caplog.text


async def test_before_it_has_started_the_service_says_so() -> None:
    async with client_of(new_app()) as client:
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "starting")
        assert int(ready.headers["retry-after"]) >= 1
        assert (await client.get("/health")).status_code == 503
        answer = await client.post("/v1/query", json={"sql": "select 1"})
        assert int(answer.headers["retry-after"]) >= 1
        error_of(answer, 503)


@pytest.mark.half
async def test_while_it_drains_it_is_not_ready_and_answers_all_the_same() -> None:
    app = new_app()
    async with running(app) as client:
        assert (await client.get("/ready")).status_code == 200
        app.drain()
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "draining")
        assert int(ready.headers["retry-after"]) >= 1
        answer = await client.post("/v1/query", json={"sql": "select 1 as a"})
        assert answer.json()["rows"] == [{"a": 1}]


async def test_a_websocket_is_turned_away() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await AsgiApplication(new_app())({"type": "websocket"}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_the_grammar_is_loaded_beside_the_loop_before_anything_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first start makes its tables, which takes a second: no stall, and no slow first query."""
    threads: list[int] = []
    make: Any = vars(parser)["Lark"]

    def lark(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.get_ident())
        return make(*arguments, **options)

    monkeypatch.setattr(parser, "Lark", lark)
    parser._lark.cache_clear()
    async with running(new_app()) as client:
        answer = await client.post("/v1/query", json={"sql": "SELECT 1 AS one"})
        assert answer.json()["rows"] == [{"one": 1}]
    assert len(threads) == 1 and threads[0] != threading.get_ident()

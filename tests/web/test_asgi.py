"""The application as an ASGI server sees it: bodies read when they are wanted, readers that go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.control.plane import CONTROL
from qserver.engine.work import Rest, begin
from qserver.http1 import PENDING, Request
from qserver.http1.heads import HEAD_KEPT_BYTES_MAX
from qserver.limits import (
    BODY_PROGRESS_BYTES_MIN,
    BODY_SECONDS_MAX,
    BODY_UNREAD_BYTES_MAX,
    HEADS_KEPT_MAX,
    REQUEST_BODY_BYTES_MAX,
)
from qserver.web.app import Application
from qserver.web.asgi import AsgiApplication, Message, _Waiting
from qserver.web.calls import Endpoint
from qserver.web.statements import rows, statement_calls
from qserver.web.statements.answers import Encoded, Sliced
from qserver.web.statements.query_calls import QueryCall
from tests.web.test_app import KEY, new_app, running

LONG = "select i, repeat('x', 1000) as x from generate_series(1, 100000) s(i)"


class Server:
    """Gives a body in parts, keeps what is sent; says that the client has left when it is told."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)
        self.received = 0
        self.sent: list[Message] = []
        self.left = trio.Event()

    async def receive(self) -> Message:
        if not self.parts:
            await self.left.wait()
            return {"type": "http.disconnect"}
        self.received += 1
        body = self.parts.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(self.parts)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        await trio.lowlevel.checkpoint()

    async def ask(
        self,
        app: Application | AsgiApplication,
        *headers: tuple[bytes, bytes],
        key: str = KEY,
        path: str = "/v1/query",
    ) -> None:
        own = [(b"authorization", f"Bearer {key}".encode()), *headers]
        scope = {"type": "http", "method": "POST", "path": path, "headers": own}
        adapter = app if isinstance(app, AsgiApplication) else AsgiApplication(app)
        await adapter(scope, self.receive, self.send)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]  # type: ignore[no-any-return]

    @property
    def body(self) -> Any:
        assert not self.sent[-1].get("more_body", False)
        return json.loads(b"".join(each.get("body", b"") for each in self.sent[1:]))


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", str(size).encode()


@asynccontextmanager
async def counted(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[tuple[AsgiApplication, list[Endpoint]]]:
    """A running application, and a list that each endpoint is added to that it makes."""
    app = new_app()
    made: list[Endpoint] = []
    make = app.endpoint

    def endpoint(request: Request) -> Endpoint:
        made.append(make(request))
        return made[-1]

    monkeypatch.setattr(app, "endpoint", endpoint)
    async with running(app):
        yield AsgiApplication(app), made


async def test_the_endpoint_of_a_head_that_comes_again_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with counted(monkeypatch) as (adapter, made):
        for number in range(3):
            server = Server(b'{"sql": "SELECT %d AS n"}' % number)
            await server.ask(adapter)
            assert server.body["rows"] == [{"n": number}]
        assert len(made) == 1
        other = Server(b'{"sql": "SELECT 1"}')
        await other.ask(adapter, key=KEY + "x")
        assert (other.status, len(made)) == (401, 2)


@pytest.mark.half
async def test_heads_that_are_long_or_never_the_same_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = b"x-long", b"x" * HEAD_KEPT_BYTES_MAX
    async with counted(monkeypatch) as (adapter, made):
        for header in (long, long, (b"idempotency-key", b"1"), (b"idempotency-key", b"1")):
            await Server(b'{"sql": "CREATE TABLE IF NOT EXISTS t ()"}').ask(adapter, header)
        assert len(made) == 4
        for number in range(HEADS_KEPT_MAX + 1):
            await Server(b'{"sql": "SELECT 1"}').ask(adapter, (b"x-number", b"%d" % number))
        assert len(adapter._heads) <= HEADS_KEPT_MAX


async def test_a_body_may_come_in_parts() -> None:
    app = new_app()
    async with running(app):
        server = Server(b'{"sql": ', b"", b'"select 1 as one"}')
        await server.ask(app)
        assert server.body["rows"] == [{"one": 1}]
        assert dict(server.sent[0]["headers"])[b"content-length"] == b"%d" % len(
            server.sent[1]["body"]
        )


@pytest.mark.parametrize(
    ("headers", "received"),
    [
        ([length(20)], 2),
        ([length(BODY_UNREAD_BYTES_MAX + 1)], 0),
        ([length(20), (b"expect", b"100-continue")], 0),
        ([(b"transfer-encoding", b"chunked")], 0),
    ],
    ids=["small", "large", "expected", "chunks"],
)
async def test_a_body_that_nobody_wants_is_read_only_if_it_is_small(
    headers: list[tuple[bytes, bytes]], received: int
) -> None:
    app = new_app()
    async with running(app):
        server = Server(b"12345", b"67890")
        await server.ask(app, *headers, key="svc_k_unknown_0123456789")
        assert (server.status, server.received) == (401, received)


async def test_a_body_that_is_too_large_is_refused() -> None:
    app = new_app()
    async with running(app):
        server = Server(*[b"x" * (REQUEST_BODY_BYTES_MAX // 4)] * 10)
        await server.ask(app, (b"transfer-encoding", b"chunked"))
        assert (server.status, server.received) == (413, 5)


BULK = (b"content-type", b"application/x-ndjson"), (b"transfer-encoding", b"chunked")


class SlowServer(Server):
    """Waits before each part."""

    pause_seconds = 0.0

    async def receive(self) -> Message:
        await trio.sleep(self.pause_seconds)
        return await super().receive()


async def test_rows_in_bulk_that_come_too_slowly_are_refused(autojump_clock: MockClock) -> None:
    app = new_app()
    async with running(app):
        table = Server(b'{"sql": "create table t (a int)"}')
        await table.ask(app)
        row = b'{"a": 1}' + b" " * BODY_PROGRESS_BYTES_MIN + b"\n"
        patient = SlowServer(*[row] * 5)
        patient.pause_seconds = BODY_SECONDS_MAX / 2
        await patient.ask(app, *BULK, path="/v1/tables/t/rows")
        assert patient.body["affected_rows"] == 5
        slow = SlowServer(*[b'{"a": 2}\n'] * 5)
        slow.pause_seconds = BODY_SECONDS_MAX / 2
        await slow.ask(app, *BULK, path="/v1/tables/t/rows")
        assert (slow.status, slow.received) == (408, 1)
        assert slow.body["error"]["retryable"] and "in time" in slow.body["error"]["message"]
        count = Server(b'{"sql": "select count(*) as n from t"}')
        await count.ask(app)
        assert count.body["rows"] == [{"n": 5}]
        assert app.service.memory.held == 0


@pytest.mark.parametrize("head", [(), ((b"transfer-encoding", b"chunked"),)])
async def test_a_body_that_comes_too_slowly_is_refused(
    head: tuple[tuple[bytes, bytes], ...], autojump_clock: MockClock
) -> None:
    app = new_app()
    async with running(app):
        slow = SlowServer(b'{"sql": ', b'"select', b' 1"}')
        slow.pause_seconds = BODY_SECONDS_MAX / 2
        await slow.ask(app, *head)
        assert (slow.status, slow.received) == (408, 1)
        assert app.service.bodies.held == 0


async def test_a_client_that_leaves_before_the_end_of_its_request_gets_nothing() -> None:
    app = new_app()
    async with running(app):
        server = Server()
        server.left.set()
        await server.ask(app, (b"transfer-encoding", b"chunked"))
        assert server.sent == []


@pytest.mark.parametrize("accept", [b"text/event-stream", b"application/json"])
async def test_an_answer_in_parts_ends_when_its_reader_is_gone(accept: bytes) -> None:
    app = new_app()
    async with running(app):
        server = Server(json.dumps({"sql": LONG, "max_rows": 20_000}).encode())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.ask, app, (b"accept", accept))
            while len(server.sent) < 3:
                await trio.lowlevel.checkpoint()
            server.left.set()
        assert server.sent[-1]["more_body"]
        await wait_all_tasks_blocked()
        assert app.service.memory.held == 0
        used = [each for each in app.service.databases.statistics() if each.id != CONTROL]
        assert [each.users for each in used] == [0]


class ClosingServer(Server):
    """Closes the connection while an answer is sent, as hypercorn does if its client leaves."""

    async def send(self, message: Message) -> None:
        await super().send(message)
        if message.get("body"):
            raise trio.BusyResourceError("another task is currently sending data")


@pytest.mark.parametrize("accept", [b"*/*", b"text/event-stream"])
async def test_a_connection_that_closes_while_its_answer_is_sent_is_no_error(accept: bytes) -> None:
    app = new_app()
    async with running(app):
        server = ClosingServer(b'{"sql": "select 1"}')
        await server.ask(app, (b"accept", accept))
        assert any(each.get("body") for each in server.sent)
        await wait_all_tasks_blocked()
        used = [each for each in app.service.databases.statistics() if each.id != CONTROL]
        assert [each.users for each in used] == [0]


async def test_what_goes_on_when_nobody_waits_any_more_is_closed_and_holds_nothing() -> None:
    call, released = holding_call()
    call._replied(lambda answer: False, the_rest(call))
    assert released == ["database"]


def the_rest(call: QueryCall) -> Rest:
    """What a task has to wait for: the service has not started yet."""
    _, rest = begin(call.serve())
    assert rest is not None
    return rest


def holding_call() -> tuple[QueryCall, list[str]]:
    """A request that has opened its database, and what it has released."""
    released: list[str] = []

    class Opened:
        def release(self) -> None:
            released.append("database")

    headers = ((b"authorization", f"Bearer {KEY}".encode()),)
    endpoint = new_app().endpoint(Request("POST", "/v1/query", b"", headers))
    call = QueryCall(endpoint, b"", None, {})
    call._opened = Opened()  # type: ignore[assignment]
    return call, released


@pytest.mark.parametrize("size", [[length(9_000_000)], []])
async def test_over_http_2_the_whole_body_is_taken_before_an_answer(
    size: list[tuple[bytes, bytes]],
) -> None:
    """Hypercorn forgets a stream that was answered, and ends with what still comes."""
    app = new_app()
    async with running(app):
        server = Server(*[b"x" * 1_000_000] * 9)
        own = [(b"authorization", b"Bearer svc_k_unknown_0123456789"), *size]
        scope = {"type": "http", "method": "POST", "path": "/v1/query", "headers": own}
        await AsgiApplication(app)({**scope, "http_version": "2"}, server.receive, server.send)
        assert (server.status, server.received) == (401, 9)
        assert server.body["success"] is False


async def test_an_answer_in_parts_whose_beginning_cannot_be_sent_gives_its_database_back() -> None:
    app = new_app()
    async with running(app):
        server = Server(json.dumps({"sql": LONG, "max_rows": 20_000}).encode())

        async def fail(message: Message) -> None:
            raise OSError("the client is gone")

        server.send = fail  # type: ignore[method-assign]
        await server.ask(app)
        assert app.service.memory.held == 0


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select 1 as one", "53200"),
        ("insert into t values (1) returning i", None),
    ],
)
async def test_a_long_answer_without_memory_is_refused_unless_it_is_of_what_has_happened(
    sql: str, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = new_app()
    async with running(app):
        await Server(b'{"sql": "create table t (i int)"}').ask(app)
        pool = app.service.memory

        async def sliced(every: Sequence[Encoded]) -> tuple[list[Sliced], bool]:
            pool.take_anyway(pool.most)  # others hold all there is
            return [(encoder, [its_rows]) for encoder, its_rows in every], True

        monkeypatch.setattr(statement_calls, "sliced", sliced)
        monkeypatch.setattr(rows, "ROWS_ENCODED_AT_ONCE", 0)
        server = Server(json.dumps({"sql": sql}).encode())
        await server.ask(app)
        assert server.body["success"] is (code is None)
        if code is not None:
            assert server.body["error"]["code"] == code
        assert pool.held == pool.most, "the answer's own is given back"


async def test_an_answer_that_comes_to_a_cancelled_task_gives_back_what_it_holds() -> None:
    """It was taken, so whoever has given it does not release what it holds."""
    waiting = _Waiting()
    call, released = holding_call()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.response, PENDING)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        assert waiting.respond(call.start(waiting.respond))
    assert released == ["database"]

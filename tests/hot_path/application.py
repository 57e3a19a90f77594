"""The real application in this process, asked through `handle` as our server asks it."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count, cycle
from random import Random
from typing import Any, Final

import trio
import trio.testing

from qserver.config import Settings, load
from qserver.control.logs import Logs
from qserver.engine.arrivals import Arrivals
from qserver.engine.world import OrdinaryWorld
from qserver.http1 import PENDING, Request, Response
from qserver.http1.connection import Connection
from qserver.http1.context import ServerContext
from qserver.http1.counters import Counters
from qserver.http1.options import ServerOptions
from qserver.http1.reactor import BatchPort
from qserver.http1.transport import PlainTransport
from qserver.web.app import Application
from qserver.web.asgi import AsgiApplication, Message
from qserver.web.service.postgres import new_postgres
from qserver.web.service.service import Service
from tests.pgwire import wire

KEY: Final = "svc_k_0123456789abcdef"
HEADERS: Final = (
    (b"host", b"127.0.0.1"),
    (b"authorization", b"Bearer " + KEY.encode()),
    (b"content-type", b"application/json"),
)
LOOPBACK: Final = "127.0.0.1"
BLOCK: Final = (
    ("begin", "BEGIN"),
    ("change", "UPDATE account SET n = n + 1 WHERE id = $1"),
    ("end", "ROLLBACK"),
)
"""What the client of PostgreSQL has prepared, beside "read"."""
LITERAL: Final = "SELECT id, owner, n FROM account WHERE id = {}"
BOUND: Final = "SELECT id, owner, n FROM account WHERE id = $1"
IDLE: Final = b"Z\0\0\0\5I"
NOON: Final = 1_700_000_000.0
ROWS: Final = 1000
QUERY, TRANSACTION = "/v1/query", "/v1/transaction"

Ask = Callable[[], tuple[str, bytes]]
"""The path and the body of the next request."""

Send = Callable[[str, bytes], Awaitable[None]]
"""Sends a request and waits for its answer, which must be a success."""


class HotPath:
    def __init__(
        self, application: Application, client: socket.socket, wire: socket.socket
    ) -> None:
        self._client = client
        self._wire = wire
        self._batch = application.service.world.batch
        self._adapter = AsgiApplication(application)
        self._endpoints = {path: _endpoint(application, path) for path in (QUERY, TRANSACTION)}

    async def ask(self, path: str, body: bytes) -> None:
        """Send a request and wait for its answer, which must be a success."""
        answered = trio.Event()
        later: list[Any] = []

        def respond(answer: Any) -> bool:
            later.append(answer)
            answered.set()
            return True

        self._batch.open()
        answer: Any = self._endpoints[path].handle(body, None, respond, {})
        self._batch.end()
        while not isinstance(answer, Response):
            if answer is PENDING:
                await answered.wait()
                answer = later.pop()
            else:
                answer = await answer
        assert answer.status == 200, answer

    async def ask_adapter(self, path: str, body: bytes) -> None:
        """Do the same as an ASGI server."""
        answer: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            answer.append(message)

        scope = {"type": "http", "method": "POST", "path": path, "headers": HEADERS}
        await self._adapter(scope, receive, send)
        assert answer[0]["status"] == 200, answer

    async def ask_server(self, path: str, body: bytes) -> None:
        """Do the same as a client of our server."""
        await self._send(_head(path, body) + body)

    async def ask_server_in_two(self, path: str, body: bytes) -> None:
        """Send the body behind the head, when the server has looked at that."""
        self._client.send(_head(path, body))
        await trio.testing.wait_all_tasks_blocked()
        await self._send(body)

    async def _send(self, data: bytes) -> None:
        self._client.send(data)
        await trio.lowlevel.wait_readable(self._client)
        answer = self._client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 "), answer

    async def ask_wire(self, _: str, messages: bytes) -> None:
        """Do the same as a client of PostgreSQL."""
        answer = await self._answer_of_wire(messages)
        assert answer.endswith((b"SELECT 1\0" + IDLE, b"ROLLBACK\0" + IDLE)), answer
        assert b"SERROR" not in answer, answer

    async def prepare(self, sql: str, name: str) -> None:
        """Prepare a statement for the client of PostgreSQL."""
        answer = await self._answer_of_wire(wire.parse(sql, name) + wire.SYNC)
        assert answer.endswith(IDLE), answer

    async def _answer_of_wire(self, messages: bytes) -> bytes:
        self._wire.send(messages)
        await trio.lowlevel.wait_readable(self._wire)
        return self._wire.recv(65536)

    async def query(self, sql: str) -> None:
        await self.ask(QUERY, _json({"sql": sql}))


def _head(path: str, body: bytes) -> bytes:
    lines = [f"POST {path} HTTP/1.1".encode(), *(b": ".join(pair) for pair in HEADERS)]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body), b"", b""])


def _endpoint(application: Application, path: str) -> Any:
    return application.endpoint(Request("POST", path, b"", HEADERS))


@asynccontextmanager
async def serving(logs: Logs) -> AsyncIterator[HotPath]:
    """The application with a table of accounts and an empty one of entries."""

    def report(text: str, error: Exception) -> None:
        raise AssertionError(text) from error

    settings = load(
        {"QSERVER_DATA_DIR": ":memory:", "QSERVER_API_KEY": KEY, "QSERVER_PG_PORT": "0"}
    )
    world = OrdinaryWorld(lambda: NOON, Random(0), report)
    service = Service(settings, world, logs, Random(1).randbytes)
    async with service.running():
        application = Application(service, service.running, "count-")
        async with _connected(application, world.batch) as client:
            async with _entered(service, settings) as wire:
                yield await _filled(HotPath(application, client, wire))


@asynccontextmanager
async def _connected(application: Application, batch: BatchPort) -> AsyncIterator[socket.socket]:
    """A client of our server, as the server has it while one organization is there."""
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    context = ServerContext(application, ServerOptions(), Counters(), print, batch, Arrivals())
    assert context.reactor is not None
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.reactor.run)
            connection = Connection(context, PlainTransport(ours), None)
            context.add(connection)
            nursery.start_soon(context.turns.run, connection.run())
            yield theirs
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def _entered(service: Service, settings: Settings) -> AsyncIterator[socket.socket]:
    """A client of PostgreSQL that has been let in."""
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    listener = new_postgres(service, settings, None)
    with theirs:
        async with trio.open_nursery() as nursery:
            await nursery.start(listener.run, [], trio.Event())
            nursery.start_soon(listener.serve, PlainTransport(ours), LOOPBACK)
            theirs.send(wire.startup(user="me", database="main") + wire.frame("p", wire.text(KEY)))
            answer = b""
            while not answer.endswith(IDLE):
                await trio.lowlevel.wait_readable(theirs)
                answer += theirs.recv(65536)
            yield theirs
            nursery.cancel_scope.cancel()


async def _filled(hot_path: HotPath) -> HotPath:
    await hot_path.query("CREATE TABLE account (id INT PRIMARY KEY, owner TEXT, n INT)")
    await hot_path.query("CREATE TABLE entry (id INT PRIMARY KEY, note TEXT)")
    await hot_path.query(
        "INSERT INTO account SELECT i, 'owner ' || i, 1000"
        f" FROM generate_series(0, {ROWS - 1}) AS s (i)"
    )
    for name, sql in (("read", BOUND), *BLOCK):
        await hot_path.prepare(sql, name)
    return hot_path


def requests() -> dict[str, Ask]:
    """What is counted, by name."""
    numbers, fresh = cycle(range(100, ROWS)), count(100_000)
    update = "UPDATE account SET n = n {} $1 WHERE id = $2"

    def transfer() -> bytes:
        statements = [{"sql": update.format(sign), "params": [5, next(numbers)]} for sign in "-+"]
        return _json({"statements": statements})

    return {
        "point read": lambda: (
            QUERY,
            _json({"sql": LITERAL.format(next(numbers))}),
        ),
        "bound parameter": lambda: (
            QUERY,
            _json({"sql": BOUND, "params": [next(numbers)]}),
        ),
        "insert": lambda: (
            QUERY,
            _json({"sql": "INSERT INTO entry VALUES ($1, 'entry')", "params": [next(fresh)]}),
        ),
        "transfer": lambda: (TRANSACTION, transfer()),
    }


def requests_of_wire() -> dict[str, Ask]:
    """The messages of a point read over PostgreSQL's wire, by the way that it is asked.

    The last one is in a transaction block, behind an update, and undone.
    """
    numbers = cycle(range(100, ROWS))
    rest = wire.describe() + wire.execute() + wire.SYNC

    def bound(name: str = "") -> bytes:
        return wire.bind([b"%d" % next(numbers)], name) + rest

    def block() -> bytes:
        begin, end = (wire.bind([], name) + rest for name in ("begin", "end"))
        return begin + bound("change") + bound("read") + end

    return {
        "simple": lambda: ("", wire.query(LITERAL.format(next(numbers)))),
        "extended": lambda: ("", wire.parse(BOUND) + bound()),
        "prepared": lambda: ("", bound("read")),
        "block": lambda: ("", block()),
    }


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()

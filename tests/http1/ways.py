"""An application that answers in all the ways there are, and shows in its answers which one it was.

body       ─► "slow …"    in the connection's task: "POST /fast slow …"
           ─► "later …"   pending, until the test says so: "late later …"
           ─► any other   at once: "fast …"
other path ─► in the connection's task: "GET /other "
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio

from qserver.http1 import PENDING, Counters, Headers, Respond, Response, ServerOptions
from qserver.http1 import Answer as Answered
from qserver.http1.connection import Connection
from qserver.http1.context import ServerContext
from qserver.http1.transport import PlainTransport
from tests.http1.serving import (
    PATIENCE_SECONDS,
    App,
    Asked,
    Client,
    Running,
    Served,
    reply,
    request,
    running,
)

SOON = 0.05
HEADERS = Headers([(b"x-way", b"fast")])
LATE_STATUS = 202
"""Of answers that come later, unless the test says another."""


class Ways(App):
    """What it does is what the body asks for."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.asked: list[bytes] = []
        self.waited: list[bytes] = []
        """Bodies of requests that were answered in the connection's task."""
        self.endpoints: list[Served] = []
        self.begun: list[tuple[bytes, Respond]] = []
        """Requests that wait for their answers, the oldest first."""
        self.eager = False
        """Promised answers are given by a task that is started with the promise."""

    def endpoint(self, request: Any) -> Served:
        self.endpoints.append(super().endpoint(request))
        return self.endpoints[-1]

    def answer(self, asked: Asked) -> Answered:
        if asked.request.path != "/fast":
            return self._wait(asked)
        if not isinstance(asked.body, bytes):
            return self._read(asked)
        return self._answer(asked.body, asked.respond)

    async def _read(self, asked: Asked) -> Answered:
        return self._answer(await asked.read(), asked.respond)

    def _answer(self, body: bytes, respond: Respond) -> Answered:
        self.asked.append(body)
        if body.startswith(b"slow"):
            return self._echo(body)
        if body.startswith(b"later"):
            self.begun.append((body, respond))
            if self.eager:
                trio.lowlevel.spawn_system_task(self._settle_soon)
            return PENDING
        if body.startswith(b"tells"):
            self.settle_all()
        return Response(200, HEADERS, expected(body), "id")

    async def _wait(self, asked: Asked) -> Response:
        await trio.lowlevel.checkpoint()
        return reply(f"{asked.request.method} {asked.request.path} ".encode() + await asked.read())

    async def _echo(self, body: bytes) -> Response:
        await trio.lowlevel.checkpoint()
        self.waited.append(body)
        return reply(expected(body, waited=True))

    def settle(self, at: int = 0, status: int = LATE_STATUS) -> None:
        """Give the answer to a request that waits."""
        body, respond = self.begun.pop(at)
        respond(Response(status, HEADERS, expected(body), "late-id"))

    def go_on(self, at: int = 0) -> None:
        """Let a request that waits be answered in its connection's task."""
        body, respond = self.begun.pop(at)
        rest = self._echo(body)
        if not respond(rest):
            rest.close()

    def settle_all(self) -> None:
        while self.begun:
            self.settle()

    async def _settle_soon(self) -> None:
        self.settle()

    async def until_begun(self, count: int = 1) -> None:
        """Let others run until so many requests wait."""
        while len(self.begun) < count:
            await trio.lowlevel.checkpoint()


def large(body: bytes) -> bytes:
    """An answer that no socket takes at once, and that says what it is the answer to."""
    return body * (8_000_000 // len(body))


def fast(body: bytes, *headers: str) -> bytes:
    return request("/fast", "POST", body, *headers)


def expected(body: bytes, waited: bool = False) -> bytes:
    if waited or body.startswith(b"slow"):
        return b"POST /fast " + body
    if b"large" in body:
        return large(body)
    return (b"late " if body.startswith(b"later") else b"fast ") + body


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[Running, Ways]]:
    ways = Ways()
    async with running(ways, **options) as server:
        yield server, ways


async def send_in_pieces(client: Client, random: Random, data: bytes) -> None:
    while data:
        size = random.choice([1, 10, 50, len(data)])
        await client.send(data[:size])
        data = data[size:]
        await trio.lowlevel.checkpoint()


# --- one connection alone -------------------------------------------------------------------------


class Hesitant(PlainTransport):
    """Takes a few bytes of what should be sent at once; `then` is called when it has."""

    __slots__ = ("then",)
    then: Callable[[], None]

    def try_send(self, data: bytes | memoryview) -> int:
        sent = super().try_send(data[:10])
        self.then()
        return sent


def hesitant(near: socket.socket) -> Hesitant:
    transport = Hesitant(near)
    transport.then = lambda: None
    return transport


@asynccontextmanager
async def alone(
    transport_of: Callable[[socket.socket], PlainTransport],
    ways: Ways | None = None,
    connection_of: type[Connection] = Connection,
    **options: Any,
) -> AsyncIterator[tuple[ServerContext, Connection, socket.socket, Client]]:
    """A connection that nobody has accepted, on a pair of sockets."""
    reports: list[str] = []
    context = ServerContext(ways or Ways(), ServerOptions(**options), Counters(), reports.append)
    assert context.reactor is not None
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    connection = connection_of(context, transport_of(near), None)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(far))
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery, Client(stream) as client:
            nursery.start_soon(context.reactor.run)
            context.add(connection)
            nursery.start_soon(connection.run)
            yield context, connection, far, client
            nursery.cancel_scope.cancel()
    assert reports == []

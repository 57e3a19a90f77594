"""A lane, and an application beside it that echoes, so that an answer shows which way it came.

first request with a head ─► ordinary: "POST /fast hello"
later ones                ─► lane:     "fast hello"
                          └► begun:    "late later hello", when the test says so
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Literal

import trio

from qserver.web.http1 import Counters, Lane, LaneAnswer, LaneLater, ServerOptions, Waits
from qserver.web.http1.asgi import Scope
from qserver.web.http1.connection import Connection
from qserver.web.http1.context import ServerContext
from qserver.web.http1.transport import PlainTransport
from tests.web.http1.serving import PATIENCE_SECONDS, Client, Echo, Running, request, running

SOON = 0.05
LINES = b"x-way: lane\r\n"
LATE_STATUS = 202
"""Of answers that come later, unless the test says another."""


class Fast:
    """A lane for all requests to /fast. What it does is what the body asks for."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.scopes: list[Scope] = []
        self.begun: list[tuple[bytes, LaneLater]] = []
        """Requests that wait for their answers, the oldest first."""
        self.eager = False
        """Promised answers are given by a task that is started with the promise."""

    def lanes(self, scope: Scope) -> Lane | None:
        self.scopes.append(scope)
        return self if scope["path"] == "/fast" else None

    def answer(self, body: bytes, later: LaneLater) -> LaneAnswer | Literal[Waits.LATER] | None:
        self.asked.append(body)
        if body.startswith(b"slow"):
            return None
        if body.startswith(b"bug"):
            raise ZeroDivisionError
        if body.startswith(b"later"):
            self.begun.append((body, later))
            if self.eager:
                trio.lowlevel.spawn_system_task(self._settle_soon)
            return Waits.LATER
        if body.startswith(b"tells"):
            self.settle_all()
        return LaneAnswer(200, LINES, expected(body), "id")

    def settle(self, at: int = 0, status: int = LATE_STATUS) -> None:
        """Give the answer to a request that waits."""
        body, later = self.begun.pop(at)
        later(LaneAnswer(status, LINES, expected(body), "late-id"))

    def give_up(self, at: int = 0) -> None:
        """Send a request that waits the ordinary way."""
        self.begun.pop(at)[1](None)

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


def expected(body: bytes, lane: bool = True) -> bytes:
    if not lane or body.startswith((b"slow", b"bug")):
        return b"POST /fast " + body
    if b"large" in body:
        return large(body)
    return (b"late " if body.startswith(b"later") else b"fast ") + body


async def learn(client: Client, *bodies: bytes) -> None:
    """The first request with a head takes the ordinary way, and its head is known then."""
    for body in bodies:
        assert (await client.ask(fast(body))).body == expected(body, lane=False)


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[Running, Fast, Echo]]:
    lane, echo = Fast(), Echo()
    async with running(echo, lanes=lane.lanes, **options) as server:
        yield server, lane, echo


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
    lane: Fast | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ServerContext, Connection, socket.socket, Client]]:
    """A connection without a door before it, on a pair of sockets."""
    reports: list[str] = []
    lane = lane or Fast()
    context = ServerContext(
        Echo(), ServerOptions(**options), Counters(), reports.append, None, lane.lanes
    )
    assert context.reactor is not None
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    connection = Connection(context, transport_of(near), None, None)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(far))
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery, Client(stream) as client:
            nursery.start_soon(context.reactor.run)
            context.add(connection)
            nursery.start_soon(connection.run)
            yield context, connection, far, client
            nursery.cancel_scope.cancel()
    assert reports == []

"""Requests that belong to another process: their connection moves there, or they are forwarded.

    Connection ─► Mover.move ═══ Moved: socket and bytes ═══► Acceptor.adopt ─► Connection
    Connection ─► Mover.forward ── request ──► Acceptor.answer ── Response ──► Connection

A move costs as much as four or five forwards, and then nothing. So a connection moves with its
first request, and when several in a row were for one other process; a request between others is
forwarded, if it is short and has arrived whole. A connection of a pool, whose requests are for one
database after the other, so stays where it is. So does one whose application says that it will soon
serve such requests itself (`Elsewhere.visits`).

What moves is the socket and every byte that was received and not answered. The next bytes are read
by the other process: nothing is relayed, and back-pressure is TCP's.

A socket that was given away is still open, so closing its descriptor here would not remove it from
an epoll: it is removed before it goes.

TLS cannot move, because its keys and counters are in this process. The connection stays, moves one
end of a socket pair, and relays bytes between its client and the pair. All processes have the same
options, so the owner knows by its own that the requests came over https. To another machine no
socket can move, and bytes are relayed, too (`relay_sockets`).

A request waits for a process that is away as long as it may take itself, and then gets the answer
that its application has for that (`Elsewhere.refused`).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Final, Protocol

import msgspec
import trio

from qserver.http1.application import Client, Elsewhere, Response
from qserver.http1.headers import Headers
from qserver.http1.options import ServerOptions
from qserver.http1.transport import PlainTransport, Transport, until_true

FORWARD_BYTES_MAX: Final = 64 * 1024

GONE: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class Moved(msgspec.Struct, frozen=True):
    """A connection on its way. Whoever has it adopts it, or closes its socket."""

    socket: socket.socket
    client: Client
    data: bytes
    """The request, from its first byte, and all that was received behind it."""
    marks: Headers | None = None
    """What all its answers say, from which the client learns where it was served."""


class Host(Protocol):
    """A server, for requests that come from other processes."""

    def adopt(self, moved: Moved, refused: Response | None = None) -> None:
        """Serve a connection that has arrived; or, if it could not go, send this and close."""

    async def answer(self, request: bytes, client: Client) -> Response:
        """Answer a whole request of a connection that stays where it is."""


class Mover(Protocol):
    """Takes connections and requests to other processes."""

    visits_in_row: int
    """Requests in a row for one other process that are forwarded; the next takes its connection."""

    def begin(self, host: Host) -> None:
        """Called once, before the first connection. The host may be called as long as the process
        lives: after the server's end it closes connections, and answers with an error.
        """

    def move(self, moved: Moved, elsewhere: Elsewhere) -> None:
        """Send a connection later, with a request that belongs elsewhere; must not wait or raise.

        One that cannot be sent is adopted again, and refused. A server that drains does not wait
        for connections that it has given away.
        """

    async def forward(self, elsewhere: Elsewhere, request: bytes, client: Client) -> Response:
        """Return the answer of another process to a whole request; or the refusal."""


class Visits:
    """Of one connection: its latest requests for one other process."""

    __slots__ = ("_answered", "_process", "_row")

    def __init__(self) -> None:
        self._process = -1
        self._answered = -1
        self._row = 0

    def next(self, elsewhere: Elsewhere, answered: int, most: int) -> bool:
        """Note a request for another process; return whether it is only a visit.

        `answered` are the connection's requests before this one, `most` the visits in a row.
        """
        process = elsewhere.process
        is_in_row = process == self._process and answered == self._answered + 1
        self._row = self._row + 1 if is_in_row else 1
        self._process, self._answered = process, answered
        if elsewhere.visits:
            return self._row <= elsewhere.visits
        return answered > 0 and self._row <= most


def released(transport: Transport) -> tuple[socket.socket, Transport | None]:
    """The socket to give away; if it is one end of a pair, the other, to relay to."""
    given = transport.release()
    if given is not None:
        return given, None
    near, far = socket.socketpair()
    near.setblocking(False)
    return far, PlainTransport(near)


async def relay_sockets(
    client: socket.socket, owner: socket.socket, options: ServerOptions
) -> None:
    """Pass bytes on between a client and its owner on another machine, and close the owner's.

    An answer that is cut off must not look like a whole one. So the client is reset if the owner's
    side has not ended by itself: it was reset, or nobody relays any more.
    """
    outer, inner = PlainTransport(client), _RemoteOwner(owner)
    try:
        await relay(outer, inner, options)
    finally:
        if not inner.has_ended:
            outer.abort()


class _RemoteOwner(PlainTransport):
    """Tells an end of the owner from a reset."""

    __slots__ = ("has_ended",)

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected)
        self.has_ended = False

    async def receive(self) -> bytes:
        data = await super().receive()
        if not data and self.was_reset():
            raise ConnectionResetError("the owner is gone")
        self.has_ended = not data
        return data


async def relay(outer: Transport, inner: Transport, options: ServerOptions) -> None:
    """Pass bytes on until both sides have ended, and close `inner`.

    An end of one direction is passed on; a reset of either ends both.
    """
    has_ended = trio.Event()

    async def inward() -> None:
        await _copy(outer.receive, inner, inf)  # the owner reads when it has answered
        await inner.end_output()
        has_ended.set()
        await until_true(outer.was_reset)  # or both sides have ended

    async def outward() -> None:
        await _copy(inner.receive, outer, options.send_seconds)
        await outer.end_output()
        with trio.move_on_after(options.linger_seconds):  # the owner lingers, too, or is gone
            await has_ended.wait()

    async def run(direction: Callable[[], Awaitable[None]]) -> None:
        with suppress(*GONE):
            await direction()
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, inward)
            nursery.start_soon(run, outward)
    finally:
        inner.close()


async def _copy(receive: Callable[[], Awaitable[bytes]], to: Transport, seconds: float) -> None:
    while data := await receive():
        await to.send_all(memoryview(data), seconds)

"""Serves an application from start to end.

    bind --> start the application --> listen --> accept, serve ... stop is set
                                                                         |
    done <-- shut the application down <-- cut what is left <-- drain <--+
                                           (drain_seconds)

While draining, the server accepts nobody; it closes a connection that has not begun a request, and
closes the others after their answer. So a client never loses a request that it began in time.

A port in use is found before the application starts, and nobody can connect before it has started.

Several processes may accept from the same listeners, and give each other connections (`moving`).
The kernel wakes all that wait for one connection, for some 10 µs each; that does not reach Python.
Not done: EPOLLEXCLUSIVE. Behind Trio's own epoll it wakes all the same (measured), and without that
it gives nearly all connections to one process. So would the first that wakes up: a process with
more connections than others lets those go first (`listening.Crowd`).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable

import trio

from qserver import limits
from qserver.errors import CannotListen, DatabaseUnavailable
from qserver.http1.addresses import network_of
from qserver.http1.application import Application, Client, Response
from qserver.http1.connection import Connection
from qserver.http1.context import ServerContext
from qserver.http1.counters import Counters
from qserver.http1.guests import answered
from qserver.http1.listening import (
    Crowd,
    accept_for_ever,
    accept_waiting,
    bind_all,
    close_all,
    listen_all,
)
from qserver.http1.moving import Moved, Mover
from qserver.http1.options import ServerOptions
from qserver.http1.reactor import BatchPort
from qserver.http1.refusal import Refusal
from qserver.http1.tls import TlsTransport, tls_context
from qserver.http1.transport import PlainTransport, Transport
from qserver.http1.turns import Turns

Addresses = list[tuple[str, int]]


async def serve(
    application: Application,
    options: ServerOptions,
    *,
    stop: trio.Event,
    report: Callable[[str], None],
    counters: Counters | None = None,
    batch: BatchPort | None = None,
    turns: Turns | None = None,
    listeners: list[socket.socket] | None = None,
    mover: Mover | None = None,
    crowd: Crowd | None = None,
    beside: Callable[[], Awaitable[None]] | None = None,
    task_status: trio.TaskStatus[Addresses] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `stop` is set, then drain and return.

    `batch` is opened and ended around requests that are handled one after the other. `turns` says
    which of several owners' requests is handled next. `listeners` are bound, perhaps
    for other processes, too, that may listen already: `crowd` says which of them has fewer
    connections, and `mover` takes connections to them.
    for other processes, too, that may listen already. `mover` takes connections to those. `beside`
    is awaited while the server drains: another server of the same application.

    Raises CannotListen if the address cannot be bound, and any error of the application's start.
    """
    encryption = tls_context(options)
    listeners = listeners or await bind_all(options)
    failure: CannotListen | None = None
    try:
        with trio.CancelScope() as patience:
            async with application.running():
                context = ServerContext(
                    application, options, counters or Counters(), report, batch, turns, mover, crowd
                )
                try:
                    addresses = listen_all(listeners, options)
                except CannotListen as error:
                    failure = error
                else:
                    acceptor = Acceptor(context, encryption, beside)
                    await acceptor.run(listeners, addresses, stop, task_status)
                patience.deadline = trio.current_time() + options.shutdown_seconds
        if patience.cancelled_caught:
            report(f"the application did not shut down in {options.shutdown_seconds} s")
    finally:
        close_all(listeners)
    if failure is not None:
        raise failure


class Acceptor:
    """Accepts connections up to the limit, and drains them at the end."""

    def __init__(
        self,
        context: ServerContext,
        encryption: ssl.SSLContext | None,
        beside: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._context = context
        self._beside = beside
        self._encryption = encryption
        self._turned_away = 0
        self._nursery: trio.Nursery | None = None

    async def run(
        self,
        listeners: list[socket.socket],
        addresses: Addresses,
        stop: trio.Event,
        task_status: trio.TaskStatus[Addresses],
    ) -> None:
        async with trio.open_nursery() as self._nursery:
            nursery = self._nursery
            try:
                await self._serve(listeners, addresses, stop, task_status, nursery)
            finally:
                self._nursery = None  # before it ends: nothing can start in one that has ended
            nursery.cancel_scope.cancel()

    async def _serve(
        self,
        listeners: list[socket.socket],
        addresses: Addresses,
        stop: trio.Event,
        task_status: trio.TaskStatus[Addresses],
        nursery: trio.Nursery,
    ) -> None:
        """Accept until `stop`, then drain."""
        context = self._context
        nursery.start_soon(context.sweep)
        if context.reactor is not None:
            nursery.start_soon(context.reactor.run)
        if context.mover is not None:
            context.mover.begin(self)
        async with trio.open_nursery() as accepting:
            for listener in listeners:
                accepting.start_soon(
                    accept_for_ever, listener, self.welcome, context.report, context.crowd
                )
            task_status.started(addresses)
            await stop.wait()
            accepting.cancel_scope.cancel()
        for listener in listeners:
            self._accept_the_last(listener)
        close_all(listeners)
        with trio.move_on_after(context.options.drain_seconds) as patience:
            await context.drain()
            if self._beside is not None:
                await self._beside()
        if patience.cancelled_caught:
            context.report(f"{len(context.connections)} connections cut off while draining")

    def welcome(self, connected: socket.socket, client: tuple[str, int]) -> None:
        """Start a connection, or refuse it with a 503 if there are too many."""
        self._context.counters.connections_accepted += 1
        self._start(connected, client, self._transport)

    def adopt(self, moved: Moved, refused: Response | None = None) -> None:
        """Go on with a connection of another process, or with one that could not go there: its
        request gets this answer then, and the connection closes.
        """
        if self._nursery is None:
            moved.socket.close()  # the server has ended
            return
        self._context.counters.connections_moved_in += 1
        moved.socket.setblocking(False)
        self._start(moved.socket, moved.client, PlainTransport, moved, refused)

    async def answer(self, request: bytes, client: Client) -> Response:
        """Answer a whole request of a connection of another process."""
        if self._nursery is None:
            raise DatabaseUnavailable("the process is stopping", hint="Try again.")
        return await self._context.turns.run(answered(self._context, request, client))

    def _start(
        self,
        connected: socket.socket,
        client: Client,
        transport_of: Callable[[socket.socket], Transport],
        moved: Moved | None = None,
        refused: Response | None = None,
    ) -> None:
        """One more than the limit may be open until the one that makes room has ended."""
        assert self._nursery is not None, "it runs"
        context = self._context
        count, most = len(context.connections), context.options.connections_max
        full = count >= most and not (
            count < most + limits.CONNECTIONS_REFUSED_MAX
            and context.addresses.make_room(network_of(client[0]) if client else "")
        )
        if full:
            context.counters.connections_refused += 1
            if self._turned_away >= limits.CONNECTIONS_REFUSED_MAX:
                connected.close()
                return
        try:
            connection = Connection(context, transport_of(connected), client)
        except OSError:
            connected.close()  # the client has left already
            return
        if moved is not None:
            connection.arrive(moved)
        if full:
            self._turned_away += 1
            self._nursery.start_soon(self._turn_away, connection)
        else:
            context.add(connection)
            self._nursery.start_soon(self._run, connection, refused)

    async def _run(self, connection: Connection, refused: Response | None) -> None:
        await self._context.turns.run(connection.run(refused))

    def _transport(self, connected: socket.socket) -> Transport:
        if self._encryption is not None:
            seconds = self._context.options.header_seconds
            return TlsTransport(connected, self._encryption, seconds)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return PlainTransport(connected)

    async def _turn_away(self, connection: Connection) -> None:
        try:
            await connection.turn_away(
                Refusal(503, "there are too many connections", "Try again in a moment.")
            )
        finally:
            self._turned_away -= 1

    def _accept_the_last(self, listener: socket.socket) -> None:
        """Accept connections that the kernel holds: clients may have sent a request already."""
        try:
            accept_waiting(listener, self.welcome, self._context.options.backlog)
        except OSError as error:
            self._context.report(f"cannot accept a connection now: {error.strerror}")

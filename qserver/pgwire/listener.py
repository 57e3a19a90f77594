"""Accepts connections, gives each a task, and ends them.

    accept ─► too many? 53300 ─► Connection ─► its database is another process's? move
                                     │
    stop ─► sessions outside of a transaction end, others finish theirs, for `drain_seconds`

A connection that moves takes along what its client has proved and said, see `startup.Arrival`. Its
number says which process has it, so that a CancelRequest finds it from everywhere.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from ipaddress import ip_address
from itertools import count
from time import monotonic
from typing import Any, Final, Protocol

import msgspec
import trio

from qserver.errors import DatabaseMoved, QserverError, TooManyRequests
from qserver.http1 import (
    BatchPort,
    NoTurns,
    PlainTransport,
    Reactor,
    ServerOptions,
    TlsTransport,
    Transport,
    Turns,
    accept_for_ever,
    close_all,
    listen_all,
    network_of,
    relay,
    released,
)
from qserver.pgwire.connection import Connection
from qserver.pgwire.host import Host
from qserver.pgwire.limits import CONNECTIONS_MAX, STARTUP_SECONDS_MAX, STRANGERS_MAX
from qserver.pgwire.problems import problem
from qserver.pgwire.startup import Arrival
from qserver.pgwire.waits import Leave

SWEEP_SECONDS: Final = 1.0
NUMBER_BITS: Final = 20
"""Bits of a session's number that count within its process."""
MARK: Final = b"\0postgresql\0"
"""Begins what is told of a connection that moves; no request of HTTP begins so."""


class Mover(Protocol):
    """Takes connections to other processes."""

    def send(
        self,
        process: int,
        client: Any,
        data: bytes,
        moved: socket.socket,
        failed: Callable[[socket.socket], None],
    ) -> None:
        """Send a connection; `failed` gets it back if that is not possible."""


class Listener:
    def __init__(
        self,
        host: Host,
        options: ServerOptions,
        encryption: ssl.SSLContext | None,
        *,
        batch: BatchPort | None = None,
        turns: Turns | None = None,
        mover: Mover | None = None,
        report: Callable[[str], None],
    ) -> None:
        self._host = host
        self._options = options
        self._encryption = encryption
        self._turns = turns or NoTurns()
        self._mover = mover
        self._report = report
        self.reactor = None
        if Reactor.available() and batch is not None:
            self.reactor = Reactor(batch, turns)
        self._connections: dict[int, Connection] = {}
        self._numbers = count(1)
        self._nursery: trio.Nursery | None = None
        self._empty = trio.Event()
        self._drained = trio.Event()
        host.plane.owners.answer("pg_cancel", self._cancel_here)

    async def run(
        self,
        listeners: list[socket.socket],
        stop: trio.Event,
        *,
        task_status: trio.TaskStatus[list[tuple[str, int]]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `stop` is set, then drain and return."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._sweep)
                if self.reactor is not None:
                    nursery.start_soon(self.reactor.run)
                async with trio.open_nursery() as accepting:
                    addresses = listen_all(listeners, self._options)
                    for listener in listeners:
                        accepting.start_soon(accept_for_ever, listener, self._welcome, self._report)
                    task_status.started(addresses)
                    await stop.wait()
                    accepting.cancel_scope.cancel()
                close_all(listeners)
                await self._drain()
                self._drained.set()
                self._nursery = None
                nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
            close_all(listeners)

    async def wait_drained(self) -> None:
        """Wait until no session is left, after `stop`."""
        await self._drained.wait()

    async def _drain(self) -> None:
        self._host.is_draining = True
        for connection in list(self._connections.values()):
            connection.drain()
        with trio.move_on_after(self._options.drain_seconds) as patience:
            while self._connections:
                self._empty = trio.Event()
                await self._empty.wait()
        if patience.cancelled_caught:
            self._report(f"{len(self._connections)} sessions cut off while draining")

    async def _sweep(self) -> None:
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now = monotonic()
            for connection in list(self._connections.values()):
                connection.end_if_late(now)
            self._host.failures.forget_old()

    # --- connections ------------------------------------------------------------------------------

    def _welcome(self, connected: socket.socket, client: tuple[str, int]) -> None:
        self._host.counts["connections_accepted"] += 1
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:
            connected.close()  # the client has left already
            return
        self._start(connected, client[0])

    def adopt(self, connected: socket.socket, client: Any, data: bytes) -> None:
        """Go on with a connection that another process has accepted."""
        if self._nursery is None:
            connected.close()
            return
        connected.setblocking(False)
        arrival = msgspec.msgpack.decode(data[len(MARK) :], type=Arrival)
        self._host.counts["connections_moved_in"] += 1
        self._start(connected, "" if client is None else str(client[0]), arrival)

    def _start(self, connected: socket.socket, client: str, arrival: Arrival | None = None) -> None:
        assert self._nursery is not None, "it runs"
        connection = self._new(PlainTransport(connected), client)
        connection.state.is_private = _is_loopback(client)
        if arrival is not None:
            connection.arrived(arrival)
        self._nursery.start_soon(self._run, connection)

    async def serve(self, transport: Transport, client: str) -> None:
        """Serve a client whose bytes come by another way, which is private, to its end."""
        if self._nursery is None:
            return
        self._host.counts["connections_accepted"] += 1
        connection = self._new(transport, client)
        connection.state.is_private = True
        await self._run(connection)

    def _new(self, transport: Transport, client: str) -> Connection:
        number = self._host.plane.owners.process << NUMBER_BITS
        number |= next(self._numbers) % (1 << NUMBER_BITS)
        return Connection(self, self._host, transport, number, network_of(client))

    def _full(self) -> TooManyRequests | None:
        every = self._connections.values()
        if len(every) >= CONNECTIONS_MAX:
            return TooManyRequests("sorry, too many clients already", hint="Try again later.")
        if sum(each.state.grant is None for each in every) >= STRANGERS_MAX:
            return TooManyRequests("too many clients are entering", hint="Try again later.")
        return None

    async def _run(self, connection: Connection) -> None:
        if (full := self._full()) is not None:
            self._host.counts["connections_refused"] += 1
            await connection.refuse(full)
            return
        self._connections[connection.state.number] = connection
        self._host.counts["connections_open"] += 1
        try:
            await self._turns.run(connection.run())
        finally:
            self._connections.pop(connection.state.number, None)
            self._host.counts["connections_open"] -= 1
            self._empty.set()

    # --- what connections ask for -----------------------------------------------------------------

    def encrypted(self, transport: Transport) -> Transport:
        plain = transport.release()
        assert plain is not None and self._encryption is not None
        return TlsTransport(plain, self._encryption, STARTUP_SECONDS_MAX)

    async def cancel(self, number: int, secret: int) -> None:
        self._host.counts["cancels"] += 1
        owners, process = self._host.plane.owners, number >> NUMBER_BITS
        if number in self._connections or process not in owners.others:
            await self._cancel_here(number, secret)
            return
        try:
            await owners.ask(process, "pg_cancel", number, secret)
        except QserverError:
            pass  # whoever cancels is told nothing

    async def _cancel_here(self, number: int, secret: int) -> None:
        found = self._connections.get(number)
        known = (0 if found is None else found.state.secret).to_bytes(4, "big")
        if compare_digest(known, secret.to_bytes(4, "big")) and found is not None:
            found.state.cancel()

    async def move(self, connection: Connection, leave: Leave) -> None:
        """Give a connection to the process that owns its database; over TLS, relay its bytes."""
        mover = self._mover
        assert mover is not None, "another process owns the database"
        transport = connection.transport
        if self.reactor is not None:
            self.reactor.forget(transport.descriptor)
        moved, near = released(transport)
        mover.send(leave.process, (connection.client, 0), MARK + leave.data, moved, _give_up)
        self._host.counts["connections_moved_out"] += 1
        if near is not None:
            await relay(transport, near, self._options)


def _give_up(moved: socket.socket) -> None:
    """Tell a client that the owner of its database is away."""
    away = DatabaseMoved("the process of this database does not answer", hint="Try again.")
    with suppress(OSError):
        moved.send(problem(away, "FATAL"))
    moved.close()


def _is_loopback(client: str) -> bool:
    try:
        return ip_address(client).is_loopback
    except ValueError:
        return False

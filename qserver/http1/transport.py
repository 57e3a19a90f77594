"""Bytes in and out of one client: a plain socket, or TLS over one.

    try_…   at once or not at all; never waits
    others  wait; the caller bounds them with a cancel scope

`PlainTransport` uses a non-blocking socket. Trio's `SocketStream` would add a checkpoint and
several calls to each operation; here a send that the kernel takes at once is one system call, and
only a send that would block waits for the event loop.

An end from the client (a FIN, a reset, an aborted TLS session) reads as b"", the end of input. A
client that has only ended its side still reads; otherwise a send raises OSError or
`trio.BrokenResourceError`, though not always the first send.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Protocol

import trio

from qserver import limits

RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: drop unsent bytes and reset the connection."""

POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.01, 1.0
"""Between two checks whether a client that has ended its side is gone."""


class Transport(Protocol):
    descriptor: int
    may_be_watched: bool
    """The socket's bytes are the client's bytes, so a `Reactor` can watch the socket."""

    async def open(self) -> None:
        """Do what precedes the first byte, such as a handshake. An error ends the connection."""

    def try_receive(self) -> bytes | None:
        """The bytes available; None if there are none, or if only a wait could tell."""

    def may_have_more(self) -> bool:
        """May bytes have arrived although `try_receive` returns none?"""

    async def receive(self) -> bytes:
        """Wait for some bytes; b"" is the end of input."""

    def has_left(self) -> bool:
        """After the end of input: is the client certainly gone?"""

    def was_reset(self) -> bool:
        """Can nothing be sent any more?"""

    async def look(self) -> bytes | None:
        """Bytes that arrived before this call, perhaps after waiting for the rest of them."""

    def try_send(self, data: bytes | memoryview) -> int:
        """Send as many bytes as possible without waiting."""

    async def send_all(self, data: memoryview, seconds: float) -> None:
        """Send all; raise TimeoutError if no byte moves for `seconds`."""

    async def end_output(self) -> None:
        """Tell the client that no more bytes follow."""

    def abort(self) -> None:
        """Make `close` send a reset, which no client takes for an ordinary end."""

    def release(self) -> socket.socket | None:
        """Give the socket away, and close nothing from now on. None: its bytes mean something only
        here.
        """

    def close(self) -> None:
        """Close at once. The kernel still sends the bytes that it has taken."""


async def until_true(condition: Callable[[], bool]) -> None:
    """Wait for something that no event tells of."""
    pause = POLL_SECONDS_MIN
    while not condition():
        await trio.sleep(pause)
        pause = min(2 * pause, POLL_SECONDS_MAX)


class SocketEnd:
    """How a connection ends, over TLS or not."""

    __slots__ = ("_socket", "descriptor", "may_be_watched")

    def __init__(self, connected: socket.socket, may_be_watched: bool) -> None:
        self._socket = connected
        self.descriptor = connected.fileno()
        self.may_be_watched = may_be_watched

    async def end_output(self) -> None:
        # No close_notify of TLS, as usual for HTTPS; what the client still sends is read as before.
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the client closed first

    def abort(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def was_reset(self) -> bool:
        try:
            self._socket.send(b"")  # sends nothing, and fails after a reset
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def close(self) -> None:
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()


class PlainTransport(SocketEnd):
    __slots__ = ()

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected, may_be_watched=True)

    async def open(self) -> None:
        return

    def try_receive(self) -> bytes | None:
        try:
            return self._socket.recv(limits.RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def may_have_more(self) -> bool:
        return False

    async def receive(self) -> bytes:
        # Wait first: after an answer, the next request takes at least a round trip.
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(limits.RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    def has_left(self) -> bool:
        return self.was_reset()

    def release(self) -> socket.socket:
        own = self._socket
        trio.lowlevel.notify_closing(own)  # also removes it from Trio's epoll
        return socket.socket(own.family, own.type, own.proto, fileno=own.detach())

    async def look(self) -> bytes | None:
        return self.try_receive()

    def try_send(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def send_all(self, data: memoryview, seconds: float) -> None:
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                with trio.move_on_after(seconds) as scope:
                    await trio.lowlevel.wait_writable(self._socket)
                if scope.cancelled_caught:
                    raise TimeoutError("the client does not read") from None

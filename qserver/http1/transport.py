"""Bytes in and out of one client: a plain socket, or TLS over one.

`PlainTransport` owns the non-blocking socket itself. Trio's `SocketStream` would add a checkpoint
and several calls to each operation; here a send that the kernel takes at once is one system call
and nothing else, and only one that would block waits for the event loop.

    try_…   at once or not at all; never waits
    others  wait; the caller bounds them with a cancel scope

What ends a connection from the other side (a FIN, a reset, an aborted TLS session) reads as b"",
the end of input. A client that has only ended its side still reads; otherwise a send raises OSError
or `trio.BrokenResourceError`, though not always the first.
"""

from __future__ import annotations

import socket
import struct
from typing import Protocol

import trio

from qserver import limits

RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: drop what is unsent and reset the connection."""


class Transport(Protocol):
    descriptor: int
    """Of the socket."""
    may_be_watched: bool
    """Bytes on the socket are bytes of the client, so a `Reactor` can tell when there are some."""

    async def open(self) -> None:
        """Whatever comes before the first byte. Raises an error that ends the connection."""

    def try_receive(self) -> bytes | None:
        """What is there; None if nothing is, or if that cannot be told without waiting."""

    def may_have_more(self) -> bool:
        """May something have arrived, though `try_receive` gives nothing?"""

    async def receive(self) -> bytes:
        """Wait for some bytes; b"" is the end."""

    def has_left(self) -> bool:
        """After the end of input: is it certain that nobody reads any more?"""

    async def look(self) -> bytes | None:
        """What had arrived before this call, perhaps after waiting for the rest of it."""

    def try_send(self, data: bytes | memoryview) -> int:
        """Hand over as many bytes as can be without waiting."""

    async def send_all(self, data: memoryview, seconds: float) -> None:
        """Send all; raise TimeoutError when nothing at all moves for so long."""

    async def end_output(self) -> None:
        """Tell the client that nothing more will come."""

    def abort(self) -> None:
        """Make `close` a reset, which no client takes for an ordinary end."""

    def close(self) -> None:
        """Close at once. Whatever the kernel has taken is still sent."""


class PlainTransport:
    """A socket, without anything around it."""

    __slots__ = ("_socket", "descriptor", "may_be_watched")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.descriptor = connected.fileno()
        self.may_be_watched = True

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
        # Wait first: after an answer, the next request needs at least the time of a round trip.
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(limits.RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    def has_left(self) -> bool:
        try:
            self._socket.getpeername()
        except OSError:
            return True  # there was a reset
        return False

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

    async def end_output(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the client was faster

    def abort(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def close(self) -> None:
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

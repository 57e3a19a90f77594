"""One connection that sends a request and waits for its answer, as fast as Python allows.

It uses a plain socket: a send, which nearly always succeeds at once, then one wait until the socket
is readable. That is one round of Trio's loop per request, where a stream would take three. TLS
needs a stream and is slower.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

import httptools
import trio

from qserver.client import ConnectionFailed, ConnectionLost
from qserver.client.requests import checked_url

_RECEIVE_BYTES: Final = 256 * 1024
_KEPT_BYTES: Final = 2048
"""How much of the beginning and of the end of each answer is kept."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address in a base URL."""

    host: str
    port: int
    is_tls: bool
    prefix: str
    authority: str

    @classmethod
    def of(cls, url: str) -> Self:
        parts = urlsplit(checked_url(url))
        assert parts.hostname is not None, "a URL that was checked has a host"
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        authority = parts.netloc.rpartition("@")[2]
        return cls(parts.hostname, port, is_tls, parts.path.rstrip("/"), authority)


class Connection:
    """A connection that stays open between requests, and reopens if the server has closed it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._tls: trio.SSLStream[trio.SocketStream] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._is_whole = False
        self._keeps_open = False
        self.status = 0
        self.head = b""
        """The beginning of the last answer's body."""
        self.tail = b""
        """Its end."""
        self.received_bytes = 0
        self.begun = trio.Event()
        """Set when the first answer has begun."""

    async def ask(self, request: bytes) -> None:
        """Send a request and wait for its whole answer; sets `status`, `head` and `tail`."""
        if self._socket is None and self._tls is None:
            await self._open()
        try:
            await self._send(request)
            self._is_whole, self.head, self.tail = False, b"", b""
            while not self._is_whole:
                piece = await self._receive()
                if not piece:
                    raise ConnectionLost("the server closed the connection before it answered")
                self.received_bytes += len(piece)
                self._parser.feed_data(piece)
        except (OSError, httptools.HttpParserError, trio.BrokenResourceError) as error:
            self.close()
            raise ConnectionLost(f"the connection broke: {error}") from error
        except BaseException:
            # Cancelled in the middle of an answer: its rest must not be read as the answer to
            # another request.
            self.close()
            raise
        if not self._keeps_open:
            self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._tls is not None:
            self._tls.transport_stream.socket.close()
        self._socket = self._tls = None
        self._parser = httptools.HttpResponseParser(self)

    async def _open(self) -> None:
        address = self._address
        try:
            stream = await trio.open_tcp_stream(address.host, address.port)
        except OSError as error:
            raise ConnectionFailed(
                f"cannot reach {address.authority}: {error.strerror or error}",
                hint="Is the server running (qserver serve), and is the URL right?",
            ) from error
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.is_tls:
            context = ssl.create_default_context()
            self._tls = trio.SSLStream(stream, context, server_hostname=address.host)
            return
        # Trio hides a stream's socket, so use a second descriptor of the same connection.
        self._socket = socket.socket(fileno=socket.dup(stream.socket.fileno()))
        self._socket.setblocking(False)
        await stream.aclose()

    async def _send(self, request: bytes) -> None:
        if self._tls is not None:
            await self._tls.send_all(request)
            return
        assert self._socket is not None, "a request is sent on an open connection"
        sent = 0
        while True:
            try:
                sent += self._socket.send(memoryview(request)[sent:] if sent else request)
            except BlockingIOError:
                pass
            if sent == len(request):
                return
            await trio.lowlevel.wait_writable(self._socket)

    async def _receive(self) -> bytes:
        if self._tls is not None:
            return bytes(await self._tls.receive_some(_RECEIVE_BYTES))
        assert self._socket is not None, "an answer is awaited on an open connection"
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                continue

    # --- callbacks of the parser ------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.begun.set()

    def on_body(self, piece: bytes) -> None:
        missing = _KEPT_BYTES - len(self.head)
        if missing > 0:
            self.head += piece[:missing]
        self.tail = (
            (self.tail + piece)[-_KEPT_BYTES:] if len(piece) < _KEPT_BYTES else piece[-_KEPT_BYTES:]
        )

    def on_message_complete(self) -> None:
        self._is_whole = True
        # The parser forgets the message after this call.
        self._keeps_open = self._parser.should_keep_alive()

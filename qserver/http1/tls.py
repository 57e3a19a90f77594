"""The same transport over TLS, by `trio.SSLStream`.

SSLStream always waits, so the `try_` methods do nothing. That makes the hot path a little longer,
but TLS itself costs much more.
"""

from __future__ import annotations

import socket
import ssl

import trio

from qserver import limits
from qserver.errors import CannotListen
from qserver.http1.options import ServerOptions
from qserver.http1.transport import SocketEnd

SEND_PIECE_BYTES = 64 * 1024


def tls_context(options: ServerOptions, protocol: str = "http/1.1") -> ssl.SSLContext | None:
    """The TLS context for the options, or None without TLS. Clients know the protocol by a name."""
    if options.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    try:
        context.load_cert_chain(options.certificate, options.key)
    except (OSError, ssl.SSLError) as error:
        raise CannotListen(
            f"cannot use the certificate {options.certificate}: {error}",
            hint="Give a PEM file with the certificate chain, and one with its private key.",
        ) from error
    return context


class OpenInput(trio.abc.Stream):
    """A socket whose end of input is an error: SSLStream cannot send after one that it has seen."""

    def __init__(self, connected: socket.socket) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(connected))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = await self._stream.receive_some(max_bytes)
        if not data:
            raise trio.BrokenResourceError("the client has ended its input")
        return bytes(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class TlsTransport(SocketEnd):
    __slots__ = ("_seconds", "_stream")

    def __init__(
        self, connected: socket.socket, context: ssl.SSLContext, handshake_seconds: float
    ) -> None:
        # The socket may hold half a TLS record, or only TLS's own.
        super().__init__(connected, may_be_watched=False)
        self._seconds = handshake_seconds
        stream = OpenInput(connected)
        self._stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)

    async def open(self) -> None:
        with trio.fail_after(self._seconds):
            await self._stream.do_handshake()

    def try_receive(self) -> bytes | None:
        return None

    def may_have_more(self) -> bool:
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    async def receive(self) -> bytes:
        try:
            return bytes(await self._stream.receive_some(limits.RECEIVE_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def has_left(self) -> bool:
        return True  # the two sides of TLS end together

    def release(self) -> None:
        return None

    async def look(self) -> bytes | None:
        try:
            if not self._socket.recv(1, socket.MSG_PEEK):
                return b""
        except BlockingIOError:
            return None
        except OSError:
            return b""
        with trio.move_on_after(self._seconds):
            return await self.receive()
        return None

    def try_send(self, data: bytes | memoryview) -> int:
        return 0

    async def send_all(self, data: memoryview, seconds: float) -> None:
        while data:
            piece, data = data[:SEND_PIECE_BYTES], data[SEND_PIECE_BYTES:]
            with trio.move_on_after(seconds) as scope:
                await self._stream.send_all(piece)
            if scope.cancelled_caught:
                raise TimeoutError("the client does not read")

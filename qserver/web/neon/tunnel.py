"""The bytes of PostgreSQL's protocol inside the binary frames of a WebSocket.

The frames have no meaning of their own: one may hold several messages, or a part of one. Text
frames are refused.
"""

from __future__ import annotations

import socket
from typing import Final

from wsproto.connection import Connection as Frames
from wsproto.connection import ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from qserver.http1 import Transport
from qserver.pgwire.limits import SEND_SECONDS_MAX

_ENDED: Final = (LocalProtocolError, OSError)
"""Of what is sent behind a close, or to a client that is gone."""


class Tunnel:
    """A transport inside another, which speaks WebSocket already."""

    may_be_watched = False

    def __init__(self, transport: Transport, arrived: bytes) -> None:
        self._outer = transport
        self.descriptor = transport.descriptor
        self._frames = Frames(ConnectionType.SERVER)
        self._arrived = arrived
        self._has_ended = False

    async def open(self) -> None:
        """Nothing is left to do: the handshake is over."""

    def try_receive(self) -> bytes | None:
        return None

    def may_have_more(self) -> bool:
        return not self._has_ended

    async def receive(self) -> bytes:
        while not self._has_ended:
            data, self._arrived = self._arrived or await self._outer.receive(), b""
            if not data:
                self._has_ended = True
                break
            found = await self._unframed(data)
            if found:
                return found
        return b""

    async def _unframed(self, data: bytes) -> bytes:
        """The bytes of the frames in `data`; answers what is about the WebSocket itself."""
        found = bytearray()
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                if isinstance(event, BytesMessage):
                    found += event.data
                elif isinstance(event, Ping):
                    await self._send(event.response())
                elif isinstance(event, CloseConnection):
                    self._has_ended = True
                    await self._send(event.response())
                elif isinstance(event, TextMessage):
                    await self._close(CloseReason.UNSUPPORTED_DATA)
        except RemoteProtocolError:
            await self._close(CloseReason.PROTOCOL_ERROR)
        return bytes(found)

    async def _close(self, code: CloseReason) -> None:
        self._has_ended = True
        await self._send(CloseConnection(code))

    async def _send(self, event: Event) -> None:
        try:
            await self._outer.send_all(memoryview(self._frames.send(event)), SEND_SECONDS_MAX)
        except _ENDED:
            self._has_ended = True

    def try_send(self, data: bytes | memoryview) -> int:
        return 0

    async def send_all(self, data: memoryview, seconds: float) -> None:
        try:
            framed = self._frames.send(BytesMessage(bytes(data)))
        except LocalProtocolError:
            raise BrokenPipeError("the WebSocket is closed") from None
        await self._outer.send_all(memoryview(framed), seconds)

    async def look(self) -> bytes | None:
        return None

    def has_left(self) -> bool:
        return self._outer.has_left()

    def was_reset(self) -> bool:
        return self._outer.was_reset()

    async def end_output(self) -> None:
        await self._close(CloseReason.NORMAL_CLOSURE)

    def abort(self) -> None:
        self._outer.abort()

    def release(self) -> socket.socket | None:
        return None

    def close(self) -> None:
        """The connection that it came from closes the socket."""

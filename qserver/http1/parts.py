"""Sends an answer whose body is produced while it is sent.

    first part ─► head and part ─► sent ─► next part … ─► the end
                 meanwhile a task reads: the next request is kept

The sender asks for the next part when the previous one has left, so a slow client slows only its
own body. When the client is gone, the sender cancels the body's production.

A client that sends no more is gone, or has only ended its side and still reads. TCP tells which
when the server sends something: if the client is gone, its machine resets the connection. So the
server sends a zero, which has no meaning before the size of the next chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from qserver import limits
from qserver.http1.answer import Framing, framing_of
from qserver.http1.application import Parts, Response
from qserver.http1.errors import ClientGone
from qserver.http1.head import Head
from qserver.http1.transport import until_true

if TYPE_CHECKING:
    from qserver.http1.connection import Connection

COPIED_BYTES_MAX: Final = 64 * 1024
"""A larger part is sent as it is, between what frames it. So many connections whose clients do not
read hold it once, if they were given the same bytes."""


class PartsSender:
    """Sends the parts of one answer. `bytes_sent` and `began` are valid after a failure too."""

    __slots__ = ("_connection", "_framing", "_gone", "_sending", "_unsent", "began", "bytes_sent")

    def __init__(self, connection: Connection, head: Head, response: Response) -> None:
        self._connection = connection
        self._framing = framing_of(response, head)
        self._unsent = b""
        """Bytes to send before the next part: the head, or the rest of it."""
        self._sending = False
        self._gone = False
        self.began = False
        """The head has been sent, perhaps with a part."""
        self.bytes_sent = 0

    @property
    def ends_with_connection(self) -> bool:
        return self._framing is Framing.CONNECTION

    async def send(self, head: bytes, parts: Parts) -> None:
        """Send all parts. Raises ClientGone if the client leaves before the end."""
        self._unsent = head
        if self._framing is Framing.NO_BODY:
            await self._write(b"")
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, nursery.cancel_scope)
            async for part in parts:
                if part:
                    await self._send_part(part)
                    await trio.lowlevel.checkpoint()
                part = b""  # what was sent is let go before the next is made
            await self._write(b"0\r\n\r\n" if self._framing is Framing.CHUNKS else b"")
            nursery.cancel_scope.cancel()
        if self._gone:
            raise ClientGone("the client is gone")

    async def _send_part(self, part: bytes) -> None:
        self.bytes_sent += len(part)
        before, after = b"", b""
        if self._framing is Framing.CHUNKS:
            before, after = b"%x\r\n" % len(part), b"\r\n"
        if len(part) < COPIED_BYTES_MAX:
            await self._write(before + part + after)
        else:
            for piece in (before, part, after):
                await self._write(piece)

    async def _write(self, data: bytes) -> None:
        data = self._with_unsent(data)
        if data:
            self._sending = True
            await self._connection.write(data)
            self._sending = False

    def _with_unsent(self, data: bytes) -> bytes:
        if not self.began:
            self.began = True
            self._connection.begin_sending()
        if self._unsent:
            data, self._unsent = self._unsent + data, b""
        return data

    async def _listen(self, scope: trio.CancelScope) -> None:
        """Buffer what the client sends, up to a bound; cancel when the client is gone."""
        connection = self._connection
        while len(connection.buffer) < limits.RECEIVE_BYTES:
            data = await connection.transport.receive()
            if not data:
                await self._until_gone()
                self._gone = True
                scope.cancel()
                return
            connection.context.counters.bytes_in += len(data)
            connection.buffer += data

    async def _until_gone(self) -> None:
        """After the client has ended its side: wait until it is gone, which may never happen."""
        transport = self._connection.transport
        if not transport.has_left():
            self._send_zero()
        await until_true(transport.has_left)

    def _send_zero(self) -> None:
        if self._sending or self._framing is not Framing.CHUNKS:
            return  # bytes are on their way already, or this framing has no meaningless byte
        data = self._with_unsent(b"0")
        try:
            sent = self._connection.transport.try_send(data)
        except OSError:
            return  # the client has just left
        self._connection.context.counters.bytes_out += sent
        self._unsent = data[sent:]

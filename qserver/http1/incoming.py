"""A request body that had not fully arrived with its head, read on demand.

The server answers `Expect: 100-continue` only when the application reads. A body must arrive at a
minimum rate. A body that is too slow, malformed or too large is refused: its reader gets the reason
and answers, or leaves the answer to the server. A server that stops waits only for bodies that keep
coming.
"""

from __future__ import annotations

import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import trio

from qserver import limits
from qserver.http1.answer import CONTINUE
from qserver.http1.application import Hold, hold_anything
from qserver.http1.body import ChunkedBody, OversizedBody, SizedBody
from qserver.http1.errors import BodyRefused, ClientGone
from qserver.http1.head import Head, body_too_large, head_of
from qserver.http1.refusal import STOPPING, Refusal

if TYPE_CHECKING:
    from qserver.http1.connection import Connection


class ArrivingBody:
    """Takes the body's bytes from the connection's buffer, and waits for the rest."""

    __slots__ = (
        "_body",
        "_connection",
        "_has_received",
        "_patience",
        "_progress",
        "_whole",
        "arrived",
        "continue_owed",
        "refusal",
    )

    def __init__(self, connection: Connection, head: Head) -> None:
        """Raises `Refusal` if the bytes so far are malformed, but not if they are too many."""
        options = connection.context.options
        if head.body_bytes_max != options.body_bytes_max:
            options = replace(options, body_bytes_max=head.body_bytes_max)
        self._connection = connection
        self._body: SizedBody | ChunkedBody | OversizedBody
        if head.length is not None:
            self._body = SizedBody(head.length)
        else:
            self._body = OversizedBody(options) if head.too_large else ChunkedBody(options)
        self._patience = options.body_seconds
        self._progress = 0
        self._has_received = False
        """More came than what had come with the head."""
        self._whole: bytes | None = None
        """The body, if `read` has returned it and the connection may move."""
        self.continue_owed = head.expects_continue and not connection.buffer
        self.refusal: Refusal | None = None
        """Why the server stops reading."""
        self.arrived = b""
        """The bytes that came with the head; the whole body if `complete`."""
        try:
            self.arrived, connection.buffer = self._body.take(connection.buffer)
        except Refusal as refusal:
            if refusal.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise
            self._refuse(refusal)

    @property
    def complete(self) -> bool:
        return self._body.complete

    @property
    def is_worth_reading(self) -> bool:
        """Is the rest short and on its way, so that reading it saves the connection?"""
        missing = self._body.missing
        short = missing is not None and missing <= limits.BODY_UNREAD_BYTES_MAX
        return self.complete or (short and not self.continue_owed and self.refusal is None)

    async def read(self, most: int | None = None, hold: Hold = hold_anything) -> bytes:
        """Wait for the whole body. Raises ClientGone if it does not arrive."""
        parts, self.arrived = [self.arrived], b""
        size = len(parts[0])
        try:
            while self.refusal is None:
                if most is not None and size + (self._body.missing or 0) > most:
                    raise body_too_large(most)
                if self.complete:
                    break
                parts.append(await self.receive())
                size += len(parts[-1])
                hold(len(parts[-1]))
        except Refusal as refusal:
            self._refuse(refusal)
        self._raise_refusal()
        whole = b"".join(parts)
        if self._connection.context.mover is not None:
            self._whole = whole
        return whole

    def as_received(self, raw: bytes) -> bytes:
        """Return the request again as far as it was received, and what follows it.

        `raw` is what had arrived with the head.
        """
        if not self._has_received:
            return raw
        body = self._whole
        assert body is not None, "who reads in parts does so where the request belongs"
        if isinstance(self._body, ChunkedBody):
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk + b"0\r\n\r\n"
        return head_of(raw) + body + self._connection.buffer

    async def receive_some(self) -> bytes:
        """Wait for the next part of the body; empty at its end."""
        try:
            if self.refusal is None and not self.arrived and not self.complete:
                self.arrived = await self.receive()
        except Refusal as refusal:
            self._refuse(refusal)
        self._raise_refusal()
        part, self.arrived = self.arrived, b""
        return part

    def _raise_refusal(self) -> None:
        if self.refusal is not None:
            raise BodyRefused(self.refusal.message, self.refusal.status)

    def _refuse(self, refusal: Refusal) -> None:
        self._connection.context.counters.requests_refused += 1
        self.refusal = refusal

    async def receive(self) -> bytes:
        """Wait for the next part. Raises ClientGone, or Refusal."""
        connection, body = self._connection, self._body
        self._has_received = True
        if self.continue_owed:
            self.continue_owed = False
            await connection.write(CONTINUE)
        while True:
            data = await self._more_input()
            if not data:
                raise ClientGone("the client left before the end of its request")
            piece, connection.buffer = body.take(connection.buffer + data)
            self._progress += len(piece)
            if self._progress >= limits.BODY_PROGRESS_BYTES_MIN:
                self._progress = 0
                self._patience = connection.context.options.body_seconds
            if piece or body.complete:
                return piece

    async def _more_input(self) -> bytes:
        connection = self._connection
        # A client that sends quickly must not starve others. There is no checkpoint once data is
        # read: a cancellation would lose the data.
        await trio.lowlevel.checkpoint()
        data = connection.transport.try_receive()
        if data is None:
            context, began = connection.context, time.monotonic()
            wait = trio.CancelScope(deadline=context.body_deadline(self._patience))
            context.arriving.add(wait)
            try:
                with wait:
                    data = await connection.transport.receive()
            finally:  # a reader that stopped waiting has waited, too
                context.arriving.discard(wait)
                self._patience = max(0.0, self._patience - (time.monotonic() - began))
            if data is None:
                if context.draining:
                    raise Refusal(503, "the server is stopping", "Send it again.", STOPPING)
                raise Refusal(408, "the body of the request did not come in time")
        connection.context.counters.bytes_in += len(data)
        return data

"""One request and its answer, as the application sees them: `receive` and `send`.

When the whole request is there, neither waits: `receive` hands over the body, `send` keeps the
start of the answer until its first part of body comes, and both leave in one system call. No task
is started for a request.

    receive   the body, in one or more parts, then (only if it is asked for) the end: it waits until
              the client is gone or the answer is complete, and says `http.disconnect`
    send      waits while the client does not read; raises `ClientGone` once there is nobody

How an application learns that its client is gone: by a `receive` that waits in another task while
it works, or by the next `send`, which between the parts of a stream also looks at the socket. What
arrives meanwhile is the next request; it is kept, up to a bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from qserver import limits
from qserver.web.http1.answer import CONTINUE, AnswerHead
from qserver.web.http1.asgi import Message
from qserver.web.http1.body import ChunkedBody, SizedBody
from qserver.web.http1.errors import ClientGone, InvalidAnswer
from qserver.web.http1.head import Head
from qserver.web.http1.refusal import Refusal

if TYPE_CHECKING:
    from qserver.web.http1.connection import Connection

COPIED_BYTES_MAX = 64 * 1024
"""A body up to this size is copied behind its head, to leave with it in one call."""
CLIENT_LEFT = 499
"""In the access log: the client was gone before it got an answer."""


class Exchange:
    """The state of one request and its answer. It ends when the application returns."""

    __slots__ = (
        "_body",
        "_connection",
        "_continue_owed",
        "_headers",
        "_patience",
        "_piece",
        "_progress",
        "_watch",
        "_watch_ended",
        "_writing",
        "answer",
        "body_bytes",
        "done",
        "gone",
        "head",
        "head_sent",
        "refused",
        "status",
    )

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self.head = head
        self.answer: AnswerHead | None = None
        self.status = 0
        self._headers: Iterable[tuple[bytes, bytes]] = ()
        self.head_sent = False
        self.done = False
        """The answer is complete."""
        self.gone = False
        """Nothing more can be sent: the client left, or was refused, or a write was torn."""
        self.refused = False
        """The server answered itself."""
        self.body_bytes = 0
        self._writing = False
        self._watch: trio.CancelScope | None = None
        self._continue_owed = False
        self._body: SizedBody | ChunkedBody | None = None
        length = head.length
        buffer = connection.buffer
        if length is not None and length <= len(buffer):
            self._piece: bytes | None = buffer[:length]
            connection.buffer = buffer[length:]
        else:
            self._begin_body(length)

    # --- the request ------------------------------------------------------------------------------

    @property
    def body_missing(self) -> bool:
        """Not all of the request has arrived."""
        return self._body is not None

    async def receive(self) -> Message:
        piece = self._piece
        if piece is not None:
            self._piece = None
            return {"type": "http.request", "body": piece, "more_body": self._body is not None}
        if self._body is not None and not self.gone and not self.done:
            try:
                piece = await self.read_body()
            except Refusal as refusal:
                self.gone = True
                if not self.head_sent:
                    self.refused = True
                    await self._connection.refuse(refusal, self.head)
            else:
                if piece is not None:
                    more = self._body is not None
                    return {"type": "http.request", "body": piece, "more_body": more}
        elif not self.gone and not self.done:
            await self._wait_for_the_end()
        return {"type": "http.disconnect"}

    def _begin_body(self, length: int | None) -> None:
        """The body has not arrived as a whole; what is there is checked before anything else."""
        connection = self._connection
        options = connection.context.options
        self._body = ChunkedBody(options) if length is None else SizedBody(length)
        self._patience = options.body_seconds
        self._progress = 0
        self._continue_owed = self.head.expects_continue and not connection.buffer
        piece, connection.buffer = self._body.take(connection.buffer)
        if self._body.complete:
            self._body = None
        self._piece = piece if piece or self._body is None else None

    async def read_body(self) -> bytes | None:
        """Wait for the next part of the body; None if the client left before its end."""
        connection = self._connection
        body = self._body
        assert body is not None, "the body is complete"
        if self._continue_owed and not self.head_sent:
            self._continue_owed = False
            try:
                await self._write(CONTINUE)
            except ClientGone:
                return None
        while True:
            data = await self._more_input()
            if not data:
                self.gone = True
                return None
            piece, connection.buffer = body.take(connection.buffer + data)
            if body.complete:
                self._body = None
            self._progress += len(piece)
            if self._progress >= limits.BODY_PROGRESS_BYTES_MIN:
                self._progress = 0
                self._patience = connection.context.options.body_seconds
            if piece or body.complete:
                return piece

    async def _more_input(self) -> bytes:
        connection = self._connection
        # A client that sends quickly must not starve others. Nothing is waited for once there is
        # data: a cancellation would lose it.
        await trio.lowlevel.checkpoint()
        data = connection.transport.try_receive()
        if data is None:
            began = time.monotonic()
            with trio.move_on_after(self._patience):
                data = await connection.transport.receive()
            self._patience = max(0.0, self._patience - (time.monotonic() - began))
            if data is None:
                raise Refusal(408, "the body of the request did not come in time")
        connection.context.counters.bytes_in += len(data)
        return data

    async def _wait_for_the_end(self) -> None:
        """Return when the client is gone, or the answer complete."""
        if self._watch is not None:
            raise InvalidAnswer("receive() is called while another task waits in it")
        connection = self._connection
        self._watch_ended = trio.Event()
        try:
            with trio.CancelScope() as self._watch:
                while len(connection.buffer) < limits.RECEIVE_BYTES:
                    data = await connection.transport.receive()
                    if not data:
                        self.gone = True
                        return
                    connection.context.counters.bytes_in += len(data)
                    connection.buffer += data
                await trio.sleep_forever()
        finally:
            self._watch = None
            self._watch_ended.set()

    async def stop_watching(self) -> None:
        """The connection goes on: nobody may still read from it for the sake of this request."""
        if self._watch is not None:
            self._watch.cancel()
            await self._watch_ended.wait()

    # --- what became of it ------------------------------------------------------------------------

    @property
    def status_sent(self) -> int:
        return self.status if self.head_sent else CLIENT_LEFT

    @property
    def request_id(self) -> str | None:
        """As the application's answer has it."""
        if self.answer is None or self.answer.request_id is None:
            return None
        return self.answer.request_id.decode("latin-1")

    @property
    def ends_with_connection(self) -> bool:
        """Only the end of the connection tells the client where the body ends."""
        return self.answer is not None and self.answer.length is None and not self.answer.chunked

    # --- the answer -------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            if self.status and not self.gone:
                raise InvalidAnswer("http.response.start was sent before")
            if not self.gone:
                self.status = message["status"]
                self._headers = message.get("headers", ())
            return
        if kind != "http.response.body":
            raise InvalidAnswer(f"{kind!r} is not a message of an HTTP answer")
        if self.gone:
            raise ClientGone("the client is gone")
        if self.done or not self.status or self._writing:
            raise InvalidAnswer("a body before the start of the answer, after it, or two at once")
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        answer = self.answer
        prefix = b""
        if answer is None:
            answer = self._render(None if more else len(body))
            prefix = answer.data
        self._count(answer, len(body), more)
        if answer.bodiless:
            body = b""
        self.answer = answer
        await self._send_part(prefix, body, more)

    def _render(self, known_length: int | None) -> AnswerHead:
        connection = self._connection
        return connection.context.renderer.render(
            self.status,
            self._headers,
            known_length=known_length,
            head_request=self.head.is_head,
            modern=self.head.modern,
            keep_alive=self.head.keep_alive and self._may_keep_alive(),
        )

    def _may_keep_alive(self) -> bool:
        connection = self._connection
        draining = connection.context.draining
        if self._body is None:
            return not draining or connection.has_more()
        # Is the rest of the request worth reading, only to keep the connection?
        missing = self._body.missing
        small = missing is not None and missing <= limits.BODY_UNREAD_BYTES_MAX
        return small and not self._continue_owed and not draining

    def _count(self, answer: AnswerHead, size: int, more: bool) -> None:
        if answer.bodiless:
            return
        total = self.body_bytes + size
        promised = answer.length
        if promised is not None and (total > promised or (total < promised and not more)):
            raise InvalidAnswer(f"{total} bytes of body, but Content-Length says {promised}")
        self.body_bytes = total

    async def _send_part(self, prefix: bytes, body: bytes, more: bool) -> None:
        assert self.answer is not None
        suffix = b""
        if self.answer.chunked:
            if body:
                prefix += b"%x\r\n" % len(body)
                suffix = b"\r\n"
            if not more:
                suffix += b"0\r\n\r\n"
        self.head_sent = True
        if len(body) <= COPIED_BYTES_MAX:
            await self._write(b"".join((prefix, body, suffix)))
        else:
            await self._write(prefix + body[:COPIED_BYTES_MAX])
            await self._write(memoryview(body)[COPIED_BYTES_MAX:])
            await self._write(suffix)
        if more:
            await self._between_parts()
        else:
            self.done = True
            if self._watch is not None:
                self._watch.cancel()

    async def _write(self, data: bytes | memoryview) -> None:
        connection = self._connection
        try:
            sent = connection.transport.try_send(data) if data else 0
            if sent < len(data):
                self._writing = True
                rest = memoryview(data)[sent:]
                await connection.transport.send_all(rest, connection.context.options.send_seconds)
                self._writing = False
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.gone = True
            raise ClientGone("the client is gone") from error
        except trio.Cancelled:
            self.gone = True  # half a part has been sent, and nothing can follow it
            raise
        connection.context.counters.bytes_out += len(data)

    async def _between_parts(self) -> None:
        """Let others run, and see whether there is still somebody who reads."""
        await trio.lowlevel.checkpoint()
        connection = self._connection
        if self._watch is None and len(connection.buffer) < limits.RECEIVE_BYTES:
            data = connection.transport.try_receive() if self._body is None else None
            if data:
                connection.context.counters.bytes_in += len(data)
                connection.buffer += data
            elif data is not None:
                self.gone = True
                raise ClientGone("the client is gone")

"""Rows as they come: Server-Sent Events, or one JSON object a line.

    columns ─► row … row ─► done            (SSE; `id:` is the version and the number of the row)
                        └─► error

A page of rows is one write, and the next page is computed when that write is through: a slow reader
slows its own query and nothing else, and memory does not grow with the result. Beside it a task
listens for the reader: when it is gone, the query ends at its next page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio

from qserver.engine.row_stream import RowStream
from qserver.errors import QserverError
from qserver.limits import KEEP_ALIVE_SECONDS
from qserver.web.answers import error_object
from qserver.web.exchange import Exchange
from qserver.web.json_values import encode_json
from qserver.web.rows import RowEncoder, Rows

EVENT_STREAM: Final = b"text/event-stream"
NDJSON: Final = b"application/x-ndjson"


class Format(Protocol):
    """How the parts of a stream are written. Empty bytes are not sent."""

    content_type: bytes
    keep_alive: bytes
    encoder: RowEncoder

    def head(self, stream: RowStream) -> bytes: ...

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes: ...

    def done(self, stream: RowStream, count: int, exchange: Exchange) -> bytes: ...

    def error(self, error: QserverError, request_id: str) -> bytes: ...


class EventStream:
    content_type = EVENT_STREAM
    keep_alive = b": keep-alive\n\n"

    def __init__(self, encoder: RowEncoder) -> None:
        self.encoder = encoder

    def head(self, stream: RowStream) -> bytes:
        return b'event: columns\ndata: {"columns":%b,"types":%b,"version":%d}\n\n' % (
            self.encoder.columns_json,
            self.encoder.types_json,
            stream.version,
        )

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        version = stream.version
        return b"".join(
            [
                b"event: row\nid: %d:%d\ndata: %b\n\n" % (version, number, line)
                for number, line in enumerate(self.encoder.lines(rows), first)
            ]
        )

    def done(self, stream: RowStream, count: int, exchange: Exchange) -> bytes:
        return (
            b'event: done\ndata: {"success":true,"row_count":%d,"affected_rows":%d,"version":%d,'
            b'"timings":{"total_us":%d,"exec_us":%d}}\n\n'
        ) % (count, stream.affected_rows, stream.version, exchange.elapsed_us(), exchange.exec_us)

    def error(self, error: QserverError, request_id: str) -> bytes:
        body = encode_json({"success": False, "error": error_object(error, request_id)})
        return b"event: error\ndata: %b\n\n" % body


class JsonLines:
    """Rows only: the end of the answer is the end of the rows. A blank line keeps it alive.

    A failure is a last line in place of a row: an object with `success` false and `error`.
    """

    content_type = NDJSON
    keep_alive = b"\n"

    def __init__(self, encoder: RowEncoder) -> None:
        self.encoder = encoder

    def head(self, stream: RowStream) -> bytes:
        return b""

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        return b"\n".join(self.encoder.lines(rows)) + b"\n"

    def done(self, stream: RowStream, count: int, exchange: Exchange) -> bytes:
        return b""

    def error(self, error: QserverError, request_id: str) -> bytes:
        return encode_json({"success": False, "error": error_object(error, request_id)}) + b"\n"


async def send_stream(
    exchange: Exchange,
    stream: RowStream,
    form: Format,
    internal: Callable[[Exception], QserverError],
    still_allowed: Callable[[], Awaitable[None]],
) -> None:
    """Send all of it, or as much as the reader waits for.

    `still_allowed` is asked before each page; what it raises ends the stream.
    """
    await exchange.start_stream(form.content_type)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_wait_until_gone, exchange.receive, nursery.cancel_scope)
        try:
            await _Sender(exchange, stream, form, internal, still_allowed).send_all()
        except OSError:
            pass  # out of `send`: the reader is gone
        nursery.cancel_scope.cancel()
    await stream.aclose()


async def _wait_until_gone(
    receive: Callable[[], Awaitable[object]], scope: trio.CancelScope
) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":  # type: ignore[index]
            scope.cancel()
            return


class _Sender:
    def __init__(
        self,
        exchange: Exchange,
        stream: RowStream,
        form: Format,
        internal: Callable[[Exception], QserverError],
        still_allowed: Callable[[], Awaitable[None]],
    ) -> None:
        self.exchange = exchange
        self.stream = stream
        self.form = form
        self.internal = internal
        self.still_allowed = still_allowed
        self.count = 0
        self._sent_at = trio.current_time()

    async def send_all(self) -> None:
        await self._send(self.form.head(self.stream))
        try:
            await self._send_rows()
        except QserverError as error:
            last = self.form.error(error, self.exchange.request_id)
        except OSError:
            raise
        except Exception as error:  # our own mistake, and the reader must not take it for the end
            last = self.form.error(self.internal(error), self.exchange.request_id)
        else:
            last = self.form.done(self.stream, self.count, self.exchange)
        await self.exchange.send({"type": "http.response.body", "body": last})

    async def _send_rows(self) -> None:
        stream = self.stream
        while not stream.ended:
            began = trio.current_time()
            page = await stream.step()
            now = trio.current_time()
            self.exchange.exec_us += int((now - began) * 1_000_000)
            await self.still_allowed()
            if page:
                for part in self.form.encoder.cut(page):
                    first, self.count = self.count + 1, self.count + len(part)
                    await self._send(self.form.rows(stream, first, part))
            elif now - self._sent_at > KEEP_ALIVE_SECONDS:
                await self._send(self.form.keep_alive)

    async def _send(self, part: bytes) -> None:
        began = trio.current_time()
        if part:
            message = {"type": "http.response.body", "body": part, "more_body": True}
            await self.exchange.send(message)
        self._sent_at = trio.current_time()
        self.stream.reader_was_away(self._sent_at - began)

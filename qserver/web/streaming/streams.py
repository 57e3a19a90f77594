"""Streams rows: as Server-Sent Events, a JSON object per line, CSV, Arrow, or one JSON array.

    columns ─► row … row ─► done            (SSE; `id:` is the version and the number of the row)
                        └─► error           (JSON lines too; the others are cut off)

A page of rows is one part. The next page is computed when the server has sent that part and asks
for another: a slow client slows only its own query, and memory does not grow with the result. When
the client is gone, the server closes the parts, and they close the query.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Final, Protocol, TypeAlias

import trio

from qserver.errors import QserverError
from qserver.http1 import AnswerCut
from qserver.limits import KEEP_ALIVE_SECONDS
from qserver.query.memory_pool import MemoryPool
from qserver.query.row_stream import RowStream
from qserver.sql import Rows
from qserver.web.bulk.arrow_rows import ARROW, END, ArrowEncoder
from qserver.web.bulk.csv_rows import CsvEncoder
from qserver.web.statements.answers import TRUNCATED, error_event, error_object
from qserver.web.statements.json_values import encode_json
from qserver.web.statements.rows import RowEncoder

EVENT_STREAM: Final = b"text/event-stream"
NDJSON: Final = b"application/x-ndjson"
CSV: Final = b"text/csv"


class Format(Protocol):
    """How the parts of a stream are written. Empty bytes are not sent."""

    content_type: bytes
    keep_alive: bytes
    encoder: RowEncoder
    cuts: bool
    """Whether it has no words for an error: the answer is cut off, see `AnswerCut`."""

    def head(self, stream: RowStream) -> bytes: ...

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes: ...

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes: ...

    def error(self, error: QserverError, request_id: str) -> bytes: ...


class EventStream:
    content_type = EVENT_STREAM
    keep_alive = b": keep-alive\n\n"
    cuts = False

    def __init__(self, encoder: RowEncoder, *, as_arrays: bool = False) -> None:
        self.encoder = encoder
        self._lines = encoder.array_lines if as_arrays else encoder.lines

    def head(self, stream: RowStream) -> bytes:
        return b'event: columns\ndata: {"columns":%b,"types":%b,"version":%d}\n\n' % (
            self.encoder.columns_json,
            self.encoder.types_json,
            stream.version,
        )

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        lines = self._lines(rows).split(b"\n")
        lines.pop()  # what follows the last line
        return self.row_events(stream, first, lines)

    def row_events(self, stream: RowStream, first: int, lines: list[bytes]) -> bytes:
        event = b"event: row\nid: %d:%%d\ndata: %%b\n\n" % stream.version
        return b"".join(map(event.__mod__, enumerate(lines, first)))

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return (
            b'event: done\ndata: {"success":true,"row_count":%d,"affected_rows":%d,"version":%d,'
            b'"timings":{"total_us":%d,"exec_us":%d}%b}\n\n'
        ) % (
            count,
            stream.affected_rows,
            stream.version,
            total_us,
            exec_us,
            TRUNCATED if truncated else b"",
        )

    def error(self, error: QserverError, request_id: str) -> bytes:
        return error_event(error, request_id)


class JsonLines:
    """Rows only: the answer ends with the last row. A blank line keeps the connection alive.

    A failure is a last line in place of a row: an object with `success` false and `error`.
    """

    content_type = NDJSON
    keep_alive = b"\n"
    cuts = False

    def __init__(self, encoder: RowEncoder, *, as_arrays: bool = False) -> None:
        self.encoder = encoder
        self._lines = encoder.array_lines if as_arrays else encoder.lines

    def head(self, stream: RowStream) -> bytes:
        return b""

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        return self._lines(rows)

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return b""

    def error(self, error: QserverError, request_id: str) -> bytes:
        return encode_json({"success": False, "error": error_object(error, request_id)}) + b"\n"


@contextmanager
def cut_off(request_id: str) -> Iterator[None]:
    """Cut off an answer that has begun and has no words for the error inside."""
    try:
        yield
    except QserverError as error:
        raise AnswerCut(f"{request_id}: {error.message}") from None


class Silent:
    """A format that can only express rows, in one form."""

    cuts = True

    def __init__(self, encoder: RowEncoder, *, as_arrays: bool = False) -> None:
        self.encoder = encoder

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return b""

    def error(self, error: QserverError, request_id: str) -> bytes:
        raise AnswerCut(f"{request_id}: {error.message}")


class CsvLines(Silent):
    """A header, and a line for each row."""

    content_type = CSV + b"; charset=utf-8; header=present"
    keep_alive = b""

    def __init__(self, encoder: RowEncoder, *, as_arrays: bool = False) -> None:
        super().__init__(encoder)
        self._csv = CsvEncoder(encoder.columns, encoder.types)

    def head(self, stream: RowStream) -> bytes:
        return self._csv.header

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        return self._csv.lines(rows)


class ArrowBatches(Silent):
    """Columns, for programs that compute; see `arrow_rows`."""

    content_type = ARROW
    keep_alive = b""

    def __init__(self, encoder: RowEncoder, *, as_arrays: bool = False) -> None:
        super().__init__(encoder)
        self._arrow = ArrowEncoder(encoder.columns, encoder.types)

    def head(self, stream: RowStream) -> bytes:
        return self._arrow.head

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        return self._arrow.batch(rows)

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return END


class JsonArray(Silent):
    """An array of objects."""

    content_type = b"application/json"
    keep_alive = b"\n"

    def head(self, stream: RowStream) -> bytes:
        return b"["

    def rows(self, stream: RowStream, first: int, rows: Rows) -> bytes:
        objects = self.encoder.objects(rows)[1:-1]
        return objects if first == 1 else b",\n" + objects

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return b"]\n"


Form: TypeAlias = type[EventStream | JsonLines | CsvLines | ArrowBatches | JsonArray]
STREAMS: Final[Sequence[Form]] = (JsonLines, EventStream, CsvLines, ArrowBatches)
"""What an Accept header can ask for; of several, the first."""


def form_of(accept: bytes) -> Form | None:
    """The stream format that the client accepts; None for one whole answer."""
    accept = accept.lower()
    return next((each for each in STREAMS if each.content_type.partition(b";")[0] in accept), None)


async def begun(beginning: Callable[[], Awaitable[RowStream]], form: Form | None) -> RowStream:
    """Begin a stream; with a format that cannot express errors, also compute its first page."""
    stream = await beginning()
    if form is not None and form.cuts:
        await stream.begin()
    return stream


class RowParts:
    """The parts of a stream, each made when the previous one was sent."""

    def __init__(
        self,
        stream: RowStream,
        form: Format,
        request_id: str,
        elapsed_us: Callable[[], int],
        known: Callable[[Exception], QserverError],
        pool: MemoryPool,
        most: int | None = None,
    ) -> None:
        """The `pool` holds what was made and not yet sent; at most `most` rows are sent."""
        self._pool = pool
        self._stream = stream
        self._form = form
        self._request_id = request_id
        self._elapsed_us = elapsed_us
        self._known = known
        self._most = most
        self.count, self.seconds, self.truncated = 0, 0.0, False

    async def parts(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """`still_allowed` runs before each page; its exception ends the stream."""
        try:
            async with aclosing(self.rows(still_allowed)) as rows:
                async for part in rows:
                    yield part
                    part = b""  # what was sent is let go before the next is made
        except Exception as error:
            yield self.failure(error)
        else:
            exec_us = int(self.seconds * 1_000_000)
            times = self._elapsed_us(), exec_us
            yield self._form.done(self._stream, self.count, *times, self.truncated)

    async def rows(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """The head and all rows; counts the rows and the seconds that they took."""
        stream, form = self._stream, self._form
        asked = trio.current_time()
        yield form.head(stream)
        sent = self._sent(asked)
        while not stream.ended and not self.truncated:
            began = trio.current_time()
            page = await stream.step()
            self.seconds += trio.current_time() - began
            await still_allowed()
            if self._most is not None and page and self.count + len(page) > self._most:
                page, self.truncated = page[: self._most - self.count], True
            for part, _ in form.encoder.cut(page) if page else ():
                first, self.count = self.count + 1, self.count + len(part)
                data = form.rows(stream, first, part)
                asked = trio.current_time()
                with self._pool.holding(len(data), anyway=stream.committed):
                    yield data
                data, part = b"", []
                sent = self._sent(asked)
            if not page and trio.current_time() - sent > KEEP_ALIVE_SECONDS:
                asked = trio.current_time()
                yield form.keep_alive
                sent = self._sent(asked)

    def failure(self, error: Exception) -> bytes:
        """The end of a failed stream; without it the client would take the stream for complete."""
        return self._form.error(self._known(error), self._request_id)

    def _sent(self, asked: float) -> float:
        """Exclude the client's reading time from the statement's time."""
        now = trio.current_time()
        self._stream.reader_was_away(now - asked)
        return now

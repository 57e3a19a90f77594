"""Sends a live query as Server-Sent Events.

    columns ─► row … row ─► ready ─► (delete … insert … version) …  without an end
                                └─► error

Changes are computed when the client has taken everything before them. So a slow client gets fewer
changes, each over more versions, and costs no memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Final

import trio

from qserver.errors import InvalidRequest, QserverError
from qserver.limits import ANSWER_PART_BYTES, LIVE_EVERY_MS_MIN
from qserver.query.kept_result import Line
from qserver.query.live_query import Lines, LiveQuery
from qserver.query.memory_pool import MemoryPool
from qserver.query.row_stream import RowStream
from qserver.sql import Rows
from qserver.web.description.shapes import QueryRequest
from qserver.web.statements.requests import is_live
from qserver.web.statements.rows import RowEncoder
from qserver.web.streaming.readers import Reader
from qserver.web.streaming.streams import EventStream, Form, RowParts

_DELETE: Final = b"event: delete\ndata: %b\n\n"
_INSERT: Final = b"event: insert\ndata: %b\n\n"


def checked_live(request: QueryRequest, form: Form | None) -> float:
    """Check the options of a live query; return the seconds between two changes."""
    if not (request.live or is_live(request.sql)):
        raise InvalidRequest("every_ms is for a live query", hint='Send "live": true with it.')
    if form not in (None, EventStream):
        raise InvalidRequest(
            "a live query is a stream of events",
            hint="Accept text/event-stream, or leave out the header Accept.",
        )
    if request.dry_run:
        raise InvalidRequest("a live query cannot be a dry run: it changes nothing")
    if request.if_version is not None:
        raise InvalidRequest("if_version is not for a live query, which follows all versions")
    if request.as_of is not None:
        raise InvalidRequest("a live query shows what is, and as_of what was")
    if request.max_rows is not None:
        raise InvalidRequest(
            "max_rows is not for a live query, which shows all rows",
            hint="Write ORDER BY and LIMIT into the query.",
        )
    return (request.every_ms or LIVE_EVERY_MS_MIN) / 1000


def lines_with(encoder: RowEncoder, *, as_arrays: bool) -> Lines:
    """The encoder of rows as lines of JSON."""
    encode = encoder.array_lines if as_arrays else encoder.lines

    def lines(rows: Rows) -> list[Line]:
        found: list[Line] = []
        for part, _ in encoder.cut(rows):
            found += encode(part).split(b"\n")
            found.pop()  # what follows the last line
        return found

    return lines


class LiveEvents(EventStream):
    """The events of the first result, whose rows are recorded in the live query."""

    def __init__(self, encoder: RowEncoder, live: LiveQuery, *, as_arrays: bool) -> None:
        super().__init__(encoder, as_arrays=as_arrays)
        self._live = live

    def row_events(self, stream: RowStream, first: int, lines: list[bytes]) -> bytes:
        self._live.first(lines)
        return super().row_events(stream, first, lines)

    def done(
        self, stream: RowStream, count: int, total_us: int, exec_us: int, truncated: bool = False
    ) -> bytes:
        return b'event: ready\ndata: {"version":%d,"row_count":%d}\n\n' % (stream.version, count)


class LiveParts(RowParts):
    """The parts of a live query: its first result, then its changes."""

    def __init__(
        self,
        live: LiveQuery,
        form: LiveEvents,
        request_id: str,
        known: Callable[[Exception], QserverError],
        every_seconds: float,
        reader: Reader,
        pool: MemoryPool,
    ) -> None:
        super().__init__(live.rows, form, request_id, lambda: 0, known, pool)
        self._live = live
        self._every_seconds = every_seconds
        self._reader = reader

    async def parts(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """`still_allowed` runs whenever the query is woken; its exception ends the query."""
        form = self._form
        try:
            async with aclosing(self.rows(still_allowed)) as rows:
                async for part in rows:
                    yield part
                    part = b""
            self._live.begin()
            yield form.done(self._stream, self.count, 0, 0)
            async with aclosing(self._changes(still_allowed)) as changes:
                async for part in changes:
                    yield part
                    part = b""
        except Exception as error:
            yield self.failure(error)

    async def _changes(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        live, reader, next_change = self._live, self._reader, 0.0
        reader.sent_at = trio.current_time()
        while True:
            if not live.is_stale:
                await reader.wait(live.wait)
            elif trio.current_time() < next_change:
                with trio.move_on_at(next_change):
                    await reader.wait(live.wait)
            await still_allowed()
            now = trio.current_time()
            if live.is_stale and now >= next_change:
                next_change = now + self._every_seconds
                events = _Events()
                async with aclosing(live.changes()) as changes:
                    async for deleted, inserted in changes:
                        for part in events.add(deleted, inserted):
                            with self._pool.holding(len(part)):
                                yield part
                            part = b""
                last = events.end(live.version)
                if last:
                    with self._pool.holding(len(last)):
                        yield last
                    last = b""
                    reader.sent_at = trio.current_time()
            elif reader.is_silent:
                yield self._form.keep_alive
                reader.sent_at = trio.current_time()


class _Events:
    """The events of one change, in parts of limited size; a small change is one part."""

    def __init__(self) -> None:
        self._part: list[bytes] = []
        self._size = 0
        self._is_empty = True

    def add(self, deleted: list[Line], inserted: list[Line]) -> Iterator[bytes]:
        for event, lines in ((_DELETE, deleted), (_INSERT, inserted)):
            for line in lines:
                self._is_empty = False
                self._part.append(event % line)
                self._size += len(line)
                if self._size > ANSWER_PART_BYTES:
                    yield b"".join(self._part)
                    self._part.clear()
                    self._size = 0

    def end(self, version: int) -> bytes:
        """The rest, with the version; nothing if nothing has changed."""
        if self._is_empty:
            return b""
        return b"".join(self._part) + b'event: version\ndata: {"version":%d}\n\n' % version

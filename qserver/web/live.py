"""Sends a live query as Server-Sent Events.

    columns ─► row … row ─► ready ─► (delete … insert … version) …  without an end
                                └─► error

The changes are computed when the reader has taken everything before them. So a slow reader gets
fewer changes, each over more versions, and costs no memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Final

import trio

from qserver.errors import QserverError
from qserver.limits import ANSWER_PART_BYTES, KEEP_ALIVE_SECONDS
from qserver.query.kept_result import Line
from qserver.query.live_query import Lines, LiveQuery
from qserver.query.row_stream import RowStream
from qserver.sql.execution import Rows
from qserver.web.rows import RowEncoder
from qserver.web.streams import EventStream, RowParts

_DELETE: Final = b"event: delete\ndata: %b\n\n"
_INSERT: Final = b"event: insert\ndata: %b\n\n"


def lines_with(encoder: RowEncoder) -> Lines:
    """The encoder of rows as lines of JSON."""

    def lines(rows: Rows) -> list[Line]:
        found: list[Line] = []
        for part, _ in encoder.cut(rows):
            found += encoder.lines(part).split(b"\n")
            found.pop()  # what follows the last line
        return found

    return lines


class LiveEvents(EventStream):
    """The events of the first result, whose rows the live query takes note of."""

    def __init__(self, encoder: RowEncoder, live: LiveQuery) -> None:
        super().__init__(encoder)
        self._live = live

    def row_events(self, stream: RowStream, first: int, lines: list[bytes]) -> bytes:
        self._live.first(lines)
        return super().row_events(stream, first, lines)

    def done(self, stream: RowStream, count: int, total_us: int, exec_us: int) -> bytes:
        return b'event: ready\ndata: {"version":%d,"row_count":%d}\n\n' % (stream.version, count)


class LiveParts(RowParts):
    """The parts of a live query: those of its first result, then its changes."""

    def __init__(
        self,
        live: LiveQuery,
        form: LiveEvents,
        request_id: str,
        known: Callable[[Exception], QserverError],
        every_seconds: float,
    ) -> None:
        super().__init__(live.rows, form, request_id, lambda: 0, known)
        self._live = live
        self._every_seconds = every_seconds

    async def parts(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """`still_allowed` runs whenever the query is woken; an exception from it ends it."""
        form = self._form
        try:
            async with aclosing(self.rows(still_allowed)) as rows:
                async for part in rows:
                    yield part
            self._live.begin()
            yield form.done(self._stream, self.count, 0, 0)
            async with aclosing(self._changes(still_allowed)) as changes:
                async for part in changes:
                    yield part
        except Exception as error:
            yield self.failure(error)

    async def _changes(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        live = self._live
        sent, next_change = trio.current_time(), 0.0
        while True:
            wake_at = sent + KEEP_ALIVE_SECONDS
            if live.is_ready:
                wake_at = min(wake_at, next_change)
            if trio.current_time() < wake_at:
                with trio.move_on_at(wake_at):
                    await live.wait()
            await still_allowed()
            now = trio.current_time()
            if live.is_ready and now >= next_change:
                next_change = now + self._every_seconds
                is_changed = False
                async with aclosing(live.changes()) as changes:
                    async for deleted, inserted in changes:
                        is_changed = True
                        for part in _events(deleted, inserted):
                            yield part
                if is_changed:
                    yield b'event: version\ndata: {"version":%d}\n\n' % live.version
                    sent = trio.current_time()
            elif now >= sent + KEEP_ALIVE_SECONDS:
                yield self._form.keep_alive
                sent = trio.current_time()


def _events(deleted: list[Line], inserted: list[Line]) -> Iterator[bytes]:
    """The events of changes, in parts of limited size."""
    part: list[bytes] = []
    size = 0
    for event, lines in ((_DELETE, deleted), (_INSERT, inserted)):
        for line in lines:
            part.append(event % line)
            size += len(line)
            if size > ANSWER_PART_BYTES:
                yield b"".join(part)
                part.clear()
                size = 0
    if part:
        yield b"".join(part)

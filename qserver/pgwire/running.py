"""Runs a statement, and sends its rows.

A statement outside of a transaction runs as over HTTP: on a snapshot, or in a transaction of its
own that the server repeats after a conflict. Inside one it is a step of that. Either way its rows
are a stream, of which one page is in memory; a client that does not read stops it, and its clock.
"""

from __future__ import annotations

from typing import Any, Protocol

from qserver.control.databases import OpenDatabase
from qserver.functions.context import row_bytes
from qserver.pgwire.limits import OUTPUT_BYTES_MAX
from qserver.pgwire.state import State
from qserver.pgwire.waits import Waits
from qserver.query.memory_pool import MemoryPool
from qserver.query.results import Statement
from qserver.query.row_stream import RowStream
from qserver.values.sizes import size_of_rows
from qserver.values.zones import InSessionZone


class Writes(Protocol):
    """Writes rows as messages."""

    def write(self, rows: list[Any], out: bytearray) -> None: ...


class Running:
    """A statement that has begun: rows that were not sent, and where more come from."""

    __slots__ = ("_held", "_left", "_opened", "_pool", "stream")

    def __init__(self, stream: RowStream, opened: OpenDatabase | None) -> None:
        self.stream = stream
        self._opened = opened
        """Released at the end, unless the transaction has it."""
        self._left: list[Any] = []
        """Rows of the last page, or all that are left of a portal that stands aside."""
        self._pool: MemoryPool | None = None
        self._held = 0

    @property
    def has_ended(self) -> bool:
        return self.stream.ended and not self._left

    def send(self, state: State, writer: Writes, most: int) -> Waits[int]:
        """Send rows, all or so many at most; return how many there were."""
        stream, out, sent, steps = self.stream, state.out, 0, 0
        while True:
            rows = self._left
            if rows:
                if most and sent + len(rows) >= most:
                    rows, self._left = rows[: most - sent], rows[most - sent :]
                    _write(state, writer, rows, out)
                    return most
                self._left = []
                _write(state, writer, rows, out)
                sent += len(rows)
                if len(out) > OUTPUT_BYTES_MAX:
                    stream.reader_was_away((yield from state.flushed()))
            if stream.ended:
                self.close()
                return sent
            if steps > 1:  # most end with the second
                yield stream.pause()
            steps += 1
            self._left = (yield from stream.stepping()) or []

    def skip(self) -> Waits[int]:
        """Run to the end; return how many rows there were, which nobody wants."""
        rows = 0
        while not self.stream.ended:
            page = yield from self.stream.stepping()
            rows += len(page or ())
        self.close()
        return rows

    def stand_aside(self, pool: MemoryPool) -> Waits[None]:
        """Keep all rows that are left, because the next statement may change what they are from."""
        rows, self._pool, steps = list(self._left), pool, 0
        columns = len(self.stream.columns)
        while not self.stream.ended:
            if steps > 1:
                yield self.stream.pause()
            steps += 1
            page = (yield from self.stream.stepping()) or []
            size = size_of_rows(page, row_bytes(columns), range(columns))
            pool.take(size)
            self._held += size
            rows += page
        self._left = rows

    def close(self) -> None:
        """End it; a second call does nothing."""
        if not self.stream.ended:
            self.stream.close()
        self._left = []
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.release()
        if self._pool is not None:
            self._pool.give_back(self._held)
            self._pool, self._held = None, 0


def _write(state: State, writer: Writes, rows: Any, out: bytearray) -> None:
    with InSessionZone(state.settings.session.settings.zone):
        writer.write(rows, out)


def start(state: State, statement: Statement) -> Waits[Running]:
    """Begin a statement, in the session's transaction if there is one."""
    block = state.block
    transaction = block.transaction
    if transaction is not None:
        sql, options = block.opened.sql, state.options_inside()
        state.request = request = sql.request_of(options)
        stream = yield from transaction.stream(sql.planner, request, statement, options)
        return Running(stream, None)
    opened, options = state.database_nowait(), state.options()
    if opened is None:
        opened = yield from state.find_database()
    try:
        state.request = request = opened.sql.request_of(options)
        stream = yield from opened.sql.streaming(statement, options, request)
    except BaseException:
        opened.release()
        raise
    return Running(stream, opened)

"""COPY: rows in on the way of bulk inserts, rows out as a stream.

    FROM STDIN   CopyData … ─► rows of texts ─► `query.bulk`: steps of the transaction ─► commit
    TO STDOUT    a query's pages ─► CopyData, one for each row

Rows are inserted while they arrive, so a client that is faster than the table waits. A row that
cannot be read or stored fails the whole, with its line.
"""

from __future__ import annotations

from functools import partial

import trio

from qserver.engine.work import timed_out
from qserver.errors import ProtocolViolation, QueryCanceled
from qserver.limits import BULK_SECONDS_MAX
from qserver.pgwire import messages
from qserver.pgwire.controlling import open_block
from qserver.pgwire.copy_binary import TRAILER, BinaryWriter, Tuples
from qserver.pgwire.messages import complete, copy_data, copy_response
from qserver.pgwire.running import start
from qserver.pgwire.state import State
from qserver.pgwire.waits import Waits
from qserver.query.copying.rows_in import CopyIn
from qserver.query.copying.statement import CopyStatement, query_of, read_copy
from qserver.query.copying.text import TextWriter
from qserver.query.results import Statement


def copy(state: State, text: str, *, commits: bool) -> Waits[None]:
    """Run a COPY. `commits`: it is alone, and its rows are committed before it is answered."""
    statement = read_copy(text)
    if not statement.is_from:
        yield from _copy_out(state, statement)
        return
    state.options_inside().allowed.check_write()
    is_own = state.block.transaction is None
    if is_own:
        yield from open_block(state, read_only=False, implicit=True, bulk=True)
    rows = yield from _copy_in(state, statement)
    if is_own and commits:
        yield from state.block.commit(state.options())
    state.host.counts["copied_rows"] += rows
    state.out += complete(f"COPY {rows}")


# --- in -------------------------------------------------------------------------------------------


def _copy_in(state: State, statement: CopyStatement) -> Waits[int]:
    block = state.block
    transaction, sql = block.transaction, block.opened.sql
    assert transaction is not None, "it was opened"
    options = state.options_inside()
    copied = CopyIn(sql, transaction, statement, options, Tuples)
    state.out += copy_response(b"G", statement.format.is_binary, len(copied.columns))
    state.request = sql.request_of(options)
    yield from _take_rows(state, copied)
    return copied.end()


def _take_rows(state: State, copied: CopyIn) -> Waits[None]:
    until, is_last = trio.current_time() + BULK_SECONDS_MAX, False
    while not is_last:
        piece = yield from _piece(state)
        is_last = piece is None
        for batch in copied.batches(piece or b"", last=is_last):
            yield partial(copied.add, batch)
        if trio.current_time() > until or state.was_canceled:
            raise timed_out()
        yield from state.check()


def _piece(state: State) -> Waits[bytes | None]:
    """Wait for some data; None at their end."""
    while True:
        kind, body = yield from state.frame()
        if kind == messages.COPY_DATA:
            return body
        if kind == messages.COPY_DONE:
            return None
        if kind == messages.COPY_FAIL:
            reason = messages.read_query(body)
            raise QueryCanceled(f"COPY from stdin failed: {reason}")
        if kind not in (messages.FLUSH, messages.SYNC):
            raise ProtocolViolation(f"unexpected message type 0x{kind:02X} during COPY from stdin")


# --- out ------------------------------------------------------------------------------------------


def _copy_out(state: State, statement: CopyStatement) -> Waits[None]:
    running = yield from start(state, Statement(query_of(statement)))
    try:
        stream, form = running.stream, statement.format
        stream.count_as(statement.text)
        writer = (
            BinaryWriter(stream.types)
            if form.is_binary
            else TextWriter(form, stream.columns, stream.types)
        )
        state.out += copy_response(b"H", form.is_binary, len(stream.columns))
        if form.header:
            state.out += copy_data(writer.header)
        lines = _Lines(writer, writer.header if form.is_binary else b"")
        rows = yield from running.send(state, lines, 0)
        if form.is_binary:
            state.out += copy_data(lines.head + TRAILER)
        state.out += messages.COPY_ENDS + complete(f"COPY {rows}")
    finally:
        running.close()


class _Lines:
    """Writes rows as messages of COPY."""

    def __init__(self, writer: TextWriter | BinaryWriter, head: bytes) -> None:
        self._line = writer.line
        self.head = head
        """What comes in the message of the first row: some clients look for it there."""

    def write(self, rows: list[tuple[object, ...]], out: bytearray) -> None:
        for row in rows:
            out += copy_data(self.head + self._line(row))
            self.head = b""

"""COPY: rows in on the way of bulk inserts, rows out as a stream.

    FROM STDIN   CopyData … ─► rows of texts ─► `query.bulk`: steps of the transaction ─► commit
    TO STDOUT    a query's pages ─► CopyData, one for each row

Rows are inserted while they arrive, so a client that is faster than the table waits. A row that
cannot be read or stored fails the whole, with its line.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from qserver.engine.work import timed_out
from qserver.errors import ProtocolViolation, QserverError, QueryCanceled, UndefinedTable
from qserver.limits import BULK_SECONDS_MAX
from qserver.pgwire import messages
from qserver.pgwire.controlling import open_block
from qserver.pgwire.copy_binary import TRAILER, BinaryWriter, Tuples
from qserver.pgwire.copy_statement import CopyStatement, read_copy
from qserver.pgwire.copy_text import Lines, TextWriter
from qserver.pgwire.messages import complete, copy_data, copy_response
from qserver.pgwire.running import start
from qserver.pgwire.state import State
from qserver.pgwire.waits import Waits
from qserver.query.bulk import BulkInsert, RowBatch, find_relation
from qserver.query.results import Statement
from qserver.values.identifiers import quoted
from qserver.values.schema import Table

ROWS_AT_ONCE: Final = 1000
"""Rows of one step."""


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
    name, form = ".".join(statement.table), statement.format
    options = state.options_inside()
    insert = BulkInsert(sql, transaction, name, "error", options, texts=True, overriding=True)
    table = find_relation(transaction.transaction.catalog, name)
    if not isinstance(table, Table):
        raise UndefinedTable(f'relation "{name}" does not exist')
    columns = statement.columns or _settable(table)
    insert.check_columns(columns)
    types = tuple([table.column(each).type for each in columns])
    reader = Tuples(types, table.name) if form.is_binary else Lines(form, columns, table.name)
    state.out += copy_response(b"G", form.is_binary, len(columns))
    state.request = sql.request_of(options)
    try:
        yield from _take_rows(state, insert, reader, columns)
    except QserverError as error:
        where = reader.where()
        if error.row is not None:
            where = f"COPY {table.name}, line {error.row + form.header}"
        error.where = where  # type: ignore[attr-defined]
        raise
    return insert.affected_rows


def _settable(table: Table) -> tuple[str, ...]:
    return tuple([each.name for each in table.columns if not (each.hidden or each.generated)])


def _take_rows(
    state: State, insert: BulkInsert, reader: Lines | Tuples, columns: tuple[str, ...]
) -> Waits[None]:
    until, batch, first = trio.current_time() + BULK_SECONDS_MAX, [], 1
    is_last = False
    while not is_last:
        piece = yield from _piece(state)
        is_last = piece is None
        for row in reader.feed(piece or b"", last=is_last):
            batch.append(row)
            if len(batch) >= ROWS_AT_ONCE:
                yield partial(insert.add, RowBatch(columns, batch, first))
                first += len(batch)
                batch = []
        if trio.current_time() > until or state.was_canceled:
            raise timed_out()
        yield from state.check()
    if batch:
        yield partial(insert.add, RowBatch(columns, batch, first))


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
    query = statement.query or _select(statement)
    running = yield from start(state, Statement(query))
    try:
        stream, form = running.stream, statement.format
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


def _select(statement: CopyStatement) -> str:
    columns = ", ".join(map(quoted, statement.columns)) or "*"
    return f"SELECT {columns} FROM {'.'.join(map(quoted, statement.table))}"


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

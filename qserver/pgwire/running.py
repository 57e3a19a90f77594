"""Runs a statement, and sends its rows.

A statement outside of a transaction runs as over HTTP: on a snapshot, or in a transaction of its
own that the server repeats after a conflict. Inside one it is a step of that. Either way its rows
are a stream, of which one page is in memory; a client that does not read stops it, and its clock.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.pgwire.limits import OUTPUT_BYTES_MAX
from qserver.pgwire.rows import RowWriter
from qserver.pgwire.state import State
from qserver.pgwire.waits import Waits
from qserver.query.beginning import Beginning
from qserver.query.plan_cache import CachedPlan
from qserver.query.portals import Portal
from qserver.query.request import Request
from qserver.query.results import Statement
from qserver.query.row_stream import RowStream
from qserver.values.zones import InSessionZone


class Writes(Protocol):
    """Writes rows as messages."""

    def write(self, rows: list[Any], out: bytearray) -> None: ...


class Running:
    """A statement that has begun: its rows, of which some may have been sent."""

    __slots__ = ("_opened", "_portal", "_request", "_sql", "stream")

    def __init__(
        self, statement: Statement, stream: RowStream, request: Request, opened: OpenDatabase | None
    ) -> None:
        self._sql = statement.sql
        self._request = request
        self._portal: Portal | None = None
        """Made if its rows are not sent at once."""
        self.stream = stream
        self._opened = opened
        """Released at the end, unless the transaction has it."""

    @property
    def portal(self) -> Portal:
        if self._portal is None:
            request = self._request
            about = self.stream, request.time, request.environment.pool
            self._portal = Portal("", self._sql, *about)
        return self._portal

    def send(self, state: State, writer: Writes, most: int) -> Waits[int]:
        """Send rows, all or so many at most; return how many there were."""
        stream, out, sent, steps = self.stream, state.out, 0, 0
        portal = self.portal if most else self._portal
        while True:
            if portal is None:
                rows = yield from stream.stepping()
            else:
                rows = yield from portal.pull(most - sent if most else 0)
            if rows:
                _write(state, writer, rows, out)
                sent += len(rows)
                if sent == most:
                    return most
                if len(out) > OUTPUT_BYTES_MAX:
                    stream.reader_was_away((yield from state.flushed()))
            if stream.ended and (portal is None or portal.has_ended):
                self.close()
                return sent
            steps += 1
            if steps > 1:  # most end with the second
                yield stream.pause()

    def skip(self) -> Waits[int]:
        """Run to the end; return how many rows there were, which nobody wants."""
        rows = 0
        while not self.stream.ended:
            page = yield from self.stream.stepping()
            rows += len(page or ())
        self.close()
        return rows

    def close(self) -> None:
        """End it; a second call does nothing."""
        if self._portal is not None:
            self._portal.close()
        elif not self.stream.ended:
            self.stream.close()
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.release()


def _write(state: State, writer: Writes, rows: Any, out: bytearray) -> None:
    settings = state.settings.session.settings
    if settings.style is not None and isinstance(writer, RowWriter):
        writer = writer.styled(settings.style)
    with InSessionZone(settings.zone):
        writer.write(rows, out)


class Begun(msgspec.Struct, eq=False):
    """A statement that has begun outside of a transaction, in a database that is open for it."""

    opened: OpenDatabase
    beginning: Beginning

    @property
    def plan(self) -> CachedPlan | None:
        """Its plan, if that is kept."""
        found = self.beginning.found
        return None if found is None else found.plan


def begin(state: State, opened: OpenDatabase, statement: Statement) -> Begun:
    """Begin a statement outside of a transaction, in a database that is released at its end."""
    state.query = statement.sql
    try:
        return Begun(opened, opened.sql.beginnings.begin(statement, state.options()))
    except BaseException:
        opened.release()
        raise


def start(state: State, statement: Statement, begun: Begun | None = None) -> Waits[Running]:
    """Begin a statement, in the session's transaction if there is one.

    `begun`: it has begun outside of one, and this goes on with it.
    """
    block = state.block
    transaction = block.transaction
    state.query = statement.sql
    if transaction is not None:
        sql, options = block.opened.sql, state.options_inside()
        state.request = request = sql.request_of(options)
        stream = yield from transaction.stream(sql.planner, request, statement, options)
        return Running(statement, stream, request, None)
    if begun is None:
        begun = begin(state, (yield from state.find_database()), statement)
    opened, beginning = begun.opened, begun.beginning
    try:
        state.request = beginning.request
        stream = yield from opened.sql.streaming(statement, state.options(), beginning)
    except BaseException:
        opened.release()
        raise
    return Running(statement, stream, beginning.request, opened)

"""A read outside of a transaction: answered in one call, as over HTTP, if nothing has to wait.

    begin_at_once ─┬─ None                           something has to be waited for: `running`
           ├─ it writes, or has no plan yet          `running` goes on with what has begun
           └─ read_page ─┬─ all is written
                         └─ Running                  it goes on as a stream: it has more rows, or
                                                     needs a value of a sequence

So a short read makes neither a stream nor a generator, and nothing else is different: a stream
goes on with the very cursor that has begun.
"""

from __future__ import annotations

from qserver.pgwire.rows import RowWriter
from qserver.pgwire.running import Begun, Running, begin
from qserver.pgwire.state import State
from qserver.query.body import open_reading
from qserver.query.cursor import END
from qserver.query.request import RequestContext
from qserver.query.results import Statement
from qserver.query.row_stream import reading_stream
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.values.zones import SESSION_ZONE


def begin_at_once(state: State, statement: Statement) -> Begun | None:
    """Admit and begin a statement outside of a transaction; None if that has to wait."""
    opened = state.use_nowait()
    return None if opened is None else begin(state, opened, statement)


def read_page(state: State, begun: Begun, told: RowWriter | None) -> tuple[int, Running | None]:
    """Write the first rows of a read; return how many there were, and what it goes on as.

    `told`: what has told the client of its columns; None if it is told here.
    """
    beginning, out = begun.beginning, state.out
    statement, snapshot, request = beginning.found, beginning.snapshot, beginning.request
    assert statement is not None and snapshot is not None, "it has a plan"
    rows, page, has_ended = 0, None, True
    cursor, context = None, RequestContext(request, snapshot)
    state.request, session = request, state.settings.session
    before = session.settings
    token = SESSION_ZONE.set(request.zone)
    try:
        cursor = open_reading(statement, snapshot, request, context)
        if told is None:
            heading = cursor.heading
            told = state.host.row_writers.find(heading.columns, heading.types)
            out += told.description
        elif told.types is not cursor.heading.types:
            told.check(cursor.heading.columns, cursor.heading.types)
        page = cursor.gather(None, None, None, False, True)
        if cursor.rows:
            if before.style is not None:
                told = told.styled(before.style)
            told.write(cursor.rows, out)
            rows = len(cursor.rows)
        seconds = max(0.0, request.environment.now() - request.time)
        if page is END:
            cursor.count(seconds, rows)
            if session.settings is not before:
                session.end_local()
            state.tell_notices()
            return rows, None
        has_ended = False
        stream = reading_stream(statement, snapshot, request, cursor, before)
        stream.go_on_after(rows, page, seconds=seconds)
    except NeedsSequenceValues as needs:
        has_ended = False
        stream = reading_stream(statement, snapshot, request, cursor, before)
        stream.go_on_after(rows, None, needs)
    except Exception:
        session.settings = before
        raise
    finally:
        SESSION_ZONE.reset(token)
        if has_ended:
            context.release()
            if request.drawn:
                request.give_back_unused()
            begun.opened.release()
    return rows, Running(Statement(statement.sql), stream, request, begun.opened)

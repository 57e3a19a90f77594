"""Query: one text, with any number of statements.

One statement alone runs as it is. Several are a transaction: it is committed at the end and undone
by an error, unless BEGIN and COMMIT among them say otherwise.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import QserverError
from qserver.lexing.pieces import statements_of
from qserver.pgwire.admission import admitted, end
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import NO_QUERY, complete_select
from qserver.pgwire.reading import begin_at_once, read_page
from qserver.pgwire.rows import row_writer
from qserver.pgwire.running import Begun, Running, start
from qserver.pgwire.state import State
from qserver.pgwire.tags import Sort, kind_of
from qserver.pgwire.waits import Waits
from qserver.query.results import Statement

SELECT: Final = "SELECT"


def answer(executing: Executing, text: str) -> Waits[None] | None:
    """Run the statements of a Query, and write all but the ReadyForQuery.

    Return what is left to do, if that may have to wait.
    """
    state, statements = executing.state, statements_of(text)
    if len(statements) != 1 or state.block.transaction is not None or not _is_query(text):
        return query(executing, text, statements)
    statement = Statement(text)
    begun = begin_at_once(state, statement)
    if begun is None:
        return query(executing, text, statements)
    plan = begun.plan
    if plan is None or plan.writes:
        return _start(state, statement, SELECT, begun)
    rows, running = read_page(state, begun, None)
    if running is not None:
        return _rest(state, running, SELECT, rows)
    state.out += complete_select(rows)
    return None


def _is_query(text: str) -> bool:
    kind = kind_of(text)
    return kind.sort is Sort.SQL and kind.tag == SELECT


def query(executing: Executing, text: str, statements: list[tuple[int, str]]) -> Waits[None]:
    """Run the statements one after the other, whatever they are."""
    state = executing.state
    if not statements:
        state.out += NO_QUERY
        return
    if len(statements) == 1:
        yield from _run(executing, text, alone=True)
        statements = []
    for start_at, each in statements:
        try:
            yield from _run(executing, each, alone=False)
        except QserverError as error:
            if error.position is not None:
                error.position += start_at
            raise
    if state.block.is_implicit and state.block.transaction is not None:
        yield from executing.commit()


def _run(executing: Executing, text: str, *, alone: bool) -> Waits[None]:
    state = executing.state
    kind = kind_of(text)
    if not (yield from admitted(executing, kind, text, in_block=not alone, commits=alone)):
        return
    tag = kind.tag or (yield from executing.tag_of(text))
    yield from _start(state, Statement(text), tag)


def _start(state: State, statement: Statement, tag: str, begun: Begun | None = None) -> Waits[None]:
    running = yield from start(state, statement, begun)
    try:
        stream, rows = running.stream, 0
        if stream.columns or (stream.tag or tag) == SELECT:
            writer = row_writer(stream.columns, stream.types)
            state.out += writer.description
            rows = yield from running.send(state, writer, 0)
        else:
            rows = yield from running.skip()
        end(state, stream.tag or tag, rows, stream.affected_rows)
    finally:
        running.close()


def _rest(state: State, running: Running, tag: str, sent: int) -> Waits[None]:
    """Send the rest of a read whose first rows were sent."""
    try:
        stream = running.stream
        yield stream.pause()
        sent += yield from running.send(state, row_writer(stream.columns, stream.types), 0)
        end(state, tag, sent, 0)
    finally:
        running.close()

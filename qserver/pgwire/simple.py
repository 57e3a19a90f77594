"""Query: one text, with any number of statements.

One statement alone runs as it is. Several are a transaction: it is committed at the end and undone
by an error, unless BEGIN and COMMIT among them say otherwise.
"""

from __future__ import annotations

from qserver.errors import QserverError
from qserver.lexing.pieces import statements_of
from qserver.pgwire.admission import admitted, end
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import NO_QUERY
from qserver.pgwire.rows import row_writer
from qserver.pgwire.running import start
from qserver.pgwire.tags import kind_of
from qserver.pgwire.waits import Waits
from qserver.query.results import Statement


def query(executing: Executing, text: str) -> Waits[None]:
    """Run the statements of a Query, and write all but the ReadyForQuery."""
    state = executing.state
    statements = statements_of(text)
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
    running = yield from start(state, Statement(text))
    try:
        stream, rows = running.stream, 0
        if stream.columns or tag == "SELECT" or stream.tag == "SELECT":
            writer = row_writer(stream.columns, stream.types)
            state.out += writer.description
            rows = yield from running.send(state, writer, 0)
        else:
            rows = yield from running.skip()
        end(state, stream.tag or tag, rows, stream.affected_rows)
    finally:
        running.close()

"""Query: one text, with any number of statements.

One statement alone runs as it is. Several are a transaction: it is committed at the end and undone
by an error, unless BEGIN and COMMIT among them say otherwise.
"""

from __future__ import annotations

from qserver.errors import QserverError
from qserver.lexing.pieces import statements_of
from qserver.pgwire.controlling import control, open_block
from qserver.pgwire.copying import copy
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import NO_QUERY, complete
from qserver.pgwire.rows import row_writer
from qserver.pgwire.running import start
from qserver.pgwire.tags import Sort, control_of, finished, kind_of
from qserver.pgwire.waits import Waits
from qserver.query.cursors import outside_of_block
from qserver.query.open_transaction import in_failed
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
    block, kind = state.block, kind_of(text)
    if not state.admit_nowait():
        yield from state.admit()
    node = control_of(text) if kind.sort is Sort.CONTROL else None
    if node is not None:
        executing.close_portals(unless=node.kind in ("begin", "start", "savepoint", "release"))
        state.out += complete((yield from control(state, node, text)))
        return
    declares = kind.sort is Sort.DECLARE
    if declares and alone and block.transaction is None and executing.declares_outside(text):
        raise outside_of_block()
    if block.transaction is None and (declares or not alone):
        yield from open_block(state, read_only=state.settings.read_only, implicit=True)
    if block.transaction is not None and block.transaction.failed:
        raise in_failed()
    if kind.sort is Sort.COPY:
        yield from executing.make_way()
        yield from copy(state, text, commits=alone)
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
        if tag == "DISCARD ALL":
            state.settings.discard()
        state.out += complete(finished(stream.tag or tag, rows, stream.affected_rows))
    finally:
        running.close()

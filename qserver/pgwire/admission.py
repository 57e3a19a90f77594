"""What precedes a statement of either protocol, and what follows it."""

from __future__ import annotations

from qserver.pgwire.controlling import control, open_block
from qserver.pgwire.copying import copy
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import complete
from qserver.pgwire.state import State
from qserver.pgwire.tags import Kind, Sort, control_of, finished
from qserver.pgwire.waits import Waits
from qserver.query.cursors import outside_of_block
from qserver.query.open_transaction import in_failed


def admitted(
    executing: Executing, kind: Kind, text: str, *, in_block: bool, commits: bool
) -> Waits[bool]:
    """Count a statement, and open the transaction that it needs; False if it has run already.

    `in_block`: it is one of several, which are a transaction. `commits`: COPY commits by itself.
    """
    state = executing.state
    block = state.block
    if not state.admit_nowait():
        yield from state.admit()
    if kind.sort is Sort.CONTROL and (node := control_of(text)) is not None:
        executing.close_portals(unless=node.kind in ("begin", "start", "savepoint", "release"))
        state.out += complete((yield from control(state, node, text)))
        return False
    if block.transaction is None:
        declares = kind.sort is Sort.DECLARE
        if declares and not in_block and executing.declares_outside(text):
            raise outside_of_block()
        if declares or in_block:
            read_only = state.settings.session.settings.read_only
            yield from open_block(state, read_only=read_only, implicit=True)
    if block.transaction is not None and block.transaction.failed:
        raise in_failed()
    if kind.sort is Sort.COPY:
        yield from executing.make_way()
        yield from copy(state, text, commits=commits)
        return False
    return True


def end(state: State, tag: str, rows: int, affected: int) -> None:
    """Tell the client that a statement has run."""
    state.tell_notices()
    state.out += complete(finished(tag, rows, affected))

"""BEGIN, COMMIT, SAVEPOINT and the like: what they do to the transaction of a session."""

from __future__ import annotations

import trio

from qserver.errors import FeatureNotSupported
from qserver.pgwire.running import start
from qserver.pgwire.state import State
from qserver.pgwire.transactions import check_modes, reads_only, savepoint_outside
from qserver.pgwire.waits import Waits
from qserver.query.open_transaction import in_failed
from qserver.query.results import Statement
from qserver.query.session_statements import modes_of_begin
from qserver.query.statement_statistics import DatabaseStatements
from qserver.query.transaction_control import command_of
from qserver.sql import ast

NO_TRANSACTION = "there is no transaction in progress"


def control(state: State, node: ast.TransactionControl, text: str) -> Waits[str]:
    """Do what the statement says, and count it; return its tag."""
    began, before = trio.current_time(), _counters(state)
    tag = yield from _controlled(state, node, text)
    counters = before or _counters(state)
    if counters is not None and command_of(node)[1] is None:  # others are steps, which count
        counters.count(text, trio.current_time() - began)
    return tag


def _counters(state: State) -> DatabaseStatements | None:
    block = state.block
    return None if block.transaction is None else block.opened.sql.planner.statements


def _controlled(state: State, node: ast.TransactionControl, text: str) -> Waits[str]:
    check_modes(node)
    match node.kind:
        case "begin" | "start":
            yield from _begin(state, node)
            return "BEGIN" if node.kind == "begin" else "START TRANSACTION"
        case "commit" | "end":
            return (yield from _commit(state, node))
    command, name = command_of(node)
    if command == "rollback" and name is None:
        return _roll_back(state)
    if not state.block.is_explicit:
        raise savepoint_outside(node)
    assert state.block.transaction is not None
    if state.block.transaction.is_over:
        raise in_failed()
    running = yield from start(state, Statement(text))
    running.close()
    return {"savepoint": "SAVEPOINT", "release": "RELEASE"}.get(command or "", "ROLLBACK")


def _begin(state: State, node: ast.TransactionControl) -> Waits[None]:
    block = state.block
    session = state.settings.session
    read_only = reads_only(node.words, session.settings.read_only)
    modes = modes_of_begin(node)
    if block.transaction is None:
        yield from open_block(state, read_only=read_only, implicit=False)
    elif block.transaction.failed:
        raise in_failed()
    elif block.is_implicit:
        block.make_explicit()
    else:
        state.warn("25001", "there is already a transaction in progress")
    for name, value in modes:
        session.set(name, [value])


def open_block(state: State, *, read_only: bool, implicit: bool, bulk: bool = False) -> Waits[None]:
    """Open a transaction of the session."""
    opened, grant = (yield from state.find_database()), state.grant
    assert grant is not None
    try:
        yield from state.block.begin(
            grant,
            opened,
            read_only=read_only,
            implicit=implicit,
            timeout_ms=grant.limits.statement_timeout_ms,
            session=state.settings.session,
            bytes_most=opened.sql.bulk_bytes_most if bulk else None,
        )
    except BaseException:
        opened.release()
        raise


def _commit(state: State, node: ast.TransactionControl) -> Waits[str]:
    if node.words[-2:] == ("and", "chain"):
        raise FeatureNotSupported("COMMIT AND CHAIN is not supported", position=node.position + 1)
    if not state.block.is_explicit:
        state.warn("25P01", NO_TRANSACTION)
    if state.block.transaction is None:
        return "COMMIT"
    return (yield from state.block.commit(state.options()))


def _roll_back(state: State) -> str:
    if not state.block.is_explicit:
        state.warn("25P01", NO_TRANSACTION)
    state.block.roll_back()
    return "ROLLBACK"

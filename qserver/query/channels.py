"""LISTEN, UNLISTEN, NOTIFY; see `engine.channels` for the way of a notification.

A transaction carries what it tells, so it is told when it commits, and only then. Only a connection
listens: it has somebody to tell when nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import FeatureNotSupported, ProgramLimitExceeded, ReadOnlyTransaction
from qserver.limits import CHANNELS_MAX
from qserver.query.cursor import Cursor, rows_at_once
from qserver.query.listening import Listening, checked, send
from qserver.query.statement_port import StatementPort
from qserver.sql import ast

_WHERE = "Read GET /v1/notifications?channel=…, or connect as a client of PostgreSQL."


def listen(run: StatementPort, node: ast.Listen, literals: Sequence[Any]) -> Cursor:
    session = run.session
    listening = None if session is None else session.listening
    if node.ends:
        if listening is not None:
            ended = listening.names if node.channel is None else {node.channel}
            listening.names -= ended
        return Cursor(rows_at_once([]), run.context)
    run.check_read()
    writer = run.request.environment.writer
    if session is None or session.told is None:
        raise FeatureNotSupported("LISTEN needs a connection that can be told", hint=_WHERE)
    if writer is None:
        raise ReadOnlyTransaction("LISTEN is for the server that writes this database")
    if listening is None:
        listening = session.listening = Listening(writer.channels, session.told)
    assert node.channel is not None
    listening.names |= {checked(node.channel)}
    if len(listening.names) > CHANNELS_MAX:
        raise ProgramLimitExceeded(f"a session listens to at most {CHANNELS_MAX} channels")
    return Cursor(rows_at_once([]), run.context)


def notify(run: StatementPort, node: ast.Notify, literals: Sequence[Any]) -> Cursor:
    run.check_notify()
    send(run.request.sender, run.transaction, node.channel, node.payload)
    return Cursor(rows_at_once([]), run.context)

"""DECLARE, FETCH, MOVE, CLOSE: the cursors of a session, which are its portals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import (
    DuplicateCursor,
    FeatureNotSupported,
    InvalidCursorName,
    NoActiveTransaction,
    ProgramLimitExceeded,
)
from qserver.limits import PORTALS_MAX
from qserver.query.cursor import Cursor, Heading, StatementSteps
from qserver.query.portals import Portal
from qserver.query.session import Session
from qserver.query.statement_port import Opening, StatementPort
from qserver.sql import ast, runs_on_snapshot


def outside_of_block() -> NoActiveTransaction:
    return NoActiveTransaction(
        "DECLARE CURSOR can only be used in transaction blocks",
        hint="Open a transaction, with BEGIN or POST /v1/transaction/open.",
    )


def check_new(session: Session, name: str) -> None:
    if name in session.portals:
        raise DuplicateCursor(f'cursor "{name}" already exists')
    if len(session.portals) >= PORTALS_MAX:
        raise ProgramLimitExceeded(
            f"a session has at most {PORTALS_MAX} portals", hint="Close those that are not needed."
        )


def portal_named(session: Session | None, name: str) -> Portal:
    found = None if session is None else session.portals.get(name)
    if found is None:
        raise InvalidCursorName(f'cursor "{name}" does not exist')
    return found


def declare(run: StatementPort, asked: Opening) -> Cursor:
    node = asked.node
    if run.controls is None:
        raise outside_of_block()
    if not runs_on_snapshot(node.query):
        raise FeatureNotSupported(
            "DECLARE CURSOR must not contain data-modifying statements in WITH"
        )
    if node.query.locking and (node.hold or node.scroll):
        what = "CURSOR WITH HOLD" if node.hold else "SCROLL CURSOR"
        raise FeatureNotSupported(f"DECLARE {what} ... FOR UPDATE is not supported")
    check_new(run.own_session(), node.name)
    return Cursor(run.controls(asked), run.context)


def fetch(run: StatementPort, node: ast.Fetch, literals: Sequence[Any]) -> Cursor:
    portal = portal_named(run.session, node.name)
    heading = Heading() if node.moves else Heading(portal.columns, portal.types)
    cursor = Cursor(_nothing(), run.context, heading=heading)
    cursor.steps = _fetch(run, cursor, portal, node)
    return cursor


def _fetch(run: StatementPort, cursor: Cursor, portal: Portal, node: ast.Fetch) -> StatementSteps:
    rows = yield from portal.fetch(run.request, node.direction, node.count)
    cursor.tag = f"{'MOVE' if node.moves else 'FETCH'} {len(rows)}"
    if rows and not node.moves:
        yield rows
    return 0


def _nothing() -> StatementSteps:
    yield from ()
    return 0


def close(run: StatementPort, node: ast.Close, literals: Sequence[Any]) -> Cursor:
    return Cursor(_close(run.session, node.name), run.context)


def _close(session: Session | None, name: str | None) -> StatementSteps:
    yield from ()
    if name is None:
        if session is not None:
            session.close_portals()
        return 0
    portal_named(session, name)
    assert session is not None
    session.close_portal(name)
    return 0

"""DECLARE, FETCH, MOVE, CLOSE: the cursors of a session, which are its portals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from qserver.errors import (
    DuplicateCursor,
    FeatureNotSupported,
    NoActiveTransaction,
    ProgramLimitExceeded,
)
from qserver.limits import PORTALS_MAX
from qserver.query.cursor import Cursor, Heading, StatementSteps
from qserver.query.portals import Portal
from qserver.query.session import Session, portal_named
from qserver.query.statement_port import Controls, Opening, StatementPort
from qserver.sql import ast, runs_on_snapshot, with_row_key


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
    return Cursor(_declare(run, run.controls, asked), run.context)


def _declare(run: StatementPort, controls: Controls, asked: Opening) -> StatementSteps:
    keyed = with_row_key(asked.node.query, run.names)
    if keyed is not None:
        query, table = keyed
        about = query, asked.parsed.literals, asked.declared, asked.given
        plan = yield from run.plan_inside(*about)
        asked = msgspec.structs.replace(asked, plan=plan, table=table)
    return (yield from controls(asked))


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
        yield portal.shown(rows)
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

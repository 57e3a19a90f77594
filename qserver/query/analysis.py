"""Analyses a statement without running it: its parameters, its columns, what it is.

    text, declared types ─► plan ─┬─ the types of parameters
                                  └─ names and types of columns

The plan is kept like any other, so what is analysed now runs with that plan later.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from qserver.engine.freshness import STRONG
from qserver.engine.work import Step, before
from qserver.query.open_transaction import OpenTransaction
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared, Unplanned
from qserver.query.results import Statement
from qserver.query.session import Session
from qserver.query.sql_database import SqlDatabase
from qserver.sql import NotShort
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot


def definitions(
    sql: SqlDatabase, inside: OpenTransaction | None, deadline: float, session: Session | None
) -> Generator[Step, Any, tuple[Catalog, Snapshot]]:
    """Return what a statement is planned by."""
    if inside is not None:
        return inside.transaction.catalog, inside.transaction.snapshot
    newest = sql.snapshots.take()
    if newest is None:
        newest = yield partial(sql.wait_fresh, STRONG, deadline)
    snapshot = newest if session is None else session.over(newest)
    return snapshot.catalog, snapshot


def analysing(
    sql: SqlDatabase,
    statement: Statement,
    inside: OpenTransaction | None,
    deadline: float,
    session: Session | None = None,
) -> Generator[Step, Any, CachedPlan | Prepared]:
    """Return the steps that plan a statement; they return its plan.

    If its kind has none, they return what was parsed. Inside an open transaction it is planned by
    what that has defined.
    """
    catalog, snapshot = yield from definitions(sql, inside, deadline, session)
    scope = None if session is None else session.scope
    planner, parameterized = sql.planner, statement.parameterized
    assert parameterized is not None, "its caller has read the text"
    plan = planner.find(parameterized, catalog, snapshot, None, scope)
    if plan is not None:
        return plan
    asked = Unplanned(statement.sql, parameterized, catalog, snapshot, scope=scope)
    try:
        made = planner.prepare_nowait(asked)
    except NotShort:
        made = yield partial(before, deadline, planner.prepare, asked)
    return made if made.plan is None else made.plan

"""Plans for the statements of a request: those that are kept, and then new ones.

find_plans ─► all are kept: the common case, which waits for nothing
           └► make_plans ─► new_plan ─► in a thread, if planning takes long
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from qserver.engine.work import Step, before
from qserver.errors import QserverError
from qserver.query.body import COST_BETWEEN_PAUSES
from qserver.query.idempotency import needs_a_change
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Planner, Prepared, Unplanned, name_of_plans
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request
from qserver.query.results import Statement
from qserver.query.settings.values import Scope
from qserver.sql import NotShort, is_heavy
from qserver.storage.snapshot import Snapshot


def find_plans(
    planner: Planner,
    statements: Sequence[Statement],
    snapshot: Snapshot,
    scope: Scope | None = None,
) -> list[PreparedStatement]:
    """Find the plans that are kept, up to the first statement that has none."""
    catalog, find = snapshot.catalog, planner.cache.find
    found: list[PreparedStatement] = []
    for statement in statements:
        sql, given = statement.sql, statement.parameters
        try:
            parameterized = planner.parameterize(sql, given)
        except (NotShort, QserverError):
            break
        name: Any = parameterized.fingerprint, parameterized.kinds
        if scope is not None:
            name = name_of_plans(parameterized, scope)
        plan = find(name, parameterized.literals, catalog, snapshot, given)
        found.append(PreparedStatement(sql, given, parameterized, plan))
        if plan is None:
            break
    return found


def make_plans(
    planner: Planner,
    request: Request,
    statements: Sequence[Statement],
    found: list[PreparedStatement],
    snapshot: Snapshot,
    read_only: bool,
) -> Generator[Step, Any, None]:
    """Go on where `find_plans` has ended, up to the first statement without a plan.

    Later statements may depend on what that one defines: they are planned when they run. Of
    several that may write, so are all that have no plan yet.
    """
    at_once, scope = read_only or len(statements) == 1, request.scope
    database = request.environment.server.database
    last = found.pop() if found and found[-1].plan is None else None
    for statement in statements[len(found) :]:
        sql, given = statement.sql, statement.parameters
        parameterized = plan = None
        try:
            if last is not None:
                parameterized, last = last.parameterized, None
            else:
                try:
                    parameterized = planner.parameterize(sql, given)
                except NotShort:
                    parameterized = yield partial(
                        before, request.deadline, planner.parameterize_long, sql
                    )
                plan = planner.find(parameterized, snapshot.catalog, snapshot, given, scope)
            if plan is None and at_once:
                assert parameterized is not None
                about = sql, parameterized, snapshot.catalog, snapshot, given
                asked = Unplanned(*about, to_read=True, scope=scope, database=database)
                plan = yield from new_plan(planner, asked, request.deadline)
        except QserverError as error:
            if at_once:
                error.statement = len(found)
                raise  # of several, earlier ones come first: the body raises it in order
        found.append(PreparedStatement(sql, given, parameterized, plan))
        if plan is None:
            rest = statements[len(found) :]
            found += [PreparedStatement(each.sql, each.parameters) for each in rest]
            break


def new_plan(
    planner: Planner, asked: Unplanned, deadline: float
) -> Generator[Step, Any, CachedPlan | None]:
    """Return a plan for a statement that can be run on a snapshot; for any other, None."""
    try:
        return planner.prepare_nowait(asked).plan
    except NotShort:
        work = partial(before, deadline, planner.prepare, asked)
    made: Prepared = yield work
    return made.plan


def only_read(found: list[PreparedStatement], request: Request) -> bool:
    """Return whether no statement writes, as far as is known."""
    for each in found:
        plan = each.plan
        if plan is None or plan.writes:
            return False
    if request.once is not None:
        raise needs_a_change()
    return True


def are_short(found: list[PreparedStatement]) -> bool:
    """Return whether all statements have a plan and no plan has ever yielded."""
    if len(found) > COST_BETWEEN_PAUSES:
        return False
    for each in found:
        plan = each.plan
        if plan is None or plan.may_yield or plan.system_tables or is_heavy(each.given):
            return False
    return True

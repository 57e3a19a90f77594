"""How a statement of a session begins: all that can be known of it without waiting."""

from __future__ import annotations

import msgspec

from qserver.engine.snapshot_source import SnapshotSource
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Planner
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.preparing import find_plans
from qserver.query.request import Request, RequestEnvironment
from qserver.query.results import RunOptions, Statement
from qserver.query.session import Session
from qserver.storage.snapshot import Snapshot


class Beginning(msgspec.Struct, eq=False):
    """A request of one statement, and what is known of that."""

    request: Request
    snapshot: Snapshot | None = None
    """The newest durable one, as the session sees it; None if none may be shown now."""
    found: PreparedStatement | None = None
    """The statement with its plan, if that is kept; None if its text cannot be read at once."""


class Beginnings:
    """Begins the statements of sessions on a database."""

    __slots__ = ("_environment", "_planner", "_snapshots")

    def __init__(
        self, planner: Planner, snapshots: SnapshotSource, environment: RequestEnvironment
    ) -> None:
        self._planner = planner
        self._snapshots = snapshots
        self._environment = environment

    def begin(self, statement: Statement, options: RunOptions) -> Beginning:
        """Begin a statement, which may have been parameterized already; wait for nothing.

        Beside the session, nothing special is asked for in its options.
        """
        session, snapshot = options.session, self._snapshots.take()
        assert session is not None, "it is a statement of a session"
        request = self._request(session, options)
        parameterized, given, plan = statement.parameterized, statement.parameters, None
        if snapshot is not None:
            if session.temporary is not None:
                snapshot = session.over(snapshot)
            if parameterized is None:
                every = find_plans(self._planner, (statement,), snapshot, session.scope)
                return Beginning(request, snapshot, every[0] if every else None)
            where = snapshot.catalog, snapshot
            plan = self._planner.find(parameterized, *where, given, session.scope)
        if parameterized is None:
            return Beginning(request)
        found = PreparedStatement(statement.sql, given, parameterized, plan)
        return Beginning(request, snapshot, found)

    def begin_again(self, found: PreparedStatement, options: RunOptions) -> Beginning | None:
        """Begin a statement without temporary relations whose plan has been found before.

        None if that would not be found again. Session and settings are those of then.
        """
        session, snapshot, plan = options.session, self._snapshots.take(), found.plan
        assert session is not None and plan is not None, "it has begun before"
        if snapshot is None or not self._planner.cache.is_still_good(plan, snapshot):
            return None
        return Beginning(self._request(session, options), snapshot, found)

    def _request(self, session: Session, options: RunOptions) -> Request:
        about = options.timeout_ms, options.allowed, None, None, session
        request = self._environment.request(*about)
        timeout_ms = session.settings.statement_timeout_ms
        if timeout_ms is not None:
            request.limit(timeout_ms)
        return request

    def is_still_good(self, plan: CachedPlan) -> bool:
        """Return whether a plan of a statement without temporary relations would be found again."""
        snapshot = self._snapshots.take()
        return snapshot is not None and self._planner.cache.is_still_good(plan, snapshot)

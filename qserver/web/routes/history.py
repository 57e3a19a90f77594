"""Routes of older versions of a database: list, compare, restore."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere
from qserver.engine.work import before
from qserver.errors import HistoryTooOld, InvalidRequest
from qserver.limits import (
    HISTORY_CHANGES_DEFAULT,
    HISTORY_CHANGES_MAX,
    HISTORY_VERSIONS_DEFAULT,
    HISTORY_VERSIONS_MAX,
)
from qserver.query.unchanged import check_all
from qserver.storage.snapshot import Snapshot
from qserver.web.admission import Admission
from qserver.web.description import version_shapes as shapes
from qserver.web.routes.bodies import body_of
from qserver.web.routes.comparing import Comparison, drop_shared_of, place_of, tables_of
from qserver.web.service.service import Service
from qserver.web.statements.as_of import as_of_given


class HistoryRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_v1_databases_database_versions(
        self, admission: Admission, database: str
    ) -> shapes.VersionsAnswer:
        admission.need("data:read")
        earlier = admission.number("before", 0)
        limit = limit_of(admission, HISTORY_VERSIONS_DEFAULT, HISTORY_VERSIONS_MAX)
        async with self._opened(admission, database) as opened:
            versions = opened.database.history.versions
            found = await before(admission.grant.deadline(), versions, earlier, limit + 1)
        listed = [
            shapes.Version(
                each.version,
                datetime.fromtimestamp(each.time, UTC),
                each.tables,
                each.rows_changed,
                each.requests[-1] if each.requests else None,
                each.requests,
            )
            for each in found[:limit]
        ]
        cursor = str(listed[-1].version) if len(found) > limit else None
        return shapes.VersionsAnswer(True, listed, cursor)

    async def get_v1_databases_database_diff(
        self, admission: Admission, database: str
    ) -> shapes.DiffAnswer:
        admission.need("data:read")
        other, plane = admission.queries().get("from_database"), self._service.plane
        if other is None:
            async with self._opened(admission, database, reads=True) as opened:
                return await self._compared(admission, opened, opened)
        await plane.access.check_related(admission.grant, other, database)
        async with self._opened(admission, database) as opened:
            with await plane.database(admission.grant, other) as begun:
                return await self._compared(admission, begun, opened)

    async def _compared(
        self, admission: Admission, begun: OpenDatabase, opened: OpenDatabase
    ) -> shapes.DiffAnswer:
        given, deadline = admission.queries(), admission.grant.deadline()
        if "from" not in given and begun is opened:
            raise InvalidRequest("from is missing", hint="Name a version or a time.")
        cursor = None if "cursor" not in given else place_of(given["cursor"])
        limit = limit_of(admission, HISTORY_CHANGES_DEFAULT, HISTORY_CHANGES_MAX)
        is_counted = given.get("count", "false")
        if is_counted not in ("true", "false"):
            raise InvalidRequest("count is true or false")
        first = await self._snapshot(begun, given, "from", deadline)
        last = await self._snapshot(opened, given, "to", deadline)
        tables = tables_of(given.get("tables"), first, last)
        comparison = Comparison(first, last, tables, drop_shared_of(begun, opened), deadline)
        if is_counted == "true":
            counts = await comparison.counts()
            return shapes.DiffAnswer(True, first.version, last.version, counts=counts)
        changes, following = await comparison.page(cursor, limit)
        return shapes.DiffAnswer(True, first.version, last.version, changes, following)

    async def post_v1_databases_database_restore(
        self, admission: Admission, database: str
    ) -> shapes.RestoreAnswer:
        for scope in ("data:write", "schema"):
            admission.need(scope)
        admission.queries()
        wanted = await body_of(admission, shapes.RestoreRequest)
        async with self._opened(admission, database) as opened:
            opened.quota.check()
            deadline, check = admission.grant.deadline(), None
            if wanted.if_version is not None:
                then = await opened.database.snapshot_at(as_of_given(wanted.if_version), deadline)
                check = partial(check_all, wanted.if_version, then)
            made, restored = await opened.database.restore_version(
                as_of_given(wanted.as_of), deadline, admission.request_id, check
            )
        return shapes.RestoreAnswer(True, made, restored)

    @asynccontextmanager
    async def _opened(
        self, admission: Admission, database: str, *, reads: bool = False
    ) -> AsyncIterator[OpenDatabase]:
        """The database; a version that is too old is 410 here, not an error of a statement."""
        plane, grant = self._service.plane, admission.grant
        found = plane.database_to_read if reads else plane.database
        with await found(grant, database) as opened:
            await opened.sql.wait_fresh(admission.freshness, grant.deadline())
            try:
                yield opened
            except HistoryTooOld as error:
                if opened.owner is not None:
                    raise OwnedElsewhere(opened.owner, opened.id) from error
                error.is_gone = True
                raise

    async def _snapshot(
        self, opened: OpenDatabase, given: dict[str, str], name: str, deadline: float
    ) -> Snapshot:
        database = opened.readable
        if name not in given:
            return await database.wait_durable_snapshot(deadline)
        return await database.snapshot_at(as_of_given(given[name], name), deadline)


def limit_of(admission: Admission, default: int, most: int) -> int:
    limit = admission.number("limit")
    if limit is None:
        return default
    if not 1 <= limit <= most:
        raise InvalidRequest(f"limit is from 1 to {most}")
    return limit

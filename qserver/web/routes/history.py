"""Routes of older versions of a database: list, compare, restore."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere
from qserver.engine.work import before
from qserver.engine.yielding import yield_to_others
from qserver.errors import DataCorrupted, HistoryTooOld, InvalidRequest, UndefinedTable
from qserver.limits import (
    ANSWER_PART_BYTES,
    HISTORY_CHANGES_DEFAULT,
    HISTORY_CHANGES_MAX,
    HISTORY_VERSIONS_DEFAULT,
    HISTORY_VERSIONS_MAX,
)
from qserver.query.results import Redefinition
from qserver.query.unchanged import check_all
from qserver.storage.page import Key
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes
from qserver.values.encoding import decode_columns, encode_columns
from qserver.values.identifiers import key_of_name
from qserver.values.sizes import size_of
from qserver.web.admission import Admission
from qserver.web.description import shapes
from qserver.web.routes.bodies import body_of
from qserver.web.service.service import Service
from qserver.web.statements.as_of import as_of_given
from qserver.web.statements.json_values import encode_json
from qserver.web.streaming.changes import CHANGES_ENCODED_AT_ONCE, ChangeEncoder

DIFF_BYTES_MAX = 32 * ANSWER_PART_BYTES
"""A page of changes ends after so many bytes of rows, however few changes that is."""


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
        given = admission.queries()
        start = None if "cursor" not in given else _decoded(given["cursor"])
        limit = limit_of(admission, HISTORY_CHANGES_DEFAULT, HISTORY_CHANGES_MAX)
        deadline = admission.grant.deadline()
        async with self._opened(admission, database, reads=True) as opened:
            first = await self._snapshot(opened, given, "from", deadline)
            last = await self._snapshot(opened, given, "to", deadline)
            tables = _tables(given.get("tables"), first, last)
            encoder, size = ChangeEncoder(), 0
            changes: list[msgspec.Raw] = []
            cursor: str | None = None
            place: tuple[str, Key | None] = ("", None)
            for found in snapshot_changes(first, last, tables, start):
                if found is None or not (len(changes) + 1) % CHANGES_ENCODED_AT_ONCE:
                    await before(deadline, yield_to_others)
                if found is None:
                    continue
                if len(changes) >= limit or size > DIFF_BYTES_MAX:
                    cursor = _encoded(*place)
                    break
                name, key, change = found
                place = name, key
                schema = None
                if change.op == "schema":
                    schema = Redefinition(name, first.catalog, last.catalog)
                changes.append(msgspec.Raw(encode_json(encoder.encoded(change, schema))))
                size += sum(map(size_of, (*(change.before or ()), *(change.after or ()))))
            listed = cast(list[shapes.RowChange], changes)  # which are encoded already
            return shapes.DiffAnswer(True, first.version, last.version, listed, cursor)

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
        if name not in given and name == "from":
            raise InvalidRequest("from is missing", hint="Name a version or a time.")
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


def _tables(given: str | None, first: Snapshot, last: Snapshot) -> set[str] | None:
    if given is None:
        return None
    keys = set()
    for name in given.split(","):
        key = key_of_name(name.strip())
        if first.catalog.find(key) is None and last.catalog.find(key) is None:
            raise UndefinedTable(f'relation "{name}" does not exist', table=name)
        keys.add(key)
    return keys


def _encoded(name: str, key: Key | None) -> str:
    data = encode_columns([(name,)], [key])
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(cursor: str) -> tuple[str, Any]:
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        ((name,),), (key,) = decode_columns(data)
    except (ValueError, DataCorrupted):
        raise InvalidRequest("the cursor is none of ours") from None
    if not isinstance(name, str):
        raise InvalidRequest("the cursor is none of ours")
    return name, key

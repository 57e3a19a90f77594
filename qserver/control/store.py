"""The control database as the rest of the control plane sees it: rows out, changes in.

Changes are made one at a time. A change is: take the turn, read what it depends on, decide,
write in one SQL transaction. One process owns the control database, so a lock is all that
is needed for what was read to be still so; and were it not, the constraints of the tables would
refuse. Reads need no turn.

A change begins by looking whether the key of its caller is still good: it may have been revoked
while the caller waited for the turn, and must not leave a new key behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import trio

from qserver.control.records import Grant
from qserver.control.schema import migrate
from qserver.errors import DatabaseUnavailable, QueryCanceled, Unauthorized
from qserver.limits import CONTROL_SECONDS_MAX
from qserver.query.sql_database import Result, SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot

_PATIENCE_MS: Final = CONTROL_SECONDS_MAX * 1000


class Store:
    """Open it before anything else is asked of it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sql: SqlDatabase | None = None
        self.take_snapshot: Callable[[], Snapshot | None] = _not_started
        """The snapshot that every answer must know at least; None while the database recovers."""
        self._turn = trio.Lock()

    async def open(self, sql: SqlDatabase) -> None:
        await migrate(sql)
        self._sql = sql
        self.take_snapshot = sql.snapshots.take

    @property
    def sql(self) -> SqlDatabase:
        assert self._sql is not None, "the control plane is used before it was started"
        return self._sql

    def version(self) -> int | None:
        """Of that snapshot."""
        snapshot = self.take_snapshot()
        return None if snapshot is None else snapshot.version

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    def from_now(self, seconds: float) -> datetime:
        return self.now() + timedelta(seconds=seconds)

    async def read(self, sql: str, *parameters: Any) -> Result:
        try:
            return await self.sql.execute(sql, parameters, timeout_ms=_PATIENCE_MS)
        except QueryCanceled as late:
            raise _no_answer() from late

    async def rows(self, sql: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return (await self.read(sql, *parameters)).rows

    async def count(self, sql: str, *parameters: Any) -> int:
        ((count,),) = await self.rows(sql, *parameters)
        assert isinstance(count, int)
        return count

    async def write(self, *statements: Statement) -> None:
        """All of them or none. Only for one who has the turn, or whom nobody can disturb."""
        try:
            await self.sql.transaction(statements, timeout_ms=_PATIENCE_MS)
        except QueryCanceled as late:
            raise _no_answer() from late

    @asynccontextmanager
    async def changing(self, grant: Grant | None = None) -> AsyncIterator[None]:
        """The turn to change something; `grant` is who wants to, if it is not the plane itself."""
        async with self._turn:
            if grant is not None:
                await self._check_still_good(grant)
            yield

    async def _check_still_good(self, grant: Grant) -> None:
        good = await self.rows(
            "select 1 from keys where id = $1 and revoked_at is null"
            " and (expires_at is null or expires_at > $2)",
            grant.key_id,
            self.now(),
        )
        if good and grant.session_id is not None:
            good = await self.rows(
                "select 1 from sessions where id = $1 and expires_at > $2",
                grant.session_id,
                self.now(),
            )
        if not good:
            raise Unauthorized("the key or session was revoked or has expired meanwhile")

    def __repr__(self) -> str:
        return f"the control database at version {self.version()}"


def _not_started() -> Snapshot | None:
    raise AssertionError("the control plane is used before it was started")


def _no_answer() -> DatabaseUnavailable:
    return DatabaseUnavailable("the control database does not answer", hint="Try again.")

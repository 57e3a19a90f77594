"""The control database as the rest of the control plane sees it: rows out, changes in.

Changes are made one at a time: take the lock, read, decide, write in one SQL transaction. One
process owns the control database, so its lock is enough to keep what was read true; were it not,
the constraints of the tables would refuse. Reads need no lock.

    the owner's process      reads, changes and the lock are here; a change is answered when every
                             other process has applied it (`barrier`)
    any other process        has its own copy, which follows; it may be behind by what nobody was
                             told yet. Reads that decide something go to the owner, as changes do

A change first checks that its caller's key is still good: the key may have been revoked while the
caller waited for the lock, and must not leave a new key behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import trio

from qserver.cluster import RemoteLocks
from qserver.control.barrier import Barrier
from qserver.control.records import Grant
from qserver.control.schema import migrate
from qserver.errors import (
    ChangeUnconfirmed,
    CharacterNotInRepertoire,
    DatabaseMoved,
    DatabaseUnavailable,
    InvalidRequest,
    OutcomeUnknown,
    QueryCanceled,
    Unauthorized,
)
from qserver.limits import CONTROL_SECONDS_MAX
from qserver.query.sql_database import Result, SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot

LOCK: Final = "control"
AGAIN_SECONDS: Final = 0.05
_PATIENCE_MS: Final = CONTROL_SECONDS_MAX * 1000


class Source(Protocol):
    """Where changes are made, and reads that must see the newest of them."""

    async def read(self, sql: str, parameters: Sequence[Any]) -> Result:
        """Run a query."""

    async def write(self, statements: Sequence[Statement]) -> None:
        """Run statements as one transaction; return when every process has its effects."""

    def lock(self) -> AbstractAsyncContextManager[object]:
        """Take the lock, for one change."""


class Store:
    """Open it before any other use."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sql: SqlDatabase | None = None
        self.take_snapshot: Callable[[], Snapshot | None] = _not_started
        """Returns the snapshot that every answer must reflect; None while the database recovers."""
        self._source: Source | None = None
        self.gets_another = False
        """Whether this process will have another copy if this one is closed: it is a node that
        stays."""

    async def open(self, sql: SqlDatabase, locks: RemoteLocks, barrier: Barrier) -> OwnSource:
        """Begin with the control database itself, which this process owns."""
        await migrate(sql)
        source = OwnSource(sql, locks, barrier)
        self.follow(sql, source)
        return source

    def follow(self, sql: SqlDatabase, source: Source) -> None:
        """Begin with a copy that follows the source."""
        self._sql, self._source = sql, source
        self.take_snapshot = sql.snapshots.take

    @property
    def sql(self) -> SqlDatabase:
        assert self._sql is not None, "the control plane is used before it was started"
        return self._sql

    @property
    def source(self) -> Source:
        assert self._source is not None, "the control plane is used before it was started"
        return self._source

    def version(self) -> int | None:
        """The version of that snapshot."""
        snapshot = self.take_snapshot()
        return None if snapshot is None else snapshot.version

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    def from_now(self, seconds: float) -> datetime:
        return self.now() + timedelta(seconds=seconds)

    async def read_here(self, sql: str, *parameters: Any) -> Result:
        """Read what this process has: everything that anybody was told before.

        A node whose lease was ended, or that leads no more, waits until it has another copy.
        """
        until = trio.current_time() + CONTROL_SECONDS_MAX
        while True:
            try:
                with _errors():
                    return await self.sql.execute(sql, parameters, timeout_ms=_PATIENCE_MS)
            except (DatabaseMoved, DatabaseUnavailable):
                if not self.gets_another or trio.current_time() > until:
                    raise
            await trio.sleep(AGAIN_SECONDS)

    async def read(self, sql: str, *parameters: Any) -> Result:
        """Read the newest."""
        with _errors():
            return await self.source.read(sql, parameters)

    async def rows(self, sql: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return (await self.read(sql, *parameters)).rows

    async def count(self, sql: str, *parameters: Any) -> int:
        ((count,),) = await self.rows(sql, *parameters)
        assert isinstance(count, int)
        return count

    async def write(self, *statements: Statement) -> None:
        """Write all statements or none. The caller has the lock, or nothing can disturb it."""
        with _errors():
            try:
                await self.source.write(statements)
            except OutcomeUnknown as lost:
                raise ChangeUnconfirmed(
                    "the control database did not confirm the change",
                    hint="Look whether it is as you want it, and send it again if not.",
                ) from lost

    @asynccontextmanager
    async def changing(self, grant: Grant | None = None) -> AsyncIterator[None]:
        """Take the lock for a change; `grant` is the caller's, None for the plane itself."""
        async with self.source.lock():
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


class OwnSource:
    """The control database of this process, for all processes."""

    def __init__(self, sql: SqlDatabase, locks: RemoteLocks, barrier: Barrier) -> None:
        self._sql = sql
        self._locks = locks
        self._barrier = barrier

    async def read(self, sql: str, parameters: Sequence[Any]) -> Result:
        return await self._sql.execute(sql, parameters, timeout_ms=_PATIENCE_MS)

    async def write(self, statements: Sequence[Statement]) -> None:
        done = await self._sql.transaction(statements, timeout_ms=_PATIENCE_MS)
        await self._barrier.wait(done.version)

    def lock(self) -> AbstractAsyncContextManager[object]:
        return self._locks.hold(LOCK)

    def __repr__(self) -> str:
        return "the control database, owned here"


def _not_started() -> Snapshot | None:
    """Nothing may be shown yet."""
    return None


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors of statements into those of requests: the statements are ours."""
    try:
        yield
    except (QueryCanceled, OutcomeUnknown) as late:
        hint = "Try again."
        raise DatabaseUnavailable("the control database does not answer", hint=hint) from late
    except CharacterNotInRepertoire:
        raise InvalidRequest("a name has a NUL character, which no text can hold") from None

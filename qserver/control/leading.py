"""`control` for all processes: the leader's side and the followers'.

    process 0 (leader)                             process 1, 2, …
    OwnSource: control itself       ◄── read, write, lock ── LeaderSource
    records as they become durable  ══ stream ══►  FollowedDatabase ─► Access, on every request
    Barrier                         ◄══ applied ══

A process authenticates and looks up with its own copy. What decides a change is read where it is
made: at the leader, under its lock. A change is answered when all copies have it (`barrier`).

While the leader is away the others go on with what they have: nobody can change it. A leader that
has just begun answers no change before all others have begun to follow it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import trio

from qserver.cluster import HeldLock, Stream
from qserver.control.barrier import Barrier
from qserver.control.owners import Owners
from qserver.control.store import LOCK, OwnSource
from qserver.engine.database import Database
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.errors import QserverError
from qserver.limits import CONTROL_SECONDS_MAX
from qserver.query.results import Result
from qserver.query.sql_database import Statement

AGAIN_SECONDS: Final = 0.05
"""Before a follower asks the leader again."""


class Leader:
    """What the leader does for the others."""

    def __init__(
        self, owners: Owners, source: OwnSource, control: Database, barrier: Barrier
    ) -> None:
        self._source = source
        self._control = control
        self._barrier = barrier
        owners.answer("read_control", self.read)
        owners.answer("write_control", self.write)
        owners.answer("applied", self.applied)
        owners.streams["control"] = self.stream

    async def read(self, sql: str, parameters: list[Any]) -> list[Any]:
        """Return the version and the rows."""
        found = await self._source.read(sql, parameters)
        return [found.version, list(found.rows)]

    async def write(self, statements: list[list[Any]]) -> None:
        await self._source.write([Statement(sql, given) for sql, given in statements])

    async def applied(self, process: int, version: int) -> None:
        """Note what a process has applied."""
        self._barrier.applied(process, version)

    async def stream(
        self, back: Stream, process: int, version: int | None
    ) -> AsyncGenerator[Message, None]:
        """Yield `control` for a follower that has a version of it, or None."""
        following = self._barrier.begin(process)
        try:
            async with aclosing(records_after(self._control, version)) as messages:
                async for message in messages:
                    yield message
        finally:
            self._barrier.left(process, following)

    def __repr__(self) -> str:
        return f"the leader of {self._barrier!r}"


class LeaderSource:
    """The control database of the leader, for another process.

    What it reads this process's copy has, too, from then on: a database that is known to be deleted
    is not looked up there any more.
    """

    def __init__(self, owners: Owners, copy: FollowedDatabase) -> None:
        self._owners = owners
        self._copy = copy
        self._held: ContextVar[HeldLock | None] = ContextVar("held", default=None)

    async def read(self, sql: str, parameters: Sequence[Any]) -> Result:
        version, rows = await self._call("read_control", sql, list(parameters))
        await self._copy.wait_durable_snapshot(_soon(), version)
        return Result((), (), [tuple(row) for row in rows], 0, version)

    async def write(self, statements: Sequence[Statement]) -> None:
        plain = [[each.sql, list(each.parameters or ())] for each in statements]
        await self._call("write_control", plain)

    def lock(self) -> AbstractAsyncContextManager[object]:
        return self._locked()

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        owners = self._owners
        async with owners.links.lock(owners.leader, LOCK, deadline=_soon()) as held:
            before = self._held.set(held)
            try:
                yield
            finally:
                self._held.reset(before)

    async def _call(self, method: str, *arguments: Any) -> Any:
        held = self._held.get()
        if held is not None:
            return await held.call(method, arguments, deadline=_soon())
        owners = self._owners
        return await owners.links.call(owners.leader, method, arguments, deadline=_soon())

    def __repr__(self) -> str:
        return "the control database, owned by the leader"


async def follow_leader(
    owners: Owners,
    control: FollowedDatabase,
    report: Callable[[str, Exception], None],
    applied: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Follow `control` for ever, also through ends of the leader.

    `applied` is called before the leader is told that something was.
    """
    while True:
        leader = owners.leader
        try:
            asked = [owners.process, control.version]
            async with owners.links.follow(leader, "control", asked) as stream:
                await control.follow(_acknowledged(owners, leader, control, stream, applied))
        except DoesNotFollow as error:
            report("the copy of the control database begins anew", error)
        except QserverError:
            pass  # the leader is away
        await trio.sleep(AGAIN_SECONDS)


async def _acknowledged(
    owners: Owners,
    leader: int,
    control: FollowedDatabase,
    stream: Stream,
    applied: Callable[[], None],
) -> AsyncGenerator[Any, None]:
    """Yield messages; tell the leader when each was applied."""
    message: Any
    async for message in stream:
        yield message
        if message[0] != "pages":  # there is a version
            applied()
            told = [owners.process, control.version]
            await owners.links.call(leader, "applied", told, deadline=_soon())


def _soon() -> float:
    return trio.current_time() + CONTROL_SECONDS_MAX

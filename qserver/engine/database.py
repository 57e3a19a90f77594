"""A database: the supervisor of its actors, and the door to them.

    recover from the log ─► an incarnation lives ─► any actor dies ─► it falls ─┐
            ▲                                                                   │
            └─────────────── a pause that grows with each fall ◄────────────────┘

Durable state is the log and nothing else, so there is one way to begin and it is also the way to go
on after any failure. What recovery refuses (a damaged log, one of another release) is not
tried again: the database stays closed and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec
import trio

from qserver.durability.port import Log
from qserver.durability.recovery import recover
from qserver.engine.gateway import Gateway, GatewayStatistics, Outcome, read_view
from qserver.engine.incarnation import Incarnation, IncarnationStatistics
from qserver.engine.messages import Work
from qserver.engine.sequences import Sequences
from qserver.engine.world import World
from qserver.errors import DatabaseUnavailable, DataCorrupted, LogFailed, QueryCanceled
from qserver.limits import (
    RECOVERY_PAUSE_SECONDS_MAX,
    RECOVERY_PAUSE_SECONDS_MIN,
    RETRIES_DEFAULT,
    SHARDS_DEFAULT,
    SHARDS_MAX,
)
from qserver.storage.view import View


class State(Enum):
    RECOVERING = "recovering"
    OPEN = "open"
    REFUSED = "refused"
    CLOSED = "closed"


class DatabaseStatistics(msgspec.Struct, frozen=True):
    name: str
    state: str
    falls: int
    gateway: GatewayStatistics
    incarnation: IncarnationStatistics | None


class Database:
    """Start `run` in a nursery; `transact` and `read` wait until the database is open."""

    def __init__(
        self, log: Log, world: World, *, name: str = "main", shards: int = SHARDS_DEFAULT
    ) -> None:
        if not 1 <= shards <= SHARDS_MAX:
            raise ValueError(f"a database has 1 to {SHARDS_MAX} shards, not {shards}")
        self.name = name
        self.state = State.RECOVERING
        self.trouble: Exception | None = None
        """Why the database is not open, or why it last fell."""
        self._log = log
        self._world = world
        self._shards = shards
        self._incarnation: Incarnation | None = None
        self._changed = trio.Event()
        self._falls = 0
        self._gateway = Gateway(self._alive, world.chance)
        self.sequences = Sequences(self._gateway.transact)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled, through as many incarnations as it takes."""
        pause = RECOVERY_PAUSE_SECONDS_MIN
        started = _once(task_status.started)
        try:
            while True:
                began = trio.current_time()
                try:
                    await self._live(started)
                except DataCorrupted:
                    started()
                    await trio.sleep_forever()
                if trio.current_time() - began > RECOVERY_PAUSE_SECONDS_MAX:
                    pause = RECOVERY_PAUSE_SECONDS_MIN
                await trio.sleep(pause)
                pause = min(2 * pause, RECOVERY_PAUSE_SECONDS_MAX)
        finally:
            self._enter(State.CLOSED)

    async def _live(self, opened: Callable[[], None]) -> None:
        """Recover and run one incarnation; returns when it has fallen."""
        try:
            view = await recover(self._log, self._shards)
        except DataCorrupted as error:
            self.trouble = error
            self._world.report(f"database {self.name} cannot be opened", error)
            self._enter(State.REFUSED)
            raise
        except LogFailed as error:
            self.trouble = error
            self._world.report(f"database {self.name} cannot read its log", error)
            return
        incarnation = Incarnation(view, self._log, self._world)
        self._enter(State.OPEN, incarnation)
        opened()
        try:
            await incarnation.run()
        except* Exception as deaths:
            self._falls += 1
            self.trouble = deaths.exceptions[0]
            self._world.report(f"database {self.name} falls and recovers", self.trouble)
        finally:
            self._enter(State.RECOVERING)
            incarnation.fall()

    def _enter(self, state: State, incarnation: Incarnation | None = None) -> None:
        self.state = state
        self._incarnation = incarnation
        self._changed.set()
        self._changed = trio.Event()

    async def _alive(self) -> Incarnation:
        """The living incarnation, waited for while the database recovers."""
        while self._incarnation is None:
            if self.state in (State.REFUSED, State.CLOSED):
                raise DatabaseUnavailable(
                    f"database {self.name} is {self.state.value}",
                    detail=None if self.trouble is None else str(self.trouble),
                )
            await self._changed.wait()
        return self._incarnation

    # --- what one may ask of it ---

    async def transact(
        self,
        work: Work,
        *,
        max_retries: int = RETRIES_DEFAULT,
        deadline: float = float("inf"),
    ) -> Outcome:
        """Run work and commit what it writes; see `Gateway.transact`."""
        return await self._gateway.transact(work, max_retries=max_retries, deadline=deadline)

    async def read(self, work: Work, *, deadline: float = float("inf")) -> Outcome:
        """Run work that only reads, on the newest durable view."""
        return await self._gateway.read(work, deadline=deadline)

    def durable_view(self) -> View | None:
        """The newest durable view, without waiting; None while the database is not open."""
        incarnation = self._incarnation
        return None if incarnation is None else incarnation.published.durable

    async def wait_durable_view(self, deadline: float = float("inf")) -> View:
        """The newest durable view, waited for while the database recovers."""
        with trio.CancelScope(deadline=deadline):
            return (await self._alive()).published.durable
        raise QueryCanceled("canceling statement due to statement timeout")

    async def read_at(self, work: Work, *, version: int) -> Outcome:
        """Run work that only reads on a version that is still kept."""
        incarnation = await self._alive()
        view = incarnation.published.at_version(version)
        return Outcome(await read_view(view, work), view.version)

    async def view_at_time(self, time: float) -> View:
        """What was durable at a time, if that is still kept."""
        return (await self._alive()).published.at_time(time)

    def statistics(self) -> DatabaseStatistics:
        incarnation = self._incarnation
        return DatabaseStatistics(
            self.name,
            self.state.value,
            self._falls,
            self._gateway.statistics(),
            None if incarnation is None else incarnation.statistics(),
        )

    def __repr__(self) -> str:
        return f"database {self.name}, {self.state.value}, {self._falls} falls"


def _once(call: Callable[[], None]) -> Callable[[], None]:
    """The same call, of which only the first does anything."""
    calls = [call]

    def call_first() -> None:
        if calls:
            calls.pop()()

    return call_first

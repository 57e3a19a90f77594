"""A world and a log for tests: they do what the test says, when it says so.

`Laboratory` kills an actor on demand and notes every message; `HeldLog` holds its calls or fails
them. Both implement the engine's own protocols, so the engine cannot tell them from the real.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.port import Log, StoredRecord
from qserver.engine.batch import Batch
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.mailbox import Mailbox
from qserver.engine.world import World, compute_here
from qserver.errors import LogFailed
from tests.engine.counters import create


class Killed(Exception):
    """The test has killed the actor."""


class RecordingMailbox(Mailbox[Any]):
    """Passes on what it is sent, then tells."""

    def __init__(
        self,
        name: str,
        capacity: int,
        tell: Callable[[str, Any], None],
        passes_by: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(name, capacity)
        self._tell = tell
        self._passes_by = passes_by

    def may_pass_by(self) -> bool:
        return self._passes_by()

    def put_nowait(self, message: Any) -> None:
        super().put_nowait(message)
        self._tell(self.name, message)

    async def put(self, message: Any) -> None:
        await super().put(message)
        self._tell(self.name, message)

    def pass_by(self, message: Any) -> None:
        super().pass_by(message)
        self._tell(self.name, message)


class Pauses(Random):
    """Chance that is none: pauses of these lengths, then of none at all."""

    def __init__(self, *seconds: float) -> None:
        super().__init__(0)
        self._seconds = list(seconds)

    def uniform(self, a: float, b: float) -> float:
        return self._seconds.pop(0) if self._seconds else a


class Laboratory:
    """A world under the test's control. Its clock stands still until it is set."""

    def __init__(self, chance: Random | None = None) -> None:
        self.chance = chance or Random(0)
        self.time = 1000.0
        self.compute = compute_here
        self.batch = Batch()
        self.sent: list[tuple[str, Any]] = []
        self.reports: list[str] = []
        self.capacities: dict[str, int] = {}
        """Mailboxes that are smaller than the engine asks for."""
        self.deaths_are_quiet = False
        """Whether an actor that is killed simply comes to its end."""
        self.watch: Callable[[Any], None] = lambda message: None
        """Called for each message once it is sent."""
        self.passes_by = False
        """Whether an actor that is idle handles a message where it is sent."""
        self._deaths: dict[str, trio.Event] = {}

    def now(self) -> float:
        return self.time

    def mailbox(self, name: str, capacity: int) -> Mailbox[Any]:
        return RecordingMailbox(
            name, self.capacities.get(name, capacity), self._note, lambda: self.passes_by
        )

    def _note(self, name: str, message: Any) -> None:
        self.sent.append((name, message))
        self.watch(message)

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        death = self._deaths.setdefault(name, trio.Event())
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await death.wait()
                if not self.deaths_are_quiet:
                    raise Killed(name)
                nursery.cancel_scope.cancel()
        finally:
            del self._deaths[name]

    def report(self, text: str, error: Exception) -> None:
        self.reports.append(f"{text}: {error!r}")

    def kill(self, name: str) -> None:
        """Let an actor die at its next step, or at its first if it does not live now."""
        self._deaths.setdefault(name, trio.Event()).set()

    def names_sent(self) -> list[tuple[str, str]]:
        """To whom, and the kind of message."""
        return [(name, type(message).__name__) for name, message in self.sent]


class HeldLog(MemoryLog):
    """A log whose calls can be held and made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[int]] = []
        """The versions of each call to `append`, from when it began."""
        self.fails_before_append = self.fails_after_append = self.fails_read = False
        self._released = trio.Event()
        self._released.set()

    def hold(self) -> None:
        self._released = trio.Event()

    def release(self) -> None:
        self._released.set()

    async def append(self, records: Sequence[StoredRecord]) -> None:
        self.groups.append([version for version, _ in records])
        await self._released.wait()
        if self.fails_before_append:
            raise LogFailed("the disk is full")
        await super().append(records)
        if self.fails_after_append:
            raise LogFailed("the disk does not answer")

    async def read(self, after: int, most: int) -> list[StoredRecord]:
        if self.fails_read:
            raise LogFailed("the disk is away")
        return await super().read(after, most)

    def spoil(self, version: int) -> None:
        """Damage the record of a version."""
        data = bytearray(self._records[version])
        data[-1] ^= 1
        self._records[version] = bytes(data)

    @property
    def versions(self) -> int:
        """How many records are durable."""
        return self._last


@asynccontextmanager
async def opened(
    log: Log | None = None,
    world: World | None = None,
    shards: int = 4,
    counters: int = 0,
    policy: CheckpointPolicy | None = None,
    cache: PageCache | None = None,
) -> AsyncIterator[Database]:
    """A database that is open inside the block, and closed after it.

    With `counters`, that many are there; on a log that has them already, leave it 0.
    """
    database = Database(
        log or MemoryLog(), world or Laboratory(), shards=shards, policy=policy, cache=cache
    )
    # Where the clock jumps, this is how a deadlock shows; it is too long for any other clock.
    with trio.fail_after(10_000):
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            if counters:
                await database.transact(create(counters))
            yield database
            nursery.cancel_scope.cancel()


async def until_restarted(database: Database, restarts: int = 1) -> None:
    """Let others run until the database has restarted that often."""
    for _ in range(1000):
        if database.statistics().restarts >= restarts:
            return
        await trio.lowlevel.checkpoint()
    raise AssertionError(f"{database!r}, although it should have restarted")


class Observed:
    """A call that runs beside the test: what it came to, once it has."""

    def __init__(self, nursery: trio.Nursery, call: Callable[[], Awaitable[Any]]) -> None:
        self.outcomes: list[Any] = []
        nursery.start_soon(self._run, call)

    async def _run(self, call: Callable[[], Awaitable[Any]]) -> None:
        try:
            self.outcomes.append(await call())
        except Exception as error:
            self.outcomes.append(error)

    @property
    def outcome(self) -> Any:
        (outcome,) = self.outcomes
        return outcome

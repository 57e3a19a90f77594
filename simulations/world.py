"""The false world: the engine's `World`, with every choice made from one seed.

Messages inside one database are ordered and never lost, in production and here; so each is delayed
by its own random time, and never dropped, doubled or overtaken. A run's randomness lies in these
delays and in the disk, far more than in the order of the scheduler.

An actor dies at an await point: there `stand_at_await_point` cancels the scope that it runs in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import Any, Final

import trio
import trio.testing

from qserver.engine.batch import Batch
from qserver.engine.generation import ActorDied
from qserver.engine.mailbox import Reply
from qserver.engine.messages import ExclusiveCommit
from qserver.engine.world import compute_here
from qserver.errors import (
    Applied,
    DataCorrupted,
    LogFailed,
    LogTaken,
    OutcomeUnknown,
    OutOfMemory,
    PageUnreadable,
    QserverError,
    TooManyRequests,
)
from qserver.sql.vectors.loading import load
from qserver.storage.snapshot import Snapshot
from simulations.channels import DelayedMailbox
from simulations.faults import Faults, Profile
from simulations.observations import REQUEST
from simulations.pages import FickleCache, Published
from simulations.shelf import Shelf
from simulations.trace import Trace

ACTOR: Final[ContextVar[str]] = ContextVar("actor", default="world")
"""The swimlane of the current task."""

FIRST_MOMENT: Final = 1_700_000_000.0
"""The wall clock when a run begins."""

EXPLAINED: Final = (ActorDied, LogFailed, LogTaken, OutcomeUnknown, TooManyRequests)
"""Errors that the engine may report, because a fault causes them."""


class SimulatedWorld:
    """Clock, chance, channels and actors of one run, shared by all its processes."""

    def __init__(self, seed: int, profile: Profile, faults: Faults, trace: Trace) -> None:
        self.profile = profile
        self.faults = faults
        self.trace = trace
        self.chance = Random(f"engine {seed}")
        self.compute = compute_here
        self.batch = Batch()
        load()  # or the first run in a process would plan in other turns than the next
        self.delays = Random(f"delays {seed}")
        self.passing_by = self.delays.choice((0.0, 0.5, 1.0))
        """How likely an idle actor handles a message where it is sent."""
        self.ids = Random(f"ids {seed}")
        self.holding = Random(f"holding {seed}")
        self.following = Random(f"following {seed}")
        self.reading = Random(f"reading {seed}")
        self.arrivals = Random(f"arrivals {seed}")
        self.batching = self.arrivals.choice((0.0, 0.5, 1.0))
        """How likely a request is handled in a batch with others."""
        self.syncing_here = self.arrivals.choice((0.0, 0.5, 1.0))
        """How likely the disk syncs a group of a batch before `append` returns."""
        if profile.all_here:
            self.passing_by = self.batching = self.syncing_here = 1.0
        self.reached: dict[str, int] = {}
        self.unexpected: list[str] = []
        self.crash_wanted = trio.Event()
        self.successor_wanted = trio.Event()
        """Set when another process is to take over, though the present one has not ended."""
        self.two_publish = False
        """Whether two processes may publish the same version, of which only one becomes durable."""
        self.undecided = False
        """Whether a shard holds prepared parts that are not decided yet."""
        self.newest: Snapshot | None = None
        self.published: dict[int, Published] = {}
        """What the last published snapshot of each version said, of any process."""
        self.last_published = 0
        """The highest version that was published, by any process."""
        self.shelf = Shelf()
        """Where the pages of the one database are."""
        self.cache: FickleCache | None = None
        """The cache of the process that began last."""
        self.log_rested = True
        """Whether the log writer has waited for a message since its last group was synced."""
        self.exclusive: dict[str, ExclusiveCommit] = {}
        """The last exclusive commit that each request has asked for, by the request's name."""
        self.requests: dict[object, str] = {}
        """The name of a client's request by the reply that it waits for."""
        self.pages_torn = 0
        """How often bytes of a page were read that are not what was saved."""
        self.clock_errors = (0.0, 0.0)
        """How far the wall clock has been behind and ahead of time, at most."""
        self._clock_error = 0.0
        self._messages = 0
        self._actors: dict[str, trio.CancelScope] = {}

    # --- for the engine ---

    def now(self) -> float:
        if self.faults.strikes("clock_jumps"):
            error = self._clock_error = self.delays.uniform(-30.0, 30.0)
            behind, ahead = self.clock_errors
            self.clock_errors = (min(behind, error), max(ahead, error))
            self.record("fault", f"the wall clock is off by {self._clock_error:+.1f} s")
            self.reach("the wall clock jumped")
        if self.faults.strikes("work_slow"):
            self.record("fault", "the processor is busy")
            self.spend(self.delays.uniform(0.0, 0.1))
        return FIRST_MOMENT + trio.current_time() + self._clock_error

    def mailbox(self, name: str, capacity: int) -> DelayedMailbox:
        most = {
            "coordinator": self.profile.commits_waiting_most,
            "log": self.profile.rounds_unsynced_most,
        }
        return DelayedMailbox(self, name, min(capacity, most.get(name, capacity)))

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        ACTOR.set(name)
        self.record("start", f"{name} begins")
        with trio.CancelScope() as scope:
            self._actors[name] = scope
            try:
                await run()
            finally:
                self.record("stop", f"{name} ends")

    def report(self, text: str, error: Exception) -> None:
        self.record("recover", f"{text}: {error!r}", actor="world")
        damaged = isinstance(error, DataCorrupted) and self._has_damage(error)
        if not damaged and not isinstance(error, EXPLAINED):
            self.unexpected.append(f"{text}: {error!r}")

    # --- for the rest of the simulation ---

    def true_time(self) -> float:
        """Return what a wall clock would show that is never wrong."""
        return FIRST_MOMENT + trio.current_time()

    def explains(self, error: QserverError) -> bool:
        """Return whether a fault can be the reason of a request's error."""
        if isinstance(error, DataCorrupted):
            return self._has_damage(error)
        if isinstance(error, PageUnreadable):
            return True
        if isinstance(error, OutOfMemory):  # a transaction gets a share of the memory for pages
            return self.profile.cache_bytes < 1 << 30
        return error.applied is Applied.UNKNOWN or error.retryable

    def _has_damage(self, error: DataCorrupted) -> bool:
        """Return whether pages can look damaged: torn, or dropped by a successor that knows nothing
        of those who still read them here."""
        return self.pages_torn > 0 or (self.two_publish and "is missing" in str(error))

    async def stand_at_await_point(self) -> None:
        """Let the actor, which is about to wait, or the whole process die here."""
        self.let_pages_go()
        actor = ACTOR.get()
        if self.faults.strikes("actor_killed") and actor in self._actors:  # recovery is no actor
            self.record("kill", f"{actor} is killed")
            self.reach(f"{actor.split()[0]} killed")
            self._actors[actor].cancel()
        elif self.faults.strikes("process_crash"):
            self.record("fault", f"the process will crash while {actor} waits")
            self.crash_wanted.set()
        await trio.lowlevel.checkpoint()

    @contextmanager
    def without_faults(self) -> Iterator[None]:
        """Look around without being disturbed."""
        were_on, self.faults.on = self.faults.on, False
        try:
            yield
        finally:
            self.faults.on = were_on

    def let_pages_go(self) -> None:
        """Let go of pages here, at a moment when any may be gone."""
        if self.cache is not None and self.faults.strikes("pages_let_go"):
            gone = self.cache.evict_some(self.delays)
            self.record("fault", f"{gone} pages are let go")
            if gone:
                self.reach("pages were let go")

    def message_delay(self) -> float:
        if self.faults.strikes("message_slow"):
            self.record("fault", "a message is slow")
            return self.delays.uniform(0.0, 100 * self.profile.delay_seconds)
        return self.delays.expovariate(1.0) * self.profile.delay_seconds

    def next_message(self) -> int:
        self._messages += 1
        return self._messages

    def spend(self, seconds: float) -> None:
        """Let time pass while the current task runs, as for a processor that is busy."""
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        clock.jump(seconds)

    def has_exclusive_commit(self) -> bool:
        """Return whether the current request has an exclusive commit right now."""
        exclusive = self.exclusive.get(REQUEST.get())
        return (
            exclusive is not None
            and was_answered(exclusive.granted)
            and not was_answered(exclusive.returned)
        )

    def broke_off_exclusive_commit(self) -> bool:
        """Return whether the current request was granted an exclusive commit and returned none."""
        exclusive = self.exclusive.get(REQUEST.get())
        return (
            exclusive is not None
            and was_answered(exclusive.granted)
            and exclusive.returned.content is None
        )

    def end(self) -> None:
        """Let go of all pages: the collector does not see through them, and they lead back here."""
        self.newest = self.cache = None
        self.published.clear()

    def record(
        self, kind: str, text: str, *, actor: str | None = None, message: int | None = None
    ) -> None:
        self.trace.record(trio.current_time(), actor or ACTOR.get(), kind, text, message)

    def reach(self, point: str) -> None:
        """Note that a run reached a point that runs must sometimes reach."""
        self.reached[point] = self.reached.get(point, 0) + 1

    def __repr__(self) -> str:
        return f"a simulated world, profile {self.profile.name}, {len(self.trace)} events"


def was_answered(reply: Reply[Any]) -> bool:
    return reply.answered

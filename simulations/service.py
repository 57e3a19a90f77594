"""The simulated service: a process that crashes and starts again, and the clients' way to it.

    client ── transact, read ──► service ──► the process that runs now ──► Database on a DiskHandle
           ── ask_sql ────────►     │                                  ├──► SqlDatabase on that one
           ── ask_front ──────►     │                                  └──► the application on both
                                    │
                                    └── crash: handles die first, then all tasks of the process

A client of a crashed process learns nothing: its request ends in ConnectionLost, and its outcome is
unknown. Everything else is exactly what the engine answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

import trio

from qserver.engine.answer_sweeper import SweepPolicy, sweep_answers
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database, DatabaseState, DatabaseStatistics
from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.work import run
from qserver.errors import (
    Applied,
    DatabaseUnavailable,
    LogTaken,
    QserverError,
    SerializationFailure,
)
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from simulations.checkers.kept_history import KeptHistory
from simulations.disk import Disk, DiskHandle
from simulations.following import SimulatedFollower
from simulations.history import History, Operation, Status
from simulations.holding import hold_snapshots
from simulations.inspection import (
    disk_problems,
    leftovers,
    range_problems,
    reach_shapes,
    recovery_problems,
    snapshot_problems,
    waiting_problems,
)
from simulations.observations import REQUEST
from simulations.pages import FickleCache
from simulations.web.exchange import ConnectionLost
from simulations.web.front import Front
from simulations.world import ACTOR, SimulatedWorld

SWEEPS: Final = SweepPolicy(seconds=0.05, at_once=3, pause=0.002)

SECONDS_TO_REST: Final = 2.0
"""After this long without a request nothing is under way in a process any more."""

LOOKS_AT_REST: Final = 3
SECONDS_BETWEEN_LOOKS: Final = 0.1
"""But for the service's own work, which has ended at one of these looks."""

Answer = TypeVar("Answer")
Operations: TypeAlias = tuple[Operation, ...]
Seen: TypeAlias = Callable[[Any], Operations]


def nothing(result: Any) -> Operations:
    return ()


class Service:
    def __init__(self, world: SimulatedWorld, disk: Disk) -> None:
        self.world = world
        self.disk = disk
        self.history = History()
        self.problems: list[str] = []
        """What was wrong with the data, or with a process at rest."""
        self.crashes = 0
        self.kept = KeptHistory(world, world.profile.history)
        self._requests: dict[int, trio.CancelScope] = {}
        self._other_numbers = count(1_000_000)
        self._process: trio.CancelScope | None = None
        self._handle: DiskHandle | None = None
        self._replaced: list[tuple[trio.CancelScope, DiskHandle]] = []
        """Processes that go on although another has taken over."""
        self._database: Database | None = None
        self._front: Front | None = None
        """The front of the database that clients use."""
        self._newest_front: Front | None = None
        self._up = trio.Event()
        self._recovered = trio.Event()
        self.follower: SimulatedFollower | None = None
        if world.profile.follows:
            self.follower = SimulatedFollower(world, disk, lambda: self._database, self.problems)

    async def run(self) -> None:
        """Run processes, one after the other; each until it crashes, or another takes over."""
        async with trio.open_nursery() as processes:
            if self.follower is not None:
                processes.start_soon(self.follower.run)
            while True:
                self._handle = self.disk.connect()
                database = self._new_database(self._handle)
                self._process, over = trio.CancelScope(), trio.Event()
                processes.start_soon(self._run_process, database, self._process, over)
                await over.wait()
                await trio.sleep(self.world.delays.uniform(0.0, 0.05))

    def _serve(self, database: Database) -> None:
        """Direct clients to the newest process from here on."""
        self._database, self._front = database, self._newest_front
        if self.follower is not None:
            self.follower.own(database)
        database.keep_history(self.kept.seconds)  # it may have changed since the process began

    async def _run_process(
        self, database: Database, process: trio.CancelScope, over: trio.Event
    ) -> None:
        with process:
            async with trio.open_nursery() as nursery:
                # Plans and leases die with their process.
                self._newest_front = Front(self.world, database, nursery, self.problems)
                if not self._replaced:  # else clients stay with the one before until it is fenced
                    self._serve(database)
                self._up.set()
                nursery.start_soon(database.run)
                nursery.start_soon(self._crash_when_wanted, process)
                nursery.start_soon(self._step_aside_when_wanted, database, process, over)
                nursery.start_soon(self._inspect, database)
                nursery.start_soon(sweep_answers, database, self.world, SWEEPS)
                if self.world.profile.holds:
                    nursery.start_soon(
                        hold_snapshots, self.world, database, self.world.holding, self.problems
                    )
        over.set()

    async def _step_aside_when_wanted(
        self, database: Database, process: trio.CancelScope, over: trio.Event
    ) -> None:
        """Let another process take over, and go on as if nothing had happened."""
        await self.world.successor_wanted.wait()
        self.world.successor_wanted = trio.Event()
        assert self._handle is not None
        if database is self._database and not process.cancel_called:
            self.world.reach("another process took over the log")
            self._replaced.append((process, self._handle))
            self.world.two_publish = True
            over.set()

    def _new_database(self, handle: DiskHandle) -> Database:
        profile = self.world.profile
        policy = CheckpointPolicy(
            profile.checkpoint_log_bytes,
            profile.checkpoint_seconds,
            profile.checkpoint_pages_at_once,
            history=self.kept.seconds,
        )
        self._recovered = trio.Event()

        def recovered() -> None:
            if handle is self._handle:
                if self._database is not database:
                    self._serve(database)
                self._recovered.set()

        self.world.cache = FickleCache(profile.cache_bytes)
        database = Database(
            handle,
            self.world,
            shards=profile.shards,
            policy=policy,
            cache=self.world.cache,
            after_recovery=recovered,
        )
        handle.is_serving = lambda: database.state is DatabaseState.OPEN
        return database

    async def _inspect(self, database: Database) -> None:
        """Inspect each recovered snapshot."""
        # The database may end before this task does, or has said why.
        with suppress(DatabaseUnavailable, LogTaken):
            while True:
                await self._recovered.wait()
                if database is not self._database:
                    return  # another process has recovered
                self._recovered = trio.Event()
                snapshot = await database.wait_durable_snapshot()
                self._look_at(snapshot, "recovered")
                self._compare_with_published(snapshot)
                del snapshot  # or its pages could not be forgotten

    def _look_at(self, snapshot: Snapshot, when: str) -> None:
        with self.world.without_faults():
            self.problems += [f"{when}: {problem}" for problem in snapshot_problems(snapshot)]
        reach_shapes(self.world, snapshot)

    def _compare_with_published(self, snapshot: Snapshot) -> None:
        published = self.world.published.get(snapshot.version)
        if published is not None:
            with self.world.without_faults():
                found = recovery_problems(snapshot, published)
            self.problems += [f"recovered version {snapshot.version}: {each}" for each in found]
            self.world.reach("a snapshot was recovered that had been published")

    def _look_at_memory(self, when: str) -> None:
        """Inspect the newest snapshot of the current process."""
        generation: Any = None if self._database is None else self._database._generation
        if generation is not None:
            with suppress(LogTaken):  # a process that has lost its log can load no pages
                self._look_at(generation.versions.newest, when)

    async def rest(self) -> None:
        """Let the current process come to rest, and check that nothing is left over in it."""
        resting = None
        while resting is not self._database:  # else a successor has taken over in between
            resting = await self._living()
            await trio.sleep(SECONDS_TO_REST)
        self._look_at_memory("at rest")
        left = self._left_over()
        for _ in range(LOOKS_AT_REST):
            if not left:  # else the service's own work may be under way, such as a sweep
                break
            await trio.sleep(SECONDS_BETWEEN_LOOKS)
            left = self._left_over()
        self.problems += [f"at rest: {each}" for each in left]

    def _left_over(self) -> list[str]:
        assert self._database is not None and self._front is not None
        streams = 0 if self.follower is None else self.follower.links
        left = [
            *leftovers(self._database.statistics(), streams),
            *waiting_problems(self._database),
            *range_problems(self._database),
            *self._front.leftovers(),
        ]
        if self.follower is not None:
            left += self.follower.problems_at_rest(self._database)
        if self._requests:
            left.append(f"{len(self._requests)} requests have not ended")
        return left

    async def _living(self) -> Database:
        """Return the database once a generation of it lives, through a crash on its way already."""
        while True:
            await self._up.wait()
            database = self._database
            assert database is not None
            try:
                await database.transact(lambda transaction: None)
            except (DatabaseUnavailable, LogTaken):
                if database.state is not DatabaseState.CLOSED and not self._replaced:
                    raise
                await trio.sleep(SECONDS_TO_REST)
            else:
                return database

    async def tidy_up(self) -> None:
        """Take a last checkpoint, and check that the disk holds nothing that it does not need."""
        await self._living()
        assert self._database is not None
        self.world.exclusive.clear()  # they have the snapshots that were granted
        asked = self.world.true_time()
        if self.kept.seconds:  # else what is kept for the next reader must go by itself
            self._database.history.yield_memory()
        await self._database.checkpoint()
        self.problems += disk_problems(self.disk, self.kept.gone_before(asked))
        self._look_at(await self._database.wait_durable_snapshot(), "at the end")

    async def _crash_when_wanted(self, process: trio.CancelScope) -> None:
        await self.world.crash_wanted.wait()
        # Else it has crashed at this very moment, or another has taken over.
        if process is self._process and not process.cancel_called:
            self.crash()
        await trio.sleep_forever()

    def crash(self, *, lose_all: bool = False) -> None:
        """Crash the process now; its unsynced writes may be lost."""
        world = self.world
        assert self._handle is not None and self._process is not None
        self.crashes += 1
        self._look_at_memory("before a crash")
        world.crash_wanted = trio.Event()
        world.record("crash", "the process crashes", actor="world")
        world.reach("the process crashed")
        if world.undecided:
            world.reach("the process crashed between prepare and decision")
        world.undecided = False
        for replaced, handle in self._replaced:  # the machine is gone, with all that run on it
            handle.die()
            replaced.cancel()
        self._replaced.clear()
        world.two_publish = False
        self.disk.crash(self._handle, lose_all=lose_all)
        if self._up.is_set():  # else a client may wait already for the next process
            self._up = trio.Event()
        self._process.cancel()
        if self.follower is not None:
            self.follower.cut()
        for request in list(self._requests.values()):
            request.cancel()

    async def transact(
        self, work: Work, intended: Operations = (), seen: Seen = nothing, **options: Any
    ) -> Outcome:
        """Run work; `intended` is what it would write, `seen` turns its result into operations."""
        options.setdefault("max_retries", self.world.profile.max_retries)
        return await self._noted(
            lambda database: database.transact(work, **options), intended, seen
        )

    async def read(self, work: Work, seen: Seen = nothing) -> Outcome:
        """Run work that writes nothing on the newest durable snapshot."""

        async def send(database: Database) -> Outcome:
            snapshot = await database.wait_durable_snapshot()
            return Outcome(await run(work(Transaction(snapshot))), snapshot.version)

        return await self._noted(send, (), seen)

    async def ask_sql(self, send: Callable[[SqlDatabase], Awaitable[Outcome]]) -> Outcome:
        async def send_on(_: Database) -> Outcome:
            assert self._front is not None
            return await send(self._front.sql)

        return await self._noted(send_on, (), nothing)

    async def ask_front(self, send: Callable[[Front], Awaitable[Outcome]]) -> Outcome:
        async def send_on(_: Database) -> Outcome:
            assert self._front is not None
            return await send(self._front)

        return await self._noted(send_on, (), nothing)

    async def repeat(self, send: Callable[[Front], Awaitable[Answer]]) -> Answer:
        """Ask the front for what may have been answered before, at an older version."""

        async def send_on(_: Database) -> Answer:
            assert self._front is not None
            return await send(self._front)

        return await self._request(send_on, self._next_number())  # type: ignore[no-any-return]

    async def take_numbers(self, sequence: Sequence, count: int) -> list[int]:
        return await self._request(  # type: ignore[no-any-return]
            lambda database: database.sequences.take(sequence, count), self._next_number()
        )

    async def _noted(
        self, send: Callable[[Database], Awaitable[Any]], intended: Operations, seen: Seen
    ) -> Outcome:
        """Send a request, and note it and its outcome in the history."""
        number = self.history.begin(ACTOR.get(), intended)
        try:
            outcome: Outcome = await self._request(send, number)
        except QserverError as error:
            unknown = error.applied is Applied.UNKNOWN
            status = Status.UNKNOWN if unknown else Status.FAILED
            self.history.end(number, status, intended)
            raise
        self.history.end(number, Status.OK, seen(outcome.result), outcome.version)
        return outcome

    async def _request(self, send: Callable[[Database], Awaitable[Any]], number: int) -> Any:
        world = self.world
        up = None
        while up is not self._up:  # else the process has crashed at this very moment
            up = self._up
            await up.wait()
        database = self._database
        assert database is not None
        REQUEST.set(f"T{number}")
        world.record("begin", f"T{number} begins")
        with trio.CancelScope() as scope:
            self._requests[number] = scope
            try:
                outcome = await self._sent(send, database)
            except QserverError as error:
                self._record_error(number, error)
                raise
            finally:
                del self._requests[number]
        if scope.cancelled_caught:
            world.record("unknown", f"T{number} lost its connection")
            world.reach("an outcome was unknown")
            raise ConnectionLost("the process crashed")
        if isinstance(outcome, Outcome):
            if self.follower is not None:
                self.follower.answered(outcome.version)
            if outcome.retries > 1:
                world.reach("a conflict went back to the gateway")
            world.record(
                "commit", f"T{number} ends at version {outcome.version}, {outcome.retries} retries"
            )
        return outcome

    async def _sent(self, send: Callable[[Database], Awaitable[Any]], database: Database) -> Any:
        """Send a request; resend it to the new owner if the process has lost its log."""
        while True:
            try:
                return await send(database)
            except LogTaken:
                while database is self._database:  # the other has the log, and not yet all of it
                    if not self._replaced:
                        raise
                    await trio.sleep(self.world.delays.uniform(0.0, 0.01))
                self.world.reach("a request was run again by the next owner of the log")
                assert self._database is not None
                database = self._database

    def _record_error(self, number: int, error: QserverError) -> None:
        world = self.world
        if error.applied is Applied.UNKNOWN:
            world.record("unknown", f"T{number}: {error}")
            world.reach("an outcome was unknown")
        else:
            kind = "conflict" if isinstance(error, SerializationFailure) else "fail"
            world.record(kind, f"T{number}: {error}")

    def _next_number(self) -> int:
        """Return a number outside the history's, for a request that is no transaction."""
        return next(self._other_numbers)

    def keep_history(self, seconds: float) -> None:
        """Keep older versions for so long from now on, whatever crashes."""
        self.kept.change(seconds)
        if self._database is not None:
            self._database.keep_history(seconds)

    async def statistics(self) -> DatabaseStatistics:
        await self._up.wait()
        assert self._database is not None
        return self._database.statistics()

    def __repr__(self) -> str:
        return f"the service of {ACTOR.get()}, {self.crashes} crashes"

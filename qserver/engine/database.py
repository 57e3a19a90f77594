"""A database: supervises its actors, and is the entry to them.

    recover from the log ─► pause ─► a generation lives ─► an actor dies ─► it ends ──┐
            ▲             (none at the start, then longer with each restart)          │
            └─────────────────────────────────────────────────────────────────────────┘

Durable state is the log and its checkpoints and nothing else, so a start and a restart after any
failure are the same procedure. If recovery refuses the log (damaged, or of another release), the
database stays closed and says why. If another process has taken over the log, the database ends at
once and shows nothing more.

Reads are served from the recovered snapshot at once, also during the pause. So while a full disk
makes every commit fail, readers hardly notice.

There is one short cut. If the log failed, no actor is to blame, and the last durable snapshot
equals the log up to its version, so recovery reads only the records behind it. Readers wait for
that, because a commit that was under way may be behind it. If the log cannot be read either, the
disk is away for longer, and reads are served from the last durable snapshot: it has every
acknowledged commit. The outcomes of commits that were under way are reported later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any, NoReturn

import msgspec
import trio

from qserver.durability.handing_over import Handover, take_over
from qserver.durability.kept import KeptCheckpoint
from qserver.durability.page_cache import PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log, StoredRecord
from qserver.durability.recovery import (
    CheckpointOvertaken,
    Recovered,
    has_checkpoints_of,
    recover,
    recover_from,
)
from qserver.durability.saved_pages import SavedPages
from qserver.engine.advisory_locks import AdvisoryLocks
from qserver.engine.catch_up import LogCatchUp
from qserver.engine.channels import Channels
from qserver.engine.checkpointer import Checkpointer, CheckpointPolicy
from qserver.engine.deletable import Deletable
from qserver.engine.feed import Feed
from qserver.engine.freshness import FreshSnapshots
from qserver.engine.gateway import Gateway, GatewayStatistics, Outcome
from qserver.engine.generation import Generation, GenerationStatistics
from qserver.engine.history import AsOf, History, HistoryStatistics
from qserver.engine.messages import Work
from qserver.engine.observers import Observer
from qserver.engine.sequences import Sequences
from qserver.engine.snapshot_source import NO_VERSION, SnapshotSource
from qserver.engine.version_restore import restore_version
from qserver.engine.versions import EngineRestarted
from qserver.engine.watches import Watches, WatchesStatistics
from qserver.engine.work import FOREVER, Step, before, run
from qserver.engine.world import World
from qserver.errors import (
    DatabaseUnavailable,
    DataCorrupted,
    DataInUse,
    LogFailed,
    LogTaken,
    SerializationFailure,
    first_of,
)
from qserver.limits import (
    RECOVERY_PAUSE_SECONDS_MAX,
    RECOVERY_PAUSE_SECONDS_MIN,
    RETRIES_DEFAULT,
    SHARDS_DEFAULT,
    SHARDS_MAX,
    TRANSACTION_MEMORY_BYTES_MAX,
)
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction


class DatabaseState(Enum):
    RECOVERING = "recovering"
    OPEN = "open"
    REFUSED = "refused"
    TAKEN = "taken"
    CLOSED = "closed"


class DatabaseStatistics(msgspec.Struct, frozen=True):
    name: str
    state: str
    restarts: int
    gateway: GatewayStatistics
    generation: GenerationStatistics | None
    log_failed: bool
    """Whether it restarted because the log failed, and has written nothing since."""
    page_loads: int
    """Pages that were read because a statement wanted them."""
    pages_trouble: str | None
    """Why a page could not be read, until one could; damage stays."""
    watches: WatchesStatistics = WatchesStatistics(0, 0)
    history: HistoryStatistics | None = None
    """What history takes; None while the database is not open."""


class Database(FreshSnapshots, Deletable):
    """Start `run` in a nursery; `transact` and `wait_durable_snapshot` wait for it to open.

    `after_recovery` is called when recovery has ended and no work runs yet: the moment to exempt
    what is in memory from the cyclic collector (`gc.freeze`), which would scan it and find nothing.
    """

    def __init__(
        self,
        log: Log,
        world: World,
        *,
        name: str = "main",
        shards: int = SHARDS_DEFAULT,
        policy: CheckpointPolicy | None = None,
        cache: PageCache | None = None,
        after_recovery: Callable[[], object] = lambda: None,
        handover: Handover | None = None,
        followed: Recovered | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """`handover`: what a new branch begins with; `followed`: what a `warm_replica` has left."""
        if not 1 <= shards <= SHARDS_MAX:
            raise ValueError(f"a database has 1 to {SHARDS_MAX} shards, not {shards}")
        self.name = name
        self.state = DatabaseState.RECOVERING
        self.trouble: Exception | None = None
        """Why the database is not open, or why it last restarted."""
        self._log = log
        self._world = world
        self._shards = shards
        self._policy = policy or CheckpointPolicy()
        store = LoggedPages(log, cache) if followed is None else followed.saved.store
        self.pages = store.move_to(log, world.report)
        self._after_recovery = after_recovery
        self._life = trio.CancelScope()
        self._handover = handover
        self._followed = followed
        self._known: Recovered | None = None
        """What the log is known to hold, after it has failed."""
        self.snapshots = SnapshotSource()
        self.watches = Watches(self.snapshots)
        self.feed = Feed(self.snapshots)
        self.channels = Channels()
        self.advisory_locks = AdvisoryLocks()
        self._observers: tuple[Observer, ...] = (self.watches, self.feed, *observers)
        self._generation: Generation | None = None
        self._changed = trio.Event()
        self._restarts = 0
        self._gateway = Gateway(self._alive, lambda: self._generation, self.snapshots, world.chance)
        self.sequences = Sequences(self.transact, self.newest_catalog)
        self.history = History(
            log,
            self.pages,
            world.now,
            self._saved_pages,
            self._published_until,
            self._policy.history,
        )
        self.catch_up = LogCatchUp(
            self.history.read,
            self.history.snapshot_at,
            self.feed.newest,
            self.history.note_grown,
            self.history.keep,
        )
        """The versions that readers of the feed have missed."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run generations, one after the other, until closed or cancelled."""
        try:
            with self._life:
                await self._live_on(_once(task_status.started))
        finally:
            self._enter(DatabaseState.CLOSED)
            self.channels.end()
            self.history.close()
            self.pages.close()

    async def _live_on(self, started: Callable[[], None]) -> NoReturn:
        pause = 0.0
        while True:
            began = trio.current_time()
            try:
                generation = await self._recover()
            except (DataCorrupted, LogTaken):
                started()
                await trio.sleep_forever()
            if pause:
                await trio.sleep(pause)
            if generation is not None:
                await self._live(generation, started)
            if self.state is DatabaseState.TAKEN:
                await trio.sleep_forever()
            if trio.current_time() - began > pause + RECOVERY_PAUSE_SECONDS_MAX:
                pause = 0.0
            pause = min(max(2 * pause, RECOVERY_PAUSE_SECONDS_MIN), RECOVERY_PAUSE_SECONDS_MAX)

    async def _recovered(self) -> Recovered:
        handover, self._handover = self._handover, None
        if handover is not None and handover.snapshot.shards == self._shards:
            with suppress(CheckpointOvertaken):
                return await take_over(handover, self._log, self.pages)
        known, self._followed = self._followed or self._known, None
        if known is not None and (
            known is self._known or await has_checkpoints_of(self._log, known.saved)
        ):
            with suppress(CheckpointOvertaken):
                return await recover_from(known, self._log, may_save=True)
        return await recover(self._log, self._shards, self.pages, may_save=True)

    async def _recover(self) -> Generation | None:
        """Return a generation that begins with what the log holds; None if it cannot be read now.

        Nothing else keeps the recovered snapshot: while it is alive, its pages are not forgotten.
        """
        try:
            recovered = await self._recovered()
        except DataCorrupted as error:
            self.trouble = error
            self._world.report(f"database {self.name} cannot be opened", error)
            self._enter(DatabaseState.REFUSED)
            raise
        except LogTaken as error:
            self._end(error)
            raise
        except (LogFailed, DataInUse) as error:
            self.trouble = error
            self._world.report(f"database {self.name} cannot read its log", error)
            if self._known is not None and isinstance(error, LogFailed):
                self.snapshots.show(self._known.snapshot)
                self._tell()
            return None
        self._after_recovery()
        if self._known is not None:  # it was shown, and more may have been in the log
            for observer in self._observers:
                observer.restarting(self._known.snapshot)
        self._known = None
        self.channels.recovered(recovered.snapshot.version)
        self.snapshots.show(recovered.snapshot)
        self._tell()
        return Generation(
            recovered,
            self._log,
            self._world,
            self.snapshots,
            self._policy,
            self._end,
            self._observers,
            self.channels,
        )

    async def _live(self, generation: Generation, opened: Callable[[], None]) -> None:
        generation.checkpointer.history = self.history.seconds  # it may have changed meanwhile
        self._enter(DatabaseState.OPEN, generation)
        opened()
        try:
            await generation.run()
        except* Exception as deaths:
            self._restarts += 1
            if self.state is not DatabaseState.TAKEN:
                self.trouble = first_of(deaths)
                if deaths.split(LogFailed)[1] is None:
                    self._known = generation.known()
                self._world.report(f"database {self.name} restarts", self.trouble)
        finally:
            for observer in self._observers:
                observer.restarting(generation.versions.durable)
            if self.state is not DatabaseState.TAKEN:
                self._enter(DatabaseState.RECOVERING)
            generation.end()

    def _end(self, taken: LogTaken) -> None:
        """Show nothing from now on: another process writes the database."""
        if self.state is not DatabaseState.TAKEN:
            self.trouble = taken
            self._world.report(f"database {self.name} ends: its log was taken over", taken)
            self._enter(DatabaseState.TAKEN)
            self.channels.end()
            self.snapshots.announce(NO_VERSION)

    def _enter(self, state: DatabaseState, generation: Generation | None = None) -> None:
        self.state = state
        self._generation = generation
        if generation is None:
            self.snapshots.shut()
        else:
            self.snapshots.follow(generation.versions)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        for observer in self._observers:
            observer.changed()

    async def _alive(self) -> Generation:
        """Return the living generation; wait for it while the database recovers."""
        while self._generation is None:
            await self._wait_for_change()
        return self._generation

    async def _snapshot(self, version: int) -> Snapshot:
        """Return the newest durable snapshot; wait while it is unknown or older than `version`."""
        while (snapshot := self.snapshots.take()) is None or snapshot.version < version:
            self.snapshots.check_guard()
            is_known = snapshot is not None
            del snapshot  # or its pages could not be forgotten while this waits
            if not is_known or self._generation is None:
                await self._wait_for_change()
            else:
                with suppress(EngineRestarted):
                    await self._generation.versions.wait_durable(version)
        return snapshot

    async def _wait_for_change(self) -> None:
        self.check_not_deleted(self.name)
        if isinstance(self.trouble, LogTaken):
            raise self.trouble.again()
        if self.state in (DatabaseState.REFUSED, DatabaseState.CLOSED):
            raise DatabaseUnavailable(
                f"database {self.name} is {self.state.value}",
                detail=None if self.trouble is None else str(self.trouble),
            )
        await self._changed.wait()

    # --- public operations ---

    @property
    def writer(self) -> Database:
        """The database that takes the writes: this one."""
        return self

    async def transact(
        self,
        work: Work,
        *,
        max_retries: int = RETRIES_DEFAULT,
        deadline: float = FOREVER,
        request_id: str | None = None,
    ) -> Outcome:
        """Run work and commit its writes; see `Gateway.transact`."""
        steps = self.transacting(work, max_retries, deadline, False, request_id)
        return await run(steps)  # type: ignore[no-any-return]

    def transacting(
        self,
        work: Work,
        max_retries: int,
        deadline: float,
        untried: bool,
        request_id: str | None = None,
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of `transact`, as part of other work."""
        return self._gateway.transact(work, max_retries, deadline, untried, None, request_id)

    def committing(
        self, transaction: Transaction, deadline: float, request_id: str | None = None
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of the commit of a transaction that has run, as it is."""
        return self._gateway.transact(_nothing, 0, deadline, False, transaction, request_id)

    async def explain(self, error: SerializationFailure) -> None:
        """Add to a conflict which request changed what was read, if that is known."""
        if self._generation is not None:
            await self._generation.explain(error)

    async def check_kept(self, version: int) -> None:
        """Raise HistoryTooOld if the database has a history, and the version is older."""
        if self.history.seconds:
            await self.history.check_kept(version)

    @property
    def log(self) -> Log:
        """The log, to read from; only the database's own actors write it."""
        return self._log

    @property
    def page_cache(self) -> PageCache:
        return self.pages.cache

    def newest_catalog(self) -> Catalog | None:
        """Return the newest catalog, durable or not; None if it is unknown."""
        snapshot = self.snapshots.take(newest=True)
        return None if snapshot is None else snapshot.catalog

    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        """Return the newest durable snapshot; wait until its version is at least `version`."""
        return await before(deadline, self._snapshot, version)  # type: ignore[no-any-return]

    async def snapshot_at(self, as_of: AsOf, deadline: float = FOREVER) -> Snapshot:
        """Return the snapshot at a version or a time, see `History.snapshot_at`."""
        snapshot: Snapshot = await before(deadline, self.history.snapshot_at, as_of)
        return snapshot

    async def version_at(self, as_of: AsOf, deadline: float = FOREVER) -> int:
        """Return the version that is meant, without making its snapshot."""
        version: int = await before(deadline, self.history.version_of, as_of)
        return version

    async def restore_version(
        self,
        as_of: AsOf,
        deadline: float = FOREVER,
        request_id: str | None = None,
        check: Callable[[Transaction], None] | None = None,
    ) -> tuple[int, int]:
        """Commit the contents of an older version as a new one; return the new version and the old.

        `check` raises if the database is not one to be restored: nothing that it looks at changes
        before the commit. Raises OutOfMemory if too much has changed since.
        """
        old = await self.snapshot_at(as_of, deadline)
        most = min(TRANSACTION_MEMORY_BYTES_MAX, self.page_cache.most // 2)
        work = partial(restore_version, old, most, check)
        outcome = await self.transact(work, deadline=deadline, request_id=request_id)
        return outcome.version, old.version

    def keep_history(self, seconds: float) -> None:
        """Keep older versions for so long from now on; versions that are too old go soon."""
        self._policy = msgspec.structs.replace(self._policy, history=seconds)
        self.history.seconds = seconds
        if self._generation is not None:
            self._generation.checkpointer.history = seconds
            self._generation.checkpointer.save_soon()

    def recent_records(self, after: int) -> list[StoredRecord]:
        """Return the records after a version, durable or not; none if memory lacks the first."""
        return [] if self._generation is None else self._generation.recent_after(after)

    async def oldest_version(self) -> int:
        """Return the first version that the log can rebuild."""
        return await self.history.oldest()

    async def _saved_pages(self) -> SavedPages:
        generation = await self._alive()
        return await generation.checkpointer.settled()

    async def _published_until(self, time: float) -> Snapshot:
        """Return the newest durable snapshot, once everything published by then is durable."""
        newest, generation = self.snapshots.take(newest=True), self._generation
        if newest is not None and newest.time <= time and generation is not None:
            version = newest.version
            del newest  # or its pages could not be forgotten while this waits
            with suppress(EngineRestarted):  # what is not durable then never will be
                await generation.versions.wait_durable(version)
        return await self._snapshot(0)

    def _history_statistics(self) -> HistoryStatistics | None:
        if self._generation is None:
            return None
        checkpointer = self._generation.checkpointer
        return self.history.statistics(checkpointer.saved, checkpointer.logged)

    async def checkpoint(self) -> None:
        """Return when a checkpoint has everything durable now; raise LogFailed if that fails."""
        await self._by_checkpointer(Checkpointer.save_now)

    async def make_room_for_branch(self) -> None:
        """Save what no checkpoint has, if memory has no room for a second database with it.

        If that fails, all stays as it is.
        """
        generation = await self._alive()
        with suppress(LogFailed, DataCorrupted, EngineRestarted):
            await generation.checkpointer.make_room_for_branch()

    def hand_over(self, snapshot: Snapshot, kept: KeptCheckpoint) -> Handover:
        """Return what a branch begins with that shares a checkpoint and borrows the log since."""
        logged = 0 if self._generation is None else self._generation.checkpointer.logged
        return Handover(snapshot, kept.last_page, logged, self.pages.copied)

    async def pin_checkpoint(self, name: str, version: int) -> KeptCheckpoint | None:
        """Keep the checkpoint from which a version can be rebuilt, see `Checkpointer.pin`."""
        generation = await self._alive()
        return await generation.checkpointer.pin(name, version)

    @property
    def held_by(self) -> list[str]:
        """The branches to which records are lent that nobody else needs."""
        return [] if self._generation is None else self._generation.checkpointer.held_by

    async def stop_borrowing(self) -> None:
        """Return when no record of a parent is needed; raise LogFailed if that fails."""
        await self._by_checkpointer(Checkpointer.stop_borrowing)

    async def _by_checkpointer(self, work: Callable[[Checkpointer], Awaitable[None]]) -> None:
        while True:
            generation = await self._alive()
            try:
                return await work(generation.checkpointer)
            except EngineRestarted:
                pass  # the next generation can do it

    async def take_back_records(self, name: str) -> None:
        """Lend no records to a branch any more, see `Checkpointer.take_back`."""
        generation = await self._alive()
        await generation.checkpointer.take_back(name)

    async def unpin_checkpoint(self, name: str) -> None:
        generation = await self._alive()
        await generation.checkpointer.unpin(name)

    def save_soon(self) -> None:
        """Start a checkpoint soon, without pauses. What it does not need is forgotten."""
        if self._generation is not None:
            self._generation.checkpointer.save_soon()

    def save_long_log(self, log_bytes: int) -> None:
        """Start a checkpoint soon, if the log after the last one is so long; others come first."""
        if self._generation is not None and self._generation.checkpointer.logged >= log_bytes:
            self._generation.checkpointer.save_soon(hurry=False)

    async def close(self) -> None:
        """Take a last checkpoint, so that the next start is quick, and let `run` end.

        If the checkpoint fails, nothing durable is lost: the next start reads more of the log.
        """
        if self._generation is not None:
            try:
                await self._generation.checkpointer.save_now(hurry=True)
            except (LogFailed, EngineRestarted) as error:
                self._world.report(f"database {self.name} closes without a checkpoint", error)
        self._life.cancel()

    def statistics(self) -> DatabaseStatistics:
        living = None if self._generation is None else self._generation.statistics()
        return DatabaseStatistics(
            self.name,
            self.state.value,
            self._restarts,
            self._gateway.statistics(),
            living,
            isinstance(self.trouble, LogFailed) and (living is None or living.log.groups == 0),
            self.pages.loads,
            None if self.pages.trouble is None else str(self.pages.trouble),
            self.watches.statistics(),
            self._history_statistics(),
        )

    def __repr__(self) -> str:
        return f"database {self.name}, {self.state.value}, {self._restarts} restarts"


def _nothing(transaction: Transaction) -> None:
    """The work of a transaction that is not run again."""


def _once(call: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `call` the first time and does nothing afterwards."""
    calls = [call]

    def call_first() -> None:
        if calls:
            calls.pop()()

    return call_first

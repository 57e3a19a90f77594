"""One life of a database's actors, from a recovered snapshot until any of them dies.

    nursery ─┬─ coordinator
             ├─ shard 0 … n
             ├─ log writer
             └─ checkpointer

They live and end together: none has state that the log lacks, so a restart needs no repair. When a
generation ends, requests that wait for an answer to a commit fail with OutcomeUnknown, and requests
that have not sent one rerun on the next generation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
import trio

from qserver.durability.port import Log, StoredRecord
from qserver.durability.recovery import Recovered
from qserver.engine.channels import Channels
from qserver.engine.checkpointer import Checkpointer, CheckpointerStatistics, CheckpointPolicy
from qserver.engine.conflict_origin import EXPLAINING_SECONDS_MAX, find_origin
from qserver.engine.coordinator import Coordinator, CoordinatorStatistics
from qserver.engine.coordinator_ports import ShardPort
from qserver.engine.log_writer import LogWriter, LogWriterStatistics
from qserver.engine.mailbox import MailboxStatistics, Reply
from qserver.engine.messages import Answer, Commit, ExclusiveCommit
from qserver.engine.observers import Observer
from qserver.engine.shard import Shard, ShardStatistics
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.turns import in_turns_of_owner
from qserver.engine.versions import EngineRestarted, Versions, VersionsStatistics
from qserver.engine.world import World
from qserver.errors import (
    DataCorrupted,
    LogFailed,
    LogTaken,
    OutcomeUnknown,
    SerializationFailure,
    first_of,
)
from qserver.limits import COMMITS_WAITING_MAX, ROUNDS_UNSYNCED_MAX
from qserver.storage.conflict import Conflict
from qserver.storage.ranges import roots_of_shard
from qserver.storage.snapshot import Snapshot


class GenerationStatistics(msgspec.Struct, frozen=True):
    versions: VersionsStatistics
    coordinator: CoordinatorStatistics
    log: LogWriterStatistics
    checkpoints: CheckpointerStatistics
    shards: tuple[ShardStatistics, ...]
    mailboxes: tuple[MailboxStatistics, ...]
    unanswered: int


class ActorDied(Exception):  # for the supervisor, not for users
    """An actor returned, which none ever should."""


class Generation:
    def __init__(
        self,
        recovered: Recovered,
        log: Log,
        world: World,
        snapshots: SnapshotSource,
        policy: CheckpointPolicy | None = None,
        taken: Callable[[LogTaken], None] = lambda error: None,
        observers: Sequence[Observer] = (),
        channels: Channels | None = None,
    ) -> None:
        """`taken` is called at once when another process has taken over the log."""
        self._taken = taken
        self._log = log
        snapshot = recovered.snapshot
        self.world = world
        self.versions = Versions(snapshot, world.now)
        self.requests = world.mailbox("coordinator", COMMITS_WAITING_MAX)
        count = snapshot.shards
        from_shards = world.mailbox("coordinator, from shards", count)
        to_shards = [world.mailbox(f"shard {number}", 1) for number in range(count)]
        to_log = world.mailbox("log", ROUNDS_UNSYNCED_MAX)
        self._shards = [
            Shard(number, roots_of_shard(snapshot.trees, number), mailbox, from_shards)
            for number, mailbox in enumerate(to_shards)
        ]
        self.checkpointer = Checkpointer(
            log,
            self.versions,
            recovered,
            policy or CheckpointPolicy(),
            world.report,
            world.compute,
        )
        noted = self.checkpointer.note_logged
        self._log_writer = LogWriter(log, self.versions, to_log, world.batch, noted, observers)
        self._coordinator = Coordinator(
            self.versions,
            snapshots,
            self.requests,
            from_shards,
            [
                ShardPort(mailbox, shard.is_long, shard.answer)
                for shard, mailbox in zip(self._shards, to_shards, strict=True)
            ],
            self._log_writer,
            world.batch,
            channels or Channels(),
        )
        self._mailboxes = [self.requests, from_shards, *to_shards, to_log]
        self._sent: dict[int, Reply[Answer]] = {}
        self._exclusive: dict[int, Reply[Snapshot]] = {}

    async def run(self) -> None:
        """Host the actors; ends only by an exception."""
        async with trio.open_nursery() as nursery:
            for shard in self._shards:
                nursery.start_soon(self._act, f"shard {shard.number}", shard.run)
            nursery.start_soon(self._act, "log", self._log_writer.run)
            nursery.start_soon(self._act, "checkpointer", self.checkpointer.run)
            nursery.start_soon(self._act, "coordinator", self._coordinator.run)

    async def _act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await in_turns_of_owner(self.world.act(name, run))
        except* LogTaken as errors:
            taken = first_of(errors)
            assert isinstance(taken, LogTaken)
            self._taken(taken)
            raise
        raise ActorDied(f"the {name} came to its end")

    def end(self) -> None:
        """Fail every waiter: no actor answers any more."""
        self.versions.end(EngineRestarted())
        self.checkpointer.end(EngineRestarted())
        for exclusive in list(self._exclusive.values()):
            exclusive.fail(EngineRestarted())
        taken = self._log_writer.taken
        for answer in list(self._sent.values()):
            answer.fail(_unknown() if taken is None else taken.again())

    def recent_after(self, version: int) -> list[StoredRecord]:
        return self._log_writer.recent_after(version)

    def known(self) -> Recovered:
        """Return what the log is known to hold: everything up to the last durable version."""
        checkpointer = self.checkpointer
        return Recovered(
            self.versions.durable, checkpointer.saved, checkpointer.logged, checkpointer.ahead
        )

    def send(self, put: Callable[[Commit], None], commit: Commit) -> None:
        """Send a commit; from here on only the log knows its outcome."""
        self.versions.check_alive()
        self._sent[commit.number] = commit.reply  # the answer may come before `put` returns
        try:
            put(commit)
        except BaseException:
            del self._sent[commit.number]
            raise

    async def explain(self, error: SerializationFailure) -> None:
        """Add to a conflict who changed what was read, if that can be found out soon."""
        conflict = error.conflict
        if isinstance(conflict, Conflict):
            newest, writers = self.versions.durable, self._coordinator.writers
            with trio.move_on_after(EXPLAINING_SECONDS_MAX), suppress(LogFailed, DataCorrupted):
                error.conflict = await find_origin(conflict, self._log, writers, newest)

    def submit(self, commit: Commit) -> None:
        """Have the coordinator commit: at once if it is idle, else in the next round."""
        self._coordinator.submit(commit)

    def settle(self, number: int) -> None:
        """Forget a commit whose outcome is known or no longer wanted."""
        del self._sent[number]

    async def grant_exclusive(self, exclusive: ExclusiveCommit) -> Snapshot:
        self.versions.check_alive()
        self.requests.put_nowait(exclusive)
        self._exclusive[exclusive.number] = exclusive.granted
        try:
            return await exclusive.granted.wait()
        finally:
            del self._exclusive[exclusive.number]

    def statistics(self) -> GenerationStatistics:
        return GenerationStatistics(
            self.versions.statistics(),
            self._coordinator.statistics(),
            self._log_writer.statistics(),
            self.checkpointer.statistics(),
            tuple(shard.statistics() for shard in self._shards),
            tuple(mailbox.statistics() for mailbox in self._mailboxes),
            len(self._sent),
        )

    def __repr__(self) -> str:
        return f"a generation with {self.versions!r}"


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown(
        "the database restarted while the transaction was being committed",
        detail="It was applied as a whole or not at all.",
        hint="Read to see which, once the database is open again. A request is safe to"
        " send twice where a unique key refuses the second.",
    )

"""The log writer: the actor that makes rounds durable, then releases their answers.

While one group of rounds syncs, the next gathers in the mailbox. So a busy log writes few and large
groups, and a lone commit waits for one sync. The next group is on its way before the answers of the
last one leave, so that the disk need not wait for them.

The rounds of a batch (see `batch`) are a group that is written at the end of the batch, if the
writer is idle: the same steps without waking its task. If the append does not end there and then,
its end releases the group, where the task would be woken. The task gets it if it fails, if rounds
are submitted meanwhile, and while several owners take turns.

If the log fails, this actor dies, and with it the generation: recovery reads the disk again instead
of guessing what is on it. If another process has taken over the log, the rounds before
`LogTaken.version` are in it and their answers leave; the senders of all later ones get LogTaken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from qserver.durability.pauses import in_steps
from qserver.durability.port import Ended, Log, StoredRecord, UnderWay
from qserver.durability.records import (
    FORMAT,
    LogRecord,
    encode_record,
    encode_record_in_pieces,
    encode_trees,
)
from qserver.engine.batch import Batch
from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Append
from qserver.engine.observers import Observer
from qserver.engine.readiness import BUSY, ENTERED, GATHERING, IDLE
from qserver.engine.turns import current_line
from qserver.engine.versions import Versions
from qserver.errors import LogTaken
from qserver.limits import ROUNDS_UNSYNCED_MAX
from qserver.storage.catalog import changes_to_plain
from qserver.storage.writes import CHANGES_AT_ONCE, count_changes

RECENT_RECORDS, RECENT_BYTES_MAX = 64, 16 * 1024
"""Records, and the bytes of one at most, that stay in memory while others follow the database."""


class LogWriterStatistics(msgspec.Struct, frozen=True):
    groups: int
    records: int
    bytes: int
    records_of_group_most: int


class Begun(msgspec.Struct, eq=False):
    """A group whose append has begun, and has to be awaited."""

    group: list[Append]
    appending: Awaitable[None]
    following: list[Append] = []
    """Rounds that the task has taken together with it."""


class LogWriter:
    def __init__(
        self,
        log: Log,
        versions: Versions,
        mailbox: Mailbox[Any],
        batch: Batch,
        note_logged: Callable[[int], None],
        observers: Sequence[Observer] = (),
    ) -> None:
        self.log = log
        self.versions = versions
        self.mailbox = mailbox
        """Takes each Append, and Begun while the task is idle."""
        self._batch = batch
        self._note_logged = note_logged
        self._observers = observers
        self._readiness = BUSY
        self._gathered: list[Append] = []
        """Rounds of the batch, which are the next group."""
        self._begun: Begun | None = None
        """A group whose append has begun, and that the task has not taken."""
        self._encoded: dict[int, bytes] = {}
        """The records of long rounds of the next group, by version."""
        self._recent: deque[StoredRecord] = deque(maxlen=RECENT_RECORDS)
        """The last records, for those that follow the database: they need not read the log."""
        self.taken: LogTaken | None = None
        """Set when the log has refused a group for good, and with it every later group."""
        self._groups = self._records = self._bytes = self._most = 0

    # --- at the end of a batch ---

    @property
    def is_free(self) -> bool:
        return self.mailbox.is_empty

    def submit(self, append: Append) -> None:
        """Have a round written at the end of the batch, or by the task.

        Rounds are submitted in the order of their versions, and are written in it.
        """
        mailbox, is_ready = self.mailbox, self._readiness in (IDLE, GATHERING)
        may_gather = is_ready and self._batch.is_active and mailbox.is_empty
        if may_gather and mailbox.may_pass_by() and not _is_long(append):
            mailbox.pass_by(append)
            if self._readiness is IDLE:
                self._readiness = GATHERING
                self._batch.at_end(self._write_gathered)
            self._gathered.append(append)
        else:
            mailbox.put_nowait(append)
            self._write_gathered()

    async def wait_to_submit(self, append: Append) -> None:
        await self.mailbox.put(append)

    def _write_gathered(self) -> None:
        """Write the rounds of a batch; the task waits for an append that takes longer."""
        if self._readiness is not GATHERING:
            return
        group, self._gathered = self._gathered, []
        self._readiness = ENTERED  # an answered client may submit its next commit
        try:
            appending: Awaitable[None] | None = self._begin(group)
            if isinstance(appending, Ended) and appending.error is None:
                self.release(group)
                appending = None
        except Exception as error:
            appending = Ended(error)
        self._readiness = IDLE
        if appending is not None:
            self._begun = Begun(group, appending)
            if isinstance(appending, UnderWay):
                self._readiness = BUSY
                appending.then(self._appended)
            else:
                self._hand_over(self._begun)

    def _appended(self) -> None:
        """Release a group that was awaited by no task, or give it to the task if that has to."""
        begun = self._begun
        if begun is None:  # the task has ended
            return
        appending, line = begun.appending, current_line()
        assert isinstance(appending, UnderWay)
        if appending.error is None and not line.is_contended:  # else in the turn of its owner
            self._readiness, self._begun = ENTERED, None
            try:
                self.release(begun.group)
            except Exception as error:
                begun.appending, self._begun = Ended(error), begun
        self._readiness = IDLE
        if self._begun is not None:
            self._hand_over(begun)

    def _hand_over(self, begun: Begun) -> None:
        """Wake the task, which takes the group first; a round that waits for it wakes it, too."""
        if self.mailbox.is_empty:
            self.mailbox.put_nowait(begun)

    # --- the task ---

    async def run(self) -> None:
        try:
            begun = await self._next([])
            while True:
                group = begun.group
                try:
                    await begun.appending
                except LogTaken as taken:
                    self.taken = taken
                    there = [each for each in group if each.snapshot.version < taken.version]
                    if there:
                        self.release(there)
                    raise
                following = begun.following
                following += self.mailbox.take_nowait(ROUNDS_UNSYNCED_MAX - len(following))
                if following and not any(map(_is_long, following)):
                    begun = Begun(following, self._begin(following))
                    self.release(group)
                else:
                    self.release(group)
                    del begun, group  # while this waits, nothing keeps the snapshots of the last
                    begun = await self._next(following)
                del following
        finally:
            self._readiness = BUSY
            begun_here, self._begun = self._begun, None
            if begun_here is not None and isinstance(begun_here.appending, Coroutine):
                begun_here.appending.close()  # the append goes on, and nobody waits for it

    async def _next(self, group: list[Append]) -> Begun:
        """Begin the next group; wait for one if none is given."""
        if not group:
            self._readiness = IDLE
            messages = await self.mailbox.take(ROUNDS_UNSYNCED_MAX)
            self._readiness = BUSY
            group = [each for each in messages if isinstance(each, Append)]
            begun, self._begun = self._begun, None
            if begun is not None:  # before the others were submitted
                begun.following = group
                return begun
        await self._encode_ahead(group)
        return Begun(group, self._begin(group))

    async def _encode_ahead(self, group: list[Append]) -> None:
        """Encode long rounds piece by piece, so that other tasks run meanwhile."""
        for append in filter(_is_long, group):
            plain = append.snapshot.catalog.plain
            steps = encode_record_in_pieces(_record_of(append, []), append.writes, plain)
            self._encoded[append.snapshot.version] = await in_steps(steps)

    def _begin(self, group: list[Append]) -> Awaitable[None]:
        records = [(round.snapshot.version, self.encode(round)) for round in group]
        if self.versions.announce is not None:
            self._keep_recent(records)
        return self.log.append(records)

    def _keep_recent(self, records: list[StoredRecord]) -> None:
        if any(len(data) > RECENT_BYTES_MAX for _, data in records):
            self._recent.clear()
        else:
            self._recent.extend(records)

    def recent_after(self, version: int) -> list[StoredRecord]:
        """Return the records after a version, durable or not; none if they are not in memory."""
        recent = self._recent
        if not recent or not recent[0][0] <= version + 1 <= recent[-1][0]:
            return []
        return [record for record in recent if record[0] > version]

    def encode(self, append: Append) -> bytes:
        data = self._encoded.pop(append.snapshot.version, None) if self._encoded else None
        if data is None:
            trees = encode_trees(append.writes, append.snapshot.catalog.plain)
            data = encode_record(_record_of(append, trees))
        self._bytes += len(data)
        self._note_logged(len(data))
        return data

    def release(self, group: list[Append]) -> None:
        """Make the group's snapshots readable and release its answers: the group is durable."""
        self._groups += 1
        self._records += len(group)
        if len(group) > self._most:
            self._most = len(group)
        before = self.versions.durable
        self.versions.mark_durable(group[-1].snapshot.version)
        for append in group:
            for reply, answer in append.answers:
                reply.put(answer)
        for append in group:
            for observer in self._observers:
                observer.committed(before, append)
            before = append.snapshot

    def statistics(self) -> LogWriterStatistics:
        return LogWriterStatistics(self._groups, self._records, self._bytes, self._most)

    def __repr__(self) -> str:
        return f"the log writer after {self._records} records in {self._groups} groups"


def _record_of(append: Append, trees: list[tuple[int, bytes]]) -> LogRecord:
    snapshot = append.snapshot
    return LogRecord(
        FORMAT,
        snapshot.version,
        snapshot.time,
        snapshot.catalog.trees_used,
        trees,
        append.dropped,
        changes_to_plain(append.catalog_changes),
        append.requests,
        append.definitions,
    )


def _is_long(append: Append) -> bool:
    return count_changes(append.writes) > CHANGES_AT_ONCE

"""The log writer: the actor that makes rounds durable, then releases their answers.

While one group of rounds syncs, the next gathers in the mailbox. So a busy log writes few and large
groups, and a lone commit waits for one sync. The next group is on its way before the answers of the
last one leave, so that the disk need not wait for them.

If the log fails, this actor dies, and with it the generation: recovery reads the disk again instead
of guessing what is on it. If another process has taken over the log, the rounds before
`LogTaken.version` are in it and their answers leave; the senders of all later ones get LogTaken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from qserver.durability.port import Log
from qserver.durability.records import encode_record, encode_record_in_pieces
from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Append
from qserver.engine.observers import Observer
from qserver.engine.versions import Versions
from qserver.engine.yielding import in_steps
from qserver.errors import LogTaken
from qserver.limits import ROUNDS_UNSYNCED_MAX
from qserver.storage.catalog import changes_to_plain
from qserver.storage.writes import CHANGES_AT_ONCE, count_changes

T = TypeVar("T")


class LogWriterStatistics(msgspec.Struct, frozen=True):
    groups: int
    records: int
    bytes: int
    records_of_group_most: int


class LogWriter:
    def __init__(
        self,
        log: Log,
        versions: Versions,
        mailbox: Mailbox[Append],
        note_logged: Callable[[int], None],
        observers: Sequence[Observer] = (),
    ) -> None:
        self.log = log
        self.versions = versions
        self.mailbox = mailbox
        self._note_logged = note_logged
        self._observers = observers
        self._encoded: dict[int, bytes] = {}
        """The records of long rounds, by version."""
        self.taken: LogTaken | None = None
        """Set when the log has refused a group for good, and with it every later group."""
        self._groups = self._records = self._bytes = self._most = 0

    async def run(self) -> None:
        group = await self.mailbox.take(ROUNDS_UNSYNCED_MAX)
        await self._encode_ahead(group)
        appending = self._begin(group)
        while True:
            try:
                await appending
            except LogTaken as taken:
                self.taken = taken
                there = [each for each in group if each.snapshot.version < taken.version]
                if there:
                    self.release(there)
                raise
            following = self.mailbox.take_nowait(ROUNDS_UNSYNCED_MAX)
            if following and not any(map(_is_long, following)):
                appending = self._begin(following)
                self.release(group)
            else:
                self.release(group)
                group = []  # while this waits, nothing keeps the snapshots of the last group
                following = following or await self.mailbox.take(ROUNDS_UNSYNCED_MAX)
                await self._encode_ahead(following)
                appending = self._begin(following)
            group = following

    async def _encode_ahead(self, group: list[Append]) -> None:
        """Encode long rounds piece by piece, so that other tasks run meanwhile."""
        for append in filter(_is_long, group):
            data = await in_steps(_encoded_by(encode_record_in_pieces, append))
            self._encoded[append.snapshot.version] = data

    def _begin(self, group: list[Append]) -> Awaitable[None]:
        return self.log.append([(round.snapshot.version, self.encode(round)) for round in group])

    def encode(self, append: Append) -> bytes:
        data = self._encoded.pop(append.snapshot.version, None)
        if data is None:
            data = _encoded_by(encode_record, append)
        self._bytes += len(data)
        self._note_logged(len(data))
        return data

    def release(self, group: list[Append]) -> None:
        """Make the group's snapshots readable and release its answers: the group is durable."""
        self._groups += 1
        self._records += len(group)
        self._most = max(self._most, len(group))
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


def _encoded_by(encode: Callable[..., T], append: Append) -> T:
    snapshot = append.snapshot
    return encode(
        snapshot.version,
        snapshot.time,
        snapshot.catalog.trees_used,
        append.writes,
        append.dropped,
        changes_to_plain(append.catalog_changes),
        plain=snapshot.catalog.plain,
        requests=append.requests,
        definitions=append.definitions,
    )


def _is_long(append: Append) -> bool:
    return count_changes(append.writes) > CHANGES_AT_ONCE

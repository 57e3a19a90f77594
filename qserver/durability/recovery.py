"""Recovery: makes the newest snapshot from the log.

    newest checkpoint ─► its snapshot, roots alone ─► the records behind it ─► the newest snapshot

The log is the only truth: what is in it happened, what is not did not (presumed abort). So recovery
is the same after a clean stop, a crash, or the death of one actor: load the newest checkpoint, read
all records behind it in order, let later writes cover earlier ones, and change each tree once.

Recovery refuses what it cannot vouch for. A failed checksum, a gap in the versions, a log that ends
too early, or a format of another release ends in DataCorrupted, never in a database that lacks some
rows. The last step is the fence: only when the log has confirmed that all of it was read, and that
no other process can append, may the snapshot be shown.
"""

from __future__ import annotations

from typing import Final

import msgspec
import trio

from qserver.durability.loading import load_newest
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log, StoredRecord
from qserver.durability.records import LogRecord, decode_record, writes_of
from qserver.durability.saved_pages import SavedPages
from qserver.errors import DataCorrupted
from qserver.storage.catalog import changes_from_plain
from qserver.storage.routing import Steps, at_once, written_in_pieces
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.writes import Moment, Writes, merge_writes

RECORDS_READ_AT_ONCE: Final = 1000
RECORDS_BEFORE_YIELDING: Final = 16


class Recovered(msgspec.Struct, frozen=True):
    """The state with which a database begins."""

    snapshot: Snapshot
    saved: SavedPages
    log_bytes: int
    """How much log there is behind the checkpoint."""


async def recover(log: Log, shards: int, store: LoggedPages | None = None) -> Recovered:
    """Return the newest snapshot of a log, laid out for `shards` shards.

    `store`: the one of the database's earlier recoveries in this process, if there were any.
    """
    store = LoggedPages(log) if store is None else store
    store.copied = 0
    saved = SavedPages(store)
    base = await load_newest(log, saved, shards) or empty_snapshot(shards, store.new_lease(0))
    return await recover_from(Recovered(base, saved, 0), log)


async def recover_from(known: Recovered, log: Log) -> Recovered:
    """Recover from a snapshot that is known to equal the log up to its version."""
    replay = Replay(known.snapshot)
    log_bytes = known.log_bytes + await _read_on(log, replay)
    while not await log.fence(replay.version):
        more = await _read_on(log, replay)
        if not more:
            raise DataCorrupted(
                f"the log has more than version {replay.version} and does not give it",
                hint="A part of the log is missing. Restore a backup.",
            )
        log_bytes += more
    return Recovered(replay.snapshot(), known.saved, log_bytes)


async def _read_on(log: Log, replay: Replay) -> int:
    """Apply all further records of the log, and return the number of their bytes."""
    size = 0
    while records := await log.read(replay.version, RECORDS_READ_AT_ONCE):
        for count, record in enumerate(records, start=1):
            replay.apply(record)
            size += len(record[1])
            if count % RECORDS_BEFORE_YIELDING == 0:
                await trio.lowlevel.checkpoint()
    return size


class Replay:
    """Adds the records behind a snapshot to it."""

    def __init__(self, base: Snapshot) -> None:
        self.version = base.version
        self._base = base
        self._time = base.time
        self._catalog = base.catalog
        self._writes: Writes = {}
        self._moments: dict[int, Moment] = {}
        self._dropped: set[int] = set()

    def apply(self, stored: StoredRecord) -> None:
        version, data = stored
        record = decode_record(data)
        if not version == record.version == self.version + 1:
            raise DataCorrupted(
                f"the log has version {record.version} (filed as {version})"
                f" where {self.version + 1} must follow",
                hint="A part of the log is missing. Restore a backup.",
            )
        at = record.version, record.time
        self._catalog = self._catalog.changed(
            changes_from_plain(record.catalog_changes), record.trees_used
        )
        if record.catalog_changes:
            self._catalog = self._catalog.dated(record.catalog_changes, at)
        writes = writes_of(record)
        merge_writes(self._writes, writes)
        self._moments.update(dict.fromkeys(writes, at))
        self._forget_dropped(record)
        self.version, self._time = record.version, record.time

    def _forget_dropped(self, record: LogRecord) -> None:
        for tree in record.dropped:
            self._writes.pop(tree, None)
            self._dropped.add(tree)

    def snapshot(self) -> Snapshot:
        return at_once(self.in_pieces())

    def in_pieces(self) -> Steps[Snapshot]:
        """Return the snapshot; yield now and then, so that others can run."""
        base = self._base
        if self.version == base.version:
            return base
        trees = yield from written_in_pieces(
            base, self._catalog, self._writes, self._dropped, self._moments
        )
        return Snapshot(self.version, self._time, self._catalog, trees, base.shards, base.lease)

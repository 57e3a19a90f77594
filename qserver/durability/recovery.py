"""Recovery: from the log to the view that it describes.

The log is the truth and nothing else is: what is in it happened, what is not did not (presumed
abort). So recovery is the same after a clean stop, a crash, or the death of one actor: read all
records in order, let later writes cover earlier ones, and build each tree once.

It refuses what it cannot vouch for. A record that fails its checksum, a gap in the versions, or
a format of another release ends in DataCorrupted, never in a database that lacks some rows.
"""

from __future__ import annotations

from typing import Final

from pyrsistent import pmap

from qserver.durability.port import Log, StoredRecord
from qserver.durability.records import Record, decode_record, writes_of
from qserver.errors import DataCorrupted
from qserver.storage.btree import Tree, build
from qserver.storage.catalog import Catalog, changes_from_plain
from qserver.storage.partition import SEQUENCES_TREE, Partition, Writes, merge_writes
from qserver.storage.view import View
from qserver.values.keys import partition_of

RECORDS_READ_AT_ONCE: Final = 1000


async def recover(log: Log, shards: int) -> View:
    """The newest view of a log, spread over that many partitions."""
    replay = Replay()
    while records := await log.read(replay.version, RECORDS_READ_AT_ONCE):
        for record in records:
            replay.apply(record)
    return replay.view(shards)


class Replay:
    """What the records so far add up to."""

    def __init__(self) -> None:
        self.version = 0
        self._time = 0.0
        self._catalog = Catalog()
        self._writes: Writes = {}

    def apply(self, stored: StoredRecord) -> None:
        version, data = stored
        record = decode_record(data)
        if not version == record.version == self.version + 1:
            raise DataCorrupted(
                f"the log has version {record.version} (filed as {version})"
                f" where {self.version + 1} must follow",
                hint="A part of the log is missing. Restore a backup.",
            )
        self._catalog = self._catalog.changed(
            changes_from_plain(record.catalog_changes), record.trees_used
        )
        merge_writes(self._writes, writes_of(record))
        self._forget_dropped(record)
        self.version, self._time = record.version, record.time

    def _forget_dropped(self, record: Record) -> None:
        for tree in record.dropped:
            self._writes.pop(tree, None)

    def view(self, shards: int) -> View:
        trees: list[dict[int, Tree]] = [{} for _ in range(shards)]
        hashed = self._hashed_elements()
        for tree, changes in self._writes.items():
            width = hashed.get(tree)
            keys_of_shards: list[list[tuple[object, ...]]] = [[] for _ in range(shards)]
            for key in sorted(key for key, value in changes.items() if value is not None):
                keys_of_shards[partition_of(key[:width], shards)].append(key)
            for shard, keys in enumerate(keys_of_shards):
                values = [changes[key] for key in keys]
                trees[shard][tree] = build(keys, values)  # type: ignore[arg-type]  # no None left
        return View(
            self.version,
            self._time,
            self._catalog,
            tuple(Partition(pmap(of_shard)) for of_shard in trees),
        )

    def _hashed_elements(self) -> dict[int, int | None]:
        """How many leading elements of a key decide its shard, by tree; None for all."""
        hashed: dict[int, int | None] = {SEQUENCES_TREE: None}
        for table in self._catalog.tables.values():
            for index in table.indexes:
                hashed[index.id] = index.hashed
        return hashed

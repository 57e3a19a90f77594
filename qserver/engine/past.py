"""The past of a feed: versions made again from the log, one after the other.

    snapshot of a version ─► record ─► the next snapshot ─► record ─► …

A version is what its record changes in the snapshot before it. Only durable versions are made, and
only what is asked for: a reader that is slow to take the next one holds one snapshot.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from qserver.durability.port import Log
from qserver.durability.records import decode_record, writes_of
from qserver.engine.feed import FedVersion
from qserver.errors import ReaderTooSlow
from qserver.storage.catalog import changes_from_plain
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot

RECORDS_AT_ONCE: Final = 100
"""Records that are read with one call: commits wait for no more than that."""


class LogPast:
    def __init__(
        self,
        log: Log,
        snapshot_at: Callable[[int], Awaitable[Snapshot]],
        newest: Callable[[], int],
    ) -> None:
        """`snapshot_at` raises for a version that is no longer kept; `newest` is durable."""
        self._log = log
        self._snapshot_at = snapshot_at
        self._newest = newest

    async def after(self, version: int) -> AsyncGenerator[FedVersion, None]:
        """Yield the durable versions behind this one, in order."""
        before = await self._snapshot_at(version)
        while before.version < self._newest():
            records = await self._log.read(before.version, RECORDS_AT_ONCE)
            if not records or records[0][0] != before.version + 1:
                raise ReaderTooSlow(
                    f"version {before.version + 1} is no longer kept",
                    hint="Read the tables anew, and their changes from that version on.",
                )
            for _, data in records:
                if before.version >= self._newest():
                    return  # the log is ahead of what is durable
                fed, before = _next_version(before, data)
                yield fed

    def __repr__(self) -> str:
        return f"the past up to version {self._newest()}"


def _next_version(before: Snapshot, data: bytes) -> tuple[FedVersion, Snapshot]:
    """Return the version of a record, and its snapshot."""
    record = decode_record(data)
    writes, changes = writes_of(record), changes_from_plain(record.catalog_changes)
    catalog = before.catalog.changed(changes, record.trees_used)
    after = Snapshot(
        record.version,
        record.time,
        catalog,
        written(before, catalog, writes, record.dropped),
        before.shards,
        before.lease,
    )
    return FedVersion(before, after, writes, changes), after

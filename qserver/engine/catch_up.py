"""Rebuilds older versions from the log, for readers of the feed that lag.

    snapshot of a version ─► record ─► the next snapshot ─► record ─► …

Each record, applied to the snapshot before it, gives one version. Only durable versions are
rebuilt, and only on demand. History keeps the snapshot at which a reader stops for a short time,
because the reader usually continues there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from qserver.durability.pauses import in_steps
from qserver.durability.port import StoredRecord
from qserver.durability.recovery import RECORD_BYTES_LONG, Replay
from qserver.engine.feed import FeedVersion
from qserver.engine.messages import Append
from qserver.engine.yielding import yield_to_others
from qserver.errors import ReaderTooSlow
from qserver.storage.catalog import changes_from_plain
from qserver.storage.snapshot import Snapshot
from qserver.values.steps import Steps, at_once

RECORDS_AT_ONCE: Final = 100
"""Records that are read with one call: commits wait for no more than that."""


async def _ignore(snapshot: Snapshot, size: int) -> None:
    """The default: counts nothing."""


class LogCatchUp:
    def __init__(
        self,
        read: Callable[[int, int], Awaitable[list[StoredRecord]]],
        snapshot_at: Callable[[int], Awaitable[Snapshot]],
        newest: Callable[[], int],
        note_grown: Callable[[Snapshot, int], Awaitable[None]] = _ignore,
        keep: Callable[[Snapshot], None] = lambda snapshot: None,
    ) -> None:
        """`read` reads the log; `newest` is the newest durable version.

        `snapshot_at` raises for a version that is no longer kept.

        `note_grown` receives the bytes of records added to a snapshot, and raises if they are too
        many. `keep` receives the snapshot at which a reader stops.
        """
        self._read = read
        self._snapshot_at = snapshot_at
        self._newest = newest
        self._note_grown = note_grown
        self._keep = keep

    async def after(self, version: int) -> AsyncGenerator[FeedVersion, None]:
        """Yield the durable versions after this one, in order."""
        before = await self._snapshot_at(version)
        while before.version < self._newest():
            records = await self._read(before.version, RECORDS_AT_ONCE)
            if not records or records[0][0] != before.version + 1:
                raise ReaderTooSlow(
                    f"version {before.version + 1} is no longer kept",
                    hint="Read the tables anew, and their changes from that version on.",
                )
            for record in records:
                if before.version >= self._newest():
                    return  # the log is ahead of what is durable
                steps, record_bytes = _next_version(before, record), len(record[1])
                if record_bytes <= RECORD_BYTES_LONG:
                    fed, before = at_once(steps)
                else:
                    fed, before = await in_steps(steps, yield_to_others)
                await self._note_grown(before, record_bytes)
                try:
                    yield fed
                except GeneratorExit:
                    self._keep(before)
                    raise

    def __repr__(self) -> str:
        return f"catching up to version {self._newest()}"


def append_of(before: Snapshot, stored: StoredRecord) -> Steps[Append]:
    """Apply a record: return what was appended, with the next snapshot."""
    replay = Replay(before)
    record, writes = yield from replay.apply(stored)
    after = yield from replay.in_pieces()
    changes = changes_from_plain(record.catalog_changes, before.catalog)
    dropped = tuple(record.dropped)
    return Append(after, writes, dropped, changes, (), record.requests, record.definitions)


def _next_version(before: Snapshot, stored: StoredRecord) -> Steps[tuple[FeedVersion, Snapshot]]:
    """Apply a record: return its version and the next snapshot."""
    append = yield from append_of(before, stored)
    made = append.writes, append.catalog_changes, append.definitions
    return FeedVersion(before, append.snapshot, *made, len(stored[1])), append.snapshot

"""What the owner of a database sends to those that follow it in other processes.

    a follower without a version, or   ─► ("pages", …) … ("base", version, record) ─┐
    whose version the log cannot continue                                           │
    ┌───────────────────────────────────────────────────────────────────────────────┘
    └─► ("records", [(version, bytes) …]) for each durable group, for ever

Messages are tuples, lists, strings, integers and bytes, so any link can carry them. The stream
waits as a reader waits for a durable version, and reads the last records in memory, or the log.
Only records up to the version that was durable are sent: either may be ahead of that.

A generation that ends and recovers does not end the stream. If the log cannot be read, the database
closes or its log is taken over, the stream raises; its receiver asks again with the version that it
has by then. It checks what it gets all the same (see `follower`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Literal, TypeAlias

from qserver.durability.port import StoredPage, StoredRecord
from qserver.engine.database import Database
from qserver.engine.snapshot_base import SnapshotBase
from qserver.engine.yielding import yield_to_others
from qserver.storage.snapshot import Snapshot

RECORDS_AT_ONCE: Final = 100
"""Records that are read with one call: commits wait for no more than that."""

PAGES_BYTES: Final = 256 * 1024
"""A message has pages of about so many bytes."""

Pages: TypeAlias = tuple[Literal["pages"], list[StoredPage]]
Base: TypeAlias = tuple[Literal["base"], int, bytes]
Records: TypeAlias = tuple[Literal["records"], list[StoredRecord]]
Message: TypeAlias = Pages | Base | Records


async def records_after(database: Database, version: int | None) -> AsyncGenerator[Message, None]:
    """Yield what a follower needs that has applied everything up to a version; None: nothing.

    Close it (`aclosing`) when the follower is gone.
    """
    if version is not None and version > (await database.wait_durable_snapshot()).version:
        version = None  # of another database: the receiver does not go back
    while True:
        records = [] if version is None else await _durable_after(database, version)
        if records:
            yield "records", records
            version = records[-1][0]
        else:
            async with aclosing(_base(await database.wait_durable_snapshot())) as base:
                async for message in base:
                    yield message
                    if message[0] == "base":
                        version = message[1]


async def _durable_after(database: Database, version: int) -> list[StoredRecord]:
    """Return the next records as soon as they are durable; none if the log no longer has them."""
    durable = (await database.wait_durable_snapshot(version=version + 1)).version
    records = database.recent_records(version)
    if not records:
        records = await database.history.read(version, RECORDS_AT_ONCE)
    if not records or records[0][0] != version + 1:
        return []
    return [record for record in records if record[0] <= durable]


async def _base(snapshot: Snapshot) -> AsyncGenerator[Message, None]:
    base = SnapshotBase(snapshot)
    pages: list[StoredPage] = []
    size = 0
    for page in base.pages():
        pages.append(page)
        size += len(page[1])
        if size >= PAGES_BYTES:
            yield "pages", pages
            pages, size = [], 0
        await yield_to_others()
    if pages:
        yield "pages", pages
    yield "base", snapshot.version, base.record()

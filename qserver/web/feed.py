"""Encodes the changes of a database: some at a time as JSON, or endless Server-Sent Events.

    {"changes": [{"version", "time", "table", "op", …} …], "next", "newest"}

    change … change ─► version (id: its number) ─► change …
                                                └─► error

Only whole versions are sent, in commit order. A version is encoded once per filter, and all readers
with that filter send the same bytes. A reader pauses after each part, longer if there are many
readers, and then sends all versions that have come meanwhile. So a hundred readers cost little
beside the commits. One that catches up pauses for a shorter time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec
import trio

from qserver.engine.feed import CatchUp, Feed, FeedVersion, LaggingReader
from qserver.engine.yielding import TimeSlice
from qserver.limits import (
    ANSWER_PART_BYTES,
    FEED_ANSWER_BYTES_MAX,
    FEED_LOOK_MAX,
    FEED_PARTS_PER_SECOND,
    FEED_PAUSE_SECONDS,
    FEED_PAUSE_SECONDS_MAX,
)
from qserver.query.memory_pool import MemoryPool
from qserver.storage.changes import Changes
from qserver.web.changes import CHANGES_ENCODED_AT_ONCE, ChangeEncoder
from qserver.web.json_values import encode_json
from qserver.web.readers import Reader

KEEP_ALIVE: Final = b": keep-alive\n\n"


class TableFilter(msgspec.Struct, frozen=True):
    """The names of the wanted tables; None: all of them."""

    tables: frozenset[str] | None = None

    def wants(self, table: str) -> bool:
        return self.tables is None or table in self.tables


class VersionLines(msgspec.Struct, frozen=True):
    """The changes of a version that pass a filter, each as JSON, and all of them as events."""

    lines: list[bytes]
    events: bytes


async def lines_of(
    version: FeedVersion, wanted: TableFilter, encoder: ChangeEncoder
) -> VersionLines:
    """Return the encoded changes of a version; encoded once per filter, for all readers."""

    def encode(changes: Changes) -> Generator[None, None, VersionLines]:
        time = datetime.fromtimestamp(version.time, UTC).isoformat().replace("+00:00", "Z")
        head = b'{"version":%d,"time":"%b",' % (version.version, time.encode())
        lines = []
        for count, change in enumerate(changes, 1):
            if count % CHANGES_ENCODED_AT_ONCE == 0:
                yield
            table = change.table if isinstance(change.table, str) else ".".join(change.table.path)
            if wanted.wants(table):
                lines.append(head + encode_json(encoder.encoded(change))[1:])
        events = b"".join([b"event: change\ndata: %b\n\n" % line for line in lines])
        if lines:
            events += version_event(version.version)
        return VersionLines(lines, events)

    return await version.encoded(wanted, encode)


def version_event(version: int) -> bytes:
    return b'event: version\nid: %d\ndata: {"version":%d}\n\n' % (version, version)


async def some_changes(
    feed: Feed,
    catch_up: CatchUp,
    since: int,
    wanted: TableFilter,
    limit: int,
    wait_seconds: float,
    reader: Reader,
    still_allowed: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
) -> bytes:
    """Return the body of an answer: versions after `since`, until there are `limit` changes.

    If there is none yet, wait for the first. A version larger than the limit comes whole.
    `still_allowed` runs after each wait; its exception ends the call.
    """
    lines: list[bytes] = []
    encoder, time_slice = ChangeEncoder(), TimeSlice()
    size, last = 0, since + FEED_LOOK_MAX
    deadline = trio.current_time() + wait_seconds
    feed.open()
    try:
        async with aclosing(feed.after(since, catch_up)) as versions:
            while len(lines) < limit and size < FEED_ANSWER_BYTES_MAX and since < last:
                if since >= feed.newest():
                    if lines or trio.current_time() >= deadline:
                        break
                    with trio.move_on_at(deadline):
                        await reader.wait(partial(feed.wait, since + 1))
                    await still_allowed()
                    continue
                version = await anext(versions)
                more = (await lines_of(version, wanted, encoder)).lines
                await time_slice.yield_if_used_up()
                if lines and len(lines) + len(more) > limit:
                    break
                lines += more
                size += sum(map(len, more))
                since = version.version
    finally:
        feed.close()
    newest = max(since, feed.newest())
    return b'{"success":true,"changes":[%b],"next":%d,"newest":%d}' % (
        b",".join(lines),
        since,
        newest,
    )


class EventBuffer:
    """The events of consecutive versions that pass one filter, for all readers with it.

    A reader takes all events after its version as one piece, so that a version costs each reader
    next to nothing. A piece is about `ANSWER_PART_BYTES` long, or one version: no reader, however
    slow, holds more.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.events: list[bytes] = []
        self._joined: tuple[int, int, int, bytes] = (0, 0, 0, b"")

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def behind(self, since: int) -> tuple[int, bytes]:
        """Return events after `since`, and the version up to which they go.

        If the next version is not among them, return `since` and nothing.
        """
        last = self.last
        if not self.first <= since + 1 <= last:
            return since, b""
        if self._joined[:2] != (since, last):
            events: list[bytes] = []
            size, reached = 0, since
            while reached < last and size < ANSWER_PART_BYTES:
                reached += 1
                events.append(self.events[reached - self.first])
                size += len(events[-1])
            self._joined = (since, last, reached, b"".join(events))
        return self._joined[2:]


class Tail:
    """The events of the versions in the window that pass one filter."""

    def __init__(self, feed: Feed, wanted: TableFilter) -> None:
        self._feed = feed
        self._wanted = wanted
        self._encoder = ChangeEncoder()
        self._buffer = EventBuffer()
        self._lock = trio.Lock()
        self.readers = 0

    async def behind(self, since: int) -> tuple[int, bytes]:
        """Do as `EventBuffer.behind`; return nothing if the window has moved beyond `since`."""
        buffer = self._buffer
        if since >= buffer.last or not buffer.events:  # there is more, or the window moved on
            async with self._lock:
                await self._extend(buffer)
        return buffer.behind(since)

    async def _extend(self, buffer: EventBuffer) -> None:
        """Encode new versions, and drop those that have left the window."""
        feed, events = self._feed, buffer.events
        oldest = feed.oldest
        if not events or buffer.first + len(events) < oldest:
            events.clear()
            buffer.first = oldest
        while (version := feed.find(buffer.last + 1)) is not None:
            events.append((await lines_of(version, self._wanted, self._encoder)).events)
        forgotten = feed.oldest - buffer.first
        if forgotten > 0:
            del events[:forgotten]
            buffer.first += forgotten


def _pause(readers: int) -> float:
    """Return how long each of so many readers pauses after a part."""
    return max(FEED_PAUSE_SECONDS, min(readers / FEED_PARTS_PER_SECOND, FEED_PAUSE_SECONDS_MAX))


def _lag_pause(readers: int) -> float:
    """Return how long each of so many readers pauses after a part of older versions.

    Readers that catch up would else take all of the loop until they have, and commits need it, too.
    """
    return min(readers / FEED_PARTS_PER_SECOND / 4, FEED_PAUSE_SECONDS)


class FeedParts:
    """The parts of a stream of changes."""

    def __init__(
        self,
        feed: Feed,
        catch_up: CatchUp,
        since: int,
        wanted: TableFilter,
        reader: Reader,
        pool: MemoryPool,
    ) -> None:
        """The `pool` holds what was made and not yet sent."""
        self._pool = pool
        self._feed = feed
        self._catch_up = catch_up
        self._since = since
        self._wanted = wanted
        self._reader = reader
        self._lagging: LaggingReader | None = None

    async def events(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """`still_allowed` runs before each part; its exception ends the stream."""
        feed, reader = self._feed, self._reader
        told = since = self._since
        feed.open()
        tail: Tail = feed.shared.setdefault(self._wanted, Tail(feed, self._wanted))
        try:
            tail.readers += 1
            while True:
                part = b""
                if feed.find(since + 1) is not None:
                    self._lag_no_more()
                    since, part = await tail.behind(since)
                elif since < feed.newest():
                    since, part = await self._caught_up(since)
                elif not reader.is_silent:
                    self._lag_no_more()
                    await reader.wait(partial(feed.wait, since + 1))
                await still_allowed()
                if part:
                    with self._pool.holding(len(part)):
                        yield part
                    told, reader.sent_at = since, trio.current_time()
                    if since >= feed.newest():
                        await trio.sleep(_pause(reader.beside))
                    elif self._lagging is not None:
                        await trio.sleep(_lag_pause(reader.beside))
                elif reader.is_silent:
                    yield KEEP_ALIVE if told == since else version_event(since)
                    told, reader.sent_at = since, trio.current_time()
        finally:
            self._lag_no_more()
            tail.readers -= 1
            if not tail.readers:
                feed.shared.pop(self._wanted, None)
            feed.close()

    async def _caught_up(self, since: int) -> tuple[int, bytes]:
        """Return a piece of a run of older versions; readers with the same filter share it."""
        if self._lagging is None:
            self._lagging = self._feed.shared_catch_up(self._catch_up).open()
        run = await self._lagging.run_after(since)
        if run is None:  # the database restarts, and does not know what is durable
            return since, b""
        return (await run.made(self._wanted, self._buffer_of)).behind(since)

    async def _buffer_of(self, versions: Sequence[FeedVersion]) -> EventBuffer:
        buffer = EventBuffer(versions[0].version)
        encoder, time_slice = ChangeEncoder(), TimeSlice()
        for version in versions:
            buffer.events.append((await lines_of(version, self._wanted, encoder)).events)
            await time_slice.yield_if_used_up()
        return buffer

    def _lag_no_more(self) -> None:
        lagging, self._lagging = self._lagging, None
        if lagging is not None:
            lagging.close()

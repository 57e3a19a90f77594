"""Encodes the changes of a database: some at a time as JSON, or endless Server-Sent Events.

    {"changes": [{"version", "time", "table", "op", …} …], "next", "newest"}

    change … change ─► version (id: its number) ─► change …
                                                └─► error

Only whole versions are sent, in commit order. A version is encoded once per filter, and all readers
with that filter send the same bytes. A reader pauses after each part, longer if there are many
readers, and then sends all versions that have come meanwhile. So a hundred readers cost little
beside the commits. One that catches up pauses for a shorter time.

A long version is sent in parts, which each reader encodes for itself, one reader at a time: nobody
holds all of it, and the pool has counted what is held.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec
import trio

from qserver.engine.feed import VERSION_BYTES_LONG, CatchUp, Feed, FeedVersion, LaggingReader, Run
from qserver.engine.yielding import TimeSlice, yield_to_others
from qserver.errors import OutOfMemory
from qserver.http1 import Hold, hold_anything
from qserver.limits import (
    ANSWER_PART_BYTES,
    FEED_ANSWER_BYTES_MAX,
    FEED_LOOK_MAX,
    FEED_PARTS_PER_SECOND,
    FEED_PAUSE_SECONDS,
    FEED_PAUSE_SECONDS_MAX,
)
from qserver.query.memory_pool import MemoryPool
from qserver.storage.changes import Change, Changes
from qserver.values.identifiers import name_of_key
from qserver.web.statements.json_values import encode_json
from qserver.web.streaming.changes import CHANGES_ENCODED_AT_ONCE, ChangeEncoder
from qserver.web.streaming.readers import Reader

KEEP_ALIVE: Final = b": keep-alive\n\n"


class TableFilter(msgspec.Struct, frozen=True):
    """The names of the wanted tables; None: all of them."""

    tables: frozenset[str] | None = None

    def wants(self, table: str) -> bool:
        return self.tables is None or table in self.tables


async def lines_of(
    version: FeedVersion, wanted: TableFilter, encoder: ChangeEncoder, *, kept: bool = True
) -> list[bytes]:
    """Return the encoded changes of a version that pass a filter; `kept` for other readers."""

    def encode(changes: Changes) -> Generator[None, None, list[bytes]]:
        head = _head_of(version)
        lines = []
        for count, change in enumerate(changes, 1):
            if count % CHANGES_ENCODED_AT_ONCE == 0:
                yield
            table = _table_of(change)
            if wanted.wants(table):
                lines.append(head + encode_json(encoder.encoded(change))[1:])
        return lines

    return await version.encoded(wanted if kept and not version.is_long else None, encode)


async def events_of(
    version: FeedVersion, wanted: TableFilter, encoder: ChangeEncoder
) -> bytes | None:
    """Return the events of a version that pass a filter; None if it is long."""
    if version.is_long:
        return None
    lines = await lines_of(version, wanted, encoder, kept=False)
    events = b"".join([_CHANGE % line for line in lines])
    if len(events) > VERSION_BYTES_LONG:
        version.is_long = True
        return None
    return events + version_event(version.version) if lines else b""


async def parts_of_long(
    version: FeedVersion, wanted: TableFilter, encoder: ChangeEncoder, pool: MemoryPool
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a long version in parts; the last ends with that of the version.

    One reader makes a part at a time. So all of them hold what they send, and one what it makes;
    the `pool` holds both.
    """
    changes = iter(await version.changes())
    is_whole, found = False, False
    while not is_whole:
        async with version.lock:
            part, is_whole = await _next_part(version, changes, wanted, encoder, pool)
        found = found or part != b""
        if is_whole and found:
            part += version_event(version.version)
        if found:
            with pool.holding(len(part)):
                yield part
        part = b""  # what was sent is let go before the next is made


async def _next_part(
    version: FeedVersion,
    changes: Iterator[Change],
    wanted: TableFilter,
    encoder: ChangeEncoder,
    pool: MemoryPool,
) -> tuple[bytes, bool]:
    """Return the events of the next changes of a long version, and whether these were the last."""
    head, pieces, size, held = _head_of(version), list[bytes](), 0, 0
    with pool.growing() as hold:
        for count, change in enumerate(changes, 1):
            if count % CHANGES_ENCODED_AT_ONCE == 0:
                hold(size - held)
                held = size
                await yield_to_others()
            if wanted.wants(_table_of(change)):
                pieces.append(_CHANGE % (head + encode_json(encoder.encoded(change))[1:]))
                size += len(pieces[-1])
                if size > ANSWER_PART_BYTES:
                    return b"".join(pieces), False
    return b"".join(pieces), True


_CHANGE: Final = b"event: change\ndata: %b\n\n"


def _head_of(version: FeedVersion) -> bytes:
    time = datetime.fromtimestamp(version.time, UTC).isoformat().replace("+00:00", "Z")
    return b'{"version":%d,"time":"%b",' % (version.version, time.encode())


def _table_of(change: Change) -> str:
    return change.table if isinstance(change.table, str) else name_of_key(change.table.key)


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
    hold: Hold = hold_anything,
) -> bytes:
    """Return the body of an answer: versions after `since`, until there are `limit` changes.

    If there is none yet, wait for the first. A version larger than the limit comes whole.
    `still_allowed` runs after each wait; its exception ends the call. `hold` gets the bytes that
    the answer takes.
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
                more = await lines_of(version, wanted, encoder)
                await time_slice.yield_if_used_up()
                if lines and len(lines) + len(more) > limit:
                    break
                lines += more
                found = sum(map(len, more))
                hold(found)
                size += found
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
        self._text = bytearray()
        self._ends: list[int] = []
        """Where the events of each version end: in the text, and in what was dropped before it."""
        self._dropped = 0
        self._long: list[int] = []
        """The long versions, which have no events here."""
        self._joined: tuple[int, int, int, bytes] = (0, 0, 0, b"")

    @property
    def last(self) -> int:
        return self.first + len(self._ends) - 1

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self._text)

    def add(self, events: bytes | None) -> None:
        """Add those of the next version; None for a long one."""
        if events is None:
            self._long.append(self.last + 1)
        else:
            self._text += events
        self._ends.append(self._dropped + len(self._text))

    def forget_before(self, version: int) -> None:
        """Drop the events of older versions; it begins with this one then, or later."""
        count = min(version - self.first, len(self._ends))
        if count > 0:
            end = self._ends[count - 1]
            del self._text[: end - self._dropped], self._ends[:count]
            self._dropped = end
            self.first += count
            del self._long[: bisect_left(self._long, self.first)]
        if not self._ends:
            self.first = max(self.first, version)

    def behind(self, since: int) -> tuple[int, bytes]:
        """Return events after `since`, and the version up to which they go.

        If the next version is not among them, or is long, return `since` and nothing.
        """
        last = self.last
        if not self.first <= since + 1 <= last:
            return since, b""
        if self._joined[:2] != (since, last):
            index = since + 1 - self.first
            begin = self._ends[index - 1] if index else self._dropped
            reached = self.first + bisect_left(self._ends, begin + ANSWER_PART_BYTES, index)
            long = bisect_right(self._long, since)
            if long < len(self._long):
                last = self._long[long] - 1
            reached = min(reached, last)
            end = begin if reached == since else self._ends[reached - self.first]
            with memoryview(self._text) as text:
                piece = bytes(text[begin - self._dropped : end - self._dropped])
            self._joined = (since, self.last, reached, piece)
        return self._joined[2:]


class Tail:
    """The events of the versions in the window that pass one filter; the `pool` holds them."""

    def __init__(self, feed: Feed, wanted: TableFilter, pool: MemoryPool) -> None:
        self._pool = pool
        self._held = 0
        self._feed = feed
        self._wanted = wanted
        self._encoder = ChangeEncoder()
        self._buffer = EventBuffer()
        self._lock = trio.Lock()
        self.readers = 0

    async def behind(self, since: int) -> tuple[int, bytes]:
        """Do as `EventBuffer.behind`; return nothing if the window has moved beyond `since`."""
        if since >= self._buffer.last:  # there is more, or the window moved on
            async with self._lock:
                await self._extend()
                self._charge()
        return self._buffer.behind(since)

    def _charge(self) -> None:
        more = self._buffer.size - self._held
        try:
            if more > 0:
                self._pool.take(more)
            else:
                self._pool.give_back(-more)
        except OutOfMemory:
            self.close()
            raise
        self._held += more

    def close(self) -> None:
        """Drop all events; a reader that comes later begins anew."""
        self._buffer = EventBuffer()
        self._pool.give_back(self._held)
        self._held = 0

    async def _extend(self) -> None:
        """Encode new versions, and drop those that have left the window."""
        feed, buffer, time_slice = self._feed, self._buffer, TimeSlice()
        buffer.forget_before(feed.oldest)
        while (version := feed.find(buffer.last + 1)) is not None:
            buffer.add(await events_of(version, self._wanted, self._encoder))
            await time_slice.yield_if_used_up()
        buffer.forget_before(feed.oldest)


def _next_turn(reader: Reader) -> float:
    """Return when a reader may send its next part; the more there are, the longer it waits."""
    apart = min(1 / FEED_PARTS_PER_SECOND, FEED_PAUSE_SECONDS_MAX / reader.beside)
    return reader.next_turn(FEED_PAUSE_SECONDS, FEED_PAUSE_SECONDS_MAX, apart)


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
        self._encoder = ChangeEncoder()
        self._lagging: LaggingReader | None = None
        self._run: Run | None = None

    async def events(
        self, still_allowed: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes, None]:
        """`still_allowed` runs before each part; its exception ends the stream."""
        feed, reader = self._feed, self._reader
        told = since = self._since
        feed.open()
        tail: Tail = feed.shared.setdefault(self._wanted, Tail(feed, self._wanted, self._pool))
        try:
            tail.readers += 1
            while True:
                part, before, long = b"", since, feed.find(since + 1)
                has_sent = False
                if long is not None:
                    self._lag_no_more()
                    since, part = await tail.behind(since)
                elif since < feed.newest():
                    since, part, long = await self._caught_up(since)
                elif not reader.is_silent:
                    self._lag_no_more()
                    await reader.wait(partial(feed.wait, since + 1))
                await still_allowed()
                if since == before and long is not None and long.is_long:
                    async with aclosing(self._parts_of(long)) as parts:
                        async for part in parts:
                            yield part
                            part, has_sent = b"", True
                            told, reader.sent_at = long.version, trio.current_time()
                            await still_allowed()
                    since = long.version
                elif part:
                    with self._pool.holding(len(part)):
                        yield part
                    part, has_sent = b"", True
                    told, reader.sent_at = since, trio.current_time()
                if has_sent:
                    if since >= feed.newest():
                        await trio.sleep_until(_next_turn(reader))
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
                tail.close()
            feed.close()

    async def _parts_of(self, version: FeedVersion) -> AsyncGenerator[bytes, None]:
        """Yield the events of a long version. Its rows count as held until they have been sent."""
        await version.changes()
        held = version if self._run is None else self._run
        _take(held, self._pool)
        try:
            made = parts_of_long(version, self._wanted, self._encoder, self._pool)
            async with aclosing(made) as parts:
                async for part in parts:
                    yield part
                    part = b""
        finally:
            _give_back(held, self._pool)

    async def _caught_up(self, since: int) -> tuple[int, bytes, FeedVersion | None]:
        """Return a piece of a run of older versions; readers with the same filter share it.

        If the next version is long, return that, and nothing.
        """
        if self._lagging is None:
            self._lagging = self._feed.shared_catch_up(self._catch_up).open()
        run = await self._lagging.run_after(since)
        if run is None:  # the database restarts, and does not know what is durable
            return since, b"", None
        self._have(run)
        reached, part = (await run.made(self._wanted, self._buffer_of)).behind(since)
        return reached, part, run.after(since)[0] if reached == since else None

    async def _buffer_of(self, versions: Sequence[FeedVersion]) -> EventBuffer:
        buffer = EventBuffer(versions[0].version)
        encoder, time_slice = ChangeEncoder(), TimeSlice()
        for version in versions:
            buffer.add(await events_of(version, self._wanted, encoder))
            await time_slice.yield_if_used_up()
        return buffer

    def _have(self, run: Run | None) -> None:
        """Keep a long run, for others too: it is rebuilt once. A short one is kept by its maker."""
        run = run if run is not None and run.is_long else None
        if run is not self._run:
            if self._run is not None:
                _give_back(self._run, self._pool)
                self._run = None
            if run is not None:
                _take(run, self._pool)
                self._run = run

    def _lag_no_more(self) -> None:
        self._have(None)
        lagging, self._lagging = self._lagging, None
        if lagging is not None:
            lagging.close()


def _take(what: FeedVersion | Run, pool: MemoryPool) -> None:
    """Count the rows of something long as held by its readers, once for all of them."""
    if not what.readers:
        pool.take(what.bytes)
    what.readers += 1


def _give_back(what: FeedVersion | Run, pool: MemoryPool) -> None:
    what.readers -= 1
    if not what.readers:
        pool.give_back(what.bytes)

"""GET /v1/changes: the changes of a database since a version.

    since, tables, limit, wait_ms ─► JSON, or endless events with Accept: text/event-stream

A client that returns with `Last-Event-ID`, or with `next` as `since`, misses nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from math import inf

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere
from qserver.engine.database import Database
from qserver.engine.replica import Replica
from qserver.engine.work import before
from qserver.errors import (
    Forbidden,
    HistoryTooOld,
    InvalidRequest,
    ReaderTooSlow,
    UndefinedTable,
)
from qserver.http1 import Response
from qserver.limits import (
    ANSWER_PART_BYTES,
    FEED_LIMIT_DEFAULT,
    FEED_LIMIT_MAX,
    FEED_WAIT_MS_MAX,
)
from qserver.storage.snapshot import Snapshot
from qserver.values.identifiers import key_of_name, name_of_key, names_in
from qserver.web.calls import Endpoint, Facts, KeyedCall, Serving
from qserver.web.query_strings import read_query_string, whole_number
from qserver.web.route import Route
from qserver.web.statements.answers import error_event
from qserver.web.statements.freshness import MIN_VERSION, version_wanted
from qserver.web.streaming.feed import FeedParts, TableFilter, some_changes
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.readers import Reader
from qserver.web.streaming.streams import EVENT_STREAM

PATH = "/v1/changes"


class FeedOptions(msgspec.Struct, frozen=True):
    since: int
    wanted: TableFilter
    limit: int
    wait_seconds: float
    database: str | None


class ChangesEndpoint(Endpoint):
    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path, compressible=True)
        self._known = route.parameters
        headers, method = facts.headers, facts.request.method
        named = headers.get(b"x-database")
        self._database = None if named is None else named.decode("latin-1")
        self._waits = method == "GET"
        self.streams = self._waits and EVENT_STREAM in headers.get(b"accept", b"")
        self._last_event_id = headers.get(b"last-event-id")

    def options(self) -> FeedOptions:
        """Parse the parameters; raise if one is unknown or invalid."""
        given = read_query_string(self.request.query, self._known)
        since = given.get("since")
        name = "since"
        if self.streams and self._last_event_id is not None:
            name, since = "Last-Event-ID", self._last_event_id.decode("latin-1")
        if since is None:
            raise InvalidRequest(
                "the parameter since is missing",
                hint="Send the version that you know: every answer of a query has one.",
            )
        tables = given.get("tables")
        wait_ms = whole_number("wait_ms", given.get("wait_ms", "0"), 0, FEED_WAIT_MS_MAX)
        return FeedOptions(
            whole_number(name, since, 0),
            TableFilter(None if tables is None else frozenset(map(_table, names_in(tables)))),
            whole_number("limit", given.get("limit", str(FEED_LIMIT_DEFAULT)), 1, FEED_LIMIT_MAX),
            wait_ms / 1000 if self._waits else 0.0,
            given.get("database", self._database),
        )


class ChangesCall(KeyedCall):
    endpoint: ChangesEndpoint
    _options: FeedOptions
    _opened: OpenDatabase | None = None
    _feed_open = False
    _reader: Reader | None = None

    reads_body = False

    def run(self, body: bytes) -> Serving:
        if not self.grant.may_read:
            raise Forbidden(
                "this needs the scope data:read", hint="Use a key that has it, or make one."
            )
        self._options = self.endpoint.options()
        changes = yield partial(self._begun, self._options)
        return self._answered(changes)

    async def _begun(self, options: FeedOptions) -> bytes | None:
        """Open the database, and read some changes; None for a stream, which reads later."""
        service = self.endpoint.service
        opened = self._opened = await service.plane.database_to_read(self.grant, options.database)
        reader = self._reader = service.feed_readers.open(
            self.grant.organization_id, self.grant.limits.feeds
        )
        database = opened.readable
        reader.wake = database.feed.changed
        database.feed.open()  # what comes from now on stays in its window
        self._feed_open = True
        deadline = self.grant.deadline()
        wanted = version_wanted(self.values.get(MIN_VERSION))
        newest = await opened.sql.wait_fresh(wanted, deadline)
        if options.since > newest.version:
            raise InvalidRequest(
                f"there is no version {options.since} yet, the newest is {newest.version}"
            )
        try:
            await _check_tables(database, options, newest, deadline)
            if self.endpoint.streams:
                await before(deadline, _check_kept, database, options.since)
                return None
            with self.grant.share.memory.growing() as hold:
                return await some_changes(
                    database.feed,
                    database.catch_up,
                    options.since,
                    options.wanted,
                    options.limit,
                    options.wait_seconds,
                    reader,
                    self._check_of(opened, reader),
                    hold,
                )
        except (HistoryTooOld, ReaderTooSlow) as error:
            if opened.owner is not None:
                raise OwnedElsewhere(opened.owner, opened.id) from error
            raise _gone(error) from None

    def _check_of(self, opened: OpenDatabase, reader: Reader) -> Callable[[], Awaitable[None]]:
        """Return a check that raises if the reader may no longer read."""
        service, headers = self.endpoint.service, self.endpoint.headers

        async def check() -> None:
            reader.check()
            opened.check_open()
            await service.check_still_allowed(headers, self.grant, opened.id, ())

        return check

    def _answered(self, body: bytes | None) -> Response:
        if body is not None:
            self.release()
            if len(body) > ANSWER_PART_BYTES:
                return self._in_parts(body)
            return self.answer(200, self.headers(), body)
        out = self.headers(
            (
                (b"content-type", EVENT_STREAM),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            )
        )

        async def ended() -> None:
            self.release()
            self.count(200)

        return self.answer_in_parts(out, AnswerParts(self._events(), ended), live=True)

    def _in_parts(self, body: bytes) -> Response:
        """A long answer. It counts as used memory until it has been sent."""
        pool = self.grant.share.memory
        pool.take(len(body))

        async def parts() -> AsyncGenerator[bytes, None]:
            for start in range(0, len(body), ANSWER_PART_BYTES):
                yield body[start : start + ANSWER_PART_BYTES]

        async def ended() -> None:
            pool.give_back(len(body))
            self.count(200)

        return self.answer_in_parts(self.headers(), AnswerParts(parts(), ended))

    async def _events(self) -> AsyncGenerator[bytes, None]:
        opened, reader, options = self._opened, self._reader, self._options
        assert opened is not None and reader is not None
        database = opened.readable
        reader.sent_at = -inf  # so that something is sent at once, and the head with it
        pool = self.grant.share.memory
        parts = FeedParts(
            database.feed, database.catch_up, options.since, options.wanted, reader, pool
        )
        try:
            async with aclosing(parts.events(self._check_of(opened, reader))) as events:
                async for part in events:
                    yield part
                    part = b""  # what was sent is let go before the next is made
        except Exception as error:
            if isinstance(error, HistoryTooOld):
                error = ReaderTooSlow(
                    "the reader has fallen out of the history that is kept",
                    hint="Read the tables anew, and their changes from that version on.",
                )
            yield error_event(self.known(error), self.request_id)

    def release(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            if self._feed_open:
                self._feed_open = False
                opened.readable.feed.close()
            opened.release()
        if self._reader is not None:
            self._reader.close()


ChangesEndpoint.kind = ChangesCall


async def _check_kept(database: Database | Replica, since: int) -> None:
    """Raise HistoryTooOld if the changes after a version are no longer kept."""
    feed = database.feed
    if since < feed.newest() and feed.find(since + 1) is None:
        await database.history.check_kept(since)


async def _check_tables(
    database: Database | Replica, options: FeedOptions, newest: Snapshot, deadline: float
) -> None:
    """Raise if a wanted table is unknown.

    One that was there at `since` is known: who was cut off must learn how its table ended.
    """
    if options.wanted.tables is None:
        return
    unknown = options.wanted.tables - _tables_of(newest)
    if unknown and options.since < newest.version:
        earlier = await database.snapshot_at(options.since, deadline)
        unknown -= _tables_of(earlier)
    for name in sorted(unknown):
        raise UndefinedTable(f'relation "{name}" does not exist', table=name)


def _tables_of(snapshot: Snapshot) -> set[str]:
    return {name_of_key(table.key) for table in snapshot.catalog.tables.values()}


def _table(name: str) -> str:
    """Return a name as the feed has it, which may have been given with quotes it does not need."""
    return name_of_key(key_of_name(name))


def _gone(error: HistoryTooOld | ReaderTooSlow) -> HistoryTooOld:
    """What a reader is told that asks anew each time: it was too late."""
    if isinstance(error, ReaderTooSlow):
        error = HistoryTooOld(error.message, hint=error.hint)
    error.is_gone = True
    return error

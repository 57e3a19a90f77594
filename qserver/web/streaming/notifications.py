"""GET /v1/notifications: what transactions tell listeners with NOTIFY, as Server-Sent Events.

    listening ─► notification … notification ─►  without an end
                                            └─► error

Nothing is stored, so there is nothing to resume: who connects again hears what is told from then
on. The first event says from when on that is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Final

import trio

from qserver.control.databases import OpenDatabase
from qserver.engine.channels import Listener, Notification
from qserver.errors import Forbidden, InvalidParameterValue, InvalidRequest
from qserver.http1 import Response
from qserver.limits import ANSWER_PART_BYTES, CHANNELS_MAX
from qserver.query.listening import checked
from qserver.web.calls import Endpoint, Facts, KeyedCall, Serving
from qserver.web.query_strings import read_query_lists
from qserver.web.route import Route
from qserver.web.statements.answers import error_event
from qserver.web.statements.json_values import encode_json
from qserver.web.streaming.feed import KEEP_ALIVE
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.readers import Reader
from qserver.web.streaming.streams import EVENT_STREAM

PATH: Final = "/v1/notifications"

_LISTENING: Final = b"event: listening\ndata: %b\n\n"
_NOTIFICATION: Final = b"event: notification\ndata: %b\n\n"


class NotificationsEndpoint(Endpoint):
    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path, compressible=True)
        self._known = route.parameters
        named = facts.headers.get(b"x-database")
        self._database = None if named is None else named.decode("latin-1")
        self.streams = facts.request.method == "GET"

    def options(self) -> tuple[frozenset[str], str | None]:
        """Return the channels and the database; raise if a parameter is unknown or invalid."""
        given = read_query_lists(self.request.query, self._known, several=("channel",))
        try:
            channels = frozenset(map(checked, given.get("channel", ())))
        except InvalidParameterValue as error:
            raise InvalidRequest(error.message) from None
        if not channels:
            raise InvalidRequest("the parameter channel is missing", hint="Write ?channel=news.")
        if len(channels) > CHANNELS_MAX:
            raise InvalidRequest(f"a listener has at most {CHANNELS_MAX} channels")
        return channels, given.get("database", [self._database])[0]


class NotificationsCall(KeyedCall):
    endpoint: NotificationsEndpoint
    _opened: OpenDatabase | None = None
    _reader: Reader | None = None
    _listener: Listener | None = None
    _has_heard: trio.Event

    reads_body = False

    def run(self, body: bytes) -> Serving:
        if not self.grant.may_read:
            raise Forbidden(
                "this needs the scope data:read", hint="Use a key that has it, or make one."
            )
        channels, database = self.endpoint.options()
        yield partial(self._begun, channels, database)
        return self._answered(channels)

    async def _begun(self, channels: frozenset[str], database: str | None) -> None:
        """Listen, at the process that owns the database: there alone commits are made."""
        service = self.endpoint.service
        opened = self._opened = await service.plane.database(self.grant, database)
        reader = self._reader = service.feed_readers.open(
            self.grant.organization_id, self.grant.limits.feeds
        )
        self._has_heard = trio.Event()
        reader.wake = self._hear
        self._listener = Listener(self._hear)
        self._listener.listen(opened.database.channels, channels)

    def _hear(self) -> None:
        self._has_heard.set()

    def _answered(self, channels: frozenset[str]) -> Response:
        out = self.headers(
            (
                (b"content-type", EVENT_STREAM),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            )
        )
        if not self.endpoint.streams:
            self.release()
            return self.answer(200, out, b"")

        async def ended() -> None:
            self.release()
            self.count(200)

        return self.answer_in_parts(out, AnswerParts(self._events(channels), ended), live=True)

    async def _events(self, channels: frozenset[str]) -> AsyncGenerator[bytes, None]:
        listener, reader = self._listener, self._reader
        assert listener is not None and reader is not None
        try:
            yield _LISTENING % encode_json({"channels": sorted(channels)})
            while True:
                reader.sent_at = trio.current_time()
                while not (part := _taken(listener)) and not reader.is_silent:
                    await self._wait(listener, reader)
                yield part or KEEP_ALIVE
                part = b""  # what was sent is let go before the next is made
        except Exception as error:
            yield error_event(self.known(error), self.request_id)

    async def _wait(self, listener: Listener, reader: Reader) -> None:
        """Wait until something was heard, or until roused; raise if that is over."""
        opened, service = self._opened, self.endpoint.service
        assert opened is not None
        if listener.ended is None:
            await reader.wait(self._has_heard.wait)
            self._has_heard = trio.Event()
        reader.check()
        opened.check_open()
        if listener.ended is not None:
            raise listener.ended
        await service.check_still_allowed(self.endpoint.headers, self.grant, opened.id, ())

    def release(self) -> None:
        if self._listener is not None:
            self._listener.close()
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.release()
        if self._reader is not None:
            self._reader.close()


NotificationsEndpoint.kind = NotificationsCall


def _taken(listener: Listener) -> bytes:
    """Return events of what it has heard, for one part of the answer."""
    part = bytearray()
    while len(part) < ANSWER_PART_BYTES and (heard := listener.take()) is not None:
        part += _NOTIFICATION % encode_json(_plain(heard))
    return bytes(part)


def _plain(heard: Notification) -> dict[str, str | int]:
    return {
        "channel": heard.channel,
        "payload": heard.payload,
        "pid": heard.sender,
        "version": heard.version,
    }

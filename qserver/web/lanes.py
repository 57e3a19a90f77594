"""The shortest way through the service: a query whose answer is at hand.

    bytes ─► request ─► grant, database, plan: all kept ─► one page of rows ─► bytes

Nothing on it waits, so it needs no task, no ASGI, no coroutine; what follows from the head of the
request (route, host, CORS, token) was found out once, for all requests of a connection that repeat
it. Whatever is not just like that (a write, a new shape, many rows, a stream, an error, a limited
tier) takes the ordinary way, which is `dataplane`: this one answers only with success, and
before it answers it has changed nothing, so to begin again is always right.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

import msgspec

from qserver.errors import QserverError
from qserver.web.answers import WRITERS, query_body
from qserver.web.http1 import Lane
from qserver.web.requests import JSON_TYPES, query_request, wants_stream
from qserver.web.rows import ROWS_ENCODED_AT_ONCE, RowEncoders
from qserver.web.service import BEARER, Service, allowed_of
from qserver.web.statuses import Headers
from qserver.web.streams import EVENT_STREAM, NDJSON

PATH: Final = "/v1/query"
ORDINARY_WAY: Final = frozenset({b"x-request-id", b"idempotency-key", b"expect"})
"""Headers with which a request does not take a lane."""


def find_lane(
    headers: dict[bytes, bytes],
    headers_out: Headers,
    service: Service,
    encoders: RowEncoders,
    next_id: Callable[[], str],
) -> Lane | None:
    """The lane for POST /v1/query with these headers, if they are plain enough."""
    authorization = headers.get(b"authorization", b"")
    accept = headers.get(b"accept", b"")
    if (
        authorization[:7].lower() != BEARER
        or EVENT_STREAM in accept
        or NDJSON in accept
        or headers.get(b"content-type", b"") not in JSON_TYPES
        or not ORDINARY_WAY.isdisjoint(headers)
    ):
        return None
    named = headers.get(b"x-database")
    lines = b"".join(b"%b: %b\r\n" % each for each in headers_out)
    database = None if named is None else named.decode("latin-1")
    token = authorization[7:].decode("latin-1")
    return ReadLane(service, encoders, next_id, token, database, lines)


class ReadLane:
    __slots__ = ("_database", "_encoders", "_lines", "_next_id", "_service", "_token")

    def __init__(
        self,
        service: Service,
        encoders: RowEncoders,
        next_id: Callable[[], str],
        token: str,
        database: str | None,
        lines: bytes,
    ) -> None:
        self._service = service
        self._encoders = encoders
        self._next_id = next_id
        self._token = token
        self._database = database
        self._lines = lines
        """Of every answer, ready to be sent."""

    def answer(self, body: bytes) -> tuple[bytes, bytes, str] | None:
        started = perf_counter()
        plane = self._service.plane
        grant = plane.grant_nowait(self._token)
        if grant is None or grant.tier != "unlimited":
            return None
        try:
            request = query_request(b"", body)
            if request.max_rows is not None or wants_stream(request.sql):
                return None
            name = self._database if request.database is None else request.database
            opened = plane.database_nowait(grant, name)
            if opened is None:
                return None
            try:
                began = perf_counter()
                result = opened.sql.read_nowait(request.sql, request.params, allowed_of(grant))
                ended = perf_counter()
            finally:
                opened.release()
        except (QserverError, msgspec.MsgspecError, ArithmeticError):
            return None  # the ordinary way will meet it again, and say it in full
        if result is None or len(result.rows) > ROWS_ENCODED_AT_ONCE:
            return None
        encoder = self._encoders.find(result.columns, result.types)
        rows = WRITERS[request.format](encoder, result.rows)
        exec_us = int((ended - began) * 1_000_000)
        total = perf_counter() - started
        request_id = self._next_id()
        self._service.metrics.count(PATH, 200, total)
        return (
            b"%bx-request-id: %b\r\n" % (self._lines, request_id.encode()),
            query_body(result, encoder, rows, int(total * 1_000_000), exec_us),
            request_id,
        )

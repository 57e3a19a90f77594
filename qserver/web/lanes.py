"""The short ways through the service: what can be answered, or begun, right where it arrives.

    bytes ─► request ─► grant, database, plan: all kept ─┬─ reads: one page of rows ─► bytes
                                                         └─ writes: Commit sent ─► LATER
                                                                       durable ─► bytes ─┘

Nothing on them waits, so they need no task, no ASGI, no coroutine; what follows from the head of
the request (route, host, CORS, token) was found out once, for all requests of a connection that
repeat it. Whatever is not just like that (a new shape, many rows, a stream, an error, a limited
tier) takes the ordinary way, which is `dataplane`: before a lane gives up a request it has changed
nothing, so to begin again is always right. There is one error that a lane answers itself: that
nobody knows what became of a commit. To begin again then could do a thing twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, Literal, TypeAlias

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.control.records import Grant
from qserver.engine.sql_gateway import TransactionResult
from qserver.errors import QserverError
from qserver.limits import ANSWER_PART_BYTES
from qserver.web.answers import WRITERS, error_body, query_body, transaction_body
from qserver.web.http1 import Lane, LaneAnswer, LaneLater, Waits
from qserver.web.requests import JSON_TYPES, query_request, transaction_request, wants_stream
from qserver.web.rows import ROWS_ENCODED_AT_ONCE, RowEncoders
from qserver.web.service import BEARER, Service, allowed_of
from qserver.web.statuses import Headers, headers_of, status_of
from qserver.web.streams import EVENT_STREAM, NDJSON

Answer: TypeAlias = LaneAnswer | Literal[Waits.LATER] | None

ORDINARY_WAY: Final = frozenset({b"x-request-id", b"idempotency-key", b"expect"})
"""Headers with which a request does not take a lane."""

BODY_BYTES_MAX: Final = 16_384
"""A longer body asks for more than is to be done while everybody else waits."""


def find_lane(
    path: str,
    headers: dict[bytes, bytes],
    headers_out: Headers,
    service: Service,
    encoders: RowEncoders,
    next_id: Callable[[], str],
) -> Lane | None:
    """The lane for a POST to the path with these headers, if they are plain enough."""
    authorization = headers.get(b"authorization", b"")
    accept = headers.get(b"accept", b"")
    if (
        path not in LANES
        or authorization[:7].lower() != BEARER
        or EVENT_STREAM in accept
        or NDJSON in accept
        or headers.get(b"content-type", b"") not in JSON_TYPES
        or not ORDINARY_WAY.isdisjoint(headers)
    ):
        return None
    named = headers.get(b"x-database")
    database = None if named is None else named.decode("latin-1")
    token = authorization[7:].decode("latin-1")
    return LANES[path](service, encoders, next_id, token, database, _lines(headers_out))


class _Lane(ABC):
    """What both lanes have in common."""

    path: str
    no_results: Sequence[object] | None
    """What an error has in place of results."""

    __slots__ = ("_database", "_lines", "_next_id", "_token", "encoders", "service")

    def __init__(
        self,
        service: Service,
        encoders: RowEncoders,
        next_id: Callable[[], str],
        token: str,
        database: str | None,
        lines: bytes,
    ) -> None:
        self.service = service
        self.encoders = encoders
        self._next_id = next_id
        self._token = token
        self._database = database
        self._lines = lines
        """Of every answer, ready to be sent."""

    def answer(self, body: bytes, later: LaneLater) -> Answer:
        started = perf_counter()
        grant = self.service.plane.grant_nowait(self._token)
        if grant is None or grant.tier != "unlimited" or len(body) > BODY_BYTES_MAX:
            return None
        try:
            return self._answer(body, grant, later, started)
        except (QserverError, msgspec.MsgspecError, ArithmeticError):
            return None  # the ordinary way will meet it again, and say it in full

    @abstractmethod
    def _answer(self, body: bytes, grant: Grant, later: LaneLater, started: float) -> Answer:
        """The answer to a request whose grant is known."""

    def _open(self, grant: Grant, named: str | None) -> OpenDatabase | None:
        return self.service.plane.database_nowait(grant, self._database if named is None else named)

    def success(self, body: bytes, seconds: float) -> LaneAnswer:
        self.service.metrics.count(self.path, 200, seconds)
        request_id = self._next_id()
        lines = b"%bx-request-id: %b\r\n" % (self._lines, request_id.encode())
        return LaneAnswer(200, lines, body, request_id)

    def failure(self, error: Exception, seconds: float) -> LaneAnswer:
        request_id = self._next_id()
        if not isinstance(error, QserverError):
            error = self.service.internal_error(error, request_id)
        status, microseconds = status_of(error), _us(seconds)
        self.service.metrics.count(self.path, status, seconds)
        body = error_body(error, request_id, microseconds, microseconds, results=self.no_results)
        lines = _lines([*headers_of(error), (b"x-request-id", request_id.encode())])
        return LaneAnswer(status, self._lines + lines, body, request_id)

    @abstractmethod
    def outcome_body(
        self, outcome: TransactionResult, form: str, total: float, seconds: float
    ) -> bytes:
        """The answer to a request whose commit is durable."""


class QueryLane(_Lane):
    path = "/v1/query"
    no_results = None
    __slots__ = ()

    def _answer(self, body: bytes, grant: Grant, later: LaneLater, started: float) -> Answer:
        request = query_request(b"", body)
        if request.max_rows is not None or wants_stream(request.sql):
            return None
        opened = self._open(grant, request.database)
        if opened is None:
            return None
        allowed = allowed_of(grant)
        begun = False
        try:
            began = perf_counter()
            found = opened.sql.look(request.sql, request.params)
            if found is None:
                return None
            result = opened.sql.read_found(found, allowed)
            ended = perf_counter()
            if result is None and request.max_retries is None:
                done = _Begun(self, opened, request.format, later, started, began)
                begun = opened.sql.write_nowait((found,), done, allowed)
        finally:
            if not begun:
                opened.release()
        if begun:
            return Waits.LATER
        if result is None or len(result.rows) > ROWS_ENCODED_AT_ONCE:
            return None
        encoder = self.encoders.find(result.columns, result.types)
        if encoder.size_about(result.rows) > ANSWER_PART_BYTES:
            return None  # it is sent in parts
        rows = WRITERS[request.format](encoder, result.rows)
        total = perf_counter() - started
        times = _us(total), _us(ended - began)
        return self.success(query_body(result, encoder, rows, result.version, 0, *times), total)

    def outcome_body(
        self, outcome: TransactionResult, form: str, total: float, seconds: float
    ) -> bytes:
        (result,) = outcome.results
        encoder = self.encoders.find(result.columns, result.types)
        rows = WRITERS[form](encoder, result.rows)
        times = _us(total), _us(seconds)
        return query_body(result, encoder, rows, outcome.version, outcome.retries, *times)


class TransactionLane(_Lane):
    path = "/v1/transaction"
    no_results = ()
    __slots__ = ()

    def _answer(self, body: bytes, grant: Grant, later: LaneLater, started: float) -> Answer:
        request, statements = transaction_request(b"", body)
        if request.max_rows is not None or request.max_retries is not None:
            return None
        opened = self._open(grant, request.database)
        if opened is None:
            return None
        begun = False
        try:
            done = _Begun(self, opened, request.format, later, started, perf_counter())
            begun = opened.sql.write_nowait(statements, done, allowed_of(grant))
        finally:
            if not begun:
                opened.release()
        return Waits.LATER if begun else None

    def outcome_body(
        self, outcome: TransactionResult, form: str, total: float, seconds: float
    ) -> bytes:
        encoded = []
        for result in outcome.results:
            encoder = self.encoders.find(result.columns, result.types)
            encoded.append((encoder, WRITERS[form](encoder, result.rows)))
        return transaction_body(outcome, encoded, _us(total), _us(seconds))


class _Begun:
    """A request whose commit has been sent; called when it is known what became of it."""

    __slots__ = ("_began", "_form", "_lane", "_later", "_opened", "_started")

    def __init__(
        self,
        lane: _Lane,
        opened: OpenDatabase,
        form: str,
        later: LaneLater,
        started: float,
        began: float,
    ) -> None:
        self._lane = lane
        self._opened = opened
        self._form = form
        self._later = later
        self._started = started
        self._began = began

    def __call__(self, outcome: TransactionResult | Exception | None) -> None:
        self._opened.release()
        self._later(None if outcome is None else self._answer(outcome))

    def _answer(self, outcome: TransactionResult | Exception) -> LaneAnswer:
        now = perf_counter()
        total = now - self._started
        lane = self._lane
        if isinstance(outcome, Exception):
            return lane.failure(outcome, total)
        try:
            body = lane.outcome_body(outcome, self._form, total, now - self._began)
        except Exception as error:  # a bug here must not harm whoever tells of the outcome
            return lane.failure(error, total)
        return lane.success(body, total)


LANES: Final[dict[str, type[_Lane]]] = {each.path: each for each in (QueryLane, TransactionLane)}


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % each for each in headers])


def _us(seconds: float) -> int:
    return int(seconds * 1_000_000)

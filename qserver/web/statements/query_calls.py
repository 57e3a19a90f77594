"""POST /v1/query and /query: one statement, and how its rows are sent.

run ─► use ─┬─ execute   one answer
            ├─ stream    rows as they are found
            └─ live      rows, and then how they change
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

from qserver.control.records import Grant
from qserver.control.tiers import Limits
from qserver.errors import InvalidRequest
from qserver.http1 import Response
from qserver.query.live_query import LiveQuery
from qserver.query.row_stream import RowStream
from qserver.query.sql_database import Statement, TransactionResult
from qserver.web.bulk.arrow_rows import require_arrow
from qserver.web.calls import KeyedCall, Serving
from qserver.web.description.shapes import QueryRequest
from qserver.web.statements.answers import WRITERS, Encoded, Sliced, query_tail, rows_in_parts
from qserver.web.statements.named import Named
from qserver.web.statements.requests import (
    BODY_BYTES_SHORT,
    is_live,
    query_request,
    read_query_request,
    text_request,
    wants_stream,
)
from qserver.web.statements.rows import RowEncoder
from qserver.web.statements.statement_calls import StatementCall
from qserver.web.streaming.changes import tail_in_parts, with_diff
from qserver.web.streaming.live import LiveEvents, LiveParts, checked_live, lines_with
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.streams import ArrowBatches, EventStream, Format, RowParts, begun

DecodeLong: TypeAlias = Callable[[bytes, bytes, Limits], Coroutine[Any, Any, QueryRequest]]


class QueryCall(StatementCall):
    _every_seconds = 0.0
    only_queries: ClassVar = False
    """Whether statements that are no queries are refused."""
    decode: Callable[[bytes, bytes], QueryRequest] = staticmethod(query_request)
    decode_long: DecodeLong | None = staticmethod(read_query_request)

    def limit(self, grant: Grant) -> None:
        self._named = named = Named(grant)
        self.decode, self.decode_long = named.query, named.read_query

    def run(self, body: bytes) -> Serving:
        if len(body) > BODY_BYTES_SHORT and self.decode_long is not None:
            return self.until_left(self._run_long(self.decode_long, body))
        return self.answered(self.decode(self.endpoint.content_type, body))

    def _run_long(self, decode: DecodeLong, body: bytes) -> Serving:
        content_type, limits = self.endpoint.content_type, self.grant.limits
        request = yield partial(decode, content_type, body, limits)
        return (yield from self.answered(request))

    def answered(self, request: QueryRequest) -> Serving:
        """Answer as the client wants it: with all rows, with a stream of them, or live."""
        sql = request.sql
        self._statements = (Statement(sql, request.params),)
        form, hinted = self.endpoint.form, "/*+" in sql
        if request.live or request.every_ms is not None or (hinted and is_live(sql)):
            self._every_seconds = checked_live(request, form)
            return self.until_left(self.live(request))
        if form is not None or (hinted and wants_stream(sql)):
            if request.dry_run:
                raise InvalidRequest(
                    "a dry run cannot be streamed", hint="Ask for one answer, with max_rows."
                )
            return self.until_left(self.stream(request))
        return self.execute(request)

    def encode(self, outcome: TransactionResult) -> Response | None:
        (result,) = outcome.results
        rows = result.rows
        encoder = self.endpoint.encoders.find(result.columns, result.types)
        if outcome.diff is not None or not encoder.are_short(rows):
            return None
        rows_json = WRITERS[self._form](encoder, rows)
        seconds = perf_counter() - self.started
        tail = query_tail(outcome, encoder, seconds, self._ended - self._began)
        return self.answer(200, self.headers(), encoder.query_head + rows_json + tail, seconds)

    def encoders_of(self, outcome: TransactionResult) -> Sequence[Encoded]:
        (result,) = outcome.results
        return [(self.endpoint.encoders.find(result.columns, result.types), result.rows)]

    def whole_answer(
        self, outcome: TransactionResult, every: Sequence[Encoded], rows: Sequence[bytes]
    ) -> bytes:
        encoder = every[0][0]
        tail = query_tail(outcome, encoder, self.elapsed(), self._ended - self._began)
        if outcome.diff is not None:
            tail = with_diff(tail, outcome.diff)
        return encoder.query_head + rows[0] + tail

    def parts_of(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Iterator[bytes]:
        ((encoder, slices),) = every
        yield encoder.query_head
        yield from rows_in_parts(encoder, slices, WRITERS[self._form])
        tail = query_tail(outcome, encoder, self.elapsed(), self._ended - self._began)
        yield from tail_in_parts(tail, outcome.diff)

    def stream(self, request: QueryRequest) -> Serving:
        """Start a statement whose rows are sent as they are computed.

        In an open transaction, its next use waits for the end of the stream.
        """
        if not self.use_nowait(request):
            yield from self.use()
        return (yield from self._open_stream())

    def _open_stream(self) -> Serving:
        if self.endpoint.form is ArrowBatches:
            yield require_arrow
        (statement,), options, held = self._statements, self._options, self._held
        if held is not None:
            sql, inside = held.opened.sql, held.transaction
            beginning = partial(sql.stream_inside, inside, statement, options)
        else:
            assert self._opened is not None
            beginning = partial(
                self._opened.sql.stream,
                statement.sql,
                statement.parameters,
                timeout_ms=options.timeout_ms,
                max_retries=options.max_retries,
                allowed=options.allowed,
                max_affected=options.max_affected,
                if_version=options.if_version,
                request_id=self.request_id,
                as_of=options.as_of,
                freshness=options.freshness,
                only_queries=self.only_queries,
                session=options.session,
            )
        stream = yield partial(begun, beginning, self.endpoint.form)
        return self._streams(stream)

    def _streams(self, stream: RowStream) -> Response:
        endpoint = self.endpoint
        encoder = endpoint.encoders.find(stream.columns, stream.types)
        form = self.format_of(encoder)

        async def check() -> None:
            if not stream.committed:
                await self.check_still_allowed()

        pool = self.grant.share.memory
        most = self._options.cut_rows
        rows = RowParts(stream, form, self.request_id, self.elapsed_us, self.known, pool, most)
        return self._as_stream(form.content_type, rows.parts(check), stream.aclose)

    def format_of(self, encoder: RowEncoder) -> Format:
        """Return what writes the parts of a stream."""
        return (self.endpoint.form or EventStream)(encoder, as_arrays=self._form == "arrays")

    def live(self, request: QueryRequest) -> Serving:
        """Start a live query."""
        if not self.use_nowait(request):
            yield from self.use()
        if self._held is not None:
            raise InvalidRequest(
                "a live query cannot be part of an open transaction: that sees one version for ever"
            )
        if request.settings is not None:
            raise InvalidRequest("a live query has no settings of its own")
        assert self._opened is not None
        grant, readers = self.grant, self.endpoint.service.live_queries
        self._reader = readers.open(grant.organization_id, grant.limits.live_queries)
        (statement,), options = self._statements, self._options
        find, as_arrays = self.endpoint.encoders.find, self._form == "arrays"
        live = yield partial(
            self._opened.sql.live,
            statement.sql,
            statement.parameters,
            lines_of=lambda plan: lines_with(find(plan.columns, plan.types), as_arrays=as_arrays),
            timeout_ms=options.timeout_ms,
            allowed=options.allowed,
            freshness=options.freshness,
            request_id=self.request_id,
        )
        return self._lives(live)

    def _lives(self, live: LiveQuery) -> Response:
        endpoint, reader, opened = self.endpoint, self._reader, self._opened
        assert reader is not None and opened is not None
        reader.wake = live.wake
        encoder = endpoint.encoders.find(live.columns, live.types)
        form = LiveEvents(encoder, live, as_arrays=self._form == "arrays")

        async def check() -> None:
            reader.check()
            opened.check_open()
            await self.check_still_allowed()

        every_seconds = self._every_seconds
        pool = self.grant.share.memory
        parts = LiveParts(live, form, self.request_id, self.known, every_seconds, reader, pool)
        return self._as_stream(form.content_type, parts.parts(check), live.close)

    def _as_stream(
        self,
        content_type: bytes,
        parts: AsyncGenerator[bytes, None],
        close: Callable[[], Awaitable[None]],
    ) -> Response:
        async def ended() -> None:
            try:
                await close()
            finally:
                self.release()
                self.count(200)

        out = self.headers(
            (
                (b"content-type", content_type),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            )
        )
        live = self.endpoint.form in (None, EventStream)
        return self.answer_in_parts(out, AnswerParts(parts, ended), live=live)


class TextCall(QueryCall):
    """A query whose whole body is the statement."""

    decode = staticmethod(text_request)
    decode_long = None

    def limit(self, grant: Grant) -> None:
        KeyedCall.limit(self, grant)

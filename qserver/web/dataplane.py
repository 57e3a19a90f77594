"""The hot routes, in plain ASGI: POST /v1/query, /query and /v1/transaction, and their streams.

    bearer ─► grant ─► rate limit ─► body ─► request ─► database ─► execute ─► rows as JSON
             (kept)                                     (open)      (plan kept)

For a statement that was seen before, with a key that was seen before, nothing on this way waits
for anything but the client. Everything else the service does is in `routes`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from qserver.control.databases import OpenDatabase
from qserver.control.records import Grant
from qserver.engine.sql_gateway import Result
from qserver.errors import InvalidRequest, QserverError
from qserver.limits import ANSWER_ROWS_MAX, RETRIES_DEFAULT, STATEMENT_SECONDS_MAX
from qserver.web.answers import (
    WRITERS,
    Write,
    is_long,
    query_body,
    query_head,
    query_tail,
    rows_in_parts,
    rows_json,
    transaction_body,
    transaction_in_parts,
    transaction_tail,
)
from qserver.web.exchange import Exchange
from qserver.web.requests import (
    read_query_request,
    read_transaction_request,
    text_request,
    wants_stream,
)
from qserver.web.rows import RowEncoder, RowEncoders
from qserver.web.service import Service, allowed_of
from qserver.web.shapes import QueryRequest, TransactionRequest
from qserver.web.streams import EVENT_STREAM, NDJSON, EventStream, JsonLines, send_stream

Handler = Callable[[Exchange], Awaitable[None]]

TIMEOUT_MS: Final = STATEMENT_SECONDS_MAX * 1000


class DataPlane:
    def __init__(self, service: Service) -> None:
        self._service = service
        self.encoders = RowEncoders()
        self.handlers: dict[str, Handler] = {
            "/v1/query": self.query,
            "/query": self.text_query,
            "/v1/transaction": self.transaction,
        }

    async def query(self, exchange: Exchange) -> None:
        grant = await self._service.authenticate(exchange.headers)
        self._admit(exchange, grant)
        body = await exchange.body()
        content_type = exchange.headers.get(b"content-type", b"")
        request = await read_query_request(content_type, body)
        await self._answer(exchange, grant, request)

    async def text_query(self, exchange: Exchange) -> None:
        grant = await self._service.authenticate(exchange.headers)
        self._admit(exchange, grant)
        body = await exchange.body()
        request = text_request(exchange.headers.get(b"content-type", b""), body)
        await self._answer(exchange, grant, request)

    def _admit(self, exchange: Exchange, grant: Grant) -> None:
        self._service.count_request(grant, exchange.headers_out)
        if b"idempotency-key" in exchange.headers:
            raise InvalidRequest("this version does not know Idempotency-Key")

    async def _open(
        self, exchange: Exchange, grant: Grant, request: QueryRequest | TransactionRequest
    ) -> OpenDatabase:
        """The database that the request names, or the header, or else the key's own."""
        name = request.database
        if name is None:
            named = exchange.headers.get(b"x-database")
            name = None if named is None else named.decode("latin-1")
        plane = self._service.plane
        return plane.database_nowait(grant, name) or await plane.database(grant, name)

    async def _answer(self, exchange: Exchange, grant: Grant, request: QueryRequest) -> None:
        accept = exchange.headers.get(b"accept", b"")
        ndjson = NDJSON in accept
        if ndjson or EVENT_STREAM in accept or wants_stream(request.sql):
            await self._stream(exchange, grant, request, ndjson)
            return
        opened = await self._open(exchange, grant, request)
        try:
            began = perf_counter()
            try:
                result = await opened.sql.execute(
                    request.sql,
                    request.params,
                    max_retries=_retries(request),
                    timeout_ms=request.timeout_ms or TIMEOUT_MS,
                    max_rows=ANSWER_ROWS_MAX if request.max_rows is None else None,
                    cut_rows=request.max_rows,
                    allowed=allowed_of(grant),
                )
            finally:
                exchange.exec_us = int((perf_counter() - began) * 1_000_000)
        finally:
            opened.release()
        encoder = self.encoders.find(result.columns, result.types)
        write = WRITERS[request.format]
        if await is_long([(encoder, result.rows)]):
            await self._answer_in_parts(exchange, result, encoder, write)
            return
        rows = await rows_json(encoder, result.rows, write)
        body = query_body(
            result,
            encoder,
            rows,
            result.version,
            result.retries,
            exchange.elapsed_us(),
            exchange.exec_us,
        )
        await exchange.answer(200, body)

    async def _answer_in_parts(
        self, exchange: Exchange, result: Result, encoder: RowEncoder, write: Write
    ) -> None:
        """A long answer. Its rows are held until they have left, and count as memory until then."""
        with self._service.memory.holding(result.held_bytes):
            await exchange.start_parts()
            await exchange.part(query_head(encoder))
            for part in rows_in_parts(encoder, result.rows, write):
                await exchange.part(part)
            times = exchange.elapsed_us(), exchange.exec_us
            tail = query_tail(result, encoder, result.version, result.retries, *times)
            await exchange.last_part(tail)

    async def _stream(
        self, exchange: Exchange, grant: Grant, request: QueryRequest, ndjson: bool
    ) -> None:
        opened = await self._open(exchange, grant, request)
        try:
            stream = await opened.sql.stream(
                request.sql,
                request.params,
                timeout_ms=request.timeout_ms or TIMEOUT_MS,
                max_retries=_retries(request),
                allowed=allowed_of(grant),
            )
            encoder = self.encoders.find(stream.columns, stream.types)
            form = JsonLines(encoder) if ndjson else EventStream(encoder)
            service, headers, database_id = self._service, exchange.headers, opened.id
            await send_stream(
                exchange,
                stream,
                form,
                service.internal_error,
                lambda: service.check_still_allowed(headers, grant, database_id),
            )
        finally:
            opened.release()

    async def transaction(self, exchange: Exchange) -> None:
        grant = await self._service.authenticate(exchange.headers)
        self._admit(exchange, grant)
        try:
            body = await exchange.body()
            content_type = exchange.headers.get(b"content-type", b"")
            request, statements = await read_transaction_request(content_type, body)
            opened = await self._open(exchange, grant, request)
            try:
                began = perf_counter()
                outcome = await opened.sql.transaction(
                    statements,
                    max_retries=_retries(request),
                    timeout_ms=request.timeout_ms or TIMEOUT_MS,
                    max_rows=ANSWER_ROWS_MAX if request.max_rows is None else None,
                    cut_rows=request.max_rows,
                    allowed=allowed_of(grant),
                )
                run_us = int((perf_counter() - began) * 1_000_000)
            finally:
                opened.release()
        except QserverError as error:
            await exchange.fail(error, results=[])
            return
        write = WRITERS[request.format]
        every = [
            (self.encoders.find(each.columns, each.types), each.rows) for each in outcome.results
        ]
        if await is_long(every):
            with self._service.memory.holding(outcome.results[-1].held_bytes):
                await exchange.start_parts()
                for part in transaction_in_parts(outcome, every, write):
                    await exchange.part(part)
                tail = transaction_tail(outcome, exchange.elapsed_us(), run_us)
                await exchange.last_part(tail)
            return
        encoded = [(encoder, await rows_json(encoder, rows, write)) for encoder, rows in every]
        body = transaction_body(outcome, encoded, exchange.elapsed_us(), run_us)
        await exchange.answer(200, body)


def _retries(request: QueryRequest | TransactionRequest) -> int:
    return RETRIES_DEFAULT if request.max_retries is None else request.max_retries

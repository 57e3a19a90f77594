"""The hot routes: POST /v1/query, /query and /v1/transaction, and their streams.

    admit ──► run ────► open ────────► execute ─┬─ a result: rows as JSON ─► Response
    (cached)  decode    (open already)          ├─ PENDING: `settled` once it is durable
                                                └─ a coroutine: work that waits

A known statement with a known key waits only for the log. All other routes are in `routes`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, ClassVar

import msgspec
import trio
from msgspec.structs import astuple, fields

from qserver.control.databases import OpenDatabase
from qserver.control.open_transactions import Held
from qserver.control.records import Grant
from qserver.control.tiers import Limits
from qserver.engine.work import PENDING as COMMITTING
from qserver.engine.yielding import yield_to_others
from qserver.errors import InvalidRequest, QserverError
from qserver.http1 import PENDING, Answer, Response
from qserver.limits import (
    ANSWER_PART_BYTES,
    ANSWER_ROWS_MAX,
    RETRIES_DEFAULT,
)
from qserver.query.live_query import LiveQuery
from qserver.query.results import Once
from qserver.query.row_stream import RowStream
from qserver.query.sql_database import Options, Statement, TransactionResult, Waiting
from qserver.web.answers import (
    WRITERS,
    Encoded,
    Sliced,
    are_short,
    query_tail,
    rows_in_parts,
    rows_json,
    sliced,
    transaction_body,
    transaction_in_parts,
    transaction_tail,
)
from qserver.web.as_of import as_of_of
from qserver.web.branches import run_on_branch
from qserver.web.calls import Endpoint, Facts, KeyedCall
from qserver.web.changes import is_long, tail_in_parts, with_diff
from qserver.web.idempotency import no_key_inside
from qserver.web.live import LiveEvents, LiveParts, checked_live, lines_with
from qserver.web.named import Named, hide_rows
from qserver.web.parts import AnswerParts
from qserver.web.places import check_place, named_transaction
from qserver.web.readers import Reader
from qserver.web.requests import (
    BODY_BYTES_SHORT,
    check_timeout,
    is_live,
    query_request,
    read_query_request,
    read_transaction_request,
    text_request,
    transaction_request,
    wants_stream,
)
from qserver.web.rows import ROWS_ENCODED_AT_ONCE, RowEncoders
from qserver.web.service import allowed_of
from qserver.web.shapes import QueryRequest, TransactionRequest
from qserver.web.streams import EventStream, RowParts, begun, cut_off, form_of


class HotEndpoint(Endpoint):
    """The options that the head of a request to a hot route gives."""

    varying: ClassVar = {
        b"idempotency-key": "idempotency_key",
        b"x-transaction": "transaction",
        b"x-request-id": "given_id",
    }
    idempotent_kind: type[KeyedCall]
    """The kind of calls with an Idempotency-Key."""

    def __init__(self, facts: Facts, name: str, encoders: RowEncoders) -> None:
        super().__init__(facts, name, compressible=True)
        headers = facts.headers
        self.encoders = encoders
        self.content_type = headers.get(b"content-type", b"")
        named = headers.get(b"x-database")
        self.database = None if named is None else named.decode("latin-1")
        self.form = form_of(headers.get(b"accept", b""))
        """How rows are streamed, if the client wants that."""
        inside = headers.get(b"x-transaction")
        self.transaction = None if inside is None else inside.decode("latin-1")
        """The open transaction that the request is a step of."""
        if self.idempotency_key is not None:
            self.kind = self.idempotent_kind
        self.options: list[Any] = [None, None]
        """The last grant, and the default options of statements for it; copies share them."""

    def options_of(self, grant: Grant) -> Options:
        allowed = allowed_of(grant)
        timeout_ms = grant.limits.statement_timeout_ms
        options = Options(RETRIES_DEFAULT, timeout_ms, ANSWER_ROWS_MAX, None, allowed)
        self.options[:] = grant, options
        return options


def _defaults(shape: type[msgspec.Struct], start: int) -> tuple[Any, ...]:
    return tuple([each.default for each in fields(shape)[start:]])


class HotCall(KeyedCall):
    """A request that runs statements."""

    endpoint: HotEndpoint
    options_from: int
    """The place among a request's fields from which on all are options, all with defaults."""
    no_options: tuple[Any, ...]
    """Those defaults."""
    _statements: Sequence[Statement]
    _options: Options
    _form: str
    _opened: OpenDatabase | None = None
    _held: Held | None = None
    """The open transaction that it uses."""
    _once: Once | None = None
    """Set if it is applied once."""
    _began = 0.0
    _ended = 0.0
    _database_id = ""
    """The database that it uses, or has used."""
    _named: Named | None = None
    """Set if the grant allows named statements only."""

    def open(
        self,
        request: QueryRequest | TransactionRequest,
        step: Callable[[OpenDatabase], Answer],
        step_inside: Callable[[Held], Answer],
    ) -> Answer:
        """Take a step with the database that the request, the header or the key names.

        If the request is part of an open transaction, take `step_inside` with that.
        """
        endpoint, grant = self.endpoint, self.grant
        if self._named is not None:
            self._named.check(request, self._statements)
        self._form = request.format
        known, options = endpoint.options
        if known is not grant:
            options = endpoint.options_of(grant)
        is_inside = endpoint.transaction is not None
        if astuple(request)[self.options_from :] != self.no_options:
            options = _changed(options, request, grant)
            is_inside = is_inside or request.transaction is not None
        self._options = options
        if is_inside:
            return self._use(request, step_inside)
        name = endpoint.database if request.database is None else request.database
        plane = endpoint.service.plane
        opened = plane.database_nowait(grant, name)
        if opened is None:
            return self.after(plane.database(grant, name), step)
        return step(opened)

    def _use(
        self, request: QueryRequest | TransactionRequest, step: Callable[[Held], Answer]
    ) -> Answer:
        """Take a step with the open transaction that the request names, when it is free."""
        endpoint, grant = self.endpoint, self.grant
        name = named_transaction(endpoint.transaction, request.transaction)
        if endpoint.idempotency_key is not None:
            raise no_key_inside()
        if request.if_version is not None:
            raise InvalidRequest(
                "if_version is not for a step of an open transaction, which sees one version"
            )
        if request.as_of is not None:
            raise InvalidRequest(
                "an open transaction reads one version", hint="Open one with as_of instead."
            )
        held = endpoint.service.plane.open_transactions.find(grant, name)
        check_place(held, grant, endpoint.database, request.database)
        if held.transaction.read_only:
            allowed = msgspec.structs.replace(self._options.allowed, read_only=True)
            self._options = msgspec.structs.replace(self._options, allowed=allowed)
        if not held.use_nowait():
            deadline = trio.current_time() + (self._options.timeout_ms or inf) / 1000
            return self.after(held.use(deadline), partial(self._used, step))
        return self._used(step, held)

    def _used(self, step: Callable[[Held], Answer], held: Held) -> Answer:
        self._held = held
        self._database_id = held.opened.id
        return step(held)

    def execute_inside(self, held: Held) -> Answer:
        self._began = perf_counter()
        sql, inside = held.opened.sql, held.transaction
        outcome = sql.begin_inside(inside, self._statements, self._options, self.settled)
        if isinstance(outcome, TransactionResult):
            return self.executed(outcome)
        if outcome is COMMITTING:
            return PENDING
        return self.after(outcome, self.executed)

    def execute(self, opened: OpenDatabase) -> Answer:
        self._opened = opened
        self._database_id = opened.id
        self._began = perf_counter()
        statements, options = self._statements, self._options
        outcome = opened.sql.begin(statements, options, self.settled, self.request_id, self._once)
        if isinstance(outcome, TransactionResult):
            return self.executed(outcome)
        if outcome is COMMITTING:
            return PENDING
        return self.after(outcome, self.executed)

    def settled(self, outcome: TransactionResult | Exception | Waiting) -> None:
        """Called with the outcome of a pending transaction."""
        if isinstance(outcome, TransactionResult):
            self.respond(self.executed, outcome)
        elif isinstance(outcome, Exception):
            self.respond(self.failed, outcome)
        else:
            self.respond(self._go_on, outcome)

    def _go_on(self, work: Waiting) -> Answer:
        return self.after(work, self.executed)

    def known(self, error: Exception) -> QserverError:
        known = super().known(error)
        if self._named is not None:
            hide_rows(known)
        return known

    @abstractmethod
    def executed(self, outcome: TransactionResult) -> Answer:
        """Release the database, and encode the rows as JSON: at once if they are few."""

    async def encode_in_turns(
        self, outcome: TransactionResult, every: Sequence[Encoded]
    ) -> Response:
        """Encode the answer in slices, in turn with other long work, or send it in parts."""
        self.own_task()
        try:
            results, are_long = await sliced(every)
            if are_long or is_long(outcome.diff):
                return self._in_parts(outcome, results)
            write = WRITERS[self._form]
            rows = [await rows_json(encoder, slices, write) for encoder, slices in results]
            return self.answer(200, self.headers(), self.whole(outcome, every, rows))
        except Exception as error:
            return self.failed(error)

    def _in_parts(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Response:
        """A long answer. Its rows count as used memory until they have been sent."""
        pool, held = self.grant.share.memory, outcome.held_bytes
        if outcome.committed:
            pool.take_anyway(held)  # the commit cannot be refused any more
        else:
            pool.take(held)

        async def parts() -> AsyncGenerator[bytes, None]:
            for part in self.parts_of(outcome, every):
                yield part
                await yield_to_others()
                if not outcome.committed:
                    with cut_off(self.request_id):
                        await self.check_still_allowed()

        async def ended() -> None:
            pool.give_back(held)
            self.count(200)

        return self.answer_in_parts(self.headers(), AnswerParts(parts(), ended))

    async def check_still_allowed(self) -> None:
        """Raise if the caller may no longer run its statements."""
        endpoint, texts = self.endpoint, [each.sql for each in self._statements]
        await endpoint.service.check_still_allowed(
            endpoint.headers, self.grant, self._database_id, texts
        )

    @abstractmethod
    def whole(
        self, outcome: TransactionResult, every: Sequence[Encoded], rows: Sequence[bytes]
    ) -> bytes:
        """The body of the answer; `rows` holds the rows of each result, in JSON."""

    @abstractmethod
    def parts_of(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Iterator[bytes]:
        """The same body in parts, each made on demand."""

    def exec_us(self) -> int:
        if not self._began:
            return 0
        return int(((self._ended or perf_counter()) - self._began) * 1_000_000)

    def release(self) -> None:
        opened = self._opened
        if opened is not None:
            self._opened = None
            opened.release()
        held = self._held
        if held is not None:
            self._held = None
            held.release()


class QueryCall(HotCall):
    options_from = 4
    no_options = _defaults(QueryRequest, 4)
    _reader: Reader | None = None
    _every_seconds = 0.0
    only_queries: ClassVar = False
    """Whether statements that are no queries are refused."""
    decode: Callable[[bytes, bytes], QueryRequest] = staticmethod(query_request)
    decode_long: Callable[[bytes, bytes, Limits], Coroutine[Any, Any, QueryRequest]] | None = (
        staticmethod(read_query_request)
    )

    def limit(self, grant: Grant) -> None:
        self._named = named = Named(grant)
        self.decode, self.decode_long = named.query, named.read_query

    def run(self, body: bytes) -> Answer:
        content_type = self.endpoint.content_type
        if len(body) > BODY_BYTES_SHORT and self.decode_long is not None:
            return self.after(self.decode_long(content_type, body, self.grant.limits), self.decoded)
        return self.decoded(self.decode(content_type, body))

    def decoded(self, request: QueryRequest) -> Answer:
        sql = request.sql
        self._statements = (Statement(sql, request.params),)
        form, hinted = self.endpoint.form, "/*+" in sql
        if request.live or request.every_ms is not None or (hinted and is_live(sql)):
            self._every_seconds = checked_live(request, form)
            return self.open(request, self.live, self.refuse_live)
        if form is not None or (hinted and wants_stream(sql)):
            if request.dry_run:
                raise InvalidRequest(
                    "a dry run cannot be streamed", hint="Ask for one answer, with max_rows."
                )
            return self.open(request, self.stream, self.stream_inside)
        return self.open(request, self.execute, self.execute_inside)

    def executed(self, outcome: TransactionResult) -> Answer:
        self._ended = perf_counter()
        self.release()
        (result,) = outcome.results
        rows = result.rows
        encoder = self.endpoint.encoders.find(result.columns, result.types)
        if (
            len(rows) > ROWS_ENCODED_AT_ONCE
            or encoder.size_about(rows) > ANSWER_PART_BYTES
            or outcome.diff is not None
        ):
            return self.encode_in_turns(outcome, [(encoder, rows)])
        rows_json = WRITERS[self._form](encoder, rows)
        seconds = perf_counter() - self.started
        tail = query_tail(outcome, encoder, seconds, self._ended - self._began)
        return self.answer(200, self.headers(), encoder.query_head + rows_json + tail, seconds)

    def whole(
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

    def stream(self, opened: OpenDatabase) -> Answer:
        """Start a statement whose rows are sent as they are computed."""
        self._opened, self._database_id = opened, opened.id
        (statement,), options = self._statements, self._options
        beginning = partial(
            opened.sql.stream,
            statement.sql,
            statement.parameters,
            timeout_ms=options.timeout_ms,
            max_retries=options.max_retries,
            allowed=options.allowed,
            max_affected=options.max_affected,
            if_version=options.if_version,
            request_id=self.request_id,
            as_of=options.as_of,
            only_queries=self.only_queries,
        )
        return self.after(begun(beginning, self.endpoint.form), self._streams)

    def stream_inside(self, held: Held) -> Answer:
        """Do so in an open transaction, whose next use waits for the end of the stream."""
        (statement,) = self._statements
        sql, inside = held.opened.sql, held.transaction
        beginning = partial(sql.stream_inside, inside, statement, self._options)
        return self.after(begun(beginning, self.endpoint.form), self._streams)

    def _streams(self, stream: RowStream) -> Response:
        endpoint = self.endpoint
        encoder = endpoint.encoders.find(stream.columns, stream.types)
        form = (endpoint.form or EventStream)(encoder, as_arrays=self._form == "arrays")

        async def check() -> None:
            if not stream.committed:
                await self.check_still_allowed()

        pool = self.grant.share.memory
        most = self._options.cut_rows
        rows = RowParts(stream, form, self.request_id, self.elapsed_us, self.known, pool, most)
        return self._as_stream(form.content_type, rows.parts(check), stream.aclose)

    def refuse_live(self, held: Held) -> Answer:
        raise InvalidRequest(
            "a live query cannot be part of an open transaction: that sees one version for ever"
        )

    def live(self, opened: OpenDatabase) -> Answer:
        """Start a live query."""
        self._opened, self._database_id = opened, opened.id
        grant, readers = self.grant, self.endpoint.service.live_queries
        self._reader = readers.open(grant.organization_id, grant.limits.live_queries)
        (statement,), options = self._statements, self._options
        find, as_arrays = self.endpoint.encoders.find, self._form == "arrays"
        beginning = opened.sql.live(
            statement.sql,
            statement.parameters,
            lines_of=lambda plan: lines_with(find(plan.columns, plan.types), as_arrays=as_arrays),
            timeout_ms=options.timeout_ms,
            allowed=options.allowed,
        )
        return self.after(beginning, self._lives)

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

    def release(self) -> None:
        HotCall.release(self)
        if self._reader is not None:
            self._reader.close()


class TextCall(QueryCall):
    """A query whose whole body is the statement."""

    decode = staticmethod(text_request)
    decode_long = None

    def limit(self, grant: Grant) -> None:
        KeyedCall.limit(self, grant)


class TransactionCall(HotCall):
    options_from = 3
    no_options = _defaults(TransactionRequest, 3)
    _no_results: list[Any] | None = None
    _branch: str | None = None

    def limit(self, grant: Grant) -> None:
        self._named = Named(grant)

    def run(self, body: bytes) -> Answer:
        self._no_results = []
        content_type = self.endpoint.content_type
        if self._named is not None:
            return self.after(self._named.transaction(content_type, body), self.decoded)
        if len(body) > BODY_BYTES_SHORT:
            return self.after(
                read_transaction_request(content_type, body, self.grant.limits), self.decoded
            )
        return self.decoded(transaction_request(content_type, body))

    def decoded(self, asked: tuple[TransactionRequest, list[Statement]]) -> Answer:
        request, self._statements = asked
        if not request.branch:
            return self.open(request, self.execute, self.execute_inside)
        endpoint = self.endpoint
        if request.transaction is not None or endpoint.transaction is not None:
            raise InvalidRequest("an open transaction commits to its own database, not to a branch")
        if request.dry_run or endpoint.idempotency_key is not None:
            raise InvalidRequest("a transaction on a branch takes no dry_run or Idempotency-Key")
        return self.open(request, self._branch_off, self.execute_inside)

    def _branch_off(self, opened: OpenDatabase) -> Answer:
        """Run the transaction on a new branch of the database that it names."""
        self._opened = opened
        self._began = perf_counter()
        plane = self.endpoint.service.plane
        work = run_on_branch(plane, self.grant, opened.id, self._statements, self._options)
        return self.after(work, self._branched)

    def _branched(self, made: tuple[str, TransactionResult]) -> Answer:
        self._branch, outcome = made
        return self.executed(outcome)

    def executed(self, outcome: TransactionResult) -> Answer:
        self._ended = perf_counter()
        self.release()
        find, write = self.endpoint.encoders.find, WRITERS[self._form]
        every = [(find(each.columns, each.types), each.rows) for each in outcome.results]
        if outcome.diff is not None or not are_short(every):
            return self.encode_in_turns(outcome, every)
        rows = [write(encoder, rows) if rows else b"[]" for encoder, rows in every]
        return self.answer(200, self.headers(), self.whole(outcome, every, rows))

    def whole(
        self, outcome: TransactionResult, every: Sequence[Encoded], rows: Sequence[bytes]
    ) -> bytes:
        encoders = [encoder for encoder, _ in every]
        times = self.elapsed() * 1e6, (self._ended - self._began) * 1e6
        body = self._tail(transaction_body(outcome, encoders, rows, *times))
        return body if outcome.diff is None else with_diff(body, outcome.diff)

    def parts_of(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Iterator[bytes]:
        yield from transaction_in_parts(outcome, every, WRITERS[self._form])
        tail = self._tail(transaction_tail(outcome, self.elapsed_us(), self.exec_us()))
        yield from tail_in_parts(tail, outcome.diff)

    def _tail(self, tail: bytes) -> bytes:
        """The end of an answer, with the name of the branch as its last field."""
        branch = self._branch
        return tail if branch is None else b'%b,"database":"%b"}' % (tail[:-1], branch.encode())

    def no_results(self) -> Sequence[Any] | None:
        return self._no_results


def _changed(options: Options, request: QueryRequest | TransactionRequest, grant: Grant) -> Options:
    """The options, with those that the request sets replaced."""
    check_timeout(request.timeout_ms, grant.limits)
    retries, cut_rows = request.max_retries, request.max_rows
    return Options(
        options.max_retries if retries is None else retries,
        request.timeout_ms or options.timeout_ms,
        options.max_rows if cut_rows is None else None,
        cut_rows,
        options.allowed,
        request.max_affected,
        request.dry_run,
        if_version=request.if_version,
        as_of=as_of_of(request),
    )

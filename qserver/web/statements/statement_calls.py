"""Requests that run statements: what the kinds of them have in common.

    admit ──► run ────► use ─────────────► perform ─┬─ few rows: as JSON, at once
    (cached)  decode    (open already)              └─ others: in turns with other long work

A known statement with a known key waits only for the log. The kinds are in `query_calls`,
`transaction_calls`, `idempotent_calls` and `cached_reads`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Final

import msgspec
import trio

from qserver.control.databases import OpenDatabase
from qserver.control.long_reads import GivenAway
from qserver.control.open_transactions import Held
from qserver.control.owners import OwnedElsewhere
from qserver.control.records import Grant
from qserver.engine.freshness import Freshness
from qserver.engine.mailbox import Reply
from qserver.engine.work import Step
from qserver.engine.yielding import yield_to_others
from qserver.errors import (
    DatabaseUnavailable,
    FeatureNotSupported,
    HistoryTooOld,
    InvalidRequest,
    QserverError,
    ReadOnlyTransaction,
    TransactionNotFound,
)
from qserver.http1 import FORWARD_BYTES_MAX, Elsewhere, Response
from qserver.limits import ANSWER_ROWS_MAX, RETRIES_DEFAULT
from qserver.query.results import Once
from qserver.query.sql_database import RunOptions, Statement, TransactionResult
from qserver.web.calls import Endpoint, Facts, KeyedCall, Serving
from qserver.web.description.shapes import QueryRequest, TransactionRequest
from qserver.web.places import check_place, check_version, named_transaction
from qserver.web.statements.answers import WRITERS, Encoded, Sliced, rows_json, sliced
from qserver.web.statements.as_of import as_of_of
from qserver.web.statements.freshness import MIN_VERSION, freshness_of
from qserver.web.statements.idempotency import no_key_inside
from qserver.web.statements.named import Named, hide_rows
from qserver.web.statements.requests import check_timeout
from qserver.web.statements.rows import RowEncoders
from qserver.web.statements.settings import session_given
from qserver.web.streaming.changes import is_long
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.readers import Reader
from qserver.web.streaming.streams import cut_off, form_of

LEAVES_BYTES_MAX: Final = FORWARD_BYTES_MAX // 2
"""Of a body: with its head it can surely be forwarded."""

NOT_HERE: Final = (ReadOnlyTransaction, HistoryTooOld, DatabaseUnavailable)
"""Why a replica cannot answer, where the owner can: it writes, it is older, or it ends."""


class StatementEndpoint(Endpoint):
    """The options that the head of a request to a hot route gives."""

    takes_values = True
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
        self.is_inside = b"x-transaction" in headers
        """The request is a step of an open transaction."""
        self.names_version = MIN_VERSION in headers
        if self.has_idempotency_key:
            self.kind = self.idempotent_kind
        self.options: tuple[Any, Any] = None, None
        """The last grant, and the default options of statements for it."""

    def options_of(self, grant: Grant) -> RunOptions:
        allowed = grant.allowed()
        timeout_ms = grant.limits.statement_timeout_ms
        limits = RETRIES_DEFAULT, timeout_ms, ANSWER_ROWS_MAX, None
        options = RunOptions(*limits, allowed, may_leave=True)
        self.options = grant, options
        return options


def has_options(request: QueryRequest | TransactionRequest) -> bool:
    """Whether a request sets any of the options that `_changed` reads, or names a transaction."""
    return (
        request.max_rows is not None
        or request.timeout_ms is not None
        or request.max_retries is not None
        or request.max_affected is not None
        or request.if_version is not None
        or request.dry_run
        or request.as_of is not None
        or request.transaction is not None
        or request.min_version is not None
        or request.consistency != "strong"
        or request.max_age_ms is not None
        or request.settings is not None
    )


class StatementCall(KeyedCall):
    """A request that runs statements."""

    endpoint: StatementEndpoint
    notes_leaving = True
    _statements: Sequence[Statement]
    _options: RunOptions
    _form: str
    _opened: OpenDatabase | None = None
    _held: Held | None = None
    """The open transaction that it uses."""
    _reader: Reader | None = None
    """The live query that it counts as."""
    _once: Once | None = None
    """Set if it is applied once."""
    _began = 0.0
    _ended = 0.0
    _database_id = ""
    """The database that it uses, or has used."""
    _waits_for: Callable[[], Awaitable[Held | OpenDatabase]] | Reply[None]
    _elsewhere: OwnedElsewhere | None = None
    """Set while it waits for a replica."""
    _named: Named | None = None
    """Set if the grant allows named statements only."""

    def use_nowait(self, request: QueryRequest | TransactionRequest) -> bool:
        """Find what the request runs in; False if that has to be waited for, see `use`.

        It is the open transaction that the request is part of, or the database that the request,
        the header or the key names.
        """
        endpoint, grant = self.endpoint, self.grant
        if self._named is not None:
            self._named.check(request, self._statements)
        self._form = request.format
        known, options = endpoint.options
        if known is not grant:
            options = endpoint.options_of(grant)
        is_inside = endpoint.is_inside
        if endpoint.names_version or has_options(request):
            is_inside = is_inside or request.transaction is not None
            freshness = freshness_of(request, self.values.get(MIN_VERSION), is_inside)
            options = _changed(options, request, grant, freshness)
        self._options = options
        if is_inside:
            return self._use_transaction(request)
        name = endpoint.database if request.database is None else request.database
        find_database = endpoint.service.plane.database_nowait
        try:
            opened = find_database(grant, name)
        except OwnedElsewhere as elsewhere:
            if elsewhere.followed is None or not self.may_only_read():
                raise
            opened = endpoint.service.plane.replica_nowait(elsewhere, options.freshness)
            if opened is None and self._waits_for_replica(elsewhere):
                return False
        if opened is None:
            self._waits_for = self._finding(name)
            return False
        self._opened, self._database_id = opened, opened.id
        return True

    def may_only_read(self) -> bool:
        """Return whether a replica may try it, as far as the request tells."""
        options = self._options
        return options.if_version is None and not options.dry_run

    def _waits_for_replica(self, elsewhere: OwnedElsewhere) -> bool:
        """Wait, without a task, until a replica is as new as its owner; False if there is none."""
        replicas = self.endpoint.service.plane.replicas
        reply = None if replicas is None else replicas.waiting(elsewhere, self._half_time())
        if reply is None:
            return False
        self._waits_for, self._elsewhere = reply, elsewhere
        return True

    def _half_time(self) -> float:
        return trio.current_time() + (self._options.timeout_ms or inf) / 2000

    def _finding(self, name: str | None) -> Callable[[], Awaitable[OpenDatabase]]:
        plane, grant = self.endpoint.service.plane, self.grant
        if not self.may_only_read():
            return partial(plane.database, grant, name)
        return partial(plane.database_to_read, grant, name, self._half_time())

    def use(self) -> Generator[Step, Any, None]:
        """Wait until the database is open, or the open transaction is free."""
        found = yield self._waits_for
        if self._elsewhere is not None:
            replicas = self.endpoint.service.plane.replicas
            assert replicas is not None
            found = replicas.take(self._elsewhere)
        if isinstance(found, Held):
            self._held, self._database_id = found, found.opened.id
        else:
            self._opened, self._database_id = found, found.id

    def _use_transaction(self, request: QueryRequest | TransactionRequest) -> bool:
        """Use the open transaction that the request names, if it is free."""
        endpoint, grant = self.endpoint, self.grant
        name = named_transaction(self.values.get(b"x-transaction"), request.transaction)
        if endpoint.has_idempotency_key:
            raise no_key_inside()
        if request.if_version is not None:
            raise InvalidRequest(
                "if_version is not for a step of an open transaction, which sees one version"
            )
        if request.as_of is not None:
            raise InvalidRequest(
                "an open transaction reads one version", hint="Open one with as_of instead."
            )
        if request.settings is not None:
            raise InvalidRequest(
                "an open transaction has its own settings",
                hint="Open it with settings, or send SET as a statement.",
            )
        plane = endpoint.service.plane
        try:
            held = plane.open_transactions.find(grant, name)
        except TransactionNotFound:
            if plane.owners.is_alone:
                raise
            self._waits_for = partial(plane.find_elsewhere, grant, name)
            return False
        check_place(held, grant, endpoint.database, request.database)
        check_version(held, self._options.freshness.min_version)
        allowed = self._options.allowed
        if held.transaction.read_only:
            allowed = msgspec.structs.replace(allowed, read_only=True)
        its_own = {"allowed": allowed, "request_id": self.request_id}
        self._options = msgspec.structs.replace(self._options, **its_own)
        if not held.use_nowait():
            deadline = trio.current_time() + (self._options.timeout_ms or inf) / 1000
            self._waits_for = partial(held.use, deadline)
            return False
        self._held, self._database_id = held, held.opened.id
        return True

    def execute(self, request: QueryRequest | TransactionRequest) -> Serving:
        """Run the statements, and answer with all their rows."""
        try:
            if not self.use_nowait(request):
                yield from self.use()
            self._began = perf_counter()
            try:
                outcome = yield from self.perform()
            except GivenAway:
                if self._may_leave():
                    raise
                self._options = msgspec.structs.replace(self._options, may_leave=False)
                outcome = yield from self.perform()
            self._ended = perf_counter()
            self.release()
            response = self.encode(outcome)
            if response is None:
                response = yield partial(self.encode_in_turns, outcome)
            return response
        except GeneratorExit:
            self.left()
            raise

    def _may_leave(self) -> bool:
        """Return whether a follower may be asked: once, with a request that is forwarded whole."""
        return not self.stays and isinstance(self.body, bytes) and len(self.body) < LEAVES_BYTES_MAX

    def perform(self) -> Generator[Step, Any, Any]:
        """Return the steps that run the statements."""
        held, statements, options = self._held, self._statements, self._options
        if held is not None:
            return held.opened.sql.perform_inside(held.transaction, statements, options)
        assert self._opened is not None
        return self._opened.sql.perform(statements, options, self.request_id, self._once)

    def failed(self, error: Exception) -> Response | Elsewhere:
        opened = self._opened
        if opened is not None and opened.owner is not None and isinstance(error, NOT_HERE):
            error = OwnedElsewhere(opened.owner, opened.id)
        return super().failed(error)

    def known(self, error: Exception) -> QserverError:
        known = super().known(error)
        if self._named is not None:
            hide_rows(known)
        elif isinstance(known, FeatureNotSupported) and known.position == 1:
            self._tell_of_copy(known)
        return known

    def _tell_of_copy(self, error: FeatureNotSupported) -> None:
        sql = self._statements[error.statement or 0].sql.lstrip()
        if sql[:5].rstrip().lower() == "copy":
            error.hint = (
                "COPY has a route of its own, whose body is the data: POST /v1/copy?sql=… for"
                " FROM STDIN, GET for TO STDOUT."
            )

    @abstractmethod
    def encode(self, outcome: TransactionResult) -> Response | None:
        """The answer, if it has few rows."""

    @abstractmethod
    def encoders_of(self, outcome: TransactionResult) -> Sequence[Encoded]:
        """The rows of each result, with their encoder."""

    async def encode_in_turns(self, outcome: TransactionResult) -> Response:
        """Encode the answer in slices, in turn with other long work, or send it in parts."""
        every = self.encoders_of(outcome)
        results, are_long = await sliced(every)
        if are_long or is_long(outcome.diff):
            return self._in_parts(outcome, results)
        write = WRITERS[self._form]
        rows = [await rows_json(encoder, slices, write) for encoder, slices in results]
        return self.answer(200, self.headers(), self.whole_answer(outcome, every, rows))

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
    def whole_answer(
        self, outcome: TransactionResult, every: Sequence[Encoded], rows: Sequence[bytes]
    ) -> bytes:
        """The body of the answer; `rows` holds the rows of each result, in JSON."""

    @abstractmethod
    def parts_of(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Iterator[bytes]:
        """The same body in parts, each made on demand."""

    def timeout_ms(self) -> float:
        return self._options.timeout_ms or super().timeout_ms()

    def exec_us(self) -> int:
        if not self._began:
            return 0
        return int(((self._ended or perf_counter()) - self._began) * 1_000_000)

    def release(self) -> None:
        opened = self._opened
        if opened is not None:
            self._opened = None
            opened.release()
        elif self._held is not None:
            held, self._held = self._held, None
            held.release()
        if self._reader is not None:
            self._reader.close()


def _changed(
    options: RunOptions,
    request: QueryRequest | TransactionRequest,
    grant: Grant,
    freshness: Freshness,
) -> RunOptions:
    """The options, with those that the request sets replaced."""
    check_timeout(request.timeout_ms, grant.limits)
    retries, cut_rows = request.max_retries, request.max_rows
    return RunOptions(
        options.max_retries if retries is None else retries,
        request.timeout_ms or options.timeout_ms,
        options.max_rows if cut_rows is None else None,
        cut_rows,
        options.allowed,
        request.max_affected,
        request.dry_run,
        if_version=request.if_version,
        as_of=as_of_of(request),
        freshness=freshness,
        may_leave=options.may_leave,
        session=session_given(request.settings),
    )

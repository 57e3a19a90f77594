"""The routes of open transactions: open, commit, DELETE and GET.

    POST /v1/transaction/open          a snapshot, and a handle for it
    POST /v1/transaction/{id}/commit   the writes, if everything that was read still holds
    DELETE, GET /v1/transaction/{id}   roll back; describe

Statements use their own routes, see `statement_calls`; these are as fast, because each transaction
needs two of them.

A commit stores its own answer (see `engine.stored_answers`); the answer of a conflict is stored
afterwards. So a client that lost an answer can ask again, also after a restart. A transaction's id
contains that of its database, so that the answer can be found.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any, Final

from qserver.control.databases import OpenDatabase
from qserver.control.open_transactions import Held, database_of, not_found
from qserver.control.records import Grant
from qserver.engine.database import Database
from qserver.engine.freshness import Freshness
from qserver.engine.gateway import Outcome
from qserver.engine.history import AsOf
from qserver.engine.stored_answers import StoredAnswer, find_answer, store_answer, text_of
from qserver.engine.work import Step, run
from qserver.errors import (
    Applied,
    Forbidden,
    HistoryTooOld,
    InvalidRequest,
    LogTaken,
    NotFound,
    QserverError,
    SerializationFailure,
    TransactionNotFound,
)
from qserver.http1 import PATH, Elsewhere, Response
from qserver.limits import (
    COMMIT_ANSWER_SECONDS,
    CONTROL_SECONDS_MAX,
    RETRIES_DEFAULT,
)
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions
from qserver.query.session import Session
from qserver.web.calls import Endpoint, Facts, KeyedCall, Serving
from qserver.web.description import shapes
from qserver.web.places import check_place
from qserver.web.query_strings import read_query_string
from qserver.web.route import Route
from qserver.web.statements.answers import error_body
from qserver.web.statements.as_of import as_of_given
from qserver.web.statements.freshness import MIN_VERSION, version_wanted
from qserver.web.statements.json_values import encode_json
from qserver.web.statements.named import hide_rows, refuse_options
from qserver.web.statements.requests import (
    JSON_TYPES,
    check_media_type,
    check_no_fields,
    decode,
    decoder_of,
)
from qserver.web.statements.settings import session_given

_open_decoder: Final = decoder_of(shapes.OpenRequest)


class OpenTransactionEndpoint(Endpoint):
    """One of the routes."""

    takes_values = True

    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path)
        self.kind = KINDS[route.method, route.path]
        self.content_type = facts.headers.get(b"content-type", b"")
        self.bodiless = route.method == "GET"
        named = facts.headers.get(b"x-database")
        self.database = None if named is None else named.decode("latin-1")


class TransactionRouteCall(KeyedCall):
    endpoint: OpenTransactionEndpoint
    _is_limited = False

    @property
    def name(self) -> str:
        """The transaction in the path."""
        path = self.values.get(PATH)
        return (self.endpoint.request.path if path is None else path.decode()).split("/")[3]

    @property
    def reads_body(self) -> bool:  # type: ignore[override]
        return not self.endpoint.bodiless

    def limit(self, grant: Grant) -> None:
        """A key with statements may run them in an open transaction."""
        self._is_limited = True

    def known(self, error: Exception) -> QserverError:
        known = super().known(error)
        if self._is_limited:
            hide_rows(known)
        return known

    def need_no_query(self) -> None:
        read_query_string(self.endpoint.request.query, ())

    def found(self) -> Generator[Step, Any, Held]:
        """The caller's transaction that the path names."""
        self.need_no_query()
        plane = self.endpoint.service.plane
        try:
            held = plane.open_transactions.find(self.grant, self.name)
        except TransactionNotFound:
            if plane.owners.is_alone:
                raise
            yield partial(plane.find_elsewhere, self.grant, self.name)
            raise
        check_place(held, self.grant, self.endpoint.database)
        return held


class OpenCall(TransactionRouteCall):
    _opened: OpenDatabase | None = None
    _request: shapes.OpenRequest

    def run(self, body: bytes) -> Serving:
        self.need_no_query()
        self._request = shapes.OpenRequest()
        if body.strip():
            check_media_type(self.endpoint.content_type, JSON_TYPES, "application/json")
            self._request = decode(_open_decoder, body)
            if self._is_limited:
                refuse_options(self._request)
        if self._request.as_of is not None and self._request.read_only is False:
            raise InvalidRequest(
                "as_of opens a transaction that only reads, so read_only cannot be false",
                hint="Leave out read_only, or make a branch of that version to write to.",
            )
        plane, grant = self.endpoint.service.plane, self.grant
        plane.open_transactions.check_room(grant)
        allowed = grant.allowed()
        if not (allowed.read or allowed.write or allowed.define):
            raise Forbidden("this key may use no data", hint="Use a key with the scope data:read.")
        wanted = self._request.database
        name = self.endpoint.database if wanted is None else wanted
        opened = plane.database_nowait(grant, name)
        if opened is None:
            opened = yield partial(plane.database, grant, name)
        self._opened = opened
        return self._hold((yield from self._begin(opened)))

    def _begin(self, opened: OpenDatabase) -> Generator[Step, Any, OpenTransaction]:
        read_only, given = bool(self._request.read_only), self._request.as_of
        wanted = version_wanted(self.values.get(MIN_VERSION), self._request.min_version)
        session = session_given(self._request.settings, lasts=True)
        transaction: OpenTransaction | None
        if given is not None:
            asked = opened, as_of_given(given), wanted, session
            transaction = yield partial(_opened_as_of, *asked)
        else:
            transaction = opened.sql.open_nowait(read_only, wanted, session)
        if transaction is None:
            most_ms = CONTROL_SECONDS_MAX * 1000
            transaction = yield partial(
                opened.sql.open, read_only, most_ms, freshness=wanted, session=session
            )
        return transaction

    def _hold(self, transaction: OpenTransaction) -> Response:
        opened, idle_ms = self._opened, self._request.idle_ms
        assert opened is not None
        idle_seconds = None if idle_ms is None else idle_ms / 1000
        registry = self.endpoint.service.plane.open_transactions
        held = registry.hold(self.grant, opened, transaction, idle_seconds)
        self._opened = None  # it is the transaction's now
        body = shapes.OpenTransactionAnswer(True, shapes.OpenTransaction(**_fields(held)))
        return self.answer(201, self.headers(), encode_json(body))

    def release(self) -> None:
        if self._opened is not None:
            self._opened.release()
            self._opened = None


async def _opened_as_of(
    opened: OpenDatabase, as_of: AsOf, wanted: Freshness, session: Session | None
) -> OpenTransaction:
    most_ms = CONTROL_SECONDS_MAX * 1000
    try:
        return await opened.sql.open(True, most_ms, as_of, freshness=wanted, session=session)
    except HistoryTooOld as error:
        error.is_gone = True
        raise


class ShowCall(TransactionRouteCall):
    def run(self, body: bytes) -> Serving:
        held = yield from self.found()
        transaction = held.transaction
        record = shapes.OpenTransactionRecord(
            **_fields(held),
            state=transaction.state,
            statements=transaction.statements,
            rows_changed=transaction.rows_changed,
            bytes=transaction.bytes,
        )
        body = encode_json(shapes.OpenTransactionRecordAnswer(True, record))
        return self.answer(200, self.headers(), body)


class EndCall(TransactionRouteCall):
    def run(self, body: bytes) -> Serving:
        check_no_fields(self.endpoint.content_type, body)
        held = yield from self.found()
        if not held.use_nowait():
            yield partial(held.use, self.grant.deadline())
        held.end = "rolled_back"
        held.release()
        return self.answer(204, self.headers(()), b"")


class CommitCall(TransactionRouteCall):
    """Commits, or repeats the answer of the commit."""

    _held: Held | None = None
    _began = 0.0
    _in_doubt = False
    """Whether the transaction must not be used again, because its commit may have been sent."""

    def run(self, body: bytes) -> Serving:
        check_no_fields(self.endpoint.content_type, body)
        try:
            held = yield from self.found()
            if not held.use_nowait():
                yield partial(held.use, self.grant.deadline())
        except TransactionNotFound:
            return self._repeat((yield self._answered_before))
        self._held = held
        self._began = perf_counter()
        try:
            outcome = yield from self._commit(held)
        except SerializationFailure as error:
            conflict = yield partial(self._store_conflict, error)
            held.end = "conflicted"
            self.release()
            return self._repeat(conflict)
        return self._committed(held, outcome)

    # --- the commit ---

    def _commit(self, held: Held) -> Generator[Step, Any, Outcome]:
        transaction, sql = held.transaction, held.opened.sql
        options = RunOptions(
            timeout_ms=self.grant.limits.statement_timeout_ms, allowed=self.grant.allowed()
        )
        transaction.check_active()
        if not transaction.transaction.changes_anything:  # whatever it read was true at its version
            return Outcome(None, transaction.version, 0)
        answer = (self._name(held.opened.id), self._new_answer(transaction.rows_changed))
        steps = sql.committing(transaction, options, answer, self.request_id)
        self._in_doubt = True
        return (yield from steps)

    async def _store_conflict(self, error: SerializationFailure) -> bytes:
        total_us = self.elapsed_us()
        body = error_body(self.known(error), self.request_id, total_us, self.exec_us())
        head, name, rest = body.partition(b'"total_us":')  # the number that a stored answer has
        tail = rest.removeprefix(b"%d" % total_us)
        await self._store(StoredAnswer(b"", self._expires(), head + name, tail, total_us))
        return body

    async def _store(self, answer: StoredAnswer) -> StoredAnswer:
        """Store an answer that no commit of the transaction itself can store."""
        held = self._held
        assert held is not None
        store = partial(store_answer, name=self._name(held.opened.id), answer=answer)
        try:
            await held.opened.database.transact(store, deadline=self.grant.deadline())
        except QserverError as trouble:  # nothing was to be applied; asked again, it is not found
            self.endpoint.service.world.report("the answer of a commit was not stored", trouble)
        return answer

    def _new_answer(self, affected_rows: int, commit_us: int = 0) -> StoredAnswer:
        times = self.elapsed_us(), 0, commit_us
        tail = b',"affected_rows":%d,"timings":{"total_us":%d,"exec_us":%d,"commit_us":%d}}' % (
            affected_rows,
            *times,
        )
        return StoredAnswer(b"", self._expires(), b'{"success":true,"version":', tail)

    def _expires(self) -> float:
        return self.endpoint.service.world.now() + COMMIT_ANSWER_SECONDS

    def _committed(self, held: Held, outcome: Outcome) -> Response:
        affected_rows, name = held.transaction.rows_changed, self._name(held.opened.id)
        held.end = "committed"
        self.release()
        commit_us = int((perf_counter() - self._began) * 1_000_000)
        text = text_of(self._new_answer(affected_rows, commit_us), outcome.version)
        answers = self.endpoint.service.plane.open_transactions.answers
        answers.keep(self.grant.organization_id, name, text)
        return self.answer(200, self.headers(), text)

    def failed(self, error: Exception) -> Response | Elsewhere:
        if isinstance(error, QserverError) and error.applied is Applied.NO:
            self._in_doubt = isinstance(error, LogTaken)
        return super().failed(error)

    # --- the answer, once more ---

    def _name(self, database_id: str) -> bytes:
        return name_of_commit(self.name, database_id, self.grant)

    async def _answered_before(self) -> bytes:
        """The stored answer of the commit; raises TransactionNotFound if there is none."""
        name = self.name
        database_id = database_of(name)
        if database_id is None:
            raise not_found(name)
        plane = self.endpoint.service.plane
        try:
            opened = await plane.database(self.grant, database_id)
        except (NotFound, Forbidden):
            raise not_found(name) from None
        with opened:
            answers = plane.open_transactions.answers
            kept = answers.find(self.grant.organization_id, self._name(database_id))
            if kept is not None:
                return kept
            answer = await self._find_answer(opened.database, self._name(database_id))
        if answer is None:
            raise not_found(name)
        return answer.text

    async def _find_answer(self, database: Database, name: bytes) -> StoredAnswer | None:
        """The stored answer; None only if no commit that was sent before can store it any more.

        A client that left during its commit may come back while that is under way, or while the
        database restarts with it in its log. So the coordinator looks, behind all earlier commits.
        """
        now = self.endpoint.service.world.now()
        snapshot = await database.wait_durable_snapshot(self.grant.deadline())
        found = find_answer(snapshot, name, now)
        if found is not None:
            return found
        look = partial(find_answer, name=name, now=now)
        deadline = self.grant.deadline()
        outcome = await run(database.transacting(look, RETRIES_DEFAULT, deadline, True))
        answer: StoredAnswer | None = outcome.result
        return answer

    def _repeat(self, text: bytes) -> Response:
        return self.answer(200, self.headers(), text)

    def exec_us(self) -> int:
        return int((perf_counter() - self._began) * 1_000_000) if self._began else 0

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            if self._in_doubt and held.end is None:
                held.end = "closed"
            held.release()


def not_inside(route: Route) -> InvalidRequest:
    """The error of a route that is no step of a transaction, whatever X-Transaction says."""
    return InvalidRequest(
        f"{route.method} {route.path} is not part of an open transaction",
        hint="X-Transaction is for POST /v1/query, /query and /v1/transaction.",
    )


def name_of_commit(name: str, database_id: str, grant: Grant) -> bytes:
    """The name under which the answer of a commit is stored: only its owner can ask for it."""
    owner = grant.session_id or grant.key_id
    return sha256(f"commit\0{database_id}\0{owner}\0{name}".encode()).digest()


def _fields(held: Held) -> dict[str, Any]:
    return {
        "id": held.id,
        "database": held.opened.name,
        "version": held.transaction.version,
        "read_only": held.transaction.read_only,
        "created_at": datetime.fromtimestamp(held.created_at, UTC),
        "expires_at": datetime.fromtimestamp(held.expires_at(), UTC),
    }


KINDS: Final[Mapping[tuple[str, str], type[TransactionRouteCall]]] = {
    ("POST", "/v1/transaction/open"): OpenCall,
    ("POST", "/v1/transaction/{id}/commit"): CommitCall,
    ("DELETE", "/v1/transaction/{id}"): EndCall,
    ("GET", "/v1/transaction/{id}"): ShowCall,
}

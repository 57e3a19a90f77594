"""POST /v1/tables/{name}/rows: rows in bulk, inserted while they arrive, as one transaction.

body ─► pieces ─► `bulk_rows`: batches ─► `query.bulk`: steps of a transaction ─► commit
                          └─ the first bad row: its error and number, and nothing is applied
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

import trio

from qserver.control.databases import OpenDatabase
from qserver.engine.stored_answers import StoredAnswer, text_of
from qserver.engine.work import timed_out
from qserver.engine.yielding import TimeSlice, yield_to_others
from qserver.errors import (
    Forbidden,
    InvalidRequest,
    SerializationFailure,
    UnsupportedMediaType,
)
from qserver.http1 import IncomingBody
from qserver.limits import BULK_BYTES_MAX, BULK_SECONDS_MAX
from qserver.query.bulk import BulkInsert, OnConflict
from qserver.query.idempotency import mismatch
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import Answered, RunOptions
from qserver.query.sql_database import SqlDatabase
from qserver.web.bulk.bulk_array import JsonArrayDecoder
from qserver.web.bulk.bulk_rows import CsvDecoder, JsonLinesDecoder
from qserver.web.calls import JSON, Endpoint, Facts, KeyedCall, Serving
from qserver.web.description import shapes
from qserver.web.query_strings import read_query_string
from qserver.web.route import Route
from qserver.web.statements.freshness import MIN_VERSION, version_wanted
from qserver.web.statements.idempotency import REPLAYED, name_of_answer
from qserver.web.statements.json_values import encode_json
from qserver.web.statements.requests import JSON_TYPES, check_media_type

PATH: Final = "/v1/tables/{name}/rows"
CHOICES: Final = ("error", "ignore", "update")
PIECE_BYTES: Final = 128 * 1024
"""Bytes of lines that are decoded at once."""

GATHER_SECONDS: Final = 0.05
"""How long lines that have arrived wait for others, to be decoded with them."""

_KINDS: Final[Mapping[bytes, type[JsonLinesDecoder | CsvDecoder]]] = {
    b"application/x-ndjson": JsonLinesDecoder,
    b"application/jsonl": JsonLinesDecoder,
    b"text/csv": CsvDecoder,
}
"""The decoders of media types; others are JSON."""


class BulkEndpoint(Endpoint):
    takes_values = True

    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path)
        self.body_bytes_max = BULK_BYTES_MAX
        self.table = "" if route.path != PATH else facts.request.path.split("/")[3]
        self.queries = route.parameters
        self.content_type = facts.headers.get(b"content-type", b"")
        named = facts.headers.get(b"x-database")
        self.database = None if named is None else named.decode("latin-1")


class BulkOptions(NamedTuple):
    """The options in the head of a request."""

    kind: type[JsonLinesDecoder | CsvDecoder | JsonArrayDecoder]
    on_conflict: OnConflict
    only: tuple[str, ...] | None
    database: str | None
    overriding: bool


class BulkCall(KeyedCall):
    endpoint: BulkEndpoint
    _began = 0.0

    reads_body = False

    def run(self, body: bytes) -> Serving:
        answered: Answered = yield partial(self._load, self.body)  # while it arrives
        headers = self.headers((JSON, REPLAYED)) if answered.replayed else self.headers()
        self.endpoint.service.metrics.replayed += answered.replayed
        return self.answer(200, headers, answered.text)

    async def _load(self, body: bytes | IncomingBody) -> Answered:
        bulk, endpoint, grant = self.asked(), self.endpoint, self.grant
        self._began = perf_counter()
        with await endpoint.service.plane.database(grant, bulk.database) as opened:
            key = self.values.get(b"idempotency-key")
            place = b"%b?%b\0" % (endpoint.request.path.encode(), endpoint.request.query)
            pieces = BodyPieces(body, None if key is None else place)
            try:
                if key is None:
                    return await self._insert(opened, bulk, pieces, None)
                name = name_of_answer(opened.id, grant, key)
                return await self._insert_once(opened, bulk, pieces, name)
            finally:
                endpoint.service.metrics.bulk_bytes += pieces.size

    def asked(self) -> Any:
        """What the head asks for: with the database, and what `take` needs."""
        endpoint = self.endpoint
        if not self.grant.may_write:
            raise Forbidden("rows in bulk need a key with the scope data:write")
        given = read_query_string(endpoint.request.query, endpoint.queries)
        on_conflict = given.get("on_conflict", "error")
        if on_conflict not in CHOICES:
            raise InvalidRequest(f"on_conflict is one of {', '.join(CHOICES)}, not {on_conflict!r}")
        only = names_of(given["columns"]) if "columns" in given else None
        media_type = endpoint.content_type.partition(b";")[0].strip().lower()
        kind = _KINDS.get(media_type, JsonArrayDecoder)
        _check_parameters(endpoint.content_type)
        if kind is JsonArrayDecoder:
            instead = "application/x-ndjson, text/csv or application/json"
            check_media_type(endpoint.content_type, JSON_TYPES, instead)
        database = given.get("database", endpoint.database)
        overriding = given.get("overriding")
        if overriding not in (None, "system"):
            raise InvalidRequest(f"overriding is system, not {overriding!r}")
        chosen = cast(OnConflict, on_conflict)
        return BulkOptions(kind, chosen, only, database, overriding is not None)

    async def _insert(
        self, opened: OpenDatabase, bulk: Any, body: BodyPieces, name: bytes | None
    ) -> Answered:
        """Insert the rows. With `name`, store the answer under it, or return the stored one."""
        sql, allowed = opened.sql, self.grant.allowed()
        still_allowed = partial(self.check_still_allowed, opened)
        options = RunOptions(
            timeout_ms=self.grant.limits.statement_timeout_ms,
            allowed=allowed,
            request_id=self.request_id,
        )
        most = sql.bulk_bytes_most
        wanted = version_wanted(self.values.get(MIN_VERSION))
        transaction = await sql.open(
            timeout_ms=options.timeout_ms, bytes_most=most, freshness=wanted
        )
        try:
            if name is not None:
                known = sql.stored_answer(transaction.transaction, name)
                if known is not None:
                    return await _repeated(known, body)
            with trio.move_on_after(BULK_SECONDS_MAX) as scope:
                insert = await self.take(sql, transaction, bulk, options, body, still_allowed)
            if scope.cancelled_caught:
                raise timed_out()
            head = b'{"success":true,"affected_rows":%d,"version":' % insert.affected_rows
            times = shapes.Timings(self.elapsed_us(), self.exec_us())
            tail = b',"timings":%b}' % encode_json(times)
            answer = sql.new_answer(body.fingerprint, head, tail)
            named = None if name is None else (name, answer)
            version = await insert.commit(self.request_id, named)
            self.endpoint.service.metrics.bulk_rows += insert.affected_rows
        finally:
            transaction.release()
        return Answered(text_of(answer, version), False)

    async def take(
        self,
        sql: SqlDatabase,
        transaction: OpenTransaction,
        bulk: Any,
        options: RunOptions,
        body: BodyPieces,
        still_allowed: Callable[[], Awaitable[None]],
    ) -> BulkInsert:
        """Insert the rows of the body while they arrive."""
        table, texts = self.endpoint.table, bulk.kind is CsvDecoder
        about = sql, transaction, table, bulk.on_conflict, options
        insert = BulkInsert(*about, texts=texts, overriding=bulk.overriding)
        insert.check_columns(bulk.only or ())
        await _add_all(insert, body, bulk.kind(bulk.only), still_allowed)
        return insert

    async def _insert_once(
        self, opened: OpenDatabase, bulk: Any, body: BodyPieces, name: bytes
    ) -> Answered:
        """Insert the rows, unless the same request has inserted them."""
        sql = opened.sql
        snapshot = sql.snapshots.take()
        known = None if snapshot is None else sql.stored_answer(snapshot, name)
        if known is not None:
            return await _repeated(known, body)
        with sql.running(name):
            try:
                return await self._insert(opened, bulk, body, name)
            except SerializationFailure:  # perhaps the same request, whose client has left
                snapshot = sql.snapshots.take()
                known = None if snapshot is None else sql.stored_answer(snapshot, name)
                if known is None:
                    raise
                return await _repeated(known, body)

    async def check_still_allowed(self, opened: OpenDatabase) -> None:
        """Raise if the sender may no longer write: a revoked key ends a long upload."""
        grant = await self.endpoint.service.authenticate(self.endpoint.headers)
        if not (grant.may_write and grant.may_use(opened.id)):
            raise Forbidden("the key has been narrowed and may no longer write this")
        opened.check_open()

    def exec_us(self) -> int:
        return int((perf_counter() - self._began) * 1_000_000) if self._began else 0


BulkEndpoint.kind = BulkCall


def _check_parameters(content_type: bytes) -> None:
    """Refuse what would be misread: another character set, a CSV without a header."""
    for parameter in content_type.lower().split(b";")[1:]:
        name, _, value = parameter.partition(b"=")
        name, value = name.strip(), value.strip().strip(b'"')
        if name == b"charset" and value not in (b"utf-8", b"utf8", b"us-ascii"):
            raise UnsupportedMediaType("rows in bulk are UTF-8", hint="Convert them first.")
        if name == b"header" and value != b"present":
            raise UnsupportedMediaType("the CSV needs a header line with the names of columns")


class BodyPieces:
    """The body in pieces of a useful size for decoding.

    With `place`, the route, it also computes the fingerprint of the request.
    """

    def __init__(self, body: bytes | IncomingBody, place: bytes | None = None) -> None:
        self._body = body
        self._digest = None if place is None else sha256(place)
        self._has_ended = False
        self.size = 0

    @property
    def fingerprint(self) -> bytes:
        return b"" if self._digest is None else self._digest.digest()

    async def skip(self) -> None:
        """Read to the end."""
        while not self._has_ended:
            await self.next()
            await yield_to_others()

    async def next(self) -> tuple[bytes, bool]:
        """Wait for a piece; return it, and whether it is the last."""
        piece, self._has_ended = await self._receive()
        self.size += len(piece)
        if self._digest is not None:
            self._digest.update(piece)
        return piece, self._has_ended

    async def _receive(self) -> tuple[bytes, bool]:
        if isinstance(self._body, bytes):
            return self._body, True
        pieces = [await self._body.receive_some()]
        size = len(pieces[0])
        with trio.move_on_after(GATHER_SECONDS):  # a bad row is answered though the sender pauses
            while pieces[-1] and size < PIECE_BYTES:
                pieces.append(await self._body.receive_some())
                size += len(pieces[-1])
        return b"".join(pieces), not pieces[-1]


async def _repeated(known: StoredAnswer, body: BodyPieces) -> Answered:
    """The stored answer, if the request has the same bytes."""
    with trio.move_on_after(BULK_SECONDS_MAX) as scope:
        await body.skip()
    if scope.cancelled_caught:
        raise timed_out()
    if known.fingerprint != body.fingerprint:
        raise mismatch()
    return Answered(known.text, True)


async def _add_all(
    insert: BulkInsert,
    body: BodyPieces,
    decoder: JsonLinesDecoder | CsvDecoder | JsonArrayDecoder,
    still_allowed: Callable[[], Awaitable[None]],
) -> None:
    """Insert rows as they arrive, one piece of the body at a time."""
    is_last, time_slice = False, TimeSlice()
    while not is_last:
        piece, is_last = await body.next()
        await still_allowed()
        for batch in decoder.feed(piece, last=is_last):
            if batch is not None:
                await insert.add(batch)
            await time_slice.yield_if_used_up()


def names_of(text: str) -> tuple[str, ...]:
    """The column names in a comma-separated list."""
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InvalidRequest("columns are names with commas between them")
    if len(set(names)) < len(names):
        raise InvalidRequest("columns has a name more than once")
    return names

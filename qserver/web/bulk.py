"""POST /v1/tables/{name}/rows: rows in bulk, inserted while they arrive, as one transaction.

body ─► pieces ─► `bulk_rows`: batches ─► `query.bulk`: steps of a transaction ─► commit
                          └─ the first bad row: its error and number, and nothing is applied
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Final, cast

import trio

from qserver.engine.work import timed_out
from qserver.engine.yielding import yield_to_others
from qserver.errors import Forbidden, InvalidRequest
from qserver.http1 import Answer, IncomingBody
from qserver.limits import BULK_BYTES_MAX, BULK_SECONDS_MAX, STATEMENT_SECONDS_MAX
from qserver.query.bulk import BulkInsert, OnConflict
from qserver.query.results import Options
from qserver.web import shapes
from qserver.web.bulk_array import JsonArray
from qserver.web.bulk_rows import Csv, JsonLines
from qserver.web.calls import Endpoint, Facts, KeyedCall
from qserver.web.catalogue import Route
from qserver.web.json_values import encode_json
from qserver.web.query_strings import read_query_string
from qserver.web.requests import JSON_TYPES, check_media_type
from qserver.web.service import allowed_of

PATH: Final = "/v1/tables/{name}/rows"
CHOICES: Final = ("error", "ignore", "update")
PIECE_BYTES: Final = 128 * 1024
"""Bytes of lines that are decoded at once."""

_KINDS: Final[Mapping[bytes, type[JsonLines | Csv]]] = {
    b"application/x-ndjson": JsonLines,
    b"application/jsonl": JsonLines,
    b"text/csv": Csv,
}
"""The decoders of media types; others are JSON."""


class BulkEndpoint(Endpoint):
    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path)
        self.body_bytes_max = BULK_BYTES_MAX
        self.table = facts.request.path.split("/")[3]
        self.queries = route.parameters
        self.content_type = facts.headers.get(b"content-type", b"")
        named = facts.headers.get(b"x-database")
        self.database = None if named is None else named.decode("latin-1")


class BulkCall(KeyedCall):
    endpoint: BulkEndpoint
    _began = 0.0

    def run(self, body: bytes) -> Answer:
        return self.after(self._load(body), self._loaded)

    def read(self, body: IncomingBody, most: int | None = None) -> Answer:
        return self.after(self._load(body), self._loaded)

    async def _load(self, body: bytes | IncomingBody) -> shapes.BulkAnswer:
        endpoint, grant = self.endpoint, self.grant
        if not grant.may_write:
            raise Forbidden("rows in bulk need a key with the scope data:write")
        if b"x-transaction" in endpoint.headers:
            raise InvalidRequest("rows in bulk are a transaction of their own")
        if self.idempotency_key is not None or b"idempotency-key" in endpoint.headers:
            raise InvalidRequest(
                "rows in bulk take no Idempotency-Key",
                hint="With on_conflict=ignore or update, the same rows can be sent again.",
            )
        given = read_query_string(endpoint.request.query, endpoint.queries)
        on_conflict = given.get("on_conflict", "error")
        if on_conflict not in CHOICES:
            raise InvalidRequest(f"on_conflict is one of {', '.join(CHOICES)}, not {on_conflict!r}")
        only = names_of(given["columns"]) if "columns" in given else None
        media_type = endpoint.content_type.partition(b";")[0].strip().lower()
        kind = _KINDS.get(media_type)
        if kind is None:
            instead = "application/x-ndjson, text/csv or application/json"
            check_media_type(endpoint.content_type, JSON_TYPES, instead)
        decoder = (kind or JsonArray)(only)
        self._began = perf_counter()
        options = Options(timeout_ms=STATEMENT_SECONDS_MAX * 1000, allowed=allowed_of(grant))
        database = given.get("database", endpoint.database)
        with await endpoint.service.plane.database(grant, database) as opened:
            transaction = await opened.sql.open(
                timeout_ms=options.timeout_ms, bytes_most=opened.sql.bulk_bytes_most
            )
            try:
                choice = cast(OnConflict, on_conflict)
                insert = BulkInsert(
                    opened.sql, transaction, endpoint.table, choice, options, texts=kind is Csv
                )
                insert.check_columns(only or ())
                with trio.move_on_after(BULK_SECONDS_MAX) as scope:
                    await _add_all(insert, BodyPieces(body), decoder)
                if scope.cancelled_caught:
                    raise timed_out()
                version = await insert.commit(self.request_id)
            finally:
                transaction.release()
        times = shapes.Timings(self.elapsed_us(), self.exec_us())
        return shapes.BulkAnswer(True, insert.affected_rows, version, times)

    def _loaded(self, answer: shapes.BulkAnswer) -> Answer:
        return self.answer(200, self.headers(), encode_json(answer))

    def exec_us(self) -> int:
        return int((perf_counter() - self._began) * 1_000_000) if self._began else 0


BulkEndpoint.kind = BulkCall


class BodyPieces:
    """The body in pieces that are worth decoding at once, and their size so far."""

    def __init__(self, body: bytes | IncomingBody) -> None:
        self._body = body
        self.size = 0

    async def next(self) -> tuple[bytes, bool]:
        """Wait for a piece; also whether it is the last."""
        if isinstance(self._body, bytes):
            self.size = len(self._body)
            return self._body, True
        pieces: list[bytes] = []
        size = 0
        while size < PIECE_BYTES:
            piece = await self._body.receive_some()
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        self.size += size
        return b"".join(pieces), size < PIECE_BYTES


async def _add_all(
    insert: BulkInsert, body: BodyPieces, decoder: JsonLines | Csv | JsonArray
) -> None:
    """Insert rows as they arrive, a piece of the body after the other."""
    is_last = False
    while not is_last:
        piece, is_last = await body.next()
        for batch in decoder.feed(piece, last=is_last):
            if batch is not None:
                await insert.add(batch)
            await yield_to_others()


def names_of(text: str) -> tuple[str, ...]:
    """The names of columns in a list with commas."""
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InvalidRequest("columns are names with commas between them")
    if len(set(names)) < len(names):
        raise InvalidRequest("columns has a name more than once")
    return names

"""POST /v1/tables/{name}/rows: rows in bulk, inserted while they arrive, as one transaction.

body ─► pieces ─► `bulk_rows`: batches ─► `query.bulk`: steps of a transaction ─► commit
                          └─ the first bad row: its error and number, and nothing is applied
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Final, cast

import msgspec
import trio

from qserver.engine.work import timed_out
from qserver.engine.yielding import yield_to_others
from qserver.errors import Forbidden, InvalidRequest
from qserver.http1 import Answer, IncomingBody
from qserver.limits import BULK_SECONDS_MAX, STATEMENT_SECONDS_MAX
from qserver.query.bulk import Batch, BulkInsert, OnConflict
from qserver.query.results import Options
from qserver.web import shapes
from qserver.web.bulk_rows import Csv, JsonLines, ObjectBatches, refused_row
from qserver.web.calls import Endpoint, Facts, KeyedCall
from qserver.web.catalogue import Route
from qserver.web.json_values import encode_json
from qserver.web.query_strings import read_query_string
from qserver.web.requests import (
    JSON_TYPES,
    check_media_type,
    decode,
    decode_value_in_steps,
    decoder_of,
)
from qserver.web.service import allowed_of

PATH: Final = "/v1/tables/{name}/rows"
CHOICES: Final = ("error", "ignore", "update")
PIECE_BYTES: Final = 128 * 1024
"""Bytes of lines that are decoded at once."""

_KINDS: Final[Mapping[bytes, type[JsonLines] | type[Csv]]] = {
    b"application/x-ndjson": JsonLines,
    b"application/jsonl": JsonLines,
    b"text/csv": Csv,
}


class BulkEndpoint(Endpoint):
    def __init__(self, facts: Facts, route: Route) -> None:
        super().__init__(facts, route.path)
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
        self._began = perf_counter()
        objects = await _array(body) if kind is None else []
        options = Options(timeout_ms=STATEMENT_SECONDS_MAX * 1000, allowed=allowed_of(grant))
        database = given.get("database", endpoint.database)
        with await endpoint.service.plane.database(grant, database) as opened:
            transaction = await opened.sql.open(timeout_ms=options.timeout_ms)
            try:
                choice = cast(OnConflict, on_conflict)
                insert = BulkInsert(
                    opened.sql, transaction, endpoint.table, choice, options, texts=kind is Csv
                )
                insert.check_columns(only or ())
                with trio.move_on_after(BULK_SECONDS_MAX) as scope:
                    if kind is None:
                        await _add(insert, ObjectBatches(only).of_many(objects))
                    else:
                        await _add_lines(insert, body, kind(only))
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


async def _add_lines(
    insert: BulkInsert, body: bytes | IncomingBody, decoder: JsonLines | Csv
) -> None:
    """Insert rows as they arrive, a piece of the body after the other."""
    if isinstance(body, bytes):
        await _add(insert, decoder.feed(body, last=True))
        return
    pieces: list[bytes] = []
    size = 0
    while piece := await body.receive_some():
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            await _add(insert, decoder.feed(b"".join(pieces)))
            pieces, size = [], 0
    await _add(insert, decoder.feed(b"".join(pieces), last=True))


async def _array(body: bytes | IncomingBody) -> list[dict[str, Any]]:
    """The objects of a JSON array, which is checked as a whole."""
    raw = (body if isinstance(body, bytes) else await body.read()).strip()
    if bytes(decode(_wrapped, b'{"array":%b}' % raw).array) != raw:
        raise InvalidRequest("the body is not JSON: it goes on after its end")
    values, _ = await decode_value_in_steps(raw, perf_counter(), None)
    if type(values) is not list:
        raise InvalidRequest("the body is not a JSON array of objects")
    for number, value in enumerate(values, 1):
        if type(value) is not dict:
            raise refused_row(number, "is not a JSON object")
    return values


class _Wrapped(msgspec.Struct):
    """JSON that is checked before it is decoded in steps."""

    array: msgspec.Raw


_wrapped: Final = decoder_of(_Wrapped)


async def _add(insert: BulkInsert, batches: Iterator[Batch]) -> None:
    for batch in batches:
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

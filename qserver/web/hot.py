"""The hot routes as endpoints, with or without an Idempotency-Key; see `dataplane`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from time import perf_counter
from typing import Final
from urllib.parse import parse_qsl

from msgspec.structs import fields

from qserver.control.databases import OpenDatabase
from qserver.errors import InvalidRequest
from qserver.http1 import Answer, Request
from qserver.limits import ANSWER_STORED_BYTES_MAX, ANSWER_STORED_SECONDS
from qserver.query.idempotency import too_long
from qserver.query.results import Once, Result
from qserver.query.sql_database import TransactionResult
from qserver.web.answers import WRITERS, query_around_version, transaction_around_version
from qserver.web.calls import JSON, Facts, KeyedCall
from qserver.web.dataplane import HotCall, HotEndpoint, QueryCall, TextCall, TransactionCall
from qserver.web.idempotency import (
    REPLAYED,
    fingerprint_of,
    name_of_answer,
    no_key_for_streams,
)
from qserver.web.rows import RowEncoder, RowEncoders
from qserver.web.shapes import QueryRequest, TransactionRequest


class IdempotentCall(HotCall):
    """A request with an Idempotency-Key: its commit stores the answer.

    The first answer has the same bytes as all later ones, so its timings end before the commit.
    """

    _fingerprint: bytes

    def run(self, body: bytes) -> Answer:
        self._fingerprint = fingerprint_of(self.endpoint.request.path, body)
        return super().run(body)  # type: ignore[safe-super]  # the class beside it has one

    def execute(self, opened: OpenDatabase) -> Answer:
        key = self.endpoint.idempotency_key
        assert key is not None
        self._opened = opened
        if self._options.dry_run:
            raise InvalidRequest("a dry run takes no Idempotency-Key: it changes nothing")
        name = name_of_answer(opened.id, self.grant, key)
        self._once = Once(name, self._fingerprint, ANSWER_STORED_SECONDS, self.render)
        return super().execute(opened)

    def stream(self, opened: OpenDatabase) -> Answer:
        self._opened = opened
        raise no_key_for_streams()

    live = stream

    def release(self) -> None:
        super().release()
        self._once = None  # it refers to `render`, and so to this call: no cycle is left

    @abstractmethod
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        """The answer before and after its version."""

    def encode(self, result: Result) -> tuple[RowEncoder, bytes]:
        """The rows of a result as JSON; raise if they are too long to be stored."""
        encoder = self.endpoint.encoders.find(result.columns, result.types)
        size = encoder.size_about(result.rows)
        if size > ANSWER_STORED_BYTES_MAX:
            raise too_long(size)
        return encoder, WRITERS[self._form](encoder, result.rows)

    def executed(self, outcome: TransactionResult) -> Answer:
        self._ended = perf_counter()
        self.release()
        answered = outcome.answered
        assert answered is not None
        headers = self.headers((JSON, REPLAYED)) if answered.replayed else self.headers()
        self.endpoint.service.metrics.replayed += answered.replayed
        return self.answer(200, headers, answered.text)


class IdempotentQueryCall(IdempotentCall, QueryCall):
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        (result,) = results
        times = self.elapsed_us(), self.exec_us()
        return query_around_version(result, *self.encode(result), retries, *times)


class IdempotentTextCall(IdempotentQueryCall, TextCall):
    pass


class IdempotentTransactionCall(IdempotentCall, TransactionCall):
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        encoded = list(map(self.encode, results))
        encoders, rows = [each for each, _ in encoded], [json for _, json in encoded]
        times = self.elapsed_us(), self.exec_us()
        return transaction_around_version(results, encoders, rows, retries, *times)


class PostEndpoint(HotEndpoint):
    """A hot route whose options are in the body and in headers; in the URL they have no effect."""

    def __init__(self, facts: Facts, name: str, encoders: RowEncoders) -> None:
        super().__init__(facts, name, encoders)
        if facts.request.query and _misplaced(facts.request) is not None:
            self.kind = MisplacedCall


class MisplacedCall(KeyedCall):
    """A request with an option in its URL. Without it, it would do something else than was meant.

    A parameter that is no option is let pass, as it always was.
    """

    def run(self, body: bytes) -> Answer:
        raise InvalidRequest(
            f"{_misplaced(self.endpoint.request)} is not read from the URL of a POST",
            hint="Send it as a field of the body; a database or an open transaction also by the"
            " header X-Database or X-Transaction.",
        )


_OPTIONS: Final = frozenset(
    each.name for shape in (QueryRequest, TransactionRequest) for each in fields(shape)
)


def _misplaced(request: Request) -> str | None:
    """The first parameter of the query string that is an option of statements."""
    given = parse_qsl(request.query.decode("latin-1"), keep_blank_values=True)
    return next((name for name, _ in given if name in _OPTIONS), None)


class QueryEndpoint(PostEndpoint):
    kind = QueryCall
    idempotent_kind = IdempotentQueryCall


class TextEndpoint(PostEndpoint):
    kind = TextCall
    idempotent_kind = IdempotentTextCall


class TransactionEndpoint(PostEndpoint):
    kind = TransactionCall
    idempotent_kind = IdempotentTransactionCall


HOT: Final[Mapping[str, type[HotEndpoint]]] = {
    "/v1/query": QueryEndpoint,
    "/query": TextEndpoint,
    "/v1/transaction": TransactionEndpoint,
}

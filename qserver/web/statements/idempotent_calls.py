"""Statements with an Idempotency-Key, which are applied once, however often they are sent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from typing import Any

from qserver.engine.work import Step
from qserver.errors import InvalidRequest
from qserver.http1 import Response
from qserver.limits import ANSWER_STORED_BYTES_MAX, ANSWER_STORED_SECONDS
from qserver.query.idempotency import too_long
from qserver.query.results import Once, Result
from qserver.query.sql_database import TransactionResult
from qserver.web.calls import JSON, Serving
from qserver.web.description.shapes import QueryRequest
from qserver.web.statements.answers import WRITERS, query_around_version, transaction_around_version
from qserver.web.statements.idempotency import (
    REPLAYED,
    fingerprint_of,
    name_of_answer,
    no_key_for_streams,
)
from qserver.web.statements.query_calls import QueryCall, TextCall
from qserver.web.statements.rows import RowEncoder
from qserver.web.statements.statement_calls import StatementCall
from qserver.web.statements.transaction_calls import TransactionCall


class IdempotentCall(StatementCall):
    """A request with an Idempotency-Key: its commit stores the answer.

    The first answer has the same bytes as all later ones, so its timings end before the commit.
    """

    _fingerprint: bytes

    def run(self, body: bytes) -> Serving:
        self._fingerprint = fingerprint_of(self.endpoint.request.path, body)
        return super().run(body)  # type: ignore[safe-super]  # the class beside it has one

    def may_only_read(self) -> bool:
        return False

    def perform(self) -> Generator[Step, Any, Any]:
        key, opened = self.values[b"idempotency-key"], self._opened
        assert opened is not None
        if self._options.dry_run:
            raise InvalidRequest("a dry run takes no Idempotency-Key: it changes nothing")
        name = name_of_answer(opened.id, self.grant, key)
        self._once = Once(name, self._fingerprint, ANSWER_STORED_SECONDS, self.render)
        return super().perform()

    def stream(self, request: QueryRequest) -> Serving:
        raise no_key_for_streams()

    live = stream

    def release(self) -> None:
        super().release()
        self._once = None  # it refers to `render`, and so to this call: no cycle is left

    @abstractmethod
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        """The answer before and after its version."""

    def rows_of(self, result: Result) -> tuple[RowEncoder, bytes]:
        """The rows of a result as JSON; raise if they are too long to be stored."""
        encoder = self.endpoint.encoders.find(result.columns, result.types)
        size = encoder.size_about(result.rows)
        if size > ANSWER_STORED_BYTES_MAX:
            raise too_long(size)
        return encoder, WRITERS[self._form](encoder, result.rows)

    def encode(self, outcome: TransactionResult) -> Response | None:
        answered = outcome.answered
        if answered is None:  # nothing was asked, so nothing is kept
            return super().encode(outcome)  # type: ignore[safe-super]  # as in `run`
        headers = self.headers((JSON, REPLAYED)) if answered.replayed else self.headers()
        self.endpoint.service.metrics.replayed += answered.replayed
        return self.answer(200, headers, answered.text)


class IdempotentQueryCall(IdempotentCall, QueryCall):
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        (result,) = results
        times = self.elapsed_us(), self.exec_us()
        return query_around_version(result, *self.rows_of(result), retries, *times)


class IdempotentTextCall(IdempotentQueryCall, TextCall):
    pass


class IdempotentTransactionCall(IdempotentCall, TransactionCall):
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        encoded = list(map(self.rows_of, results))
        encoders, rows = [each for each, _ in encoded], [json for _, json in encoded]
        times = self.elapsed_us(), self.exec_us()
        return transaction_around_version(results, encoders, rows, retries, *times)

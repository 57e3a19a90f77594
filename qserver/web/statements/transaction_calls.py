"""Several statements as one transaction: POST /v1/transaction."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

from qserver.control.records import Grant
from qserver.engine.work import Step
from qserver.errors import InvalidRequest
from qserver.http1 import Response
from qserver.query.sql_database import Statement, TransactionResult
from qserver.web.branches import run_on_branch
from qserver.web.calls import Serving
from qserver.web.description.shapes import TransactionRequest
from qserver.web.statements.answers import (
    WRITERS,
    Encoded,
    Sliced,
    are_short,
    transaction_body,
    transaction_in_parts,
    transaction_tail,
)
from qserver.web.statements.named import Named
from qserver.web.statements.requests import (
    BODY_BYTES_SHORT,
    read_transaction_request,
    transaction_request,
)
from qserver.web.statements.statement_calls import StatementCall
from qserver.web.streaming.changes import tail_in_parts, with_diff


class TransactionCall(StatementCall):
    _no_results: list[Any] | None = None
    _on_branch = False
    _branch: str | None = None
    """The branch that it made."""

    def limit(self, grant: Grant) -> None:
        self._named = Named(grant)

    def run(self, body: bytes) -> Serving:
        self._no_results = []
        if self._named is not None or len(body) > BODY_BYTES_SHORT:
            return self.until_left(self._run_long(body))
        return self._answered(*transaction_request(self.endpoint.content_type, body))

    def _run_long(self, body: bytes) -> Serving:
        content_type = self.endpoint.content_type
        if self._named is not None:
            asked = yield partial(self._named.transaction, content_type, body)
        else:
            asked = yield partial(read_transaction_request, content_type, body, self.grant.limits)
        return (yield from self._answered(*asked))

    def _answered(self, request: TransactionRequest, statements: Sequence[Statement]) -> Serving:
        self._statements = statements
        if request.branch:
            self._on_branch = True
            self._check_branch(request)
        return self.execute(request)

    def _check_branch(self, request: TransactionRequest) -> None:
        endpoint = self.endpoint
        if request.transaction is not None or endpoint.is_inside:
            raise InvalidRequest("an open transaction commits to its own database, not to a branch")
        if request.dry_run or request.settings is not None or endpoint.has_idempotency_key:
            raise InvalidRequest(
                "a transaction on a branch takes no dry_run, settings or Idempotency-Key"
            )

    def may_only_read(self) -> bool:
        return not self._on_branch and super().may_only_read()

    def perform(self) -> Generator[Step, Any, Any]:
        if self._on_branch:
            return self._perform_on_branch()
        return StatementCall.perform(self)  # of every request, and `super()` takes longer

    def _perform_on_branch(self) -> Generator[Step, Any, TransactionResult]:
        """Run the transaction on a new branch of the database that it names."""
        plane, asked = self.endpoint.service.plane, (self._statements, self._options)
        if self.endpoint.service.audit is not None:
            self.endpoint.service.audit.check()
        made: tuple[str, TransactionResult] = yield partial(
            run_on_branch, plane, self.grant, self._database_id, *asked
        )
        self._branch, outcome = made
        self._note_branch(self._branch)
        return outcome

    def _note_branch(self, name: str) -> None:
        """Write to the audit log that a database was made."""
        audit, grant = self.endpoint.service.audit, self.grant
        if audit is not None:
            audit.write(
                "control",
                action="POST /v1/transaction",
                outcome="done",
                organization=grant.organization,
                key_id=grant.key_id,
                session_id=grant.session_id,
                address=None if self.client is None else str(self.client[0]),
                request_id=self.request_id,
                wanted={"name": name, "branch_of": self._database_id},
            )

    def encode(self, outcome: TransactionResult) -> Response | None:
        every = self.encoders_of(outcome)
        if outcome.diff is not None or not are_short(every):
            return None
        write = WRITERS[self._form]
        rows = [write(encoder, rows) if rows else b"[]" for encoder, rows in every]
        return self.answer(200, self.headers(), self.whole_answer(outcome, every, rows))

    def encoders_of(self, outcome: TransactionResult) -> Sequence[Encoded]:
        find = self.endpoint.encoders.find
        return [(find(each.columns, each.types), each.rows) for each in outcome.results]

    def whole_answer(
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

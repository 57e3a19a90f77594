"""POST /sql, from its head to its answer.

A statement is first analysed, as PostgreSQL does when it is prepared: what a parameter is decides
how its text is read. In a batch, a statement may use what those before it define: then its
parameters are texts, which their places read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, Final

import msgspec
import trio

from qserver.engine.work import Step
from qserver.errors import (
    FeatureNotSupported,
    InvalidRequest,
    ProtocolViolation,
    QserverError,
    SqlSyntaxError,
    Unauthorized,
)
from qserver.http1 import Response
from qserver.pgwire.prepared import Prepared
from qserver.pgwire.tags import Sort
from qserver.query.analysis import analysing
from qserver.query.results import Result, Statement
from qserver.query.session import Session
from qserver.query.sql_database import SqlDatabase, TransactionResult
from qserver.values.binary_text import bytes_from_text
from qserver.values.types import Kind
from qserver.web.calls import ONLY_JSON, Facts, Serving
from qserver.web.description.neon_shapes import NeonStatement
from qserver.web.description.shapes import TransactionRequest
from qserver.web.neon.answers import Form, error_json, result_parts
from qserver.web.neon.requests import (
    CONNECTION_STRING,
    Asked,
    check_isolation,
    connection_string,
    flag_of,
    read_body,
    read_long_body,
    text_of_parameter,
)
from qserver.web.query_strings import names_in
from qserver.web.statements.answers import Encoded, Sliced, are_short, sliced
from qserver.web.statements.idempotent_calls import IdempotentCall
from qserver.web.statements.requests import BODY_BYTES_SHORT, check_count, statement_of
from qserver.web.statements.rows import RowEncoders
from qserver.web.statements.statement_calls import StatementCall, StatementEndpoint
from qserver.web.statuses import headers_of, status_of

KEPT_STATUSES: Final = (429, 500, 503)
"""Of errors that are not the caller's; for all others the driver wants 400."""


class NeonCall(StatementCall):
    endpoint: NeonEndpoint
    _asked: Asked
    _tags: Sequence[str] = ()

    def serve(self) -> Serving:
        problem = self.endpoint.problem
        if isinstance(problem, Unauthorized):
            raise problem
        return super().serve()

    def run(self, body: bytes) -> Serving:
        if self.endpoint.problem is not None:
            raise self.endpoint.problem
        if len(body) > BODY_BYTES_SHORT:
            return self.until_left(self._run_long(body))
        return self._answered(read_body(body))

    def _run_long(self, body: bytes) -> Serving:
        asked = yield partial(read_long_body, body, self.started, self.grant.limits)
        return (yield from self._answered(asked))

    def _answered(self, asked: Asked) -> Serving:
        self._asked = asked
        if asked.queries:
            check_count(list(asked.queries))
        self._statements = [
            statement_of(number, each.query) for number, each in enumerate(asked.queries)
        ]
        return self.execute(TransactionRequest([]))

    def perform(self) -> Generator[Step, Any, Any]:
        if not self._asked.queries:
            return TransactionResult([], 0)
        if self.endpoint.reads_only:
            allowed = msgspec.structs.replace(self._options.allowed, read_only=True)
            self._options = msgspec.structs.replace(self._options, allowed=allowed)
        prepared = []
        for number, query in enumerate(self._asked.queries):
            try:
                prepared.append((yield from self._prepared(query, is_first=number == 0)))
            except QserverError as error:
                if self._asked.is_batch:
                    error.statement = number
                raise
        self._statements = [statement for statement, _ in prepared]
        self._tags = [tag for _, tag in prepared]
        return (yield from super().perform())

    def _prepared(
        self, query: NeonStatement, *, is_first: bool
    ) -> Generator[Step, Any, tuple[Statement, str]]:
        """The statement with its values, and the words of its tag."""
        held, opened = self._held, self._opened
        sql: SqlDatabase
        if held is not None:
            sql = held.opened.sql
        else:
            assert opened is not None
            sql = opened.sql
        text = yield from self.endpoint.service.texts.find(sql.planner, query.query)
        if text.kind is None:
            raise SqlSyntaxError("the query is empty")
        if text.kind.sort is not Sort.SQL:
            raise FeatureNotSupported(
                f"{text.kind.tag or 'a statement that controls a transaction'} needs a connection",
                hint="Send several statements as one transaction, with sql.transaction([…]).",
            )
        values = [text_of_parameter(each) for each in query.params or ()]
        deadline = trio.current_time() + (self._options.timeout_ms or inf) / 1000
        inside = None if held is None else held.transaction
        asked = Statement(text.sql, None, text.parameterized)
        try:
            found = yield from analysing(sql, asked, inside, deadline)
        except QserverError:
            if is_first:
                raise
            return Statement(text.sql, values or None, text.parameterized), text.kind.tag
        prepared = Prepared("", text, found, Session(lasts=False))
        given = _read(prepared, values)
        return Statement(text.sql, given, text.parameterized), prepared.tag

    # --- the answer ---

    def encode(self, outcome: TransactionResult) -> Response | None:
        every = self.encoders_of(outcome)
        if not are_short(every):
            return None
        slices = [[rows] if rows else [] for _, rows in every]
        body = b"".join(self._body(outcome.results, slices))
        return self.answer(200, self.headers(), body)

    def encoders_of(self, outcome: TransactionResult) -> Sequence[Encoded]:
        find = self.endpoint.encoders.find
        return [(find(each.columns, each.types), each.rows) for each in outcome.results]

    async def encode_in_turns(self, outcome: TransactionResult) -> Response:
        results, _ = await sliced(self.encoders_of(outcome))
        return self._in_parts(outcome, results)

    def parts_of(self, outcome: TransactionResult, every: Sequence[Sliced]) -> Iterator[bytes]:
        yield from self._body(outcome.results, [slices for _, slices in every])

    def whole_answer(
        self, outcome: TransactionResult, every: Sequence[Encoded], rows: Sequence[bytes]
    ) -> bytes:
        return b"".join(self.parts_of(outcome, [(encoder, [some]) for encoder, some in every]))

    def _body(self, results: Sequence[Result], slices: Sequence[Sequence[Any]]) -> Iterator[bytes]:
        endpoint, asked = self.endpoint, self._asked
        if asked.is_batch:
            yield b'{"results":['
        for number, result in enumerate(results):
            arrays = asked.queries[number].array_mode
            form = Form(endpoint.raw, endpoint.arrays if arrays is None else arrays)
            if number:
                yield b","
            yield from result_parts(result, self._tags[number], form, slices[number])
        if asked.is_batch:
            yield b"]}"

    def refuse(self, known: QserverError) -> Response:
        status, headers = status_of(known), headers_of(known)
        is_driver = self.endpoint.has_password or status != 401
        if not is_driver or (status == 403 and self.grant.statements is not None):
            return super().refuse(known)  # such a client, or such a key, is for other routes
        if status not in KEPT_STATUSES:
            status, headers = 400, []
        body = error_json(known, self.endpoint.database)
        return self.answer(status, self.headers((*ONLY_JSON, *headers)), body)


class IdempotentNeonCall(IdempotentCall, NeonCall):
    def render(self, results: list[Result], retries: int) -> tuple[bytes, bytes]:
        slices = [[each.rows] if each.rows else [] for each in results]
        for each in results:
            self.rows_of(each)  # raises if they are too long to be stored
        body = b"".join(self._body(results, slices))
        return body[:-1] + b',"version":', b"}"


class NeonEndpoint(StatementEndpoint):
    kind = NeonCall
    idempotent_kind = IdempotentNeonCall

    def __init__(self, facts: Facts, name: str, encoders: RowEncoders) -> None:
        super().__init__(facts, name, encoders)
        headers = facts.headers
        self.form = None
        self.has_password = False
        """Whether the key is in the connection string."""
        self.problem: QserverError | None = None
        """What is wrong with the head."""
        self.raw = self.arrays = self.reads_only = False
        try:
            self._connect(headers.get(CONNECTION_STRING, b"").decode())
            self.raw = flag_of(headers, b"neon-raw-text-output")
            self.arrays = flag_of(headers, b"neon-array-mode")
            self.reads_only = flag_of(headers, b"neon-batch-read-only")
            flag_of(headers, b"neon-batch-deferrable")
            check_isolation(headers)
            if facts.request.query:
                unknown = names_in(facts.request.query)[0]
                raise InvalidRequest(f"POST /sql has no parameter {unknown!r} in its URL")
        except UnicodeDecodeError:
            self.problem = ProtocolViolation("the connection string is not UTF-8")
        except QserverError as error:
            self.problem = error

    def _connect(self, text: str) -> None:
        """Take the key and the database of a connection string, where headers do not say more."""
        if not text:
            return
        found = connection_string(text)
        if b"authorization" not in self.headers and found.password is not None:
            self.token, self.has_password = found.password, True
            value = b"Bearer " + found.password.encode()
            self.headers = {**self.headers, b"authorization": value}
        if self.database is None:
            self.database = found.database


def _read(prepared: Prepared, values: Sequence[str | None]) -> list[Any] | None:
    types = prepared.parameters
    if len(values) != len(types):
        raise ProtocolViolation(
            f"bind message supplies {len(values)} parameters, but prepared statement"
            f' "" requires {len(types)}'
        )
    return [
        bytes_from_text(value) if value is not None and sql_type.kind is Kind.BYTEA else value
        for value, sql_type in zip(values, types, strict=True)
    ] or None

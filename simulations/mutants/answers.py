"""Planted bugs in answers, between the engine and the client: only responses show them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import trio

from qserver.engine.work import Step
from qserver.errors import OutcomeUnknown, QserverError, RateLimited, SerializationFailure
from qserver.http1 import PENDING, Answer, Respond, Response
from qserver.query.results import Result, TransactionResult
from qserver.web import calls
from qserver.web.calls import Call, KeyedCall
from qserver.web.statements.query_calls import QueryCall
from qserver.web.statements.statement_calls import StatementCall
from qserver.web.streaming.streams import RowParts
from simulations.mutants.mutant import Mutant, edited


def _answer_whoever_came_last(original: Any) -> Any:
    last: dict[Any, Respond] = {}

    def start(self: Call, respond: Respond) -> Answer:
        last[self.endpoint] = respond
        answer: Answer = original(self, lambda answer: last[self.endpoint](answer))
        return answer

    return start


def _made_up(call: StatementCall, version: int) -> TransactionResult | None:
    """Return the result of statements that change one row each, if no rows are wanted."""
    if any("RETURNING" in each.sql or "SELECT" in each.sql for each in call._statements):
        return None
    result = Result((), (), [], 1, version)
    return TransactionResult([result for _ in call._statements], version)


def _answer_what_was_only_sent(original: Any) -> Any:
    def start(self: Call, respond: Respond) -> Answer:
        told = [respond]
        answer: Answer = original(self, lambda answer: told[0](answer))
        if answer is PENDING and isinstance(self, StatementCall) and self._opened is not None:
            snapshot = self._opened.sql.database.snapshots.take()
            made_up = None if snapshot is None else _made_up(self, snapshot.version)
            if made_up is not None:
                told[0] = lambda answer: False
                return self.encode(made_up) or answer
        return answer

    return start


def _answer_success_of_what_is_unknown(original: Any) -> Any:
    def perform(self: StatementCall) -> Generator[Step, Any, Any]:
        assert self._opened is not None
        snapshot = self._opened.sql.database.snapshots.take()
        made_up = None if snapshot is None else _made_up(self, snapshot.version + 1)
        try:
            return (yield from original(self))
        except OutcomeUnknown:
            if made_up is None:
                raise
            return made_up

    return perform


def _tell_what_is_unknown_as_a_conflict(original: Any) -> Any:
    def error_body(error: QserverError, *arguments: Any, **fields: Any) -> bytes:
        if isinstance(error, OutcomeUnknown):
            error = SerializationFailure()
        body: bytes = original(error, *arguments, **fields)
        return body

    return error_body


def _send_again_what_is_unknown(original: Any) -> Any:
    def perform(self: StatementCall) -> Generator[Step, Any, Any]:
        opened = self._opened
        assert opened is not None

        async def again() -> TransactionResult:
            await trio.sleep(1.0)
            return await opened.sql.transaction(self._statements)

        try:
            return (yield from original(self))
        except OutcomeUnknown:
            return (yield again)

    return perform


def _run_what_is_refused(original: Any) -> Any:
    def serve(self: KeyedCall) -> Generator[Step, Any, Any]:
        try:
            return (yield from original(self))
        except RateLimited:
            if isinstance(self.body, bytes):
                yield from self.run(self.body)
            raise

    return serve


def _number_by_the_head(original: Any) -> Any:
    numbers: dict[Any, str] = {}

    def answer(self: Call, *arguments: Any) -> Response:
        self.request_id = numbers.setdefault(self.endpoint, self.request_id)
        response: Response = original(self, *arguments)
        return response

    return answer


WRITTEN: Final = ("sql_keys", "sql_upserts")

MUTANTS: Final = (
    Mutant(
        "answer_twice",
        "a request that was pending is answered twice",
        WRITTEN,
        (
            edited(
                Call._replied,
                "if not respond(answer)",
                "if isinstance(answer, Response):\n"
                "        respond(answer)\n"
                "    if not respond(answer)",
            ),
        ),
    ),
    Mutant(
        "answer_whoever_came_last",
        "what was pending is answered to the last request that had the same head",
        WRITTEN,
        ((Call, "start", _answer_whoever_came_last),),
    ),
    Mutant(
        "answer_what_was_only_sent",
        "a request is answered with success when its commit was sent",
        ("sql_references", "sql_predicates", "sql_keys"),
        ((Call, "start", _answer_what_was_only_sent),),
    ),
    Mutant(
        "answer_success_of_what_is_unknown",
        "a commit that has failed is answered with success",
        ("sql_keys",),
        ((StatementCall, "perform", _answer_success_of_what_is_unknown),),
    ),
    Mutant(
        "tell_what_is_unknown_as_a_conflict",
        "a request whose outcome is unknown is told that it was not applied",
        ("sql_bank", "sql_keys"),
        ((calls, "error_body", _tell_what_is_unknown_as_a_conflict),),
    ),
    Mutant(
        "send_again_what_is_unknown",
        "a commit whose outcome is unknown is sent again, applied or not",
        WRITTEN,
        ((StatementCall, "perform", _send_again_what_is_unknown),),
    ),
    Mutant(
        "run_what_is_refused",
        "a request that the rate limit refuses is run all the same",
        WRITTEN,
        ((KeyedCall, "serve", _run_what_is_refused),),
    ),
    Mutant(
        "keep_the_lease_of_who_left",
        "who leaves while its request waits in a task does not give back the database",
        WRITTEN,
        (edited(KeyedCall.left, "self.release()", "pass"),),
    ),
    Mutant(
        "keep_the_lease_of_a_stream",
        "a stream that has ended does not give back the database",
        ("sql_bank",),
        (edited(QueryCall._as_stream, "self.release()", "pass"),),
    ),
    Mutant(
        "keep_the_lease_of_an_error",
        "a request that has failed does not give back the database",
        WRITTEN,
        (edited(Call.failed, "self.release()", "pass"),),
    ),
    Mutant(
        "go_on_behind_an_error",
        "a stream goes on when it has told of its error",
        ("sql_bank", "sql_bounds"),
        (
            edited(
                RowParts.parts,
                "    else:\n        exec_us",
                "    if True:\n        exec_us",
            ),
        ),
    ),
    Mutant(
        "end_a_stream_at_its_error",
        "a stream that meets an error ends as if all rows had been sent",
        ("sql_bank", "sql_bounds"),
        (
            edited(
                RowParts.parts,
                "    yield self.failure(error)",
                "    yield self._form.done(self._stream, self.count, 0, 0)",
            ),
        ),
    ),
    Mutant(
        "count_the_pages_of_a_stream",
        "the end of a stream tells how many parts it had, not how many rows",
        ("sql_bank", "sql_bounds"),
        (edited(RowParts.rows, "self.count + len(part)", "self.count + 1"),),
    ),
    Mutant(
        "keep_options_with_the_head",
        "what one request says of its deadline holds for all later ones that have the same head",
        WRITTEN,
        (
            edited(
                StatementCall.use_nowait,
                "options = _changed(options, request, grant, freshness)",
                "options = _changed(options, request, grant, freshness)\n"
                "        endpoint.options = (grant, options)",
            ),
        ),
    ),
    Mutant(
        "number_by_the_head",
        "all requests that have the same head are answered under one id",
        WRITTEN,
        ((Call, "answer", _number_by_the_head),),
    ),
)

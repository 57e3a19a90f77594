"""POST /v1/copy?sql=COPY … FROM STDIN: the body is the data, in the format that the statement says.

It goes the way of rows in bulk, and so has its limits, its answer and its Idempotency-Keys. With
X-Transaction it is a step of that open transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final, NamedTuple

import msgspec
import trio

from qserver.control.open_transactions import Held
from qserver.engine.work import timed_out
from qserver.engine.yielding import TimeSlice
from qserver.errors import Forbidden, InvalidRequest, QserverError, TransactionNotFound
from qserver.http1 import IncomingBody
from qserver.lexing.pieces import first_words
from qserver.limits import BULK_SECONDS_MAX
from qserver.pgwire.copy_binary import Tuples
from qserver.query.bulk import BulkInsert
from qserver.query.copying.rows_in import CopyIn
from qserver.query.copying.statement import CopyStatement, read_copy
from qserver.query.open_transaction import OpenTransaction, in_failed
from qserver.query.results import Answered, RunOptions
from qserver.query.sql_database import SqlDatabase
from qserver.web.bulk.bulk import BodyPieces, BulkCall, BulkEndpoint
from qserver.web.description import shapes
from qserver.web.places import check_place
from qserver.web.query_strings import read_query_string
from qserver.web.statements.idempotency import no_key_inside
from qserver.web.statements.json_values import encode_json

PATH: Final = "/v1/copy"


class CopyOptions(NamedTuple):
    """The options of the query string."""

    statement: CopyStatement
    database: str | None


def statement_of(given: dict[str, str], *, is_from: bool) -> CopyStatement:
    """Return the statement of a query string, if it is for this method."""
    if "sql" not in given:
        raise InvalidRequest("the parameter sql is missing", hint="It is a COPY statement.")
    sql = given["sql"]
    if first_words(sql, 1) != ("copy",):
        raise InvalidRequest(
            "only COPY is sent to /v1/copy", hint="Other statements go to POST /v1/query."
        )
    statement = read_copy(sql)
    if statement.is_from != is_from:
        raise InvalidRequest("COPY … FROM STDIN is sent with POST, and COPY … TO STDOUT with GET")
    return statement


class CopyInEndpoint(BulkEndpoint):
    pass


class CopyInCall(BulkCall):
    async def _load(self, body: bytes | IncomingBody) -> Answered:
        name = self.values.get(b"x-transaction")
        if name is None:
            return await super()._load(body)
        self._began = perf_counter()
        return await self._inside(name.decode("latin-1"), body)

    def asked(self) -> CopyOptions:
        endpoint = self.endpoint
        if not self.grant.may_write:
            raise Forbidden("COPY … FROM needs a key with the scope data:write")
        given = read_query_string(endpoint.request.query, endpoint.queries)
        database = given.get("database", endpoint.database)
        return CopyOptions(statement_of(given, is_from=True), database)

    async def take(
        self,
        sql: SqlDatabase,
        transaction: OpenTransaction,
        asked: Any,
        options: RunOptions,
        body: BodyPieces,
        still_allowed: Callable[[], Awaitable[None]],
    ) -> BulkInsert:
        copied = CopyIn(sql, transaction, asked.statement, options, Tuples)
        is_last, time_slice = False, TimeSlice()
        while not is_last:
            piece, is_last = await body.next()
            await still_allowed()
            for batch in copied.batches(piece, last=is_last):
                await copied.add(batch)
                await time_slice.yield_if_used_up()
        copied.end()
        return copied.insert

    # --- in an open transaction ---

    async def _inside(self, name: str, body: bytes | IncomingBody) -> Answered:
        asked = self.asked()
        if self.endpoint.has_idempotency_key:
            raise no_key_inside()
        held = await self._held(name, asked)
        try:
            return await self._step(held, asked, BodyPieces(body))
        finally:
            held.release()

    async def _held(self, name: str, asked: CopyOptions) -> Held:
        plane, grant = self.endpoint.service.plane, self.grant
        try:
            held = plane.open_transactions.find(grant, name)
        except TransactionNotFound:
            if not plane.owners.is_alone:
                await plane.find_elsewhere(grant, name)
            raise
        check_place(held, grant, asked.database)
        seconds = (grant.limits.statement_timeout_ms or BULK_SECONDS_MAX * 1000) / 1000
        return await held.use(trio.current_time() + seconds)

    async def _step(self, held: Held, asked: CopyOptions, body: BodyPieces) -> Answered:
        transaction, service = held.transaction, self.endpoint.service
        allowed = self.grant.allowed()
        if transaction.read_only:
            allowed = msgspec.structs.replace(allowed, read_only=True)
        allowed.check_write()
        limits = self.grant.limits
        timeout_ms = limits.statement_timeout_ms
        options = RunOptions(timeout_ms=timeout_ms, allowed=allowed, request_id=self.request_id)

        async def still_allowed() -> None:
            await self.check_still_allowed(held.opened)

        try:
            if transaction.failed:
                raise in_failed()
            with trio.move_on_after(BULK_SECONDS_MAX) as scope:
                about = held.opened.sql, transaction, asked, options, body, still_allowed
                insert = await self.take(*about)
            if scope.cancelled_caught:
                raise timed_out()
        except QserverError:
            transaction.failed = True
            raise
        finally:
            service.metrics.bulk_bytes += body.size
        service.metrics.bulk_rows += insert.affected_rows
        times = shapes.Timings(self.elapsed_us(), self.exec_us())
        answer = shapes.BulkAnswer(True, insert.affected_rows, transaction.version, times)
        return Answered(encode_json(answer), False)


CopyInEndpoint.kind = CopyInCall

"""A client that sends SQL by HTTP, in all the ways there are, each by chance.

    /v1/query         one statement, as JSON; rows come whole or as events
    /query            one statement without parameters, as text
    /v1/transaction   several, or one, in one transaction

Some requests bring an id of their own, some have a body that comes late, some a key that is limited
or revoked in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec

from qserver.errors import OutcomeUnknown, QserverError, RateLimited, TooManyRequests, Unauthorized
from qserver.query.results import Answered, RunOptions, Statement, TransactionResult
from simulations.observations import REQUEST
from simulations.web.answers import decode, read_answer
from simulations.web.exchange import Exchange, Reply, head
from simulations.web.front import Front
from simulations.web.keys import BRIEF, LIMITED, ORDINARY, brief_key

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"
LINES: Final = b"application/x-ndjson"

LIMITED_CALLS: Final = 0.06
BRIEF_STREAMS: Final = 0.25
OWN_IDS: Final = 0.5
LATE_BODIES: Final = 0.1
STREAMED_WRITES: Final = 0.1
AS_ARRAYS: Final = 0.5

encode: Final = msgspec.json.Encoder().encode


class SqlClient:
    """Draws how to ask from `chance`; reports bad answers to the front's problems."""

    def __init__(self, chance: Random, delay_seconds: float) -> None:
        self._chance = chance
        self._delay = delay_seconds

    async def write(
        self, front: Front, statements: Sequence[Statement], options: RunOptions, *, single: bool
    ) -> TransactionResult:
        """Send statements that may write; `single`: there is one, and it may go alone."""
        chance = self._chance
        if not single or chance.random() < 0.3:
            fields = {"statements": [_fields(each) for each in statements]}
            return await self._ask(front, "/v1/transaction", fields, options)
        (statement,) = statements
        accept = EVENTS if chance.random() < STREAMED_WRITES else None
        return await self._ask(front, "/v1/query", _fields(statement), options, accept)

    async def write_once(
        self, front: Front, statements: Sequence[Statement], name: str, *, single: bool
    ) -> tuple[Answered, int]:
        """Send statements with an Idempotency-Key, always as the same bytes."""
        path = "/v1/query" if single else "/v1/transaction"
        every = [_fields(each) for each in statements]
        headers = {
            b"content-type": JSON,
            b"authorization": b"Bearer " + ORDINARY.encode(),
            b"idempotency-key": name.encode(),
        }
        body = encode(every[0] if single else {"statements": every})
        exchange = Exchange(front, REQUEST.get(), head(path, headers), self._pause)
        reply = await exchange.send(body, None)
        version = self._read(front, reply, ORDINARY, REQUEST.get()).version
        return Answered(reply.body, b"idempotency-replayed" in reply.headers), version

    async def send_rows(
        self, front: Front, table: str, query: bytes, body: bytes, name: str | None
    ) -> tuple[Answered, int]:
        """Send rows in bulk as JSON lines, with an Idempotency-Key if there is a name."""
        headers = {b"content-type": LINES, b"authorization": b"Bearer " + ORDINARY.encode()}
        if name is not None:
            headers[b"idempotency-key"] = name.encode()
        late = self._chance.expovariate(1 / self._delay) if self._chance.random() < 0.5 else None
        request = head(f"/v1/tables/{table}/rows", headers, query=query)
        reply = await Exchange(front, REQUEST.get(), request, self._pause).send(body, late)
        answer = decode(reply.body)
        if not answer["success"]:
            self._read(front, reply, ORDINARY, REQUEST.get())
        return Answered(reply.body, b"idempotency-replayed" in reply.headers), answer["version"]

    async def read(
        self, front: Front, statement: Statement, options: RunOptions | None = None
    ) -> TransactionResult:
        chance, options = self._chance, options or RunOptions()
        way = chance.random()
        if way < 0.3:
            return await self._ask(
                front, "/v1/query", _fields(statement), options, EVENTS, brief=True
            )
        if not statement.parameters and way < 0.5:
            return await self._ask(front, "/query", {"sql": statement.sql}, options, as_text=True)
        if way < 0.65:
            return await self._ask(
                front, "/v1/transaction", {"statements": [_fields(statement)]}, options
            )
        return await self._ask(front, "/v1/query", _fields(statement), options)

    async def ask_as(
        self, front: Front, key: str, path: str, fields: dict[str, Any]
    ) -> TransactionResult:
        """Send a request with a key that the caller chooses; `/query` gets the text alone."""
        accept = EVENTS if path == "/v1/query" and self._chance.random() < 0.3 else None
        return await self._ask(
            front, path, fields, RunOptions(), accept, as_text=path == "/query", key=key
        )

    async def open_transaction(self, front: Front) -> tuple[str, int]:
        """Open a transaction; return its id and the version that it reads."""
        opened = (await self._send(front, "/v1/transaction/open"))["transaction"]
        return opened["id"], opened["version"]

    async def inside(
        self, front: Front, transaction: str, statements: Sequence[Statement]
    ) -> TransactionResult:
        """Send statements as one step of an open transaction."""
        if len(statements) == 1 and self._chance.random() < 0.7:
            path, fields = "/v1/query", _fields(statements[0])
        else:
            path, fields = "/v1/transaction", {"statements": [_fields(each) for each in statements]}
        return await self._ask(front, path, fields | {"transaction": transaction}, None)

    async def commit(self, front: Front, transaction: str) -> tuple[int, int]:
        """Commit, or ask for the answer again; return the version and the affected rows."""
        answer = await self._send(front, f"/v1/transaction/{transaction}/commit")
        return answer["version"], answer["affected_rows"]

    async def end_transaction(self, front: Front, transaction: str) -> None:
        await self._send(front, f"/v1/transaction/{transaction}", method="DELETE")

    async def _send(self, front: Front, path: str, method: str = "POST") -> Any:
        """Send a request without a body; return the answer, or raise the error in it."""
        headers = {b"authorization": b"Bearer " + ORDINARY.encode()}
        exchange = Exchange(front, REQUEST.get(), head(path, headers, method), self._pause)
        reply = await exchange.send(b"", None)
        answer: Any = decode(reply.body) if reply.body else {"success": True}
        if not answer["success"]:
            if path.endswith("/commit"):  # it may be the stored answer of an earlier request
                reply.request_id = answer["error"]["request_id"]
            self._read(front, reply, ORDINARY, REQUEST.get())
        return answer

    async def _ask(
        self,
        front: Front,
        path: str,
        fields: dict[str, Any],
        options: RunOptions | None,
        accept: bytes | None = None,
        *,
        as_text: bool = False,
        brief: bool = False,
        key: str = ORDINARY,
    ) -> TransactionResult:
        chance, name = self._chance, REQUEST.get()
        troubled = front.world.faults.on and key is ORDINARY and "transaction" not in fields
        if troubled and chance.random() < LIMITED_CALLS:
            key = LIMITED
        elif troubled and brief and chance.random() < BRIEF_STREAMS:
            key = brief_key(name, chance.randint(1, 3))
        headers = {
            b"content-type": b"text/plain" if as_text else JSON,
            b"authorization": b"Bearer " + key.encode(),
        }
        if accept is not None:
            headers[b"accept"] = accept
        if chance.random() < OWN_IDS:
            headers[b"x-request-id"] = name.encode()
        least = 0 if options is None else options.freshness.min_version
        if least and (as_text or chance.random() < 0.5):
            headers[b"x-min-version"] = b"%d" % least
        elif least:
            fields["min_version"] = least
        body = fields["sql"].encode() if as_text else encode(self._with(fields, options))
        late = chance.expovariate(1 / self._delay) if chance.random() < LATE_BODIES else None
        exchange = Exchange(front, name, head(path, headers), self._pause)
        reply = await exchange.send(body, late)
        return self._read(front, reply, key, name)

    def _with(self, fields: dict[str, Any], options: RunOptions | None) -> dict[str, Any]:
        if options is not None:
            fields["max_retries"] = options.max_retries
        if options is not None and options.if_version is not None:
            fields["if_version"] = options.if_version
        if options is not None and options.timeout_ms is not None:
            fields["timeout_ms"] = max(1, round(options.timeout_ms))
        if self._chance.random() < AS_ARRAYS:
            fields["format"] = "arrays"
        return fields

    def _pause(self) -> float:
        return self._chance.expovariate(1.0) * self._delay * 10

    def _read(self, front: Front, reply: Reply, key: str, name: str) -> TransactionResult:
        world = front.world

        def complain(text: str) -> None:
            front.problems.append(f"request {name}: {text}")

        try:
            result = read_answer(reply, complain)
        except QserverError as error:
            if isinstance(error, RateLimited):
                world.reach("a request was refused by the rate limit")
                if key != LIMITED or int(reply.headers[b"retry-after"]) < 1:
                    complain(f"refused by a limit that it does not have: {reply}")
            elif isinstance(error, TooManyRequests):
                world.reach("a request was refused because too many waited")
            elif isinstance(error, OutcomeUnknown):
                world.reach("an answer said that the outcome is unknown")
            elif isinstance(error, Unauthorized) and not key.startswith(BRIEF):
                complain("a good key was refused")
            if reply.streamed:
                world.reach("an error ended a stream")
            raise
        if reply.streamed:
            world.reach("a stream was read to its end")
        return result


def _fields(statement: Statement) -> dict[str, Any]:
    fields: dict[str, Any] = {"sql": statement.sql}
    if statement.parameters:
        fields["params"] = statement.parameters
    return fields

"""Answers requests of connections that are served by another process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractContextManager

import msgspec
import trio

from qserver.errors import DatabaseMoved
from qserver.http1.application import PENDING, Answer, Client, Parts, Response, Upgrade
from qserver.http1.context import ServerContext
from qserver.http1.errors import InvalidAnswer
from qserver.http1.head import head_of


class BelongsElsewhere(DatabaseMoved):
    """Another process serves the request. Nothing was done."""

    def __init__(self, process: int) -> None:
        super().__init__("the database is another one's by now", hint="Try again.")
        self.process = process


class Guest:
    """One request, from its bytes to its answer."""

    def __init__(self) -> None:
        self._answer: Answer = PENDING
        self._responded = trio.Event()
        self._has_left = False

    def _respond(self, answer: Answer) -> bool:
        self._answer = answer
        self._responded.set()
        return not self._has_left

    async def answer(self, context: ServerContext, request: bytes, client: Client) -> Response:
        """Return the answer; raise BelongsElsewhere if the request does by now."""
        raw = head_of(request)
        head, endpoint = context.heads.kept.get(raw) or context.heads.find(raw)
        context.counters.requests += 1
        answer = endpoint.handle(request[len(raw) :], client, self._respond, head.values)
        try:
            while not isinstance(answer, Response):
                if isinstance(answer, Coroutine):
                    answer = await answer
                elif answer is PENDING:
                    await self._responded.wait()
                    answer = self._answer
                elif isinstance(answer, Upgrade):
                    raise InvalidAnswer("its connection is not here")
                elif answer.instead is not None:
                    answer = answer.instead()  # it has come here from elsewhere
                else:
                    raise BelongsElsewhere(answer.process)
        finally:
            self._has_left = True
        return answer


class GuestParts:
    """The body of an answer that another process sends: the guest stays until its end."""

    def __init__(self, parts: Parts, stay: AbstractContextManager[None]) -> None:
        self._parts = parts
        self._stay = stay
        stay.__enter__()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts.__aiter__()

    async def aclose(self) -> None:
        try:
            await self._parts.aclose()
        finally:
            self._stay.__exit__(None, None, None)


async def answered(context: ServerContext, request: bytes, client: Client) -> Response:
    """Answer a whole request of another process's connection; a drain waits for its end."""
    with context.guest():
        answer = await Guest().answer(context, request, client)
        if isinstance(answer.body, bytes):
            return answer
        parts = GuestParts(answer.body, context.guest())
        return msgspec.structs.replace(answer, body=parts)

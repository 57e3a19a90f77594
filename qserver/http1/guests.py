"""Answers requests of connections that are served by another process."""

from __future__ import annotations

from collections.abc import Coroutine

import trio

from qserver.http1.application import PENDING, Answer, Client, Response
from qserver.http1.context import ServerContext
from qserver.http1.errors import InvalidAnswer
from qserver.http1.head import head_of


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
        """Return the answer. A request that belongs elsewhere again is a mistake."""
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
                else:
                    raise InvalidAnswer(f"{answer!r} to a request that was forwarded")
        finally:
            self._has_left = True
        return answer


async def answered(context: ServerContext, request: bytes, client: Client) -> Response:
    return await Guest().answer(context, request, client)

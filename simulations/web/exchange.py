"""One request and its answer, as a server holds them, and a client that may leave in the middle.

    HANDLING ─┬─ Response ──────────────────────────► ENDED
              ├─ PENDING ──► respond: any of these ─► …        LEFT: the client is gone, and the
              └─ coroutine ► WAITING: any of these ─► …              server has noticed

An exchange checks what the protocol promises: an answer comes once, to a request that is pending,
and carries the id of that request and of no other.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import trio

from qserver.errors import Applied, QserverError
from qserver.http1 import PENDING, Answer, ClientGone, Hold, Request, Response, hold_anything
from simulations.web.front import Front

SERVER_NOTICES: Final = 0.5
"""How often the server ends a request whose client has left; otherwise it goes on."""


PARTS_OF_A_BODY: Final = 3
"""In so many parts, about, a body comes that is read while it arrives."""


class State(Enum):
    HANDLING = "being handled"
    PENDING = "pending"
    WAITING = "waiting in a task"
    STREAMING = "in the middle of a stream"
    ENDED = "answered"
    LEFT = "left"


class ConnectionLost(QserverError):
    """The process crashed during the request, or the client did not wait for the answer."""

    code = "08006"
    name = "connection_failure"
    applied = Applied.UNKNOWN


@dataclass(slots=True)
class Reply:
    status: int
    headers: dict[bytes, bytes]
    request_id: str
    parts: list[bytes] = field(default_factory=list)
    streamed: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


class LateBody:
    """A body that comes after its head, or never, because its client has left."""

    def __init__(self, body: bytes, seconds: float) -> None:
        self._body = body
        self._whole = len(body)
        self._seconds = seconds
        self.client_left = False

    async def read(self, most: int | None = None, hold: Hold = hold_anything) -> bytes:
        await self._wait()
        hold(len(self._body))
        return self._body

    async def receive_some(self) -> bytes:
        """Wait for the next part; there are a few."""
        await self._wait()
        size = max(1, self._whole // PARTS_OF_A_BODY)
        part, self._body = self._body[:size], self._body[size:]
        return part

    async def _wait(self) -> None:
        await trio.sleep(self._seconds)
        if self.client_left:
            raise ClientGone("the client left before the end of its request")


class Exchange:
    """One request and its answer; `pause` is the client's time for each part of a stream."""

    def __init__(self, front: Front, name: str, request: Request, pause: Callable[[], float]):
        self._front = front
        self._world = front.world
        self._name = name
        self._request = request
        self._pause = pause
        self._state = self._left_while = State.HANDLING
        self._answer: Answer = PENDING
        self._responded = trio.Event()
        self._body: bytes | LateBody = b""

    async def send(self, body: bytes, late_seconds: float | None) -> Reply:
        """Send the request and read its answer, unless the client leaves before."""
        self._body = body if late_seconds is None else LateBody(body, late_seconds)
        world = self._world
        if not world.faults.strikes("client_leaves"):
            return await self._serve()
        patience = self._patience()
        if world.delays.random() < SERVER_NOTICES:
            with trio.move_on_after(patience):
                return await self._serve()
            if self._left_while is not State.HANDLING:
                world.reach(f"a client left a request {self._left_while.value}")
        else:
            reply = await self._serve_beside(patience)
            if reply is not None:
                return reply
            world.reach("the server went on with a request whose client had left")
        world.record("fault", f"{self._name}: the client has left")
        raise ConnectionLost("the client did not wait for the answer")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Response]:
        """Send the request, which has no body; the caller reads of the answer what it likes."""
        self._front.under_way += 1
        try:
            response = await self._response()
            self._check_id(response)
            try:
                yield response
            finally:
                if not isinstance(response.body, bytes):
                    with trio.CancelScope(shield=True):
                        await response.body.aclose()
        except trio.Cancelled:
            self._left_while, self._state = self._state, State.LEFT
            raise
        finally:
            self._front.under_way -= 1

    def _patience(self) -> float:
        delays = self._world.delays
        return (
            delays.choice((2, 8, 40)) * delays.expovariate(1.0) * self._world.profile.delay_seconds
        )

    async def _serve_beside(self, patience: float) -> Reply | None:
        """Serve in a task of the process, which goes on after the client has left."""
        replies: list[Reply] = []
        served = trio.Event()

        async def serve() -> None:
            with suppress(ClientGone, ConnectionLost):
                replies.append(await self._serve())
                served.set()

        self._front.nursery.start_soon(serve)
        with trio.move_on_after(patience):
            await served.wait()
            return replies[0]
        if isinstance(self._body, LateBody):
            self._body.client_left = True
        return None

    # --- the server ---

    async def _serve(self) -> Reply:
        self._front.under_way += 1
        try:
            response = await self._response()
            self._check_id(response)
            return await self._read(response)
        except trio.Cancelled:
            self._left_while, self._state = self._state, State.LEFT
            raise
        finally:
            self._front.under_way -= 1

    async def _response(self) -> Response:
        world = self._world
        if world.arrivals.random() < world.batching:
            answer = await self._begin_with_others()
        else:
            answer = self._handle()
        if isinstance(answer, Response):
            world.reach("a request was answered at once")
        while not isinstance(answer, Response):
            if isinstance(answer, Coroutine):
                self._state = State.WAITING
                answer = await answer
                world.reach("a request was answered by a task")
            else:
                if self._state is not State.PENDING:
                    self._be_pending()
                try:
                    await self._responded.wait()
                except trio.Cancelled:
                    if isinstance(self._answer, Coroutine):  # it came at this very moment
                        await self._answer  # is cancelled too, and gives back what it holds
                    raise
                answer = self._answer
                self._state = State.HANDLING
                world.reach("a pending request was answered")
        self._state = State.ENDED
        return answer

    def _be_pending(self) -> None:
        self._state, self._answer = State.PENDING, PENDING
        self._responded = trio.Event()

    async def _begin_with_others(self) -> Answer:
        """Have the request handled in a batch; return what `handle` returned."""
        begun = trio.Event()
        answers: list[Answer] = []

        def begin() -> None:
            if self._state is not State.LEFT:
                answer = self._handle()
                if answer is PENDING:
                    self._be_pending()
                answers.append(answer)
                begun.set()

        self._front.arrive(begin)
        try:
            await begun.wait()
        except trio.Cancelled:
            for owed in (*answers, self._answer):
                if isinstance(owed, Coroutine):
                    owed.close()  # gives back what it holds
            raise
        return answers[0]

    def _handle(self) -> Answer:
        front, request = self._front, self._request
        values = front.application.varying.values(request.path.encode(), request.headers)
        answer: Answer = front.endpoint(request).handle(self._body, None, self.respond, values)
        return answer

    def respond(self, answer: Answer) -> bool:
        """Take the answer that was pending."""
        if self._state is State.LEFT:
            self._world.reach("an answer came when its client had left")
            return False
        if self._state is not State.PENDING or self._responded.is_set():
            self._problem(f"was answered while it was {self._state.value}")
            return False
        self._answer = answer
        self._responded.set()
        return True

    async def _read(self, response: Response) -> Reply:
        reply = Reply(response.status, dict(response.headers.pairs), response.request_id)
        if isinstance(response.body, bytes):
            reply.parts.append(response.body)
            return reply
        reply.streamed = True
        self._state = State.STREAMING
        leaves = self._world.faults.strikes("client_leaves")
        try:
            with trio.move_on_after(self._patience() if leaves else math.inf):
                async for part in response.body:
                    reply.parts.append(part)
                    await trio.sleep(self._pause())
                self._state = State.ENDED
        finally:
            await response.body.aclose()
        if self._state is not State.ENDED:
            self._world.reach("a client left a request in the middle of a stream")
            raise ConnectionLost("the client did not wait for the rest")
        return reply

    def _check_id(self, response: Response) -> None:
        given = dict(self._request.headers).get(b"x-request-id")
        expected = response.request_id if given is None else given.decode()
        first = self._front.answered.setdefault(response.request_id, self._name)
        if response.request_id != expected or first != self._name:
            self._problem(f"was given the answer of {response.request_id}, which {first} has")

    def _problem(self, text: str) -> None:
        self._front.problems.append(f"request {self._name} {text}")


def head(
    path: str, headers: dict[bytes, bytes], method: str = "POST", query: bytes = b""
) -> Request:
    pairs: Any = tuple(headers.items())
    return Request(method, path, query, pairs)

"""Adapts the application to any ASGI server that runs Trio, such as hypercorn.

    scope ─► Request ─► endpoint ─► handle ─┬─ Response ─► messages
                                            ├─ PENDING: wait for `respond`
                                            └─ coroutine: awaited here

The ASGI server calls this in a task per request, so every step may wait. The parts of an answer are
sent by tasks of our own: hypercorn lets nobody cancel a send, so a client that does not read would
hold up everything, also the end of the server. A server that stops cancels the task of a request. A
stream without an end then says why it ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

import trio

from qserver.errors import QserverError, first_of
from qserver.http1 import (
    PENDING,
    Answer,
    AnswerCut,
    BodyRefused,
    ClientGone,
    Hold,
    Parts,
    Request,
    Response,
    Values,
    hold_anything,
    request_id_of,
)
from qserver.http1.head import body_length, named_headers
from qserver.http1.heads import HEAD_KEPT_BYTES_MAX
from qserver.http1.refusal import Refusal, new_request_id, refusal_response
from qserver.limits import (
    BODY_PROGRESS_BYTES_MIN,
    BODY_SECONDS_MAX,
    BODY_UNREAD_BYTES_MAX,
    HEADS_KEPT_MAX,
    LINGER_SECONDS_MAX,
    REQUEST_BODY_BYTES_MAX,
    SEND_SECONDS_MAX,
)
from qserver.web.app import Application
from qserver.web.calls import Endpoint

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


FAREWELL_SECONDS: Final = 1.0
"""For the last words of a stream whose server stops."""


@dataclass(frozen=True, slots=True)
class Head:
    """What follows from the head of a request alone."""

    endpoint: Endpoint
    declared: int
    """The length of its body, which the server has checked; 0 if the head does not say."""
    values: Values
    is_small: bool
    """Whether to read the body first: some servers cannot continue after an unread one."""


class AsgiApplication:
    def __init__(self, application: Application) -> None:
        self.application = application
        self._heads: dict[Request, Head] = {}
        """Clients send the same head again (see `http1.heads`)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            with suppress(trio.BusyResourceError):  # hypercorn closes the connection just now
                await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await live(self.application.running, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = tuple([(bytes(name), bytes(value)) for name, value in scope["headers"]])
        request = Request(
            scope["method"],
            scope["path"],
            scope.get("query_string", b""),
            headers,
            scope.get("scheme", "http"),
        )
        version = scope.get("http_version", "1.1")
        is_http_1 = version.startswith("1")
        try:
            head = self._heads.get(request) or self._head(request, version != "1.0")
        except Refusal as error:
            # While it comes, hypercorn fails.
            await ReceivedBody(receive).discard(LINGER_SECONDS_MAX)
            request_id = request_id_of(self._values(request)) or new_request_id()
            await _refuse(error, request_id, is_http_1, send)
            return
        endpoint = head.endpoint
        body = ReceivedBody(receive, head.declared)
        waiting = _Waiting()
        try:
            whole = await body.read() if is_http_1 and head.is_small else None
            body.most = endpoint.body_bytes_max or body.most
            given = body if whole is None else whole
            answer = endpoint.handle(given, scope.get("client"), waiting.respond, head.values)
            if isinstance(answer, Coroutine) and body.has_ended:
                response = await _unless_gone(waiting.response(answer), receive)
            else:
                response = await waiting.response(answer)
        except BodyRefused as refused:
            refusal = Refusal(refused.status, str(refused))
            request_id = request_id_of(head.values) or new_request_id()
            response, _ = refusal_response(refusal, request_id, 0)
        except ClientGone:
            return
        if not body.has_ended:
            await _discard_rest(body, is_http_1, response.status)
        start = {"type": "http.response.start", "status": response.status}
        pairs = [*response.headers.pairs, (b"x-request-id", response.request_id.encode())]
        if isinstance(response.body, bytes):
            if response.status not in (204, 304):
                pairs.append((b"content-length", b"%d" % len(response.body)))
            await send({**start, "headers": pairs})
            await send({"type": "http.response.body", "body": response.body})
        elif request.method == "HEAD":
            await response.body.aclose()  # a live query would never end
            await send({**start, "headers": pairs})
            await send({"type": "http.response.body", "body": b""})
        else:
            sender = PartsSender(receive, send)
            await sender.send({**start, "headers": pairs}, response.body, response.farewell)

    def _head(self, request: Request, modern: bool) -> Head:
        """Check the head as our own server does, as far as another one shows it."""
        named = named_headers(request.headers)
        length = body_length(named, modern)
        is_small = length is not None and length <= BODY_UNREAD_BYTES_MAX and b"expect" not in named
        values = self._values(request)
        head = Head(self.application.endpoint(request), length or 0, values, is_small)
        is_kept = length is not None and _size(request) <= HEAD_KEPT_BYTES_MAX
        if is_kept and not values:
            if len(self._heads) >= HEADS_KEPT_MAX:
                self._heads.clear()
            self._heads[request] = head
        return head

    def _values(self, request: Request) -> Values:
        return self.application.varying.values(request.path.encode(), request.headers)


async def _refuse(refusal: Refusal, request_id: str, is_http_1: bool, send: Send) -> None:
    """Refuse a request, and have the server read nothing behind it on this connection."""
    response, body = refusal_response(refusal, request_id, 0)
    pairs = [
        *response.headers.pairs,
        (b"x-request-id", request_id.encode()),
        (b"content-length", b"%d" % len(body)),
    ]
    if is_http_1:
        pairs.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": response.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def _discard_rest(body: ReceivedBody, is_http_1: bool, status: int) -> None:
    if not is_http_1:
        # Hypercorn drops an answered HTTP/2 stream and crashes on its later data.
        await body.discard(DISCARD_SECONDS)
    elif body.has_begun and status not in _REFUSED:
        # It closes the connection after the answer: the rest of the body would reset it.
        await body.discard(LINGER_SECONDS_MAX)


def _size(request: Request) -> int:
    sizes = [len(name) + len(value) for name, value in request.headers]
    return len(request.path) + len(request.query) + sum(sizes)


_REFUSED: Final = (408, 413)
"""Statuses after which no more is read."""

DISCARD_SECONDS: Final = 30.0
"""How long to read the rest of an unwanted body."""


class ReceivedBody:
    """The body that the ASGI server delivers."""

    def __init__(self, receive: Receive, declared: int = 0) -> None:
        self._declared = declared
        self.most = REQUEST_BODY_BYTES_MAX
        self._receive = receive
        self._more = True
        self._size = 0
        self._progress = 0
        self._patience = BODY_SECONDS_MAX

    @property
    def has_begun(self) -> bool:
        return self._size > 0

    @property
    def has_ended(self) -> bool:
        return not self._more

    async def discard(self, seconds: float) -> None:
        """Read and drop the rest of the body, for a while."""
        try:
            with trio.move_on_after(seconds):
                while self._more:
                    await self._next()
        except ClientGone:
            pass  # the client will not read the answer either

    async def _next(self, most: int | None = None) -> bytes:
        if most is not None and self._declared > most:
            raise BodyRefused(f"the body is larger than {most} bytes", 413)
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._more = False
            raise ClientGone("the client left before the end of its request")
        self._more = message.get("more_body", False)
        part: bytes = message.get("body", b"")
        self._size += len(part)
        if most is not None and self._size > most:
            raise BodyRefused(f"the body is larger than {most} bytes", 413)
        return part

    async def read(self, most: int | None = None, hold: Hold = hold_anything) -> bytes:
        most = self.most if most is None else most
        parts = []
        while part := await self._some(most):
            parts.append(part)
            hold(len(part))
        return b"".join(parts)

    async def receive_some(self) -> bytes:
        """Wait for the next part of the body; empty at its end."""
        return await self._some(self.most)

    async def _some(self, most: int) -> bytes:
        while self._more:
            part: bytes | None = None
            began = trio.current_time()
            try:
                with trio.move_on_after(self._patience):
                    part = await self._next(most)
            finally:  # a reader that stopped waiting has waited, too
                self._patience = max(0.0, self._patience - (trio.current_time() - began))
            if part is None:
                raise BodyRefused("the body of the request did not come in time", 408)
            self._progress += len(part)
            if self._progress >= BODY_PROGRESS_BYTES_MIN:
                self._progress, self._patience = 0, BODY_SECONDS_MAX
            if part:
                return part
        return b""


class _Waiting:
    """Waits until an answer becomes a `Response`."""

    def __init__(self) -> None:
        self._responded = trio.Event()
        self._answer: Answer = PENDING
        self._ended = False

    def respond(self, answer: Answer) -> bool:
        self._answer = answer
        self._responded.set()
        return not self._ended

    async def response(self, answer: Answer) -> Response:
        try:
            while not isinstance(answer, Response):
                if isinstance(answer, Coroutine):
                    answer = await answer
                else:
                    await self._responded.wait()
                    answer, self._answer = self._answer, PENDING
                    self._responded = trio.Event()
            return answer
        finally:
            self._ended = True
            if isinstance(self._answer, Coroutine):  # `respond` was called after the cancellation
                self._answer.close()


class PartsSender:
    """Sends the parts of one answer."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def send(self, start: Message, parts: Parts, farewell: bytes) -> None:
        """Send all parts, or stop when the client disconnects or takes none of them for long.

        If the server cancels this, it stops: `farewell` comes in place of the rest.
        """
        try:
            await self._send(start)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_wait_until_gone, self._receive, nursery.cancel_scope)
                async for part in parts:
                    if part:
                        await self._send_body(part, more=True)
                        await trio.lowlevel.checkpoint()
                await self._send_body(b"")
                nursery.cancel_scope.cancel()
        except* (OSError, trio.BusyResourceError):
            pass  # from `send`: the client is gone, or hypercorn closes the connection just now
        except* (AnswerCut, ClientGone):
            pass  # without its last message, the server ends the connection
        except* trio.Cancelled:
            if farewell:
                with trio.move_on_after(FAREWELL_SECONDS, shield=True), suppress(Exception):
                    await self._send_body(farewell)
            raise
        finally:
            await parts.aclose()

    async def _send_body(self, body: bytes, more: bool = False) -> None:
        """Send by a task of our own. Raises ClientGone if the client takes nothing for long."""
        sent = trio.Event()
        failures: list[Exception] = []

        async def send() -> None:
            try:
                await self._send({"type": "http.response.body", "body": body, "more_body": more})
            except Exception as error:
                failures.append(error)
            finally:
                sent.set()

        trio.lowlevel.spawn_system_task(send, context=copy_context())
        with trio.move_on_after(SEND_SECONDS_MAX):
            await sent.wait()
        if not sent.is_set():
            raise ClientGone("the client does not read its answer")
        if failures:
            raise failures[0]


async def _wait_until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _unless_gone(work: Coroutine[Any, Any, Response], receive: Receive) -> Response:
    """Return a response. Raises ClientGone if the client leaves before; its request is whole."""
    response: Response | None = None
    failure: Exception = ClientGone("the client is gone")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_wait_until_gone, receive, nursery.cancel_scope)
        try:
            response = await work
        except Exception as error:  # as it is, and not in a group
            failure = error
        nursery.cancel_scope.cancel()
    if response is None:
        raise failure
    return response


async def live(
    running: Callable[[], AbstractAsyncContextManager[object]], receive: Receive, send: Send
) -> None:
    """Run the application for the lifespan protocol. A known error at startup is reported as its
    message.
    """
    message = await receive()
    assert message["type"] == "lifespan.startup"
    started = False
    try:
        async with running():
            started = True
            await send({"type": "lifespan.startup.complete"})
            message = await receive()
            assert message["type"] == "lifespan.shutdown"
    except Exception as error:
        problem = first_of(error)
        if started or not isinstance(problem, QserverError):
            raise
        hint = f" {problem.hint}" if problem.hint else ""
        failed = {"type": "lifespan.startup.failed", "message": f"{problem.message}.{hint}"}
        await send(failed)
        return
    await send({"type": "lifespan.shutdown.complete"})

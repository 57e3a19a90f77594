"""One request and its answer, for routes that speak ASGI themselves.

Whatever every answer must carry (request id, rate limit, CORS) is collected in `headers_out` while
the request is on its way, so that no route can forget it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, Final

import trio

from qserver.errors import QserverError, RequestTooLarge
from qserver.limits import BODY_UNREAD_BYTES_MAX, REQUEST_BODY_BYTES_MAX
from qserver.web.answers import error_body
from qserver.web.statuses import Headers, headers_of, status_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON: Final = (b"content-type", b"application/json")


class ClientGone(Exception):
    """Whoever asked no longer waits for the answer."""


class Exchange:
    __slots__ = (
        "_body_read",
        "exec_us",
        "headers",
        "headers_out",
        "receive",
        "request_id",
        "scope",
        "send",
        "started",
        "status",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: dict[bytes, bytes],
        request_id: str,
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = headers
        """Those of the request, by name; of several that have one name, the last."""
        self.request_id = request_id
        self.headers_out: Headers = [(b"x-request-id", request_id.encode())]
        self.started = perf_counter()
        """When the last byte of the request was there."""
        self._body_read = False
        self.exec_us = 0
        self.status = 0
        """Of the answer; 0 until there is one."""

    def elapsed_us(self) -> int:
        return int((perf_counter() - self.started) * 1_000_000)

    async def body(self) -> bytes:
        """The whole body; `started` is when it was there."""
        self._body_read = True
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            body = await self._rest_of_body(body)
        if len(body) > REQUEST_BODY_BYTES_MAX:
            raise too_large()
        self.started = perf_counter()
        return body

    async def _rest_of_body(self, first: bytes) -> bytes:
        parts, size, more = [first], len(first), True
        while more:
            if size > REQUEST_BODY_BYTES_MAX:
                raise too_large()
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
        return b"".join(parts)

    def hand_back(self, body: bytes) -> None:
        """Let others receive a body that was read here."""
        receive, messages = self.receive, [{"type": "http.request", "body": body}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        self.receive = receive_again

    async def _pass_over_body(self) -> None:
        """Read a small body that nobody wanted: some servers cannot go on behind an unread one."""
        length = self.headers.get(b"content-length", b"0")
        if self._body_read or b"expect" in self.headers:
            return
        if length.isdigit() and len(length) < 8 and int(length) <= BODY_UNREAD_BYTES_MAX:
            try:
                await self.body()
            except ClientGone:
                pass  # then nobody will read the answer either

    async def answer(
        self, status: int, body: bytes, content_type: tuple[bytes, bytes] = JSON
    ) -> None:
        """The whole answer at once."""
        headers = [content_type, (b"content-length", b"%d" % len(body)), *self.headers_out]
        self.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def start_parts(self) -> None:
        """Begin an answer whose length is not known, because it is made while it is sent."""
        self.status = 200
        headers = [JSON, *self.headers_out]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def part(self, body: bytes) -> None:
        """Send a part of it; returns when there is room for the next."""
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        await trio.lowlevel.checkpoint()

    async def last_part(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body})

    async def start_stream(self, content_type: bytes) -> None:
        self.status = 200
        headers = [
            (b"content-type", content_type),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            *self.headers_out,
        ]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def fail(self, error: QserverError, *, results: list[Any] | None = None) -> None:
        """Answer with the error object."""
        await self._pass_over_body()
        body = error_body(error, self.request_id, self.elapsed_us(), self.exec_us, results=results)
        self.headers_out += headers_of(error)
        await self.answer(status_of(error), body)


def too_large() -> RequestTooLarge:
    return RequestTooLarge(
        f"the body is larger than {REQUEST_BODY_BYTES_MAX} bytes",
        hint="Send it in several requests.",
    )

"""What a server and its application agree on. A head is judged once, a request is answered once.

    application.endpoint(request)            a pure function of the head, kept with it
    endpoint.handle(body, client, respond)   ─┬─ Response    the answer, now
                                              ├─ PENDING     `respond` is called later, once
                                              └─ coroutine   to be awaited in a task;
                                                             its result is one of the three

So a request that can be answered without waiting needs no task, no coroutine and no callback, and
one that has to wait takes the same steps, some of them later. Where the connection ends first, a
coroutine is closed, and parts are, though nobody has begun with them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from qserver.http1.headers import Headers

REQUEST_ID: Final = re.compile(rb"[0-9A-Za-z._:-]{1,128}")


class Request(msgspec.Struct, frozen=True):
    """The head of a request. Names of headers are in lower case, in the order of arrival."""

    method: str
    path: str
    """Decoded."""
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    scheme: str = "http"

    @property
    def own_id(self) -> str | None:
        """The client's `X-Request-Id`, if it can do no harm in headers, logs and pages."""
        given = [value for name, value in self.headers if name == b"x-request-id"]
        if len(given) != 1 or REQUEST_ID.fullmatch(given[0]) is None:
            return None
        return given[0].decode()


class Parts(Protocol):
    """A body that is made while it is sent: the next part when the one before has left."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Called once, when all parts were sent or nobody wants the rest, also before the first."""


class Response(msgspec.Struct, frozen=True):
    status: int
    headers: Headers
    body: bytes | Parts
    request_id: str
    """Sent as X-Request-Id, and written to the access log."""


class Pending(Enum):
    PENDING = "pending"


PENDING: Final = Pending.PENDING

Answer: TypeAlias = "Response | Literal[Pending.PENDING] | Coroutine[Any, Any, Answer]"
Respond: TypeAlias = Callable[[Answer], bool]
"""Takes the answer that was pending. Called from any task, after `handle` has returned.

False: nobody is there any more. A coroutine is the caller's to close then."""


class IncomingBody(Protocol):
    """The body of a request that had not arrived whole when its head had."""

    async def read(self, most: int | None = None) -> bytes:
        """Wait for all of it, of so many bytes at most. Raises ClientGone if it does not come, and
        BodyRefused if the server does not take it."""


Client: TypeAlias = tuple[str, int] | None
"""Address and port of whoever has sent the request, if the server knows."""


class Endpoint(Protocol):
    """Serves all requests that have the same head."""

    def handle(self, body: bytes | IncomingBody, client: Client, respond: Respond) -> Answer: ...


class Application(Protocol):
    def running(self) -> AbstractAsyncContextManager[object]:
        """Requests come only while this block runs."""

    def endpoint(self, request: Request) -> Endpoint: ...

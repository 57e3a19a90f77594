"""The interface between a server and its application.

    application.endpoint(request)       a pure function of the head, cached with the head
    endpoint.handle(body, client, respond, values)
                                        ─┬─ Response    the answer, now
                                         ├─ PENDING     the endpoint calls `respond` later
                                         ├─ coroutine   the connection's task awaits it;
                                         │              its result is one of these
                                         ├─ Elsewhere   another process serves it
                                         └─ Upgrade     the connection speaks another protocol

A request that needs no waiting needs no task, no coroutine and no callback. A request that waits
takes the same steps, some of them later. If the connection ends first, it closes the coroutine or
the parts, even if nobody has started them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from qserver.http1.headers import Headers
from qserver.http1.transport import Transport

REQUEST_ID: Final = re.compile(rb"[0-9A-Za-z._:-]{1,128}")


class Request(msgspec.Struct, frozen=True):
    """The head of a request. Header names are in lower case, in the order of arrival."""

    method: str
    path: str
    """Decoded."""
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    scheme: str = "http"


Values: TypeAlias = Mapping[bytes, bytes]
"""The values of a head that vary, see `Varying`."""

PATH: Final = b":path"


class Varying(msgspec.Struct, frozen=True):
    """Which parts of heads are others in each request. None of them may say where a body ends."""

    headers: tuple[bytes, ...] = (b"x-request-id",)
    """Names, in lower case."""
    path: bytes = rb"()(?!)"
    """A regular expression for whole paths, with one group: what varies, which may be empty."""

    def values(self, path: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Values:
        """The headers that vary, by name, and a path that varies, as `PATH`.

        To choose among several headers with one name would be a guess: they have no value.
        """
        given = [pair for pair in headers if pair[0] in self.headers]
        names = [name for name, _ in given]
        values = {name: value for name, value in given if names.count(name) == 1}
        return values if re.fullmatch(self.path, path) is None else {**values, PATH: path}


ONLY_ID: Final = Varying()


def request_id_of(values: Values) -> str | None:
    """The client's `X-Request-Id`, if it is safe in headers, logs and pages."""
    value = values.get(b"x-request-id", b"")
    return None if REQUEST_ID.fullmatch(value) is None else value.decode()


class Parts(Protocol):
    """A body that is produced while it is sent: the next part after the previous one has left."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Called once: after the last part, or when the client is gone, even before the first."""


class Response(msgspec.Struct, frozen=True):
    status: int
    headers: Headers
    body: bytes | Parts
    request_id: str
    """Sent as X-Request-Id, and written to the access log."""
    farewell: bytes = b""
    """The last part of an answer without an end, if a server stops that cannot say so before."""

    def marked(self, marks: Headers) -> Response:
        """This answer with further headers, but for those that it has."""
        names = {name for name, _ in self.headers.pairs}
        more = [pair for pair in marks.pairs if pair[0] not in names]
        if not more:
            return self
        return msgspec.structs.replace(self, headers=Headers([*self.headers.pairs, *more]))


class Pending(Enum):
    PENDING = "pending"


PENDING: Final = Pending.PENDING


class Elsewhere(msgspec.Struct, frozen=True):
    """The request belongs to another process: the connection moves there, see `moving`.

    Only if its body was not read, or by one `read`.
    """

    process: int
    seconds: float
    """How long it may wait for that process."""
    refused: Callable[[], Response]
    """Makes its answer if that process did not get it: nothing was done."""
    visits: int = 0
    """Requests in a row that are forwarded before the connection moves, also the first; 0: as the
    mover has it."""
    instead: Callable[[], Coroutine[Any, Any, Response]] | None = None
    """Serves the request here, if that process did not; it is small then, and forwarded."""


class Upgrade(msgspec.Struct, frozen=True):
    """The connection speaks another protocol from now on, and ends with it."""

    pairs: tuple[tuple[bytes, bytes], ...]
    """The headers that say so."""
    speak: Callable[[Transport, bytes], Awaitable[None]]
    """Serves the client to its end; given what has arrived behind the head. It closes nothing."""
    request_id: str


Answer: TypeAlias = (
    "Response | Literal[Pending.PENDING] | Coroutine[Any, Any, Answer] | Elsewhere | Upgrade"
)
Respond: TypeAlias = Callable[[Answer], bool]
"""Takes the answer that was pending. Any task may call it, after `handle` has returned.

False: the client is gone. The caller then closes a coroutine that it passed.
"""


Hold: TypeAlias = Callable[[int], None]


def hold_anything(count: int) -> None:
    """Let a body have any part of its size."""


class IncomingBody(Protocol):
    """A request body that had not fully arrived with its head."""

    async def read(self, most: int | None = None, hold: Hold = hold_anything) -> bytes:
        """Wait for the whole body, at most `most` bytes. Raises ClientGone if it does not arrive,
        and BodyRefused if the server refuses it.

        `hold` is told the bytes of each part, and may raise.
        """

    async def receive_some(self) -> bytes:
        """Wait for the next part of the body; empty at its end. Raises as `read` does."""


Client: TypeAlias = tuple[str, int] | None
"""The sender's address and port, if the server knows them."""


class Endpoint(Protocol):
    """Serves all requests with the same head.

    If it has an attribute `body_bytes_max`, bodies may be so large, whatever the server's options
    say: it reads them in parts. If it has a true attribute `takes_values`, it serves all heads that
    differ only in what varies, and reads that in `values` alone, not in the request.
    """

    def handle(
        self, body: bytes | IncomingBody, client: Client, respond: Respond, values: Values
    ) -> Answer: ...


class Application(Protocol):
    """It may have an attribute `varying`, a `Varying`."""

    def running(self) -> AbstractAsyncContextManager[object]:
        """The server passes requests only while this block runs."""

    def endpoint(self, request: Request) -> Endpoint: ...

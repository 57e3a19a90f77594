"""A server on a port that the kernel chose, a raw client for it, and small applications.

The client speaks bytes, so that a test can send what no library would; answers are read strictly.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import trio

from qserver.http1 import Answer as Answered
from qserver.http1 import (
    Application,
    Counters,
    Headers,
    IncomingBody,
    Request,
    Respond,
    Response,
    ServerOptions,
    Values,
    serve,
)
from qserver.http1 import Client as Caller

PATIENCE_SECONDS = 240.0
"""A test that has not ended by then hangs."""


@dataclass(frozen=True)
class Answer:
    """An answer as it came over the wire."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    version: str = "HTTP/1.1"

    def header(self, name: str) -> str | None:
        values = [value for each, value in self.headers if each == name]
        assert len(values) <= 1, f"{name} is there twice"
        return values[0] if values else None


class Client:
    """A TCP connection, and what of its input has not been looked at."""

    def __init__(self, stream: trio.abc.HalfCloseableStream | trio.SSLStream[trio.SocketStream]):
        self.stream = stream
        self.buffer = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stream.aclose()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def ask(self, data: bytes, method: str = "GET") -> Answer:
        await self.send(data)
        return await self.answer(method)

    async def more(self) -> bool:
        """Read some more; False at the end."""
        data = bytes(await self.stream.receive_some(65536))
        self.buffer += data
        return bool(data)

    async def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            assert await self.more(), f"the end, after {self.buffer!r}"
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    async def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            assert await self.more(), f"the end, after {self.buffer!r}"
        found, self.buffer = self.buffer[:size], self.buffer[size:]
        return found

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        try:
            while await self.more():
                pass
        except trio.BrokenResourceError:
            self.buffer += b"<reset>"
        return self.buffer

    async def answer(self, method: str = "GET") -> Answer:
        lines = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        version, status, _phrase = lines[0].split(" ", 2)
        pairs = [line.split(": ", 1) for line in lines[1:]]
        headers = [(name.lower(), value) for name, value in pairs]
        answer = Answer(int(status), headers, b"", version)
        if method == "HEAD" or answer.status in (100, 204, 304):
            return answer
        return Answer(answer.status, headers, await self._body(answer), version)

    async def _body(self, answer: Answer) -> bytes:
        length = answer.header("content-length")
        if answer.header("transfer-encoding") == "chunked":
            assert length is None
            body = b""
            while size := int(await self.until(b"\r\n"), 16):
                chunk = await self.exactly(size)
                body += chunk
                assert await self.exactly(2) == b"\r\n"
            assert await self.exactly(2) == b"\r\n"
            return body
        if length is not None:
            return await self.exactly(int(length))
        return await self.rest()


@dataclass
class Running:
    """A server under test."""

    addresses: list[tuple[str, int]]
    stop: trio.Event
    counters: Counters
    reports: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    ended: trio.Event = field(default_factory=trio.Event)

    async def client(self) -> Client:
        return Client(await trio.open_tcp_stream(*self.addresses[0]))

    async def until(self, true: Callable[[], bool]) -> None:
        """Let others run until something has become true."""
        while not true():
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def running(application: Application, **options: Any) -> AsyncIterator[Running]:
    """Serve; at the end of the block stop, and see that the server ends by itself."""
    server = Running([], trio.Event(), Counters())
    chosen = ServerOptions(**{"linger_seconds": 0.5, "access_log": server.log.append, **options})
    run = partial(
        serve,
        application,
        chosen,
        stop=server.stop,
        report=server.reports.append,
        counters=server.counters,
    )

    async def serve_and_tell(task_status: trio.TaskStatus[Any]) -> None:
        await run(task_status=task_status)
        server.ended.set()

    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            server.addresses = await nursery.start(serve_and_tell)
            yield server
            server.stop.set()


def request(
    target: str = "/", method: str = "GET", body: bytes | None = None, *headers: str
) -> bytes:
    """An ordinary request of HTTP/1.1."""
    lines = [f"{method} {target} HTTP/1.1", "Host: example.org", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


# --- applications --------------------------------------------------------------------------------


@dataclass
class Asked:
    """One request, as an application of the tests gets it."""

    request: Request
    body: bytes | IncomingBody
    client: Caller
    respond: Respond

    async def read(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else await self.body.read()


class App:
    """An application of one function, which answers at once, or is asynchronous."""

    def __init__(self, function: Callable[[Asked], Answered]) -> None:
        self.function = function

    def running(self) -> AbstractAsyncContextManager[object]:
        return nullcontext()

    def endpoint(self, request: Request) -> Served:
        return Served(self.function, request)


@dataclass
class Served:
    """The endpoint of one head."""

    function: Callable[[Asked], Answered]
    request: Request

    def handle(
        self, body: bytes | IncomingBody, client: Caller, respond: Respond, values: Values
    ) -> Answered:
        return self.function(Asked(self.request, body, client, respond))


def reply(
    body: bytes,
    status: int = 200,
    headers: Iterable[tuple[bytes, bytes]] = (),
    request_id: str = "id",
) -> Response:
    return Response(status, Headers(headers), body, request_id)


class Pieces:
    """A body in parts."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self.pieces = pieces
        self.closed = trio.Event()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.pieces

    async def aclose(self) -> None:
        assert not self.closed.is_set(), "it is closed once"
        self.closed.set()
        await self.pieces.aclose()


def in_parts(pieces: AsyncGenerator[bytes, None]) -> Response:
    return Response(200, Headers([(b"content-type", b"text/plain")]), Pieces(pieces), "id")


class Echo(App):
    """Answers with method, path and body, in the connection's task; remembers every request."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.asked: list[Asked] = []
        self.bodies: list[bytes] = []

    async def answer(self, asked: Asked) -> Response:
        self.asked.append(asked)
        body = await asked.read()
        self.bodies.append(body)
        return reply(f"{asked.request.method} {asked.request.path} ".encode() + body)

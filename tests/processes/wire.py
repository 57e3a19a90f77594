"""A connection by hand: keep-alive, several requests at once, and what is known when it breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import trio

from tests.patience import PATIENCE_SECONDS

RECEIVE_BYTES = 65_536
JsonObject = dict[str, Any]


class Lost(Exception):
    """No whole answer came. `is_half`: a part of it did. `is_silent`: nothing came, for minutes."""

    def __init__(self, is_half: bool, is_silent: bool = False) -> None:
        super().__init__("half an answer" if is_half else "no answer")
        self.is_half = is_half
        self.is_silent = is_silent


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        found: JsonObject = json.loads(self.body)
        return found

    @property
    def code(self) -> str | None:
        """The code of the error; one of a statement comes with the status 200."""
        found: JsonObject = self.json if self.body else {}
        return None if found.get("success", True) else str(found["error"]["code"])

    @property
    def is_good(self) -> bool:
        return self.status < 300 and self.code is None

    @property
    def is_unknown(self) -> bool:
        """Whether only a second try can tell: the process was away, or ended meanwhile."""
        return self.status == 503 or self.code in ("08007", "QS033")

    @property
    def rows(self) -> list[list[Any]]:
        assert self.is_good, self.body
        return [list(each.values()) for each in self.json["rows"]]


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


def query(sql: str, params: Sequence[Any] = (), key: str | None = None, **fields: Any) -> Request:
    body = {"sql": sql, "params": list(params), **fields}
    return posted("/v1/query", body, key)


def posted(path: str, body: object, key: str | None = None) -> Request:
    """A request with an Idempotency-Key, if there is one."""
    headers = () if key is None else (("Idempotency-Key", key),)
    return Request("POST", path, json.dumps(body).encode(), headers)


class Wire:
    """One connection, made when it is needed, and again when it was lost."""

    host = "127.0.0.1"
    patience_seconds = PATIENCE_SECONDS

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self.key = key
        self._stream: trio.SocketStream | None = None
        self._buffer = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.socket.close()
        self._stream, self._buffer = None, b""

    async def ask(self, method: str, path: str, **body: Any) -> Answer:
        data = json.dumps(body).encode() if body else b""
        return await self.send(Request(method, path, data))

    async def made(self, path: str, **body: Any) -> JsonObject:
        answer = await self.ask("POST", path, **body)
        assert answer.status == 201, answer.body
        return answer.json

    async def query(self, sql: str, params: Sequence[Any] = (), **fields: Any) -> Answer:
        return await self.send(query(sql, params, **fields))

    async def send(self, request: Request) -> Answer:
        await self.begin([request])
        return await self.receive()

    async def send_in_two(self, request: Request) -> Answer:
        """Send the body when the server has asked for it, so that it comes after its head."""
        wants = request._replace(headers=(*request.headers, ("Expect", "100-continue")))
        stream = await self._opened()
        await stream.send_all(self._written(wants).removesuffix(request.body))
        asked = await self._until(b"\r\n\r\n")
        assert asked.startswith(b"HTTP/1.1 100"), asked
        self._buffer = self._buffer[len(asked) :]
        await stream.send_all(request.body)
        return await self.receive()

    async def begin(self, requests: Sequence[Request]) -> None:
        """Send requests at once; `receive` gets the answers in their order."""
        try:
            await (await self._opened()).send_all(b"".join(map(self._written, requests)))
        except (OSError, trio.BrokenResourceError):
            self.close()
            raise Lost(False) from None

    async def _opened(self) -> trio.SocketStream:
        if self._stream is None:
            self._stream = await self._connect()
        return self._stream

    async def _connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(self.host, self._port)

    def _written(self, request: Request) -> bytes:
        lines = [f"{request.method} {request.path} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"Authorization: Bearer {self.key}", f"Content-Length: {len(request.body)}"]
        if request.body and not any(name == "Content-Type" for name, _ in request.headers):
            lines.append("Content-Type: application/json")
        lines += [f"{name}: {value}" for name, value in request.headers]
        return "\r\n".join([*lines, "", ""]).encode() + request.body

    async def answering(self) -> None:
        """Wait until an answer has begun, and leave it where it is."""
        await trio.lowlevel.wait_readable((await self._opened()).socket)

    async def receive(self) -> Answer:
        scope = trio.CancelScope(deadline=trio.current_time() + self.patience_seconds)
        try:
            with scope:
                return await self._receive()
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except BaseException:
            self.close()
            raise
        is_half = bool(self._buffer)
        self.close()
        raise Lost(is_half, scope.cancelled_caught)

    async def _receive(self) -> Answer:
        begun, _, _ = (await self._until(b"\r\n\r\n")).partition(b"\r\n\r\n")
        first, *lines = begun.decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        start = len(begun) + 4
        if headers.get("transfer-encoding") == "chunked":
            end = len(await self._until(b"\r\n0\r\n\r\n"))
            body = _joined(self._buffer[start:end])
        else:
            end = start + int(headers.get("content-length", 0))
            while len(self._buffer) < end:
                await self._more()
            body = self._buffer[start:end]
        self._buffer = self._buffer[end:]
        answer = Answer(int(first.split()[1]), headers, body)
        if headers.get("connection") == "close":
            self.close()
        return answer

    async def _until(self, mark: bytes) -> bytes:
        """What has arrived up to a mark."""
        while mark not in self._buffer:
            await self._more()
        return self._buffer[: self._buffer.index(mark) + len(mark)]

    async def _more(self) -> None:
        if self._stream is None:
            raise EOFError
        data = await self._stream.receive_some(RECEIVE_BYTES)
        if not data:
            raise EOFError
        self._buffer += data


class Reached(Protocol):
    """What clients connect to."""

    def connected(self) -> Wire:
        """A connection that is made when it is needed."""


def _joined(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        body += rest[: int(size, 16)]
        chunks = rest[int(size, 16) + 2 :]
    return body

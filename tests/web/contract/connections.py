"""Requests by hand, over a socket: streams of which not all is read, bodies that come late."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.web.contract.servers import Client

KINDS_OF_EVENTS = frozenset(
    {"columns", "row", "done", "error", "ready", "insert", "delete", "version", "change"}
)


@dataclass(frozen=True)
class Event:
    kind: str
    id: str | None
    data: Any


def parse_events(text: str) -> list[Event]:
    """All events of a whole stream, which must be written exactly as the contract shows."""
    assert text.endswith("\n\n")
    return [_parse(block) for block in text[:-2].split("\n\n")]


def _parse(block: str) -> Event:
    lines = block.split("\n")
    kind = lines[0].removeprefix("event: ")
    assert lines[0] == f"event: {kind}" and kind in KINDS_OF_EVENTS, block
    identity = None
    if lines[1].startswith("id: "):
        assert kind in ("row", "version"), block
        identity = lines.pop(1).removeprefix("id: ")
    assert len(lines) == 2 and lines[1].startswith("data: "), block
    return Event(kind, identity, json.loads(lines[1].removeprefix("data: ")))


class OpenStream:
    """A stream of which only as much is read as is asked for."""

    def __init__(self, client: Client, sql: str, **fields: Any) -> None:
        body = json.dumps({"sql": sql, **fields}).encode()
        self._open(client, _head(client, "POST", "/v1/query", body) + body)

    def _open(self, client: Client, request: bytes) -> None:
        self.socket = connect(client)
        self.socket.sendall(request)
        self._pending = b""
        self.head = self._until(b"\r\n\r\n").decode()
        assert "chunked" in self.head.lower(), self.head

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def events(self) -> Iterator[Event]:
        text = ""
        for chunk in self._chunks():
            text += chunk.decode()
            while "\n\n" in text:
                block, text = text.split("\n\n", 1)
                if block != ": keep-alive":
                    yield _parse(block)
        assert text == ""

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = int(self._until(b"\r\n"), 16)
            while len(self._pending) < size + 2:
                self._receive()
            chunk, self._pending = self._pending[:size], self._pending[size + 2 :]
            if size == 0:
                return
            yield chunk

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._pending:
            self._receive()
        found, self._pending = self._pending.split(mark, 1)
        return found

    def _receive(self) -> None:
        received = self.socket.recv(4096)
        assert received, "the stream broke off"
        self._pending += received


class OpenFeed(OpenStream):
    """The changes of a database, as events."""

    def __init__(self, client: Client, query: str, last_event_id: object = None) -> None:
        more = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            more["Last-Event-ID"] = str(last_event_id)
        self._open(client, _head(client, "GET", f"/v1/changes?{query}", b"", more))

    def until(self, version: int) -> list[Event]:
        """The events up to that of this version, or of the first behind it."""
        found = []
        for event in self.events():
            found.append(event)
            if event.kind == "version" and event.data["version"] >= version:
                return found
        raise AssertionError(f"it ended: {found}")

    def error(self) -> dict[str, Any]:
        """Read to the end, which must be an error."""
        (*_, last) = self.events()
        assert last.kind == "error", last
        found: dict[str, Any] = last.data["error"]
        return found


class HalfARequest:
    """A request whose head is sent, and whose body follows when `complete` is called."""

    def __init__(self, client: Client, method: str, path: str, body: bytes) -> None:
        self.socket = connect(client)
        self._body = body
        self.socket.sendall(_head(client, method, path, body))

    def __enter__(self) -> HalfARequest:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def complete(self) -> bytes:
        """Send the body; the answer, head and body."""
        self.socket.sendall(self._body)
        return self._answer()

    def go_on(self, path: str) -> bytes:
        """Send another request on the same connection; its answer."""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return self._answer()

    def _answer(self) -> bytes:
        head = body = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._received(1)
        (length,) = re.findall(rb"content-length: *(\d+)", head.lower())
        while len(body) < int(length):
            body += self._received(int(length) - len(body))
        return head + body

    def _received(self, size: int) -> bytes:
        received = self.socket.recv(size)
        assert received, "the connection was closed"
        return received


class LateRequest:
    """A POST whose caller has been admitted, and whose body follows with `complete`."""

    def __init__(self, client: Client, path: str, kind: str = "application/json") -> None:
        self.socket = connect(client)
        more = {"Content-Type": kind, "Transfer-Encoding": "chunked", "Expect": "100-continue"}
        head = _head(client, "POST", path, b"", more)
        self.socket.sendall(head.replace(b"Content-Length: 0\r\n", b""))
        assert self._until_blank_line().startswith(b"HTTP/1.1 100")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, piece: bytes) -> None:
        self.socket.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def complete(self, piece: bytes) -> tuple[int, Any]:
        """Send the last piece; the answer."""
        self.send(piece)
        self.socket.sendall(b"0\r\n\r\n")
        return self.answer()

    def answer(self) -> tuple[int, Any]:
        """The status and the JSON of the answer."""
        head, body = self._until_blank_line(), b""
        (length,) = re.findall(rb"content-length: *(\d+)", head.lower())
        while len(body) < int(length):
            body += self._received(int(length) - len(body))
        return int(head.split()[1]), json.loads(body)

    def _until_blank_line(self) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._received(1)
        return head

    def _received(self, size: int) -> bytes:
        received = self.socket.recv(size)
        assert received, "the connection was closed"
        return received


def connect(client: Client) -> socket.socket:
    """With a small buffer, so that a reader that stops reading is felt by the server soon."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(240)
    connection.connect(("127.0.0.1", client.server.port))
    return connection


def _head(
    client: Client, method: str, path: str, body: bytes, more: Mapping[str, str] | None = None
) -> bytes:
    headers = {
        "Host": "localhost",
        **client.headers,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(more or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()

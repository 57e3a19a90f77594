"""A client that sends any bytes and reads messages: for what no driver would do."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple

import trio

from tests.pgwire.serving import KEY


class Message(NamedTuple):
    kind: str
    body: bytes

    def fields(self) -> dict[str, str]:
        """Those of an error or a notice."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts if part}


def frame(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def startup(minor: int = 0, **parameters: str) -> bytes:
    body = b"".join(text(name) + text(value) for name, value in parameters.items()) + b"\0"
    return struct.pack("!ii", len(body) + 8, 196608 + minor) + body


def query(sql: str) -> bytes:
    return frame("Q", text(sql))


def parse(sql: str, name: str = "", oids: Sequence[int] = ()) -> bytes:
    types = struct.pack(f"!H{len(oids)}I", len(oids), *oids)
    return frame("P", text(name) + text(sql) + types)


def bind(
    values: Sequence[bytes | None] = (),
    name: str = "",
    portal: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    body = text(portal) + text(name) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return frame("B", body + struct.pack(f"!H{len(results)}h", len(results), *results))


def describe(kind: str = "P", name: str = "") -> bytes:
    return frame("D", kind.encode() + text(name))


def execute(portal: str = "", most: int = 0) -> bytes:
    return frame("E", text(portal) + struct.pack("!i", most))


def close(kind: str, name: str = "") -> bytes:
    return frame("C", kind.encode() + text(name))


SYNC = frame("S")
FLUSH = frame("H")
TERMINATE = frame("X")
PASSWORD = frame("p", text(KEY))
HELLO = startup(user="me", database="main")


def messages_of(data: bytes) -> list[Message]:
    """The whole messages in some bytes."""
    found, at = [], 0
    while len(data) - at >= 5:
        (length,) = struct.unpack_from("!i", data, at + 1)
        if len(data) - at < length + 1:
            break
        found.append(Message(chr(data[at]), data[at + 5 : at + 1 + length]))
        at += 1 + length
    assert at == len(data), "the server sends whole messages"
    return found


class Wire:
    """One connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._data = b""
        self.number = self.secret = 0

    @classmethod
    async def open(cls, port: int) -> Wire:
        return cls(await trio.open_tcp_stream("127.0.0.1", port))

    @classmethod
    async def enter(cls, port: int, hello: bytes = HELLO, password: bytes = PASSWORD) -> Wire:
        """Connect, and be let in."""
        wire = await cls.open(port)
        await wire.send(hello + password)
        got = await wire.until_ready()
        assert got[-1] == Message("Z", b"I"), got
        for each in got:
            if each.kind == "K":
                wire.number, wire.secret = struct.unpack("!iI", each.body)
        return wire

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def message(self) -> Message | None:
        """The next message; None at the end."""
        while True:
            if len(self._data) >= 5:
                (length,) = struct.unpack_from("!i", self._data, 1)
                if len(self._data) > length:
                    found = Message(chr(self._data[0]), self._data[5 : length + 1])
                    self._data = self._data[length + 1 :]
                    return found
            try:
                more = await self.stream.receive_some()
            except trio.BrokenResourceError:
                return None
            if not more:
                return None
            self._data += more

    async def until_ready(self) -> list[Message]:
        """All messages up to ReadyForQuery, or the end."""
        found: list[Message] = []
        while (each := await self.message()) is not None:
            found.append(each)
            if each.kind == "Z":
                break
        return found

    async def until_end(self) -> list[Message]:
        found: list[Message] = []
        while (each := await self.message()) is not None:
            found.append(each)
        return found

    async def ask(self, data: bytes) -> list[Message]:
        await self.send(data)
        return await self.until_ready()

    async def run(self, sql: str) -> list[Message]:
        return await self.ask(query(sql))

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stream.aclose()


def kinds(messages: Sequence[Message]) -> str:
    return "".join(each.kind for each in messages)


def code(messages: Sequence[Message]) -> str:
    """The SQLSTATE of the first error."""
    return next(each.fields()["C"] for each in messages if each.kind == "E")


def tags(messages: Sequence[Message]) -> list[str]:
    return [each.body[:-1].decode() for each in messages if each.kind == "C"]


def rows(messages: Sequence[Message]) -> list[tuple[bytes | None, ...]]:
    """The values of all DataRows."""
    found = []
    for each in messages:
        if each.kind == "D":
            (count,), at, row = struct.unpack_from("!h", each.body), 2, []
            for _ in range(count):
                (size,) = struct.unpack_from("!i", each.body, at)
                at += 4
                row.append(None if size < 0 else each.body[at : at + size])
                at += max(size, 0)
            found.append(tuple(row))
    return found

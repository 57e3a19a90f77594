"""Clients of PostgreSQL's protocol, whose connections break anywhere.

    client ── bytes ──► Pipe ──► pgwire.Connection ──► SqlDatabase     the product's own session
           ◄── bytes ──      ◄──

Each direction is cut behind so many bytes, if at all: what comes after that is lost, and both ends
find out when they wait for more, or send.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import inf
from random import Random
from typing import Any, Final

import trio

from qserver.pgwire.connection import Connection
from qserver.pgwire.host import Host
from simulations.web.front import Front
from simulations.web.keys import ORDINARY

SYNC: Final = b"S\0\0\0\4"
LEAVE: Final = b"X\0\0\0\4"


def query(sql: str) -> bytes:
    return _message(b"Q", sql.encode() + b"\0")


def executed(sql: str, parameters: Sequence[Any] = (), limits: Sequence[int] = (0,)) -> bytes:
    """Parse, Bind, and an Execute for each number of rows."""
    values = [str(each).encode() for each in parameters]
    body = b"\0\0" + struct.pack("!HH", 0, len(values))
    body += b"".join([struct.pack("!i", len(each)) + each for each in values])
    data = _message(b"P", b"\0" + sql.encode() + b"\0\0\0")
    data += _message(b"B", body + struct.pack("!H", 0))
    return data + b"".join([_message(b"E", b"\0" + struct.pack("!i", most)) for most in limits])


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


class Cut(Exception):
    """The connection is gone; whatever was not answered may have been read, or not."""


class Answers:
    """What a server has said up to its next wait."""

    def __init__(self) -> None:
        self.rows: list[tuple[str | None, ...]] = []
        self.tags: list[str] = []
        self.parts = 0
        """How often a portal had more rows than were wanted."""
        self.code: str | None = None
        """Of an error."""

    def add(self, kind: bytes, body: bytes) -> None:
        if kind == b"D":
            self.rows.append(_row(body))
        elif kind == b"C":
            self.tags.append(body[:-1].decode())
        elif kind == b"s":
            self.parts += 1
        elif kind == b"E" and self.code is None:
            self.code = {each[:1]: each[1:] for each in body.split(b"\0")}[b"C"].decode()


def _row(body: bytes) -> tuple[str | None, ...]:
    (count,), at = struct.unpack_from("!h", body), 2
    values: list[str | None] = []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return tuple(values)


class Pipe:
    """A connection of one client, as the transport of its server; see `http1.Transport`."""

    descriptor = -1
    may_be_watched = False

    def __init__(self, cut_in: float, cut_out: float, pause: Callable[[], Any]) -> None:
        self._left_in, self._left_out = cut_in, cut_out
        self._pause = pause
        self._in, self._out = bytearray(), bytearray()
        self._ended = False
        self._news = trio.Event()

    # --- the server's end ---

    async def receive(self) -> bytes:
        await self._pause()
        while not self._in and not self._ended:
            await self._wait()
        data = bytes(self._in)
        self._in.clear()
        return data

    async def send_all(self, data: memoryview, seconds: float) -> None:
        await self._pause()
        if self._ended:
            raise BrokenPipeError("the client is gone")
        kept = bytes(data[: int(min(self._left_out, len(data)))])
        self._out += kept
        self._left_out -= len(kept)
        if len(kept) < len(data):
            self.close()
        self._tell()

    def close(self) -> None:
        self._ended = True
        self._tell()

    # --- the client's end ---

    def send(self, data: bytes) -> None:
        if self._ended:
            raise Cut
        kept = data[: int(min(self._left_in, len(data)))]
        self._in += kept
        self._left_in -= len(kept)
        if len(kept) < len(data):
            self.close()
        self._tell()

    async def answers(self) -> Answers:
        """Wait until the server waits for the client. Raises Cut."""
        found = Answers()
        while True:
            while len(self._out) >= 5:
                kind, length = bytes(self._out[:1]), int.from_bytes(self._out[1:5], "big")
                if len(self._out) <= length:
                    break
                body = bytes(self._out[5 : length + 1])
                del self._out[: length + 1]
                if kind == b"Z":
                    return found
                found.add(kind, body)
            if self._ended:
                raise Cut
            await self._wait()

    async def _wait(self) -> None:
        self._news = trio.Event()
        await self._news.wait()

    def _tell(self) -> None:
        self._news.set()


class _Network:
    """Stands in for the listener: one process, no TLS, no cancel."""

    reactor = None

    def encrypted(self, transport: Any) -> Any:
        raise AssertionError("nobody asks for TLS")

    async def cancel(self, number: int, secret: int) -> None:
        raise AssertionError("nobody cancels")

    async def move(self, connection: Any, leave: Any) -> None:
        raise AssertionError("there is one process")


async def connected(front: Front, chance: Random, longest: float) -> Pipe:
    """Let a client in. Its connection breaks somewhere, or, by chance, not at all.

    `longest`: about as many bytes as either side sends.
    """
    service, world = front.service, front.world
    may_break = world.faults.on and chance.random() < 0.5
    cut_in, cut_out = (chance.uniform(0, longest) if may_break else inf for _ in range(2))

    async def pause() -> None:
        await trio.sleep(chance.expovariate(1.0) * world.profile.delay_seconds)

    pipe = Pipe(cut_in, cut_out, pause)
    host = Host(
        plane=service.plane,
        secrets=world.ids.randbytes,
        known=service.known,
        count=lambda error, seconds: None,
        is_starting=lambda: False,
    )
    connection = Connection(_Network(), host, pipe, 1, "client")  # type: ignore[arg-type]
    connection.state.is_private = True
    front.nursery.start_soon(connection.run)
    body = b"user\0me\0database\0main\0\0"
    pipe.send(struct.pack("!ii", len(body) + 8, 196608) + body)
    pipe.send(_message(b"p", ORDINARY.encode() + b"\0"))
    answers = await pipe.answers()
    if answers.code is not None:
        raise Cut
    return pipe

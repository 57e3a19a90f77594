"""Two servers in one Trio loop that give each other their connections.

A path says whose it is and how it is answered: `/1/read` belongs to server 1. The other server says
so in the same way:

    now      at once
    later    pending
    task     in the connection's task
    read     in the task, after the whole body was read
    bulk     in the task, before anything was read; the owner reads in parts
    stream   at once; the owner answers in parts
    quiet    at once; the owner answers with one part, and no end

A socket is duplicated on its way, as if it had gone to another process: it stays open while its
first descriptor is closed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import trio

from qserver.http1 import (
    PENDING,
    Counters,
    Elsewhere,
    Headers,
    Host,
    Moved,
    Response,
    ServerOptions,
    serve,
)
from qserver.http1 import Answer as Answered
from qserver.http1.context import ServerContext
from tests.http1.serving import PATIENCE_SECONDS, App, Asked, Client, Running, in_parts, reply

WAYS = ("now", "later", "task", "read", "bulk", "stream")


class Owner(App):
    """Serves what belongs to its process, and says so of all else."""

    def __init__(self, process: int) -> None:
        super().__init__(self.answer)
        self.process = process
        self.paths: list[str] = []
        """What it has served."""
        self.schemes: set[str] = set()
        self.clients: set[Any] = set()
        self.bodies = trio.Event()
        """Set if a part of a body was read here."""

    def answer(self, asked: Asked) -> Answered:
        _, owner, way, *_ = asked.request.path.split("/")
        own = int(owner) == self.process
        if way in ("now", "stream", "quiet"):
            if not own:
                return elsewhere(int(owner))
            if not isinstance(asked.body, bytes):
                return self._read(asked)
            return self._reply(asked, asked.body)
        if way == "later":
            trio.lowlevel.spawn_system_task(self._respond, asked, None if own else int(owner))
            return PENDING
        return self._later(asked, way, None if own else int(owner))

    async def _respond(self, asked: Asked, owner: int | None) -> None:
        if owner is not None:
            asked.respond(elsewhere(owner))
            return
        rest = self._read(asked)
        if not asked.respond(rest):
            rest.close()

    async def _later(self, asked: Asked, way: str, owner: int | None) -> Answered:
        if way == "bulk" and owner is None and not isinstance(asked.body, bytes):
            parts = []
            while part := await asked.body.receive_some():
                self.bodies.set()
                parts.append(part)
            return self._reply(asked, b"".join(parts))
        body = await asked.read() if way == "read" or owner is None else b""
        return self._reply(asked, body) if owner is None else elsewhere(owner)

    async def _read(self, asked: Asked) -> Answered:
        return self._reply(asked, await asked.read())

    def _reply(self, asked: Asked, body: bytes) -> Answered:
        request = asked.request
        self.paths.append(request.path)
        self.schemes.add(request.scheme)
        self.clients.add(asked.client)
        answer = expected(request.path, body, request.method)
        if "/quiet" in request.path:
            return in_parts(_quiet(answer))
        return in_parts(_parts(answer)) if "/stream" in request.path else reply(answer)


def elsewhere(process: int) -> Elsewhere:
    return Elsewhere(process, PATIENCE_SECONDS, lambda: reply(b"away", 503))


def expected(path: str, body: bytes = b"", method: str = "POST") -> bytes:
    owner = path.split("/")[1]
    return f"{owner} {method} {path} ".encode() + body


async def _parts(data: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(data), max(7, len(data) // 5)):
        yield data[at : at + max(7, len(data) // 5)]
        await trio.lowlevel.checkpoint()


async def _quiet(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data
    await trio.sleep_forever()


class DirectMover:
    """Gives connections to its peers in the same loop."""

    def __init__(self, peers: list[DirectMover], nursery: trio.Nursery) -> None:
        self.peers = peers
        self.host: Host | None = None
        self._nursery = nursery
        self.visits_in_row = 0
        self.forwarded: list[bytes] = []
        self.are_away = False
        """If set, no peer can be reached."""
        self.held: list[tuple[Moved, Elsewhere]] | None = None
        """If set, connections stay on their way."""
        self.marks: Headers | None = None
        """What answers of connections that it delivers have."""

    def begin(self, host: Host) -> None:
        self.host = host

    async def forward(self, elsewhere: Elsewhere, request: bytes, client: Any) -> Response:
        self.forwarded.append(request)
        host = self.peers[elsewhere.process].host
        assert host is not None
        return await host.answer(request, client)

    def move(self, moved: Moved, elsewhere: Elsewhere) -> None:
        if self.held is not None:
            self.held.append((moved, elsewhere))
        else:
            self._nursery.start_soon(self.deliver, moved, elsewhere)

    async def deliver(self, moved: Moved, elsewhere: Elsewhere) -> None:
        if self.are_away:
            assert self.host is not None
            self.host.adopt(moved, elsewhere.refused())
            return
        arrived = socket.socket(fileno=os.dup(moved.socket.fileno()))
        moved.socket.close()
        host = self.peers[elsewhere.process].host
        assert host is not None
        host.adopt(msgspec.structs.replace(moved, socket=arrived, marks=self.marks))

    @property
    def context(self) -> ServerContext:
        host: Any = self.host
        context: ServerContext = host._context
        return context

    @property
    def connection_tasks(self) -> int:
        host: Any = self.host
        return sum("_run" in task.name for task in host._nursery.child_tasks)


@dataclass
class Two:
    servers: list[Running] = field(default_factory=list)
    owners: list[Owner] = field(default_factory=list)
    movers: list[DirectMover] = field(default_factory=list)

    async def client(self, at: int = 0) -> Client:
        return await self.servers[at].client()

    def count(self, name: str) -> list[int]:
        return [getattr(server.counters, name) for server in self.servers]

    async def until(self, true: Callable[[], bool]) -> None:
        await self.servers[0].until(true)

    async def until_empty(self) -> None:
        """Until both have let go of all connections."""
        await self.until(lambda: self.count("connections_open") == [0, 0])

    def __repr__(self) -> str:
        return f"{self.servers[0].counters!r} and {self.servers[1].counters!r}"


@asynccontextmanager
async def two_servers(
    listeners: list[list[socket.socket]] | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
    **options: Any,
) -> AsyncIterator[Two]:
    two = Two()
    with trio.fail_after(patience_seconds):
        async with trio.open_nursery() as nursery:
            for process in range(2):
                server = Running([], trio.Event(), Counters())
                chosen = {"linger_seconds": 0.5, "access_log": server.log.append, **options}
                two.servers.append(server)
                two.owners.append(Owner(process))
                two.movers.append(DirectMover(two.movers, nursery))
                run = partial(
                    serve,
                    two.owners[-1],
                    ServerOptions(**chosen),
                    stop=server.stop,
                    report=server.reports.append,
                    counters=server.counters,
                    listeners=None if listeners is None else listeners[process],
                    mover=two.movers[-1],
                )
                server.addresses = await nursery.start(_served, run, server)
            yield two
            for server in two.servers:
                server.stop.set()
    assert [server.reports for server in two.servers] == [[], []]


async def _served(run: Any, server: Running, task_status: trio.TaskStatus[Any]) -> None:
    await run(task_status=task_status)
    server.ended.set()


def chunked(path: str, body: bytes, size: int = 5) -> bytes:
    """A request whose body comes in chunks of this size, with an extension and a trailer."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = [b"%x;note=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return head + b"".join(chunks) + b"0\r\nTrailer: x\r\n\r\n"

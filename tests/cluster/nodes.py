"""Nodes that are linked: some in one Trio run, with TCP between them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from qserver.cluster import RemoteDoors, Service
from qserver.http1 import ServerOptions, relay_sockets
from tests.cluster.linked import Mortal, open_descriptors, running

KEY = b"the key of a cluster, for tests."
Book = dict[int, tuple[str, int]]
"""The addresses of all nodes, by number."""


class Node(Mortal):
    """Its address stays."""

    def __init__(self, number: int, book: Book, service: Service, key: bytes = KEY) -> None:
        super().__init__(number, service)
        self.ways: RemoteDoors
        self._key = key
        self._book = book

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        report = self.reports.append
        relay = partial(relay_sockets, options=ServerOptions())
        with socket.create_server(self._book.get(self.number, ("127.0.0.1", 0))) as listener:
            self._book[self.number] = listener.getsockname()
            self.ways = RemoteDoors(self.number, listener, self._key, self._book.get, relay, report)
            await self._live(self.ways, task_status)

    def connect(self) -> socket.socket:
        """The bare socket of a stranger."""
        connected = socket.create_connection(self._book[self.number])
        connected.setblocking(False)
        return connected


@asynccontextmanager
async def nodes(*services: Service, book: Book | None = None) -> AsyncIterator[list[Node]]:
    """Nodes that find each other; at the end nothing may be open."""
    before = open_descriptors()
    book = {} if book is None else book
    made = [Node(at, book, each) for at, each in enumerate(services)]
    async with running(*made):
        yield made
    assert open_descriptors() == before


async def received(connected: socket.socket, count: int = 1 << 20) -> bytes:
    """Some bytes; none at the end, or after a reset."""
    await trio.lowlevel.wait_readable(connected)
    try:
        return connected.recv(count)
    except ConnectionError:
        return b""


async def all_received(connected: socket.socket) -> bytes:
    """All bytes up to the end."""
    found = bytearray()
    while True:
        await trio.lowlevel.wait_readable(connected)
        data = connected.recv(1 << 20)
        if not data:
            return bytes(found)
        found += data

"""Several processes accept from one listener: those with fewer connections go first."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import trio

from qserver.cluster import OwnConnections, SharedConnections
from qserver.http1.listening import accept_for_ever
from tests.patience import PATIENCE_SECONDS

MANY = 40


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=MANY) as made:
        made.setblocking(False)
        yield made


@dataclass
class Process:
    """Accepts as a process does, with a descriptor of its own."""

    crowd: OwnConnections
    arrivals: trio.Semaphore
    accepted: list[socket.socket] = field(default_factory=list)

    async def run(self, listener: socket.socket) -> None:
        with listener.dup() as own:
            await accept_for_ever(own, self._welcome, print, self.crowd)

    def _welcome(self, connected: socket.socket, client: tuple[str, int]) -> None:
        self.accepted.append(connected)
        self.crowd.note(len(self.accepted))
        self.arrivals.release()


@contextmanager
def connected(listener: socket.socket, processes: list[Process]) -> Iterator[None]:
    """Many clients, all at once."""
    clients = [socket.create_connection(listener.getsockname()[:2]) for _ in range(MANY)]
    yield
    for each in [*clients, *(own for process in processes for own in process.accepted)]:
        each.close()


async def accept_all(listener: socket.socket, running: int) -> list[int]:
    """Let so many of two processes accept what came; return how many each has."""
    shared, arrivals = SharedConnections(2), trio.Semaphore(0)
    processes = [Process(shared.of(number), arrivals) for number in range(2)]
    with connected(listener, processes), trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for process in processes[:running]:
                nursery.start_soon(process.run, listener)
            for _ in range(MANY):
                await arrivals.acquire()
            nursery.cancel_scope.cancel()
    return [len(process.accepted) for process in processes]


async def test_connections_that_come_at_once_are_spread(listener: socket.socket) -> None:
    assert min(await accept_all(listener, 2)) >= MANY * 0.4


async def test_a_process_that_does_not_run_keeps_nobody_waiting(listener: socket.socket) -> None:
    assert await accept_all(listener, 1) == [MANY, 0]

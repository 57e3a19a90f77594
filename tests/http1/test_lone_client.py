"""The next request of a lone client is served without a pass of Trio's loop, unless others wait."""

from __future__ import annotations

import select
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio
import trio.testing

from qserver.http1 import Response
from qserver.http1 import lone_client as module
from qserver.http1.lone_client import LoneClientWait
from tests.http1.serving import App, Asked, Running, reply, request, running

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the system has no epoll")

LONG = 240.0
REQUESTS = 6


@contextmanager
def two_ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


class Passes(trio.abc.Instrument):
    """Counts the passes of the loop, without adding any."""

    count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends a wait but what it waits for."""
    monkeypatch.setattr(module, "WAIT_SECONDS", LONG)


class Waiting:
    """A wait for what is sent to a socket, and how often that was served."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        self._epoll = select.epoll()
        self._epoll.register(ours, select.EPOLLIN)
        self._wait = LoneClientWait(self._epoll.fileno())
        self.is_possible = self._wait.is_possible
        self.served = 0

    def serve(self, most: int) -> None:
        def serve_next() -> bool:
            self._ours.recv(1)
            self.served += 1
            return self.served < most

        self._wait.serve(serve_next)

    def close(self) -> None:
        self._wait.close()
        self._epoll.close()


@asynccontextmanager
async def waiting() -> AsyncIterator[tuple[Waiting, socket.socket]]:
    with two_ends() as (ours, theirs):
        made = Waiting(ours)
        try:
            yield made, theirs
        finally:
            made.close()


async def test_this_trio_can_be_waited_for() -> None:
    async with waiting() as (wait, _):
        assert wait.is_possible


async def test_what_arrives_is_served_until_that_ends(patient: None) -> None:
    async with waiting() as (wait, theirs):
        theirs.send(b"1234")
        wait.serve(3)
        assert wait.served == 3


async def test_a_wait_for_nobody_ends() -> None:
    async with waiting() as (wait, _):
        wait.serve(3)
        assert wait.served == 0


async def test_a_task_that_can_run_does_not_wait_for_a_client(patient: None) -> None:
    async with waiting() as (wait, theirs), trio.open_nursery() as nursery:
        theirs.send(b"1")
        nursery.start_soon(trio.lowlevel.checkpoint)
        wait.serve(3)
        assert wait.served == 0


async def test_what_trio_waits_for_does_not_wait_for_a_client(patient: None) -> None:
    with two_ends() as (other, sender):
        async with waiting() as (wait, theirs), trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.wait_readable, other)
            await trio.testing.wait_all_tasks_blocked()
            theirs.send(b"1")
            sender.send(b"1")
            wait.serve(3)
            assert wait.served == 0


async def test_a_thread_that_has_ended_does_not_wait_for_a_client(patient: None) -> None:
    async with waiting() as (wait, _):
        trio.lowlevel.current_trio_token().run_sync_soon(lambda: None)
        wait.serve(3)
        assert wait.served == 0


@pytest.mark.parametrize("clients", [1, 2])
async def test_only_a_client_that_is_alone_is_served_without_a_pass(
    monkeypatch: pytest.MonkeyPatch, clients: int
) -> None:
    """Each request is sent while the one before is served, by the clients in turn."""
    passes = Passes()
    connected: list[socket.socket] = []
    seen: list[int] = []
    done = trio.Event()

    def serve(asked: Asked) -> Response:
        seen.append(passes.count)
        if len(seen) == REQUESTS:
            done.set()  # a task can run: nobody waits for more
        else:
            connected[len(seen) % clients].send(request())
        return reply(b"")

    async with running(App(serve)) as server:
        connected += [await _connected(server) for _ in range(clients)]
        trio.lowlevel.add_instrument(passes)
        with monkeypatch.context() as patient:
            patient.setattr(module, "WAIT_SECONDS", LONG)
            connected[0].send(request())
            await done.wait()
        trio.lowlevel.remove_instrument(passes)
        for each in connected:
            each.close()
    assert len(set(seen)) == (2 if clients == 1 else REQUESTS), "the first tells nothing"


async def _connected(server: Running) -> socket.socket:
    """A client that has been welcomed, and for whose answers nobody waits."""
    client = socket.create_connection(server.addresses[0])
    accepted = server.counters.connections_accepted
    await server.until(lambda: server.counters.connections_accepted > accepted)
    await trio.testing.wait_all_tasks_blocked()
    return client

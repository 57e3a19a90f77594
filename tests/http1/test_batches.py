"""Connections that become readable while others are called join their batch, if that has work."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from qserver.http1.reactor import EVENTS_AT_ONCE, Reactor
from tests.patience import PATIENCE_SECONDS


class Batches:
    """Notes which connections were called in each batch."""

    def __init__(self, has_work: bool) -> None:
        self.has_work = has_work
        self.ended: list[list[int]] = []
        self.called: list[int] = []
        self.announced = 0

    def open(self, requests: int) -> None:
        self.announced += requests

    def end(self) -> None:
        if self.called:
            self.ended.append(self.called)
            self.called = []


@contextmanager
def pairs(many: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(many)]
    try:
        for near, _ in made:
            near.setblocking(False)
        yield made
    finally:
        for near, far in made:
            near.close()
            far.close()


async def called_in_a_row(batches: Batches, many: int) -> None:
    """Let each connection make the next one readable when it is called."""
    reactor = Reactor(batches)
    with pairs(many) as sockets:
        done = trio.Event()

        def readable(number: int) -> bool:
            sockets[number][0].recv(10)
            batches.called.append(number)
            if number + 1 < many:
                sockets[number + 1][1].send(b"next")
            else:
                done.set()
            return False

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reactor.run)
            for number, (near, _) in enumerate(sockets):
                nursery.start_soon(reactor.wait, near.fileno(), lambda n=number: readable(n))
            await trio.testing.wait_all_tasks_blocked()
            sockets[0][1].send(b"first")
            with trio.fail_after(PATIENCE_SECONDS):
                await done.wait()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("has_work", [True, False])
async def test_who_becomes_readable_meanwhile_joins_a_batch_that_has_work(has_work: bool) -> None:
    batches = Batches(has_work)
    await called_in_a_row(batches, 3)
    assert batches.ended == ([[0, 1, 2]] if has_work else [[0], [1], [2]])
    assert batches.announced == 3


async def test_a_batch_ends_however_many_become_readable() -> None:
    batches = Batches(has_work=True)
    await called_in_a_row(batches, EVENTS_AT_ONCE + 2)
    assert [len(each) for each in batches.ended] == [EVENTS_AT_ONCE, 2]

"""Connections that are readable at the same time are called in the turns of their owners."""

from __future__ import annotations

import socket
from collections import Counter

import trio
from trio.testing import MockClock

from qserver.engine.arrivals import Arrivals
from qserver.engine.turns import OWNER, PASS_SECONDS, Turns, current_line
from qserver.http1.reactor import NoBatch, Reactor
from tests.engine.passes import Passes, counted_passes

SECONDS = PASS_SECONDS / 3
CROWD = 60


class Clients:
    """Sockets of owners, whose requests take time on a clock that only they move."""

    def __init__(self, clock: MockClock, passes: Passes, reactor: Reactor) -> None:
        self._clock, self._passes, self._reactor = clock, passes, reactor
        self.turns = {name: Turns() for name in "ab"}
        self.called: list[tuple[str, int]] = []
        """Whose each request was, and the pass."""
        self._sockets: list[socket.socket] = []

    def connect(self, name: str, nursery: trio.Nursery) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._sockets += [ours, theirs]

        def readable() -> bool:
            ours.recv(10)
            OWNER.set(self.turns[name])
            self._clock.jump(SECONDS)
            self.called.append((name, self._passes.count))
            return False

        nursery.start_soon(self._reactor.wait, ours.fileno(), readable)
        return theirs

    async def answered(self, count: int) -> None:
        while len(self.called) < count:
            await trio.lowlevel.checkpoint()

    def close(self) -> None:
        for each in self._sockets:
            self._reactor.forget(each.fileno())
            each.close()


async def _beside_a_crowd(clock: MockClock) -> list[tuple[str, int]]:
    """Call one connection of `b` beside many of `a`, both known; return the calls."""
    reactor = Reactor(NoBatch(), Arrivals())
    async with counted_passes() as passes, trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        clients = Clients(clock, passes, reactor)
        crowd = [clients.connect("a", nursery) for _ in range(CROWD)]
        one = clients.connect("b", nursery)
        await trio.lowlevel.checkpoint()
        for number, each in enumerate([*crowd, one], 1):
            each.send(b"first")
            await clients.answered(number)
        assert current_line().is_contended
        for each in [*crowd, one]:
            each.send(b"second")
        await clients.answered(2 * CROWD + 2)
        nursery.cancel_scope.cancel()
    clients.close()
    return clients.called[CROWD + 1 :]


async def _new_connections(clock: MockClock) -> list[tuple[str, int]]:
    """Call many connections of `a` whose owner nobody knows yet, while `b` is there."""
    reactor = Reactor(NoBatch(), Arrivals())
    async with counted_passes() as passes, trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        clients = Clients(clock, passes, reactor)
        known = [clients.connect("a", nursery), clients.connect("b", nursery)]
        await trio.lowlevel.checkpoint()
        for number, each in enumerate(known, 1):
            each.send(b"first")
            await clients.answered(number)
        assert current_line().is_contended
        crowd = [clients.connect("a", nursery) for _ in range(CROWD)]
        await trio.lowlevel.checkpoint()
        for each in crowd:
            each.send(b"first")
        await clients.answered(CROWD + 2)
        nursery.cancel_scope.cancel()
    clients.close()
    return clients.called[2:]


def test_of_many_new_connections_some_are_called_in_a_pass() -> None:
    clock = MockClock()
    called = trio.run(_new_connections, clock, clock=clock)
    assert len(called) == CROWD
    assert max(Counter(number for _, number in called).values()) <= 2 * PASS_SECONDS / SECONDS + 2


def test_who_has_used_little_is_called_first() -> None:
    clock = MockClock()
    called = trio.run(_beside_a_crowd, clock, clock=clock)
    assert "b" in [name for name, _ in called[:2]]


def test_of_an_owner_with_many_some_are_called_in_a_pass_and_all_in_the_end() -> None:
    clock = MockClock()
    called = trio.run(_beside_a_crowd, clock, clock=clock)
    assert Counter(name for name, _ in called) == {"a": CROWD, "b": 1}
    assert max(Counter(number for _, number in called).values()) <= 2 * PASS_SECONDS / SECONDS + 2

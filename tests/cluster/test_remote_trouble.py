"""Links between nodes over a bad network: slow, cut anywhere, or with bytes that were changed.

As `test_trouble`, between nodes: whatever happens each call ends with the truth, a connection moves
or is given back and never both, and at the end all is well and nothing is left.
"""

from __future__ import annotations

import random
import socket

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import Service
from qserver.limits import STALL_SECONDS_MAX
from tests.cluster.linked import open_descriptors
from tests.cluster.nodes import Book, Node
from tests.cluster.test_trouble import CALLERS, Callee, Callers, Relay
from tests.sampling import SEED


class Network(Relay):
    """What a caller reaches instead of node 1: it passes on what it likes."""

    def __init__(self, book: Book, chance: random.Random, flips: bool) -> None:
        super().__init__(chance, flips)
        self._book = book
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.address: tuple[str, int] = self._listener.getsockname()

    async def run(self) -> None:
        with self._listener:
            async with trio.open_nursery() as nursery:
                while True:
                    await trio.lowlevel.wait_readable(self._listener)
                    nursery.start_soon(self._serve, self._listener.accept()[0])

    async def _serve(self, accepted: socket.socket) -> None:
        with accepted, socket.create_connection(self._book[1]) as behind:
            for each in (accepted, behind):  # the kernel must not wait: the clock would jump
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self.pass_on(accepted, behind)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
async def test_whatever_a_network_does_every_task_ends_with_the_truth(
    seed: int, flips: bool, autojump_clock: MockClock
) -> None:
    before = open_descriptors()
    chance = random.Random(seed)
    callee = Callee()
    book: Book = {}
    network = Network(book, chance, flips)
    served, calling = Node(1, book, callee.service), Node(0, {1: network.address}, Service())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run)
        await nursery.start(served.run)
        await nursery.start(calling.run)
        callers = Callers(calling.links, callee, network, chance)
        async with trio.open_nursery() as asking:
            for _ in range(CALLERS):
                asking.start_soon(callers.run)
        network.heal()
        await trio.sleep(2 * STALL_SECONDS_MAX)
        with trio.fail_after(2 * STALL_SECONDS_MAX):
            assert await calling.links.call(1, "make", [0, b"x"]) == [0, b"x"], "all is well again"
            async with calling.links.lock(1, "control") as lock:
                await lock.call("guarded")
        await wait_all_tasks_blocked()
        assert repr(callee.locks) == "0 locks are held, 0 claims wait"
        if not network.flipped:
            assert max(callee.made.values()) == 1
            assert callers.failed <= callers.sent - callee.welcomed
        nursery.cancel_scope.cancel()
    assert open_descriptors() == before

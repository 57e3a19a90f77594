"""Links over bad sockets: slow, cut anywhere, or answered with nonsense. No task hangs.

Between two processes stands a relay, which a seed tells what to do: it passes some bytes on, waits,
flips a byte, or cuts both sides. Whatever it does, each call ends, with its answer or with an error
that says the truth, and at the end nothing is left: no task, no descriptor, no lock. A byte that is
flipped may tell any story, so then only the end is looked at.
"""

from __future__ import annotations

import array
import os
import random
import socket
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.cluster import Doors, Links, LocalDoors, RemoteLocks, Service, Stream
from qserver.cluster.doors import next_at_door
from qserver.errors import DatabaseUnavailable, OutcomeUnknown, QserverError
from qserver.limits import STALL_SECONDS_MAX
from tests.cluster.linked import made_doors, open_descriptors
from tests.sampling import SEED

CALLERS = 6
CALLS = 5


class Relay:
    """Passes on what it likes between two sockets."""

    def __init__(self, chance: random.Random, flips: bool) -> None:
        self._flips = flips
        self._chance = chance
        self._scopes: list[trio.CancelScope] = []
        self.is_good = False
        self.flipped = False

    def heal(self) -> None:
        """Be good from now on, and cut what may wait for bytes that a flipped one has promised."""
        self.is_good = True
        if self.flipped:
            for scope in self._scopes:
                scope.cancel()

    async def pass_on(self, accepted: socket.socket, behind: socket.socket) -> None:
        for each in (accepted, behind):
            each.setblocking(False)
        async with trio.open_nursery() as nursery:
            self._scopes.append(nursery.cancel_scope)
            for ends in ((accepted, behind), (behind, accepted)):
                nursery.start_soon(self._one_way, *ends, nursery.cancel_scope)

    async def _one_way(
        self, source: socket.socket, target: socket.socket, scope: trio.CancelScope
    ) -> None:
        try:
            while True:
                await trio.lowlevel.wait_readable(source)
                size = 1 << 20 if self.is_good else self._chance.choice((1, 3, 7, 100, 5000))
                data, ancillary, _, _ = source.recvmsg(size, socket.CMSG_SPACE(4))
                descriptors = array.array("i")
                for _, _, rights in ancillary:
                    descriptors.frombytes(rights)
                try:
                    if not data or (not self.is_good and self._chance.random() < 0.02):
                        break
                    await self._send(target, data, descriptors)
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)
        except OSError:
            pass
        scope.cancel()

    async def _send(self, target: socket.socket, data: bytes, rights: array.array[int]) -> None:
        if not self.is_good:
            if self._chance.random() < 0.2:
                await trio.sleep(self._chance.choice((0.1, 1, 5)))
            if self._flips and self._chance.random() < 0.01:
                self.flipped = True
                place = self._chance.randrange(len(data))
                data = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        while data:
            await trio.lowlevel.wait_writable(target)
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if rights else []
            sent = target.sendmsg([data], ancillary)
            data, rights = data[sent:], array.array("i")


class RelayAtDoor(Relay):
    """Stands at door 1, and passes on to door 2."""

    def __init__(self, doors: Doors, chance: random.Random, flips: bool) -> None:
        super().__init__(chance, flips)
        self._doors = doors

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                await trio.lowlevel.wait_readable(self._doors.inside[1])
                nursery.start_soon(self._serve, next_at_door(self._doors.inside[1]))

    async def _serve(self, accepted: socket.socket) -> None:
        with accepted, self._doors.knock(2) as behind:
            await self.pass_on(accepted, behind)


class Callee:
    """Counts how often each call was made, and who is under the lock."""

    def __init__(self) -> None:
        self.made: dict[int, int] = {}
        self.inside = 0
        self.welcomed: set[int] = set()
        self.locks = RemoteLocks()
        self.service = Service(
            {"make": self.make, "guarded": self.guarded},
            {"numbers": self.numbers},
            self.welcome,
            self.locks,
        )

    async def make(self, number: int, data: bytes) -> tuple[int, bytes]:
        self.made[number] = self.made.get(number, 0) + 1
        await trio.sleep(0.5)
        return number, data

    async def guarded(self) -> None:
        assert self.inside == 0
        self.inside += 1
        try:
            await trio.sleep(1)
        finally:
            self.inside -= 1

    async def numbers(self, back: Stream) -> AsyncGenerator[int, None]:
        for number in range(50):
            yield number

    async def welcome(self, meta: Any, data: bytes, moved: socket.socket) -> None:
        self.welcomed.add(meta)
        moved.close()


class Callers:
    def __init__(self, links: Links, callee: Callee, relay: Relay, chance: random.Random) -> None:
        self._links = links
        self._callee = callee
        self._relay = relay
        self._chance = chance
        self._next = 0
        self.answers = 0
        self.failed: set[int] = set()
        self.sent: set[int] = set()

    async def run(self) -> None:
        for _ in range(CALLS):
            work = self._chance.choice((self.call, self.guarded, self.follow, self.move))
            with trio.move_on_after(self._chance.choice((0.3, 3, 1000))):
                try:
                    await work()
                except (QserverError, AssertionError):
                    assert self._relay.flipped

    async def call(self) -> None:
        self._next += 1
        number = self._next
        data = bytes(self._chance.choice((0, 10, 20_000)))
        deadline = trio.current_time() + self._chance.choice((0.1, 1, 20, 200))
        try:
            answer = await self._links.call(1, "make", [number, data], deadline=deadline)
        except DatabaseUnavailable:
            assert number not in self._callee.made, "it was said that nothing was done"
        except OutcomeUnknown:
            pass
        else:
            assert answer == [number, data]
            self.answers += 1

    async def guarded(self) -> None:
        deadline = trio.current_time() + 60
        try:
            async with self._links.lock(1, "control", deadline=deadline) as lock:
                await lock.call("guarded", deadline=deadline)
        except (DatabaseUnavailable, OutcomeUnknown):
            pass

    async def follow(self) -> None:
        expected = 0
        try:
            async with self._links.follow(1, "numbers") as stream:
                async for number in stream:
                    assert number == expected
                    expected += 1
            assert expected == 50
        except DatabaseUnavailable:
            pass

    async def move(self) -> None:
        self._next += 1
        client, served = socket.socketpair()
        client.close()
        self.sent.add(self._next)
        deadline = trio.current_time() + self._chance.choice((0.1, 20))
        self._links.send_connection(
            1, self._next, bytes(1000), served, deadline=deadline, failed=self.fail
        )

    def fail(self, moved: socket.socket, meta: Any, data: bytes) -> None:
        self.failed.add(meta)
        moved.close()


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("seed", range(SEED, SEED + 8))
async def test_whatever_a_socket_does_every_task_ends_with_the_truth(
    seed: int, flips: bool, autojump_clock: MockClock
) -> None:
    before = open_descriptors()
    chance = random.Random(seed)
    callee = Callee()
    reports: list[str] = []
    with made_doors(3) as doors:
        relay = RelayAtDoor(doors, chance, flips)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay.run)
            far, near = (LocalDoors(doors.inside[each], doors, reports.append) for each in (2, 0))
            served = Links(1, far, callee.service, reports.append)
            links = Links(0, near, Service(), reports.append)
            await nursery.start(served.run)
            await nursery.start(links.run)
            callers = Callers(links, callee, relay, chance)
            async with trio.open_nursery() as calling:
                for _ in range(CALLERS):
                    calling.start_soon(callers.run)
            relay.heal()
            await trio.sleep(2 * STALL_SECONDS_MAX)
            with trio.fail_after(2 * STALL_SECONDS_MAX):
                assert await links.call(1, "make", [0, b"x"]) == [0, b"x"], "all is well again"
                async with links.lock(1, "control") as lock:
                    await lock.call("guarded")
            await wait_all_tasks_blocked()
            assert repr(callee.locks) == "0 locks are held, 0 claims wait"
            if not relay.flipped:
                assert max(callee.made.values()) == 1 and reports == []
                assert callers.failed <= callers.sent - callee.welcomed
            nursery.cancel_scope.cancel()
    assert open_descriptors() <= before  # others may let go of theirs meanwhile

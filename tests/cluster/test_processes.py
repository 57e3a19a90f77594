"""Links between real processes, forked as the supervisor does it: death, restart, moves, locks."""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from qserver.cluster import Doors, Links, LocalDoors, Service, Stream
from qserver.errors import DatabaseUnavailable, OutcomeUnknown
from tests.children import fork, wait
from tests.cluster.linked import open_descriptors
from tests.patience import PATIENCE_SECONDS

TESTS, OTHER = 0, 1


class Other:
    """The other process: what it does for the tests."""

    def __init__(self, doors: Doors) -> None:
        service = Service(
            {"pid": self.pid, "die": self.die, "large": self.large, "stop": self.stop},
            {"count": self.count},
            self.welcome,
        )
        ways = LocalDoors(doors.keep(OTHER), doors, print)
        self.links = Links(OTHER, ways, service, print)

    async def pid(self) -> int:
        return os.getpid()

    async def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    async def large(self, data: bytes) -> list[Any]:
        return [len(data), data]

    async def count(self, back: Stream, begin: int) -> AsyncGenerator[Any, None]:
        while True:
            yield begin
            begin = await anext(back)

    async def welcome(self, meta: Any, data: bytes, moved: socket.socket) -> None:
        moved.setblocking(True)
        with moved:
            moved.sendall(f"{meta} {data.decode()} {moved.recv(100).decode()}".encode())


class Machine:
    """The supervisor, and the process of the tests."""

    def __init__(self) -> None:
        self.doors = Doors(2)
        self.reports: list[str] = []
        self.pid = self.fork()

    def fork(self, start: int | None = None) -> int:
        """It serves at once, or when it can read from `start`: Trio cannot be forked."""

        def run() -> None:
            if start is not None:
                os.read(start, 1)
            trio.run(Other(self.doors).links.run)

        self.pid = fork(run)
        return self.pid

    def links(self) -> Links:
        ways = LocalDoors(self.doors.inside[TESTS], self.doors, self.reports.append)
        return Links(TESTS, ways, Service(), self.reports.append)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        wait(self.pid)


@contextmanager
def machine() -> Iterator[Machine]:
    before = open_descriptors()
    made = Machine()
    try:
        yield made
    finally:
        made.kill()
        made.doors.close()
    assert open_descriptors() == before


def run_linked(made: Machine, work: Any) -> None:
    """Run in Trio of its own: a process is forked outside of it."""

    async def main() -> None:
        with trio.fail_after(PATIENCE_SECONDS):
            async with trio.open_nursery() as nursery:
                links = made.links()
                await nursery.start(links.run)
                await work(links)
                nursery.cancel_scope.cancel()

    trio.run(main)


@pytest.mark.half
def test_calls_with_large_values_go_to_another_process() -> None:
    async def work(links: Links) -> None:
        data = os.urandom(30_000_000)
        assert await links.call(OTHER, "pid") == made.pid
        assert await links.call(OTHER, "large", [data]) == [len(data), data]

    with machine() as made:
        run_linked(made, work)


def test_a_process_that_dies_in_the_middle_of_a_call_leaves_its_outcome_unknown() -> None:
    async def work(links: Links) -> None:
        with pytest.raises(OutcomeUnknown):
            await links.call(OTHER, "die")

    with machine() as made:
        run_linked(made, work)


def test_a_call_waits_for_the_successor_of_a_process() -> None:
    """The listener outlives its process: what connects before the successor is there waits."""
    first: list[int] = []

    async def before(links: Links) -> None:
        first.append(await links.call(OTHER, "pid"))

    async def after(links: Links) -> None:
        async with trio.open_nursery() as nursery:
            found: list[int] = []

            async def call() -> None:
                found.append(await links.call(OTHER, "pid"))

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            assert found == []
            os.write(starting, b"x")
        assert found == [made.pid] and made.pid not in first

    with machine() as made:
        run_linked(made, before)
        made.kill()
        start, starting = os.pipe()
        made.fork(start)
        run_linked(made, after)
        os.close(start)
        os.close(starting)


def test_a_process_that_stands_still_makes_no_caller_hang() -> None:
    async def work(links: Links) -> None:
        assert await links.call(OTHER, "pid") == made.pid
        for method in ("stop", "pid"):  # a slow machine may not even send it in that time
            with pytest.raises((OutcomeUnknown, DatabaseUnavailable)):
                await links.call(OTHER, method, deadline=trio.current_time() + 0.1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            assert await links.call(OTHER, "pid") == made.pid
            nursery.cancel_scope.cancel()

    async def go_on() -> None:
        while True:
            os.kill(made.pid, signal.SIGCONT)
            await trio.sleep(0.01)

    with machine() as made:
        run_linked(made, work)


def test_a_lock_is_lost_with_the_process_that_has_granted_it() -> None:
    async def work(links: Links) -> None:
        async with links.lock(OTHER, "control") as lock:
            assert await lock.call("pid") == made.pid
            with pytest.raises(OutcomeUnknown):
                await lock.call("die")
            with pytest.raises(DatabaseUnavailable, match="the lock is lost"):
                await lock.call("pid")

    with machine() as made:
        run_linked(made, work)


def test_a_stream_goes_both_ways_until_its_process_dies() -> None:
    async def work(links: Links) -> None:
        async with links.follow(OTHER, "count", [0]) as stream:
            for number in range(1000):
                assert await anext(stream) == number
                await stream.send(number + 1)
            os.kill(made.pid, signal.SIGKILL)
            with pytest.raises(DatabaseUnavailable):
                async for _ in stream:
                    pass

    with machine() as made:
        run_linked(made, work)


def test_connections_move_to_another_process_and_nobody_else_keeps_them() -> None:
    async def work(links: Links) -> None:
        for number in range(100):
            client, served = socket.socketpair()
            with client:
                client.sendall(b"more")
                links.send_connection(
                    OTHER, number, b"data", served, deadline=math.inf, failed=failed
                )
                stream = trio.SocketStream(trio.socket.from_stdlib_socket(client))
                answer = b"".join([part async for part in stream])
                assert answer == f"{number} data more".encode(), "until it was closed there"

    def failed(moved: socket.socket, meta: Any, data: bytes) -> None:
        raise AssertionError

    with machine() as made:
        run_linked(made, work)

"""What a client is told of a request that its process did not get, or did not answer."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from qserver.cluster import Doors, SharedConnections, SharedVersions, SharedWindows
from qserver.control.nodes.lease import Lease, NodeFacts, Seen
from qserver.control.owners import Owners
from qserver.errors import DatabaseMoved, OutcomeUnknown
from qserver.http1 import ClientGone, Elsewhere, Headers, Response
from qserver.web.service.node import NodeMover, cut_ended
from qserver.web.service.processes import Member, Mover

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
AWAY = Response(503, Headers([]), b"away", "mine-7")
GOOD = Response(200, Headers([]), b"good", "mine-7")
TO_OTHER = Elsewhere(1, 30.0, lambda: AWAY)


class OtherHost:
    """A server that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.gate = trio.Event()

    def adopt(self, *_: Any) -> None:
        raise AssertionError("no connection comes")

    async def answer(self, *_: Any) -> Response:
        self.asked += 1
        await self.gate.wait()
        return GOOD


class Two:
    """Two processes; the other one runs when the test says so."""

    def __init__(self, movers: list[Mover], nursery: trio.Nursery) -> None:
        self.here, self.there = movers
        self.host = OtherHost()
        self._nursery = nursery
        self._scope = trio.CancelScope()

    async def run_other(self) -> None:
        await self._nursery.start(self._run_other)

    async def _run_other(self, task_status: trio.TaskStatus[None]) -> None:
        with self._scope:
            await self.there.run(task_status=task_status)

    def end_other(self) -> None:
        self._scope.cancel()


@asynccontextmanager
async def two_processes() -> AsyncIterator[Two]:
    doors, windows = KeptDoors(2), SharedWindows()
    shared = windows, SharedVersions(2), SharedConnections(2)
    members = [Member(number, 2, [], doors, *shared, 0) for number in range(2)]
    movers = [Mover.of(member, Owners(member.number, 2)) for member in members]
    async with trio.open_nursery() as nursery:
        await nursery.start(movers[0].run)
        yield Two(movers, nursery)
        nursery.cancel_scope.cancel()
    doors.close()
    windows.close()


class KeptDoors(Doors):
    """Doors that stay open: both processes are this one."""

    def keep(self, process: int) -> socket.socket:
        return self.inside[process]


async def test_a_request_waits_for_a_process_that_is_away_as_long_as_it_may_take(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with two_processes() as two:
        began = trio.current_time()
        assert await two.here.forward(TO_OTHER, REQUEST, None) is AWAY
        assert trio.current_time() - began == TO_OTHER.seconds
        assert two.host.asked == 0


async def test_a_process_that_does_not_begin_to_serve_is_away(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with two_processes() as two:
        await two.run_other()
        assert await two.here.forward(TO_OTHER, REQUEST, None) is AWAY
        assert two.host.asked == 0


async def test_a_request_that_a_process_gets_too_late_is_not_begun() -> None:
    async with two_processes() as two:
        await two.run_other()
        two.there.begin(two.host)
        with pytest.raises(DatabaseMoved):
            await two.there._serve(REQUEST, None, 0.0)
        assert two.host.asked == 0


async def test_an_answer_may_take_longer_than_a_request_waits_for_its_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with two_processes() as two:
        await two.run_other()
        two.there.begin(two.host)
        async with trio.open_nursery() as nursery:

            async def answer_late() -> None:
                while not two.host.asked:
                    await trio.lowlevel.checkpoint()
                await trio.sleep(10 * TO_OTHER.seconds)
                two.host.gate.set()

            nursery.start_soon(answer_late)
            answer = await two.here.forward(TO_OTHER, REQUEST, None)
        assert (answer.status, answer.body) == (200, b"good")


async def test_nobody_is_told_what_became_of_a_request_whose_process_died() -> None:
    async with two_processes() as two:
        await two.run_other()
        two.there.begin(two.host)
        async with trio.open_nursery() as nursery:

            async def die() -> None:
                while not two.host.asked:
                    await trio.lowlevel.checkpoint()
                two.end_other()

            nursery.start_soon(die)
            with pytest.raises(ClientGone) as lost:
                await two.here.forward(TO_OTHER, REQUEST, None)
        assert isinstance(lost.value.__cause__, OutcomeUnknown)


async def serve_here() -> Response:
    return HERE


HERE = Response(200, Headers([]), b"here", "mine-7")
TO_FOLLOWER = Elsewhere(1, 1.0, lambda: AWAY, instead=serve_here)


async def test_what_a_follower_does_not_take_is_served_here(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with two_processes() as two:
        assert await two.here.forward(TO_FOLLOWER, REQUEST, None) is HERE


async def test_what_a_follower_died_of_is_served_here() -> None:
    async with two_processes() as two:
        await two.run_other()
        two.there.begin(two.host)
        async with trio.open_nursery() as nursery:

            async def die() -> None:
                while not two.host.asked:
                    await trio.lowlevel.checkpoint()
                two.end_other()

            nursery.start_soon(die)
            assert await two.here.forward(TO_FOLLOWER, REQUEST, None) is HERE


class Others:
    """What a node knows of another one."""

    def __init__(self) -> None:
        self.lease = Lease(trio.current_time, 10.0)
        self.seen: dict[int, Seen] = {}
        self.changed = trio.Event()

    def learn(self, life: str, is_ended: bool) -> None:
        facts = NodeFacts("other", 1, "", "", "", life, 10.0, is_ended=is_ended)
        self.seen[1] = Seen(facts, 1, 0.0)
        changed, self.changed = self.changed, trio.Event()
        changed.set()


async def test_nobody_waits_for_an_answer_of_a_node_whose_life_has_ended() -> None:
    async with two_processes() as two:
        await two.run_other()
        two.there.begin(two.host)
        others = Others()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut_ended, others, two.here._links)
            for life in ("first", "second"):
                others.learn(life, is_ended=False)

                async def ask() -> None:
                    with pytest.raises(ClientGone):
                        await two.here.forward(TO_OTHER, REQUEST, None)

                async with trio.open_nursery() as asking:
                    before = two.host.asked
                    asking.start_soon(ask)
                    while two.host.asked == before:
                        await trio.lowlevel.checkpoint()
                    await trio.testing.wait_all_tasks_blocked()
                    others.learn(life, is_ended=True)
            two.host.gate.set()
            answer = await two.here.forward(TO_OTHER, REQUEST, None)
            assert answer.body == b"good", "who has ended once may answer in another life"
            nursery.cancel_scope.cancel()


async def test_a_node_without_a_lease_refuses_what_others_forward(
    autojump_clock: trio.testing.MockClock,
) -> None:
    others, host = Others(), OtherHost()
    host.gate.set()
    mover = NodeMover(Owners(0, 2), others)  # type: ignore[arg-type]
    mover.begin(host)
    with pytest.raises(DatabaseMoved):
        await mover._serve(REQUEST, None, 30.0)
    assert host.asked == 0
    others.lease.extend(trio.current_time())
    assert (await mover._serve(REQUEST, None, 30.0))[2] == b"good"

"""The simulated nodes of a replicated log: nasty, and true to the port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from qserver.replication.port import Refused, Stream, Unanswered
from simulations.determinism import run_repeatably
from simulations.faults import NODE_KINDS, Faults, make_profile
from simulations.stream import SimulatedNodes
from simulations.trace import Trace
from simulations.world import SimulatedWorld

MESSAGES = 30
SEEDS = range(12)
POINTS = (
    "a message was refused by one that was not committed yet",
    "a message without an answer survived an election",
    "a process was cut off from the nodes",
    "a proposal vanished at an election",
    "a read lagged behind",
    "a request arrived late",
    "the answer of the nodes was lost",
    "the nodes had an election",
)
Append = Callable[[Stream, bytes, int], Awaitable[None]]


async def append_carefully(stream: Stream, data: bytes, expected: int) -> None:
    """Repeat until there is an answer; what can be read decides."""
    while True:
        try:
            await stream.append(data, expected)
            return
        except (Unanswered, Refused):
            pass
        try:
            messages = await stream.read(expected + 1, 1)
        except Unanswered:
            continue
        if messages:
            assert messages[0].data == data
            return


async def take_a_refusal_for_proof(stream: Stream, data: bytes, expected: int) -> None:
    """Take it that what was sent before is there, when it is refused for the second time."""
    while True:
        try:
            await stream.append(data, expected)
            return
        except Unanswered:
            pass
        except Refused:
            return


def stream_of(
    seed: int, append: Append, probabilities: dict[str, float] | None = None
) -> tuple[list[bytes], SimulatedWorld]:
    """Have one process append numbers; return what the nodes have, and the world."""
    profile = make_profile("storm", seed)
    faults = Faults(seed, {**profile.probabilities, **(probabilities or {})})
    world = SimulatedWorld(seed, replace(profile, follows=False), faults, Trace())
    found: list[bytes] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nodes = SimulatedNodes(world, nursery)
            stream = await nodes.link("process 0").open_stream("F")
            world.faults.on = True
            for number in range(MESSAGES):
                await append(stream, b"%d" % number, number)
            world.faults.on = False
            await trio.sleep(30)
            found.extend(each.data for each in await stream.read(1, 1000))
            nursery.cancel_scope.cancel()

    run_repeatably(seed, main, virtual_seconds_max=3000, steps_max=200_000)
    world.end()
    return found, world


def test_who_reads_what_became_of_a_message_has_each_once() -> None:
    expected = [b"%d" % number for number in range(MESSAGES)]
    reached: set[str] = set()
    for seed in SEEDS:
        found, world = stream_of(seed, append_carefully, {"election": 0.05, "commit_slow": 0.2})
        assert found == expected, f"seed {seed}"
        reached |= set(world.reached)
    assert [point for point in POINTS if point not in reached] == []


def test_who_takes_a_refusal_for_proof_loses_messages() -> None:
    expected = [b"%d" % number for number in range(MESSAGES)]
    runs = [stream_of(seed, take_a_refusal_for_proof, {"election": 0.05}) for seed in SEEDS]
    assert [found for found, _ in runs if found != expected]


@pytest.mark.parametrize("kind", ["acknowledged_forgotten", "acknowledged_replaced"])
def test_nodes_lose_what_they_acknowledged_only_where_it_is_planted(kind: str) -> None:
    assert kind not in make_profile("storm", 1).probabilities
    assert set(NODE_KINDS) <= set(make_profile("storm", 1).probabilities)
    _, world = stream_of(1, give_up_soon, {kind: 1.0, "election": 0.2})
    assert f"the nodes {kind.removeprefix('acknowledged_').replace('forgotten', 'forgot')}" in str(
        world.reached
    )


async def give_up_soon(stream: Stream, data: bytes, expected: int) -> None:
    for _ in range(9):
        try:
            await stream.append(data, expected)
            return
        except (Unanswered, Refused) as error:
            if isinstance(error, Refused) and error.last > expected:
                return

"""Strong reads at a replica on another node: the owner's number is asked for, and shared."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import Placement
from qserver.control.nodes.replicas import _Asking
from qserver.control.owners import Owners

CALL_SECONDS = 1.0


class Owner(Owners):
    """Answers with its number at the end of each call, as a slow one would."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 1
        self.calls = 0

    async def ask(self, process: int, method: str, *arguments: Any, seconds: float = 5) -> Any:
        self.calls += 1
        number = self.number
        await trio.sleep(CALL_SECONDS)
        return number


async def test_a_number_counts_for_reads_that_began_before_it_was_asked_for(
    autojump_clock: MockClock,
) -> None:
    owner = Owner()
    asking = _Asking(owner, "db")
    found: list[int] = []

    async def read() -> None:
        found.append(await asking.ask(0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(CALL_SECONDS / 2)
        owner.number = 2  # a commit is answered while the first call is on its way
        for _ in range(10):
            nursery.start_soon(read)
    assert found == [1] + [2] * 10, "a later read must see the commit"
    assert owner.calls == 2, "they share one call"
    assert asking.is_idle


async def test_a_call_that_fails_is_made_again_for_the_next(autojump_clock: MockClock) -> None:
    owner = Owner()
    asking = _Asking(owner, "db")
    with trio.move_on_after(CALL_SECONDS / 2):
        await asking.ask(0)
    owner.number = 7
    assert await asking.ask(0) == 7
    assert asking.is_idle


class Placed:
    """What owners need of a membership."""

    def __init__(self, number: int, serving: tuple[int, ...], moved: dict[str, int]) -> None:
        self.number = number
        self.placement = Placement(4, serving[0], serving, moved)


@pytest.mark.parametrize("replicas", [0, 1, 2, 5])
@pytest.mark.parametrize("moved", [{}, {"family": 2}])
def test_so_many_other_nodes_follow_a_database(replicas: int, moved: dict[str, int]) -> None:
    serving = (0, 1, 2, 5)
    nodes = [NodeOwners(Placed(each, serving, moved)) for each in serving]  # type: ignore[arg-type]
    owner = nodes[0].owner_of("family")
    following = [each.process for each in nodes if each.follows("family", replicas)]
    assert len(following) == min(replicas, len(serving) - 1)
    assert owner not in following
    assert {each.version for each in nodes} == {4}

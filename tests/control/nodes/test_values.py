"""The placement is changed from outside by compare-and-set, on top of what others did."""

from __future__ import annotations

import msgspec
import pytest

from qserver.control.nodes.placement import Placement
from qserver.control.nodes.values import (
    PLACEMENT,
    PatientValues,
    change_placement,
    moved_by_hand,
    placement_in,
)
from qserver.errors import InvalidRequest, NotFound
from qserver.replication.memory import MemoryNodes
from qserver.replication.port import Unanswered

TWO = Placement(1, 0, (0, 1))


class Rival(MemoryNodes):
    """Another changes the placement just before us, once."""

    is_first = True

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        if self.is_first and revision:
            self.is_first = False
            other = msgspec.json.encode(TWO.with_drained(1))
            await super().set_value(key, other, revision)
        return await super().set_value(key, data, revision)


class Silent(MemoryNodes):
    """The answer to a change is lost."""

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        await super().set_value(key, data, revision)
        raise Unanswered


async def test_a_change_is_made_on_top_of_one_that_was_first() -> None:
    nodes = Rival()
    await nodes.set_value(PLACEMENT, msgspec.json.encode(TWO), 0)
    made = await change_placement(PatientValues(nodes, 5), lambda was: was.joined_by(2))
    assert made == Placement(3, 0, (0, 1, 2), known=(0, 1, 2), drained=(1,))
    found = await nodes.value(PLACEMENT)
    assert found is not None and placement_in(found) == made


async def test_a_lost_answer_is_found_out() -> None:
    nodes = Silent()
    await MemoryNodes.set_value(nodes, PLACEMENT, msgspec.json.encode(TWO), 0)
    made = await change_placement(PatientValues(nodes, 5), lambda was: was.joined_by(2))
    assert made.version == 2, "it is not written twice"


async def test_without_a_node_there_is_nothing_to_change() -> None:
    with pytest.raises(NotFound, match="no node has served"):
        await change_placement(PatientValues(MemoryNodes(), 5), lambda was: was)


def test_a_family_moves_only_to_a_node_that_owns_some() -> None:
    assert moved_by_hand(TWO, "control", 1, "b").leader == 1
    assert moved_by_hand(TWO, "control", 0, "a") is TWO
    for number, placement in ((2, TWO), (1, TWO.with_drained(1))):
        with pytest.raises(InvalidRequest, match="does not serve now, or is drained"):
            moved_by_hand(placement, "control", number, "c")

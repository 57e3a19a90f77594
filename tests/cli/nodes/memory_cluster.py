"""Values of nodes on log nodes in memory, as real nodes would have written them."""

from __future__ import annotations

import msgspec
import trio

from qserver.control.nodes.lease import PREFIX, NodeFacts
from qserver.control.nodes.placement import Placement
from qserver.control.nodes.values import NUMBERS, PLACEMENT, placement_in
from qserver.replication.memory import MemoryNodes

FAMILIES = [f"db_{number}" for number in range(30)]
LEASE_SECONDS = 6.0
RELEASED = 1000
"""Nodes heed all placements at once, unless a test says otherwise."""


class MemoryCluster:
    """Three nodes a, b and c, with numbers 0, 1 and 2."""

    def __init__(self) -> None:
        self.log = MemoryNodes()
        self.facts = {
            name: NodeFacts(
                *(name, number, f"http://{name}:8000", f"{name}:7420", "f", "l", LEASE_SECONDS),
                released=RELEASED,
            )
            for number, name in enumerate("abc")
        }
        trio.run(self._fill)

    async def _fill(self) -> None:
        for name in ("control", *FAMILIES):
            await self.log.open_stream(name)
        numbers = {name: facts.number for name, facts in self.facts.items()}
        await self.log.set_value(NUMBERS, msgspec.json.encode(numbers), 0)
        for name in self.facts:
            await self.renew(name)
        await self.place(Placement(5, 0, (0, 1, 2)))

    async def renew(self, name: str, *, ends: bool = False, released: int = RELEASED) -> None:
        facts = self.facts[name]
        self.facts[name] = msgspec.structs.replace(
            facts, beat=facts.beat + 1, is_ended=ends, released=released
        )
        await self._set(PREFIX + name, self.facts[name])

    async def place(self, placement: Placement) -> None:
        await self._set(PLACEMENT, placement)

    async def _set(self, key: str, value: object) -> None:
        now = await self.log.value(key)
        await self.log.set_value(key, msgspec.json.encode(value), now.revision if now else 0)

    @property
    def placement(self) -> Placement:
        found = trio.run(self.log.value, PLACEMENT)
        assert found is not None
        return placement_in(found)

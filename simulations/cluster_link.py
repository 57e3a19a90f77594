"""The link of a simulated node to the log's nodes: its values lag, and their answers are late.

A read goes to any of the log's nodes. One that lags is asked for a while, for the same values: so
a node may know the newest placement and not that another node has come back, or the other way
round. What is written is compared with what there is, whatever was read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from qserver.control.nodes.lease import PREFIX, NodeFacts
from qserver.control.nodes.values import PLACEMENT, facts_in, placement_in
from qserver.replication.port import Refused, Unanswered, Value
from simulations.stream import (
    PATIENCE_SECONDS,
    VALUES,
    AgreedNodes,
    Link,
    Place,
    SimulatedNodes,
)

T = TypeVar("T")

LAG_SECONDS: Final = (0.01, 3.0)
"""How old values are at a node of the log that lags."""
LAGGING_SECONDS: Final = (0.0, 6.0)
"""For how long it is asked."""
LATE_SECONDS: Final = (0.05, 4.0)
OUTLIVING_SECONDS: Final = (3.0, 12.0)
"""How long a node waits for the answer to a change that may outlive its life."""
OUTLIVED_SECONDS: Final = (0.0, 0.02)
"""How soon after the next life has begun the answer comes."""


class PastValues:
    """All that the values ever were."""

    def __init__(self, agreed: AgreedNodes, heed: Callable[[dict[str, Value]], None]) -> None:
        """`heed` is called with all of them whenever one changes."""
        self._agreed = agreed
        self._heed = heed
        self._past: list[tuple[float, dict[str, Value]]] = [(0.0, {})]
        """With the time from which on they were so."""
        self.changed = trio.Event()
        """Set when they change; the next is another one."""
        agreed.changed = self._note

    def _note(self) -> None:
        values = self._agreed.all_values()
        self._past.append((trio.current_time(), values))
        self.changed.set()
        self.changed = trio.Event()
        self._heed(values)

    def at(self, time: float) -> dict[str, Value]:
        """Return all values as they were then."""
        return next(values for since, values in reversed(self._past) if since <= max(time, 0.0))

    def now(self) -> dict[str, Value]:
        return self._past[-1][1]


class ClusterLink(Link):
    """A link to the log's nodes of one process of a node."""

    def __init__(self, nodes: SimulatedNodes, values: PastValues, name: str, node: str) -> None:
        super().__init__(nodes, name)
        self._values = values
        self._key = PREFIX + node
        self._values_seen: dict[str, tuple[float, float]] = {}
        """By prefix: until when a node is asked that lags, and from when the values are it has."""
        self._outliving = 0
        """Changes of the placement whose answers wait for the next life."""

    async def call(
        self,
        place: Place,
        act: Callable[[], Awaitable[T]],
        *,
        reads: bool = False,
        patience: tuple[float, float] = PATIENCE_SECONDS,
    ) -> T:
        await self.gate()
        return await super().call(place, act, reads=reads, patience=patience)

    async def _call_values(self, act: Callable[[], Awaitable[T]]) -> T:
        async def act_slowly() -> T:
            done = await act()
            if self._world.faults.strikes("values_late"):
                await trio.sleep(self._world.delays.uniform(*LATE_SECONDS))
            return done

        return await self.call(self._nodes.place(VALUES), act_slowly)

    # --- reads ---

    async def value(self, key: str) -> Value | None:
        return (await self.values(key)).get(key)

    async def values(self, prefix: str) -> dict[str, Value]:
        async def act() -> dict[str, Value]:
            await trio.lowlevel.checkpoint()
            found = self._values.at(self._seen_of(prefix))
            return {key: found[key] for key in sorted(found) if key.startswith(prefix)}

        return await self._call_values(act)

    def _seen_of(self, prefix: str) -> float:
        """Return from when the values are that the node has which is asked."""
        world, now = self._world, trio.current_time()
        until, seen = self._values_seen.get(prefix, (0.0, 0.0))
        if now < until:
            return seen
        if not world.faults.strikes("values_lag"):
            return now
        world.reach("a read of values lagged behind")
        seen = now - world.delays.uniform(*LAG_SECONDS)
        self._values_seen[prefix] = now + world.delays.uniform(*LAGGING_SECONDS), seen
        return seen

    # --- writes ---

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        if key == PLACEMENT:
            return await self._set_placement(data, revision)
        is_own = key == self._key
        try:
            if is_own and self._outliving and not self._own().is_ended:
                raise Unanswered
            return await self._set(key, data, revision)
        except Unanswered:
            if is_own:
                self._world.reach("a renewal had no answer")
            raise
        except Refused:
            if key.startswith(PREFIX) and not is_own:
                self._note_refused(facts_in(Value(0, data)))
            raise

    async def _set(self, key: str, data: bytes, revision: int) -> int:
        return await self._call_values(lambda: self._agreed.set_value(key, data, revision))

    async def _set_placement(self, data: bytes, revision: int) -> int:
        """Set it; an answer that comes in the next life of the node is for the one before."""
        life = self._own().life
        if self._world.faults.strikes("life_outlived"):
            self._world.record("fault", f"{life} is to end before it hears of its placement")
            revision = await self._set_until_the_next_life(data, revision, life)
        else:
            revision = await self._set(PLACEMENT, data, revision)
        if self._own().life != life:
            self._world.reach("the answer to a change of the placement came in the next life")
        return revision

    async def _set_until_the_next_life(self, data: bytes, revision: int, life: str) -> int:
        """Let the answer wait, and lose renewals until others have ended the lease."""

        async def act() -> int:
            done = await self._agreed.set_value(PLACEMENT, data, revision)
            while self._own().life == life:
                await self._values.changed.wait()
            await trio.sleep(self._world.delays.uniform(*OUTLIVED_SECONDS))
            return done

        self._outliving += 1
        try:
            place = self._nodes.place(VALUES)
            return await self.call(place, act, patience=OUTLIVING_SECONDS)
        finally:
            self._outliving -= 1

    def _own(self) -> NodeFacts:
        """What the log's nodes have of this node."""
        return facts_in(self._values.now()[self._key])

    def _note_refused(self, sent: NodeFacts) -> None:
        """Note why an end was refused."""
        values, reach = self._values.now(), self._world.reach
        there = facts_in(values[PREFIX + sent.name])
        if there.is_ended:
            reach("two challengers raced")
        elif there.life == sent.life:
            reach("an end was refused, because the lease was renewed")
        else:
            reach("a proof of an end was refused")
            if sent.number in placement_in(values[PLACEMENT]).serving:
                reach("a node that had ended served again, and another did not know")

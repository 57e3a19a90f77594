"""Values that nodes share, on the nodes of the log: read and set with patience.

A change of the placement is one of these. A node makes them, and commands that are no node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import trio

from qserver.control.nodes.lease import NodeFacts
from qserver.control.nodes.placement import Placement
from qserver.errors import InvalidRequest, NotFound
from qserver.replication.patience import PAUSE_SECONDS, Result, patiently
from qserver.replication.port import LogNodes, Refused, Unanswered, Value

NUMBERS: Final = "numbers"
PLACEMENT: Final = "placement"


class PatientValues:
    def __init__(self, nodes: LogNodes, seconds: float) -> None:
        """`seconds`: how long the nodes of the log may be away."""
        self._nodes = nodes
        self._seconds = seconds

    async def value(self, key: str) -> Value | None:
        return await self.ask(lambda: self._nodes.value(key))

    async def values(self, prefix: str) -> dict[str, Value]:
        return await self.ask(lambda: self._nodes.values(prefix))

    async def ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat a call that may be done twice until it is answered."""
        return await patiently(call, self._seconds, "who serves which database")

    async def set(self, key: str, value: object, found: Value | None) -> Value | None:
        """Set a value that was found so; None if it has another revision, or nobody knows."""
        data = msgspec.json.encode(value)
        revision = 0 if found is None else found.revision
        try:
            revision = await self._nodes.set_value(key, data, revision)
        except (Refused, Unanswered):
            now = await self.value(key)
            if now is not None and now.data == data:
                return now  # an answer was lost
            await trio.sleep(PAUSE_SECONDS)  # the caller begins again, perhaps by what lags
            return None
        return Value(revision, data)

    def __repr__(self) -> str:
        return f"values on {self._nodes!r}"


async def change_placement(
    values: PatientValues, change: Callable[[Placement], Placement]
) -> Placement:
    """Change the placement from outside; if somebody else was first, on top of that change."""
    while True:
        found = await values.value(PLACEMENT)
        if found is None:
            raise NotFound(
                "no node has served the databases of this log yet",
                hint="Start one: qserver serve with QSERVER_LINK, or qserver cluster up.",
            )
        was = placement_in(found)
        wanted = change(was)
        if wanted == was or await values.set(PLACEMENT, wanted, found) is not None:
            return wanted


def moved_by_hand(was: Placement, family: str, number: int, name: str) -> Placement:
    """The placement in which the node of that number and name owns a family."""
    if number not in was.owning:
        raise InvalidRequest(f"the node {name} does not serve now, or is drained")
    return was if was.owner_of(family) == number else was.with_moved(family, number)


def number_named(name: str, numbers: dict[str, int]) -> int:
    """The number of the node of a name."""
    if name not in numbers:
        raise NotFound(f"there is no node {name}", hint=f"Nodes are {', '.join(sorted(numbers))}.")
    return numbers[name]


def facts_in(value: Value) -> NodeFacts:
    return msgspec.json.decode(value.data, type=NodeFacts)


def placement_in(value: Value) -> Placement:
    return msgspec.json.decode(value.data, type=Placement)


def numbers_in(value: Value | None) -> dict[str, int]:
    """The numbers of nodes, by name."""
    return {} if value is None else msgspec.json.decode(value.data, type=dict[str, int])

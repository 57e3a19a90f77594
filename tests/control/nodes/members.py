"""Nodes of a cluster in one process: the real parts, over log nodes whose ways go wrong as told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar, cast

import msgspec
import trio

from qserver.control.databases import Databases
from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import PREFIX, Lease, NodeFacts, Seen
from qserver.control.nodes.membership import Identity, Membership
from qserver.control.nodes.node import Node
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import Placement
from qserver.errors import DatabaseUnavailable
from qserver.limits import CALL_SECONDS_MAX
from qserver.replication.memory import MemoryNodes
from qserver.replication.port import Unanswered, Value
from simulations.families import SmallFamilies

T = TypeVar("T")

LEASE = 6.0
PATIENCE = 0.5
"""How long a call waits for an answer that does not come."""


async def in_time(holds: Callable[[], bool]) -> None:
    """Let time pass until something holds; in time that leases do not take."""
    for _ in range(20_000):
        if holds():
            return
        await trio.sleep(0.01)
    raise AssertionError("it never came to hold")


class Way(MemoryNodes):
    """The log nodes as one node reaches them."""

    def __init__(self, agreed: MemoryNodes) -> None:
        super().__init__()
        self._agreed = agreed
        self.is_cut = False
        self.lose_answer: Callable[[str], bool] = lambda key: False
        """Whether the answer to a write of a key is lost."""
        self.lose_request: Callable[[str], bool] = lambda key: False
        self.before_write: Callable[[str], Awaitable[None]] = _at_once
        """Where a write may be kept on its way."""
        self.writes: list[str] = []
        self.reads = 0
        self._read = agreed

    async def lag(self) -> None:
        """Read of a node of the log that gets nothing new, until `lag_no_more`."""
        self._read = MemoryNodes()
        self._read._values = await self._agreed.values("")

    def lag_no_more(self) -> None:
        self._read = self._agreed

    async def value(self, key: str) -> Value | None:
        self.reads += 1
        return await self._answered(self._read.value(key))

    async def values(self, prefix: str) -> dict[str, Value]:
        self.reads += 1
        return await self._answered(self._read.values(prefix))

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        self.writes.append(key)
        await self.before_write(key)
        if self.lose_request(key):
            await self._silence()
        revision = await self._answered(self._agreed.set_value(key, data, revision))
        if self.lose_answer(key):
            await self._silence()
        return revision

    async def _answered(self, call: Awaitable[T]) -> T:
        if self.is_cut:
            call.close()  # type: ignore[attr-defined]
            await self._silence()
        return await call

    async def _silence(self) -> None:
        await trio.sleep(PATIENCE)
        raise Unanswered


async def _at_once(key: str) -> None:
    await trio.lowlevel.checkpoint()


class Held(SmallFamilies[Callable[[], bool]]):
    """The families of a node; what is open says whether it may be shown."""

    def __init__(self) -> None:
        super().__init__()
        self.close_seconds = 0.0
        self.given: list[float] = []
        """How long users of what was given up have to end."""

    def give_up(self, name: str, seconds: float = 0.0) -> None:
        self.given.append(seconds)
        super().give_up(name, seconds)

    def _begin_to_close(self, name: str, opened: Callable[[], bool]) -> None:
        trio.lowlevel.spawn_system_task(self._close, name)

    async def _close(self, name: str) -> None:
        await trio.sleep(self.close_seconds)
        self._closed(name)

    async def have(self, root: str, member: Member) -> bool:
        """Open a family; return whether it is open then."""
        await in_time(lambda: root not in self._closing)
        with self._while_opening(root):
            await member.handover.may_open(root)
            self.open[root] = member.membership.lease.holds
            return True
        return False

    def shows(self, root: str) -> bool:
        return root in self.open and self.open[root]()


class Cluster:
    def __init__(self) -> None:
        self.agreed = MemoryNodes()
        self.members: dict[int, Member] = {}
        self.cuts: set[frozenset[str]] = set()
        """Names of nodes that do not reach each other."""
        self.lives = count(1)

    def member(self, name: str, folder: str = "", speed: float = 1.0) -> Member:
        return Member(self, name, folder or f"folder of {name}", speed)

    async def start(self, nursery: trio.Nursery, *names: str) -> list[Member]:
        """Start nodes that serve."""
        made = [self.member(name) for name in names]
        for each in made:
            await each.start(nursery)
            await each.node.join()
        for each in made:
            await each.membership.look()
        return made

    async def facts(self, name: str) -> NodeFacts:
        found = await self.agreed.value(PREFIX + name)
        assert found is not None
        return msgspec.json.decode(found.data, type=NodeFacts)

    async def placement(self) -> Placement:
        found = await self.agreed.value("placement")
        assert found is not None
        return msgspec.json.decode(found.data, type=Placement)


class Member:
    def __init__(self, cluster: Cluster, name: str, folder: str, speed: float) -> None:
        self.cluster = cluster
        self.way = Way(cluster.agreed)
        self.speed = speed
        self.membership = Membership(
            self.way,
            lambda: Lease(self.clock, LEASE),
            lambda: f"life {next(cluster.lives)}",
            self._report,
        )
        self.membership.identity = Identity(name, f"http://{name}", f"{name}:1", folder)
        self.owners = CalledOwners(self)
        self.node = Node(self.membership, self.owners)
        self.held = Held()
        self.handover = Handover(
            self.membership, self.owners, cast(Databases, self.held), self.held
        )
        self.membership.on_lost = self._lost
        self.lost = 0
        self.reports: list[str] = []
        self.is_alive = True
        self.scope = trio.CancelScope()

    def clock(self) -> float:
        return trio.current_time() * self.speed

    def _report(self, text: str, error: Exception) -> None:
        self.reports.append(text)

    async def _lost(self) -> None:
        self.lost += 1
        await self.handover.give_up_all()

    async def start(self, nursery: trio.Nursery) -> None:
        await self.membership.begin()
        self.cluster.members[self.number] = self
        nursery.start_soon(self.run)

    async def run(self) -> None:
        with self.scope:
            async with trio.open_nursery() as nursery:
                self.membership.tell_others = lambda: nursery.start_soon(self.node.tell_all)
                nursery.start_soon(self.node.watch, self.handover, lambda: None)
                try:
                    await self.membership.run()
                finally:
                    self.membership.tell_others = lambda: None

    def die(self) -> None:
        """End without a word."""
        self.is_alive = False
        self.scope.cancel()

    @property
    def name(self) -> str:
        return self.membership.identity.name

    @property
    def number(self) -> int:
        return self.membership.number

    @property
    def placement(self) -> Placement:
        return self.membership.placement

    def seen(self, other: Member) -> Seen:
        return self.membership.seen[other.number]


class CalledOwners(NodeOwners):
    """Calls the others in this process, unless they are cut off."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.asked: list[tuple[int, str]] = []
        super().__init__(member.membership)

    async def ask(
        self, process: int, method: str, *arguments: Any, seconds: float = CALL_SECONDS_MAX
    ) -> Any:
        self.asked.append((process, method))
        member, cluster = self._member, self._member.cluster
        other = cluster.members.get(process)
        await trio.sleep(0.001)
        with trio.move_on_after(seconds):
            if other is None or not other.is_alive or _cut(cluster, member, other):
                await trio.sleep_forever()
            return await other.owners.methods[method](*arguments)
        raise DatabaseUnavailable("no answer", hint="Try again.")


def _cut(cluster: Cluster, one: Member, two: Member) -> bool:
    return frozenset((one.name, two.name)) in cluster.cuts

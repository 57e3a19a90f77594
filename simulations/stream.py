"""Log nodes as nasty as real ones: what they agree on lies in memory, the way there goes wrong.

    caller ─► request ─► leader ─► proposal ─► committed, on a majority ─► answer ─► caller
              lost,      none      slow, or        never changes           lost
              late       (an election)  gone       (unless planted)

A request goes on when its caller has given up, or has crashed. The leader compares what a message
expects with what it has *proposed*, so an own message that is not committed yet refuses its
repetition; and the next election may let it vanish. Reads go to any node, which may lag behind.
Each process has a `Link` of its own, which may be cut.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import trio

from qserver.errors import LogFailed
from qserver.replication.memory import MemoryNodes, MemoryStream
from qserver.replication.port import Bounds, Message, Refused, Stream, Unanswered, Value
from simulations.world import ACTOR, SimulatedWorld

T = TypeVar("T")

PATIENCE_SECONDS: Final = (0.1, 3.0)
"""How long a caller waits for an answer."""
LATE_SECONDS: Final = (0.5, 12.0)
ELECTION_SECONDS: Final = (4.0, 10.0)
SLOW_SECONDS: Final = (0.05, 4.0)
LAG_SECONDS: Final = (0.01, 3.0)
PART_LAG_SECONDS: Final = (3.0, 18.0)
"""How old a part is that each node has: less than whoever loads a base waits for it."""
CUT_SECONDS: Final = (0.2, 15.0)
VALUES: Final = "values"
PARTS: Final = "parts"
"""The places that hold them; each stream is a place of its own."""


@dataclass(frozen=True, slots=True)
class Told:
    """A message that was committed, and the link that it came over."""

    message: Message
    link: str


class AgreedNodes(MemoryNodes):
    """What the nodes have agreed on."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: dict[str, float] = {}
        """By part: when it was saved."""
        self.changed: Callable[[], None] = lambda: None
        """Called when a value was set, or parts or messages were dropped."""

    def stream(self, name: str) -> MemoryStream | None:
        return self._streams.get(name)

    def value_now(self, key: str) -> bytes | None:
        return self._values[key].data if key in self._values else None

    def all_values(self) -> dict[str, Value]:
        return dict(self._values)

    def part_now(self, key: str) -> bytes | None:
        return self._parts.get(key)

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        revision = await super().set_value(key, data, revision)
        self.changed()
        return revision

    async def save_part(self, key: str, data: bytes) -> None:
        await super().save_part(key, data)
        self.saved.setdefault(key, trio.current_time())

    async def remove_parts(self, prefix: str) -> None:
        await super().remove_parts(prefix)
        self.changed()


class SimulatedNodes:
    """All nodes together; a process talks to them through its `Link`."""

    def __init__(self, world: SimulatedWorld, nursery: trio.Nursery) -> None:
        self.world = world
        self.nursery = nursery
        self.agreed = AgreedNodes()
        self._places: dict[str, Place] = {}
        self.refused: Callable[[bytes, Told | None], None] = lambda data, instead: None
        """Called with a message that is refused, and what was committed in its place."""
        self.told: dict[str, list[Told]] = {}
        """By stream: what was committed, in order, whatever was purged or forgotten since."""

    def place(self, name: str) -> Place:
        if name not in self._places:
            self._places[name] = Place(self, name)
        return self._places[name]

    def link(self, name: str) -> Link:
        return Link(self, name)


class Place:
    """One Raft group, as its leader sees it: a stream, all values, or all parts."""

    def __init__(self, nodes: SimulatedNodes, name: str) -> None:
        self._nodes = nodes
        self._world = nodes.world
        self.name = name
        self._proposals: list[_Proposal] = []
        self.is_electing = False

    def strike(self) -> None:
        """Begin an election here, if a fault strikes."""
        if not self.is_electing and self._world.faults.strikes("election"):
            self._nodes.nursery.start_soon(self.elect)

    async def elect(self) -> None:
        """Answer nothing until there is a leader; keep a front part of what was proposed."""
        world, seconds = self._world, self._world.delays.uniform(*ELECTION_SECONDS)
        ACTOR.set("nodes")
        self.is_electing = True
        orphans, self._proposals = self._proposals, []
        for each in orphans:
            each.is_orphan = True
            each.done.set()
        world.record("fault", f"{self.name} has no leader for {seconds:.1f} s")
        world.reach("the nodes had an election")
        await trio.sleep(seconds)
        kept = world.delays.randrange(len(orphans) + 1)
        for each in orphans[:kept]:
            each.commit()
            world.reach("a message without an answer survived an election")
        if kept < len(orphans):
            world.record("fault", f"{len(orphans) - kept} proposals vanish")
            world.reach("a proposal vanished at an election")
        self._lose_what_was_acknowledged()
        self.is_electing = False

    def _lose_what_was_acknowledged(self) -> None:
        """Do what nodes must never do: only runs that plant it ask for it."""
        world, stream = self._world, self._nodes.agreed.stream(self.name)
        if stream is None or len(stream.messages) < 2:
            return
        if world.faults.strikes("acknowledged_forgotten"):
            world.record("fault", f"{self.name} forgets message {stream.last}")
            world.reach("the nodes forgot what they had acknowledged")
            stream.messages.pop()
        elif world.faults.strikes("acknowledged_replaced"):
            world.record("fault", f"message {stream.last} of {self.name} is another")
            world.reach("the nodes replaced what they had acknowledged")
            last, before = stream.messages[-1], stream.messages[-2]
            stream.messages[-1] = Message(last.sequence, before.data)

    async def append(self, stream: MemoryStream, data: bytes, expected: int, link: str) -> int:
        """Propose a message, and wait until it is committed; raise _Silence if it never is."""
        world, last = self._world, stream.last + len(self._proposals)
        if stream.is_removed:
            raise LogFailed(f"there is no stream {stream.name}")
        if last != expected:
            if expected == stream.last:
                world.reach("a message was refused by one that was not committed yet")
            told = self._nodes.told.get(stream.name, [])
            self._nodes.refused(data, told[expected] if expected < len(told) else None)
            raise Refused(last)
        proposal = _Proposal(self._nodes, stream, Message(expected + 1, data), link)
        before = self._proposals[-1] if self._proposals else None
        self._proposals.append(proposal)
        if world.faults.strikes("commit_slow"):
            world.record("fault", f"message {expected + 1} of {self.name} is committed slowly")
            await trio.sleep(world.delays.uniform(*SLOW_SECONDS))
        else:
            await trio.sleep(world.delays.uniform(0.0, 0.003))
        if before is not None:
            await before.done.wait()
        if proposal.is_orphan:
            raise _Silence
        self._proposals.remove(proposal)
        proposal.commit()
        return proposal.message.sequence


class _Proposal:
    def __init__(
        self, nodes: SimulatedNodes, stream: MemoryStream, message: Message, link: str
    ) -> None:
        self._nodes = nodes
        self._link = link
        self._stream = stream
        self.message = message
        self.done = trio.Event()
        """Set when it is committed, or an orphan."""
        self.is_orphan = False
        """Whether its leader is gone: nobody will answer, whatever becomes of it."""

    def commit(self) -> None:
        stream, message = self._stream, self.message
        self.done.set()
        if stream.is_removed or stream.last + 1 != message.sequence:
            return
        stream.messages.append(message)
        self._nodes.told.setdefault(stream.name, []).append(Told(message, self._link))
        self._nodes.world.record("durable", f"message {message.sequence} of {stream.name} is")


class _Silence(Exception):
    """No answer will ever come."""


class Link:
    """The nodes as one process reaches them: it implements `LogNodes`."""

    def __init__(self, nodes: SimulatedNodes, name: str) -> None:
        self._nodes = nodes
        self._world = nodes.world
        self._agreed = nodes.agreed
        self.name = name
        self._cut_until = 0.0
        self._lags: dict[str, tuple[float, int]] = {}
        """By stream: until when a node is asked that lags, and the last message that it has."""
        self.gate: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        """Where a process that is paused waits before it sees an answer."""

    @property
    def is_cut(self) -> bool:
        return trio.current_time() < self._cut_until

    def cut(self, seconds: float) -> None:
        self._world.record("fault", f"{self.name} does not reach the nodes for {seconds:.1f} s")
        self._world.reach("a process was cut off from the nodes")
        self._cut_until = trio.current_time() + seconds

    async def call(
        self,
        place: Place,
        act: Callable[[], Awaitable[T]],
        *,
        reads: bool = False,
        patience: tuple[float, float] = PATIENCE_SECONDS,
    ) -> T:
        """Send a request and wait for the answer; raise Unanswered if none comes in time."""
        world, answer = self._world, _Answer()
        if not self.is_cut and world.faults.strikes("nodes_cut_off"):
            self.cut(world.delays.uniform(*CUT_SECONDS))
        self._nodes.nursery.start_soon(self._deliver, place, act, reads, answer)
        with trio.move_on_after(world.delays.uniform(*patience)):
            await answer.done.wait()
        has_answer = answer.done.is_set()
        await self.gate()
        if not has_answer:
            world.record("fail", f"{self.name} has no answer of {place.name}")
            raise Unanswered
        if answer.error is not None:
            raise answer.error
        result: T = answer.result
        return result

    async def _deliver(
        self, place: Place, act: Callable[[], Awaitable[Any]], reads: bool, answer: _Answer
    ) -> None:
        ACTOR.set("nodes")
        if not await self._arrives(place, reads):
            return
        try:
            answer.result = await act()
        except (Refused, LogFailed) as error:
            answer.error = error
        except _Silence:
            return
        await trio.sleep(self._world.delays.uniform(0.0, 0.002))
        if self.is_cut:
            return
        if not reads and self._world.faults.strikes("answer_lost"):
            self._world.record("fault", f"an answer to {self.name} is lost")
            self._world.reach("the answer of the nodes was lost")
            return
        answer.done.set()

    async def _arrives(self, place: Place, reads: bool) -> bool:
        """Return, when it is there, whether a request has reached whoever can answer it."""
        world = self._world
        if not reads and world.faults.strikes("request_late"):
            world.record("fault", f"a request of {self.name} is late")
            await trio.sleep(world.delays.uniform(*LATE_SECONDS))
            world.reach("a request arrived late")
        else:
            await trio.sleep(world.delays.uniform(0.0, 0.002))
            if self.is_cut:
                return False
            if world.faults.strikes("request_lost"):
                world.record("fault", f"a request of {self.name} is lost")
                return False
        if reads:
            return True
        place.strike()
        return not place.is_electing

    # --- streams ---

    async def open_stream(self, name: str) -> Stream:
        return await self.call(self._nodes.place(name), lambda: self._open(name))

    async def _open(self, name: str) -> Stream:
        await self._agreed.open_stream(name)
        return LinkedStream(self, name)

    async def find_stream(self, name: str) -> Stream | None:
        return await self.call(self._nodes.place(name), lambda: self._find(name))

    async def _find(self, name: str) -> Stream | None:
        found = await self._agreed.find_stream(name)
        return None if found is None else LinkedStream(self, name)

    async def remove_stream(self, name: str) -> None:
        await self.call(self._nodes.place(name), lambda: self._agreed.remove_stream(name))

    async def streams(self) -> Sequence[str]:
        return await self.call(self._nodes.place(VALUES), self._agreed.streams)

    # --- values and parts ---

    async def value(self, key: str) -> Value | None:
        return await self.call(self._nodes.place(VALUES), lambda: self._agreed.value(key))

    async def values(self, prefix: str) -> dict[str, Value]:
        return await self.call(self._nodes.place(VALUES), lambda: self._agreed.values(prefix))

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        return await self.call(
            self._nodes.place(VALUES), lambda: self._agreed.set_value(key, data, revision)
        )

    async def remove_value(self, key: str) -> None:
        await self.call(self._nodes.place(VALUES), lambda: self._agreed.remove_value(key))

    async def save_part(self, key: str, data: bytes) -> None:
        await self.call(self._nodes.place(PARTS), lambda: self._agreed.save_part(key, data))

    async def load_part(self, key: str) -> bytes | None:
        return await self.call(self._nodes.place(PARTS), lambda: self._part(key), reads=True)

    async def _part(self, key: str) -> bytes | None:
        world, saved = self._world, self._agreed.saved.get(key, 0.0)
        lag = world.delays.uniform(*PART_LAG_SECONDS) if world.faults.strikes("read_lags") else 0.0
        if trio.current_time() < saved + lag:
            world.record("fault", f"{self.name} does not find {key}")
            world.reach("a part of a base was not there yet")
            return None
        return await self._agreed.load_part(key)

    async def parts(self, prefix: str) -> Sequence[str]:
        return await self.call(
            self._nodes.place(PARTS), lambda: self._agreed.parts(prefix), reads=True
        )

    async def remove_parts(self, prefix: str) -> None:
        await self.call(self._nodes.place(PARTS), lambda: self._agreed.remove_parts(prefix))

    # --- for LinkedStream ---

    def place(self, name: str) -> Place:
        return self._nodes.place(name)

    def changed(self) -> None:
        self._agreed.changed()

    def agreed(self, name: str) -> MemoryStream:
        stream = self._agreed.stream(name)
        if stream is None:
            raise LogFailed(f"there is no stream {name}")
        return stream

    def last_seen(self, stream: MemoryStream) -> int:
        """Return the last message that the node has which is asked to read."""
        world, now = self._world, trio.current_time()
        until, last = self._lags.get(stream.name, (0.0, 0))
        if now < until:
            return last
        if not world.faults.strikes("read_lags"):
            return stream.last
        last = max(0, stream.last - world.delays.randrange(4))
        world.record("fault", f"{self.name} reads {stream.name} up to {last} of {stream.last}")
        world.reach("a read lagged behind")
        self._lags[stream.name] = now + world.delays.uniform(*LAG_SECONDS), last
        return last


class LinkedStream:
    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self.name = name
        self.leader = ""

    async def append(self, data: bytes, expected: int) -> int:
        place = self._link.place(self.name)

        async def act() -> int:
            stream = self._link.agreed(self.name)
            return await place.append(stream, data, expected, self._link.name)

        return await self._link.call(place, act)

    async def read(self, first: int, most: int) -> Sequence[Message]:
        async def act() -> Sequence[Message]:
            stream = self._link.agreed(self.name)
            last = self._link.last_seen(stream)
            return [each for each in await stream.read(first, most) if each.sequence <= last]

        return await self._link.call(self._link.place(self.name), act, reads=True)

    async def bounds(self) -> Bounds:
        async def act() -> Bounds:
            return await self._link.agreed(self.name).bounds()

        return await self._link.call(self._link.place(self.name), act)

    async def purge(self, until: int) -> None:
        async def act() -> None:
            await self._link.agreed(self.name).purge(until)
            self._link.changed()

        await self._link.call(self._link.place(self.name), act)

    def __repr__(self) -> str:
        return f"the simulated stream {self.name}"


class _Answer:
    def __init__(self) -> None:
        self.done = trio.Event()
        self.result: Any = None
        self.error: Exception | None = None

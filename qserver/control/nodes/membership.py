"""This node among others: keeps its lease, watches theirs, and changes the placement.

    values on the nodes of the log
      numbers       name ─► number, given at a node's first start and for ever
      node.<name>   its lease and addresses; changes with each renewal
      placement     which node owns which family

    begin: number ─► new life ─► (follow control …) ─► join: placement, written anew
    renewal refused, or late ─► the lease is lost ─► everything is closed ─► new life ─► join

Only what was written by compare-and-set counts. A node that has begun a life writes the placement
before it owns anything: so it knows every placement that was made while it was away. Who opens a
family of a node that has ended ends that node's lease once more, under the revision that it knows:
so the node has not begun a new life meanwhile. So does who takes it out of the placement, after
reading that: a node that has begun a new life, and joined, stays in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import msgspec
import trio

from qserver.control.nodes.lease import PREFIX, Lease, NodeFacts, Seen
from qserver.control.nodes.placement import Placement
from qserver.control.nodes.values import (
    NUMBERS,
    PLACEMENT,
    PatientValues,
    facts_in,
    moved_by_hand,
    number_named,
    numbers_in,
    placement_in,
)
from qserver.errors import LogFailed, LogTaken
from qserver.replication.patience import PAUSE_SECONDS
from qserver.replication.port import LogNodes, Refused, Unanswered, Value

LOOKS: Final = 6
"""In the time of a lease a node looks so often at the others, and renews every second time."""
LOOK_SECONDS_MAX: Final = 1.0

Report = Callable[[str, Exception], None]


class Identity(msgspec.Struct, frozen=True):
    """What this node is, before it has a number."""

    name: str
    url: str
    link: str
    folder: str
    """The name that its data folder keeps; a copy of the folder has the same."""
    is_moved: bool = False
    """Whether the folder lies elsewhere than when it was served last: it may be a copy."""


class Membership:
    """Call `begin`, then start `run` in a nursery."""

    def __init__(
        self,
        nodes: LogNodes,
        new_lease: Callable[[], Lease],
        new_life: Callable[[], str],
        report: Report,
    ) -> None:
        self._nodes = nodes
        self.identity: Identity
        """Set it before `begin`."""
        self._new_lease = new_lease
        self.lease = new_lease()
        """Of this life."""
        self._values = PatientValues(nodes, self.lease.seconds)
        self._new_life = new_life
        self._report = report
        self.facts: NodeFacts
        """Of this node, from `begin` on."""
        self._revision = 0
        self._renewed = 0.0
        self.placement = Placement(0, 0, (0,))
        self._placement_revision = 0
        self._begun: str | None = None
        """This life, once its value is written."""
        self._current: str | None = None
        """The last life that has written the placement after that."""
        self._lives: set[str] = set()
        """All that this process has begun."""
        self._is_over = False
        """Whether this node ends, and begins no other life."""
        self.seen: dict[int, Seen] = {}
        """Other nodes by number, and this one."""
        self.changed = trio.Event()
        """Set when the placement, or what is known of a node, changes; the next is another one."""
        self._wanted = trio.Event()
        self.on_lost: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        """Closes everything: called when the lease is lost, before a new life begins."""
        self.on_begun: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        """Called when a new life has begun after that."""
        self.released: Callable[[], int] = lambda: 0
        """Returns up to which version of the placement this node has given up what others own."""
        self.tell_others: Callable[[], None] = lambda: None
        """Lets other nodes look at once."""

    @property
    def number(self) -> int:
        return self.facts.number

    @property
    def is_serving(self) -> bool:
        return self.number in self.placement.serving

    @property
    def is_current(self) -> bool:
        """Whether this life has written the placement: it knows all that was made before it."""
        return self._begun is not None and self._current == self._begun

    def may_own(self, family: str) -> bool:
        """Return whether this node may open a family, once nobody else has it."""
        is_owner = self.placement.owner_of(family) == self.number
        return is_owner and self.is_current and self.lease.holds()

    def living(self) -> list[int]:
        """The numbers of all nodes whose lease was not ended, as far as is known."""
        return sorted(number for number, each in self.seen.items() if not each.facts.is_ended)

    def _tell(self) -> None:
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    # --- a life ---

    async def begin(self) -> None:
        """Begin a life; wait while an earlier life of this name, of another folder, holds."""
        self._begun = None
        number = await self._number()
        key = PREFIX + self.identity.name
        me = self.identity
        self.facts = NodeFacts(
            me.name, number, me.url, me.link, me.folder, self._new_life(), self.lease.seconds
        )
        self._lives.add(self.facts.life)
        sent = None
        while True:
            found = await self._value(key)
            if found is not None and not self._may_replace(found):
                await self._wait_for_end(found)
                continue
            if sent is None:  # others may have seen the first of several attempts
                sent = self.lease.clock()
            if await self._set(key, self.facts, found):
                break
        self._begun = self.facts.life
        self.lease.extend(sent)
        self._renewed = sent
        await self._values.ask(self.look)

    def _may_replace(self, found: Value) -> bool:
        """Return whether a life has surely ended: the folder is locked by this process.

        Unless there is a copy of the folder, and a node that serves that.
        """
        facts = facts_in(found)
        if facts.is_ended or facts.life in self._lives:
            return True
        is_first = len(self._lives) == 1 and not self.identity.is_moved
        return is_first and facts.folder == self.identity.folder

    async def _wait_for_end(self, found: Value) -> None:
        """Wait until another node of the same name has ended; raise LogTaken if it lives."""
        facts = facts_in(found)
        began = self.lease.clock()
        seen = Seen(facts, found.revision, began)
        while not seen.is_over(self.lease.clock()):
            await trio.sleep(self._pause())
            now = await self._value(PREFIX + facts.name)
            if now is None or now.revision != found.revision:
                if now is not None and not self._may_replace(now):
                    raise self._name_taken(facts)
                return
        with suppress(Refused, Unanswered):
            await self._end(seen)

    def _name_taken(self, facts: NodeFacts) -> LogTaken:
        if facts.folder != self.identity.folder:
            return LogTaken(
                f"another node has the name {facts.name}, at {facts.url}",
                hint="Give this one another name: QSERVER_NODE.",
            )
        return LogTaken(
            f"another node has the name {facts.name} and a copy of this folder, at {facts.url}",
            hint="Remove the file node.id of one of the two folders, and give that node another"
            " name: QSERVER_NODE.",
        )

    async def _number(self) -> int:
        while True:
            found = await self._value(NUMBERS)
            numbers = numbers_in(found)
            if self.identity.name in numbers:
                return numbers[self.identity.name]
            numbers[self.identity.name] = max(numbers.values(), default=-1) + 1
            await self._set(NUMBERS, numbers, found)

    async def run(self) -> NoReturn:
        """Renew and look for ever; begin a new life when the lease is lost."""
        while True:
            with trio.move_on_after(self._pause()):
                await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                if not await self._renew_if_due():
                    await self._begin_anew()
                await self.look()
                await self._end_silent()
            except (LogFailed, Unanswered, Refused):
                continue  # the log is away, or another node was first

    def look_soon(self) -> None:
        """Something has changed, another node says."""
        self._wanted.set()

    def _pause(self) -> float:
        return min(self.lease.seconds / LOOKS, LOOK_SECONDS_MAX)

    async def _renew_if_due(self) -> bool:
        """Renew the lease; False if it is lost: another has ended it, or it is too late."""
        if self._is_over:
            return True
        if self._begun is None:  # what began anew has failed
            return False
        sent = self.lease.clock()
        if sent - self._renewed < 2 * self.lease.seconds / LOOKS:
            return True
        facts = msgspec.structs.replace(
            self.facts, beat=self.facts.beat + 1, released=self.released()
        )
        key = PREFIX + self.facts.name
        try:
            self._revision = await self._nodes.set_value(
                key, msgspec.json.encode(facts), self._revision
            )
        except (Refused, Unanswered):
            found = await self._nodes.value(key)
            if found is None or facts_in(found).life != self.facts.life or facts_in(found).is_ended:
                return self._is_over
            self._revision, self.facts = found.revision, facts_in(found)
            return True  # it is renewed the next time
        self.facts, self._renewed = facts, sent
        self.lease.extend(sent)
        return True

    async def _begin_anew(self) -> None:
        self.lease.drop()
        self._begun = None
        self._report("this node begins anew", LogTaken("its lease was ended by another"))
        await self.on_lost()
        self.lease = self._new_lease()
        await self.begin()
        await self.on_begun()

    # --- the others ---

    async def look(self) -> None:
        """Read what all nodes and the placement are now; what is older than known is left out."""
        values = await self._nodes.values(PREFIX)
        now = self.lease.clock()
        changed = False
        for value in values.values():
            facts = facts_in(value)
            before = self.seen.get(facts.number)
            if before is None or value.revision > before.revision:
                self.seen[facts.number] = Seen(facts, value.revision, now)
                changed |= before is None or (before.facts.life, before.facts.is_ended) != (
                    facts.life,
                    facts.is_ended,
                )
        found = await self._nodes.value(PLACEMENT)
        changed |= found is not None and self._learn(found)
        if changed:
            self._tell()

    async def look_for(self, version: int) -> None:
        """Look until the placement is that one, or a later one."""
        while self.placement.version < version:
            await self.look()
            if self.placement.version < version:  # the node of the log that was asked lags
                await trio.sleep(PAUSE_SECONDS)

    def _learn(self, found: Value) -> bool:
        if found.revision <= self._placement_revision:
            return False
        self.placement = placement_in(found)
        self._placement_revision = found.revision
        return True

    async def _end_silent(self) -> None:
        """End leases that nobody renews, and let others have what those nodes owned."""
        if not self.lease.holds():
            return
        now = self.lease.clock()
        for seen in list(self.seen.values()):
            number = seen.facts.number
            if number == self.number:
                continue
            if not seen.facts.is_ended and seen.is_over(now):
                await self._end(seen)
            if seen.facts.is_ended and number in self.placement.serving:
                await self._take_out(number)

    async def _take_out(self, gone: int) -> None:
        async def prove() -> None:
            seen = self.seen[gone]
            if not seen.facts.is_ended:
                raise Refused(seen.revision)
            await self._end(seen)

        await self._change(
            lambda was: was.left_by(gone, self.number) if gone in was.serving else was, prove=prove
        )

    async def _end(self, seen: Seen) -> None:
        """Set a node's value under the revision that is known; raise Refused if it has another."""
        facts = msgspec.structs.replace(seen.facts, is_ended=True, beat=seen.facts.beat + 1)
        data, key = msgspec.json.encode(facts), PREFIX + facts.name
        seen.revision = await self._nodes.set_value(key, data, seen.revision)
        seen.facts = facts
        self._tell()

    async def has_ended(self, number: int) -> bool:
        """Return whether a node's life has ended and no other has begun: proved by a write."""
        seen = self.seen.get(number)
        if seen is None:
            self.look_soon()
            return False
        if not seen.facts.is_ended:
            return False
        try:
            await self._end(seen)
        except (Refused, Unanswered):
            self.look_soon()
            return False
        return True

    # --- the placement ---

    async def join(self) -> None:
        """Serve from now on; from here on this life knows the placement."""
        if self._begun is None:
            raise LogFailed("this node has no lease", hint="It begins anew by itself.")
        if self.is_current and self.is_serving:
            return
        await self._change(lambda was: was.joined_by(self.number), first=True)

    async def leave(self) -> None:
        """Serve no more, if there is anybody else to do it; what is open is closed then."""
        others = [each for each in self.placement.serving if each != self.number]
        if others and self.is_serving:
            await self._change(lambda was: was.left_by(self.number, self.number))

    async def end(self) -> None:
        """End this life: others need not wait until the lease is over."""
        self._is_over = True
        self.lease.drop()
        key = PREFIX + self.facts.name
        while (found := await self._value(key)) is not None:
            facts = facts_in(found)
            if facts.life != self.facts.life or facts.is_ended:
                break
            ended = msgspec.structs.replace(facts, is_ended=True, beat=facts.beat + 1)
            if await self._set(key, ended, found):  # or a renewal was on its way
                break
        self.tell_others()

    async def move(self, family: str, name: str) -> None:
        """Let the node of a name own a family."""
        numbers = {each.facts.name: each.facts.number for each in self.seen.values()}
        number = number_named(name, numbers)
        await self._change(lambda was: moved_by_hand(was, family, number, name))

    async def _change(
        self,
        change: Callable[[Placement], Placement],
        *,
        first: bool = False,
        prove: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        """Write the next placement; if another node was first, on top of that one's.

        `first`: the first ever is made, if there is none. `prove` raises if the change is wrong,
        and what it proves holds until a placement is written that refuses this one.
        """
        while True:
            life = self._begun
            found = await self._value(PLACEMENT)
            await prove()
            if found is None and not first:
                return
            was = Placement(0, self.number, (self.number,))
            if found is not None:
                self._learn(found)
                was = placement_in(found)
            wanted = change(was)
            if wanted == was:
                break
            if await self._set(PLACEMENT, wanted, found):
                if life is not None and life == self._begun:
                    self._current = life
                self._tell()
                break
        self.tell_others()

    # --- values ---

    async def _set(self, key: str, value: object, found: Value | None) -> bool:
        """Set a value that was found so; False if it has another revision, or nobody knows."""
        now = await self._values.set(key, value, found)
        if now is None:
            return False
        if key == PLACEMENT:
            self._learn(now)
        elif key == PREFIX + self.identity.name:
            self._revision = now.revision
        return True

    async def _value(self, key: str) -> Value | None:
        return await self._values.value(key)

    def __repr__(self) -> str:
        return f"node {self.identity.name}, with {len(self.seen)} known"

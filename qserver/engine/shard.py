"""A shard: the actor that owns ranges of tables and indexes, and alone makes their next roots.

The coordinator asks it one round at a time. The shard answers each part of the round, in order,
with yes or with a conflict, and never waits: waiting shards can deadlock, refusing ones cannot.

    Prepare ─► every part is alone here ─► install all that are accepted ─► Voted with new roots
            └► some are undecided ─────── Voted ─► Decide ─► install ─► Installed

The shard checks a transaction against the installed roots, against the writes that this round has
accepted here, and against the writes of this round that are undecided because another shard may
refuse them. An overlap with an undecided write is a conflict whether or not that write commits.

Between rounds the coordinator may cut and join ranges, and sends `Own`.

The shard has no state that the log lacks: if it dies, its nursery ends and its ranges are made
again from the log.
"""

from __future__ import annotations

import msgspec

from qserver.durability.pauses import in_steps
from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Decide, FromShard, Installed, Own, Prepare, ToShard, Voted
from qserver.storage.conflict import Conflict
from qserver.storage.find_conflict import find_conflict, is_long, is_much
from qserver.storage.page import EMPTY
from qserver.storage.ranges import Range, Roots
from qserver.storage.routing import Part
from qserver.storage.writes import TreeWrites, changed, merge_writes
from qserver.values.steps import Steps


class ShardStatistics(msgspec.Struct, frozen=True):
    shard: int
    entries: int
    ranges: int
    parts: int
    refused: int
    installs: int
    undecided: int


class Shard:
    def __init__(
        self,
        number: int,
        roots: Roots,
        mailbox: Mailbox[ToShard],
        coordinator: Mailbox[FromShard],
    ) -> None:
        self.number = number
        self.roots = roots
        self.mailbox = mailbox
        self._coordinator = coordinator
        self._accepted: dict[Range, TreeWrites] = {}
        self._dropped: tuple[int, ...] = ()
        self._undecided: dict[int, Part] = {}
        self._undecided_writes: dict[Range, TreeWrites] = {}
        self._parts = self._refused = self._installs = 0

    async def run(self) -> None:
        while True:
            (message,) = await self.mailbox.take(most=1)
            answer = await in_steps(self.answer(message, is_long=self.is_long(message)))
            self._coordinator.put_nowait(answer)
            del message, answer  # while idle, keep no snapshot that was read

    def is_long(self, message: ToShard) -> bool:
        """Return whether the answer takes so long that other tasks should run meanwhile."""
        if isinstance(message, Decide):
            return is_much(self._accepted, self._undecided_writes)
        if isinstance(message, Own):
            return False
        return is_long(message.parts, self.roots)

    def answer(self, message: ToShard, *, is_long: bool = False) -> Steps[FromShard]:
        """Return the answer to a message.

        It yields where much is to be compared or installed. Nobody sees a half-made answer, because
        the coordinator waits for the whole.
        """
        if isinstance(message, Prepare):
            return (yield from self.prepare(message, is_long=is_long))
        if isinstance(message, Decide):
            return (yield from self.decide(message))
        return self.own(message)

    def prepare(self, message: Prepare, *, is_long: bool = False) -> Steps[Voted]:
        """Vote on each part in order; install at once if nothing is left undecided."""
        assert not self._undecided, "a round is decided before the next is prepared"
        conflicts: list[Conflict | None] = []
        for part in message.parts:
            conflicts.append((yield from self._vote(part, is_long)))
        roots = None if self._undecided else (yield from self._install())
        return Voted(self.number, message.round, tuple(conflicts), roots)

    def decide(self, message: Decide) -> Steps[Installed]:
        """Accept the undecided parts that commit, forget the others, and install."""
        for position in message.commits:
            yield from self._accept(self._undecided[position])
        self._undecided.clear()
        self._undecided_writes = {}
        return Installed(self.number, message.round, (yield from self._install()))

    def own(self, message: Own) -> Installed:
        """Take over the given ranges and release the taken ones."""
        assert not self._undecided, "ranges change between rounds"
        for each in message.taken:
            del self.roots[each]
        self.roots |= message.given
        return Installed(self.number, message.round, {})

    def _vote(self, part: Part, is_long: bool) -> Steps[Conflict | None]:
        self._parts += 1
        conflict = yield from self.conflict_of(part, is_long)
        if conflict is not None:
            self._refused += 1
        elif part.alone:
            yield from self._accept(part)
        else:
            self._undecided[part.position] = part
            yield from merge_writes(self._undecided_writes, part.writes)
        return conflict

    def conflict_of(self, part: Part, is_long: bool) -> Steps[Conflict | None]:
        return find_conflict(part, self.roots, self._accepted, self._undecided_writes, is_long)

    def _accept(self, part: Part) -> Steps[None]:
        yield from merge_writes(self._accepted, part.writes)
        self._dropped += part.dropped

    def _install(self) -> Steps[Roots]:
        """Install the accepted writes; return the new roots."""
        made: Roots = {}
        for each, changes in self._accepted.items():
            made[each] = yield from changed(self.roots.get(each, EMPTY), changes)
        self._installs += bool(made or self._dropped)
        self.roots |= made
        if self._dropped:  # last: a dropped tree is never written again
            gone = set(self._dropped)
            self.roots = {each: root for each, root in self.roots.items() if each.tree not in gone}
        self._accepted, self._dropped = {}, ()
        return made

    def statistics(self) -> ShardStatistics:
        return ShardStatistics(
            self.number,
            sum(map(len, self.roots.values())),
            len(self.roots),
            self._parts,
            self._refused,
            self._installs,
            len(self._undecided),
        )

    def __repr__(self) -> str:
        return f"shard {self.number} with {len(self.roots)} ranges"

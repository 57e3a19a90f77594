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

from typing import Final

import msgspec

from qserver.durability.pauses import in_steps
from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Decide, FromShard, Installed, Own, Prepare, ToShard, Voted
from qserver.storage.conflict import Conflict, overlap, stale_read, writes_overlap
from qserver.storage.conflict_in_pieces import conflict_in_pieces, is_long
from qserver.storage.page import EMPTY
from qserver.storage.ranges import Range, Roots
from qserver.storage.routing import Part
from qserver.storage.writes import (
    CHANGES_AT_ONCE,
    TreeWrites,
    changed,
    changed_in_pieces,
    count_changes,
    merge_writes,
    merge_writes_in_pieces,
)

ACCEPTED: Final = "an accepted transaction"
UNDECIDED: Final = "an undecided transaction"


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
            if self.is_long(message):
                answer = await self._answer_in_pieces(message)
            else:
                answer = self.answer(message)
            self._coordinator.put_nowait(answer)
            del message, answer  # while idle, keep no snapshot that was read

    def is_long(self, message: ToShard) -> bool:
        """Return whether the answer takes so long that other tasks should run meanwhile."""
        if isinstance(message, Decide):
            return self._holds_much()
        if isinstance(message, Own):
            return False
        return is_long(message.parts, self.roots)

    async def _answer_in_pieces(self, message: ToShard) -> FromShard:
        """Answer in pieces where much is to be compared or installed; other tasks run between.

        No one sees a half-made answer, because the coordinator waits for the whole.
        """
        if isinstance(message, Decide):
            for position in message.commits:
                await self._accept_in_pieces(self._undecided[position])
            self._forget_undecided()
            return Installed(self.number, message.round, await self._install_in_pieces())
        assert isinstance(message, Prepare) and not self._undecided, "a round is decided first"
        conflicts = []
        for part in message.parts:
            conflicts.append(await self._vote_in_pieces(part))
        roots = None if self._undecided else await self._install_in_pieces()
        return Voted(self.number, message.round, tuple(conflicts), roots)

    def answer(self, message: ToShard) -> FromShard:
        if isinstance(message, Prepare):
            return self.prepare(message)
        if isinstance(message, Decide):
            return self.decide(message)
        return self.own(message)

    def prepare(self, message: Prepare) -> Voted:
        """Vote on each part in order; install at once if nothing is left undecided."""
        assert not self._undecided, "a round is decided before the next is prepared"
        conflicts = tuple([self._vote(part) for part in message.parts])
        roots = None if self._undecided else self._install()
        return Voted(self.number, message.round, conflicts, roots)

    def decide(self, message: Decide) -> Installed:
        """Accept the undecided parts that commit, forget the others, and install."""
        self._settle(message)
        return Installed(self.number, message.round, self._install())

    def own(self, message: Own) -> Installed:
        """Take over the given ranges and release the taken ones."""
        assert not self._undecided, "ranges change between rounds"
        for each in message.taken:
            del self.roots[each]
        self.roots |= message.given
        return Installed(self.number, message.round, {})

    def _settle(self, message: Decide) -> None:
        for position in message.commits:
            self._accept(self._undecided[position])
        self._forget_undecided()

    def _forget_undecided(self) -> None:
        self._undecided.clear()
        self._undecided_writes = {}

    def _vote(self, part: Part) -> Conflict | None:
        self._parts += 1
        conflict = self.conflict_of(part)
        if conflict is not None:
            self._refused += 1
        elif part.alone:
            self._accept(part)
        else:
            self._undecided[part.position] = part
            merge_writes(self._undecided_writes, part.writes)
        return conflict

    async def _vote_in_pieces(self, part: Part) -> Conflict | None:
        if not is_long((part,), self.roots) and not self._holds_much():
            return self._vote(part)
        self._parts += 1
        undecided = self._undecided_writes
        others = {ACCEPTED: self._accepted, UNDECIDED: undecided}
        conflict = await in_steps(conflict_in_pieces(part, self.roots, others, undecided))
        if conflict is not None:
            self._refused += 1
        elif part.alone:
            await self._accept_in_pieces(part)
        else:
            self._undecided[part.position] = part
            await in_steps(merge_writes_in_pieces(undecided, part.writes))
        return conflict

    def _holds_much(self) -> bool:
        held = count_changes(self._accepted) + count_changes(self._undecided_writes)
        return held > CHANGES_AT_ONCE

    async def _accept_in_pieces(self, part: Part) -> None:
        await in_steps(merge_writes_in_pieces(self._accepted, part.writes))
        self._dropped += part.dropped

    def conflict_of(self, part: Part) -> Conflict | None:
        conflict = None
        if part.keys or part.scans:
            conflict = stale_read(part, self.roots)
            conflict = conflict or overlap(part, self._accepted, ACCEPTED)
        if conflict is None and self._undecided:
            undecided = self._undecided_writes
            conflict = overlap(part, undecided, UNDECIDED)
            conflict = conflict or writes_overlap(part, undecided)
        return conflict

    def _accept(self, part: Part) -> None:
        merge_writes(self._accepted, part.writes)
        self._dropped += part.dropped

    def _install(self) -> Roots:
        """Install the accepted writes; return the new roots."""
        made = {
            each: changed(self.roots.get(each, EMPTY), changes)
            for each, changes in self._accepted.items()
        }
        return self._installed(made)

    async def _install_in_pieces(self) -> Roots:
        made = {
            each: await in_steps(changed_in_pieces(self.roots.get(each, EMPTY), changes))
            for each, changes in self._accepted.items()
        }
        return self._installed(made)

    def _installed(self, made: Roots) -> Roots:
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

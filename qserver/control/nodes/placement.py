"""Which node owns which family: a function of one small value on the nodes of the log.

    family ─► moved by hand? ─► that node, while it owns any
            └► no ───────────► rendezvous hash over the nodes that own any

When a node goes, its families spread over the others, and no other family moves: each to the node
that comes next in the order of the hash, which is the one that follows it, if any does. When it
comes back they return. `control` belongs to the leader: whoever had it, or else the first that owns
any.

A node that is drained serves on: it answers clients with what the owners say, and the leader counts
it, because otherwise it would accept keys that were revoked. But it owns nothing, so nothing has to
move when it ends.

A change of the placement is a compare-and-set of the value, so there is one order of versions, and
any node may make one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

CONTROL: Final = "control"
"""The family of the control database."""


class Placement(msgspec.Struct, frozen=True):
    version: int
    leader: int
    """The node that owns `control`."""
    serving: tuple[int, ...]
    """The nodes that answer clients, in order."""
    moved: dict[str, int] = {}
    """Families that were moved by hand, and where to."""
    known: tuple[int, ...] = ()
    """All nodes that serve or ever did, in order: any of them may still have a family."""
    drained: tuple[int, ...] = ()
    """Nodes that own nothing, whether they serve or not, until somebody takes that back."""

    @property
    def owning(self) -> tuple[int, ...]:
        """The nodes that own families: those that serve without the drained, if any are left."""
        if not self.drained:
            return self.serving
        return tuple(each for each in self.serving if each not in self.drained) or self.serving

    def owner_of(self, family: str) -> int:
        if family == CONTROL:
            return self.leader
        by_hand = self.moved.get(family)
        owning = self.owning
        return by_hand if by_hand in owning else chosen(family, owning)

    def followers_of(self, family: str, count: int) -> list[int]:
        """The nodes that follow a family: those that would own it next, the first one first.

        So whoever owns it after its owner has gone, or is drained, has followed it.
        """
        found: list[int] = []
        placement, owner = self, self.owner_of(family)
        while len(found) < min(count, len(self.serving) - 1):
            placement = placement.left_by(owner, owner)
            owner = placement.owner_of(family)
            found.append(owner)
        return found

    def joined_by(self, node: int) -> Placement:
        """The next one, in which a node serves; also if it did before."""
        return self._next(serving=tuple(sorted({*self.serving, node})))

    def left_by(self, node: int, instead: int) -> Placement:
        """The next one, in which a node does not serve; `instead` does if nobody else is left."""
        left = tuple(each for each in self.serving if each != node)
        return self._next(serving=left or (instead,))

    def with_moved(self, family: str, node: int) -> Placement:
        """The next one, in which a node owns a family."""
        if family == CONTROL:
            return msgspec.structs.replace(self, version=self.version + 1, leader=node)
        moved = {**self.moved, family: node}
        if chosen(family, self.owning) == node:
            del moved[family]
        return self._next(moved=moved)

    def moved_back(self, family: str) -> Placement:
        """The next one, in which nobody has moved a family; this one if nobody did."""
        if family not in self.moved:
            return self
        return self._next(moved={key: at for key, at in self.moved.items() if key != family})

    def with_drained(self, node: int) -> Placement:
        """The next one, in which a node owns nothing; this one if that is so."""
        if node in self.drained:
            return self
        return self._next(drained=tuple(sorted({*self.drained, node})))

    def undrained(self, node: int) -> Placement:
        """The next one, in which a node owns families while it serves; this one if that is so."""
        if node not in self.drained:
            return self
        return self._next(drained=tuple(each for each in self.drained if each != node))

    def _next(
        self,
        *,
        serving: tuple[int, ...] | None = None,
        moved: dict[str, int] | None = None,
        drained: tuple[int, ...] | None = None,
    ) -> Placement:
        """The next one; what is not given stays as it is."""
        serving = self.serving if serving is None else serving
        made = Placement(
            self.version + 1,
            self.leader,
            serving,
            self.moved if moved is None else moved,
            tuple(sorted({*self.known, *serving})),
            self.drained if drained is None else drained,
        )
        if made.leader in made.owning:
            return made
        return msgspec.structs.replace(made, leader=made.owning[0])


def chosen(family: str, numbers: Sequence[int]) -> int:
    """Return whose weight for a family is the greatest."""
    if len(numbers) == 1:
        return numbers[0]
    return ranked(family, numbers)[-1]


def ranked(family: str, numbers: Sequence[int]) -> list[int]:
    """Return numbers by their weight for a family, the greatest last."""
    return sorted(numbers, key=lambda each: (number_of(f"{each} {family}"), each))


def number_of(text: str) -> int:
    """Return a number that stands for a text, the same everywhere."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

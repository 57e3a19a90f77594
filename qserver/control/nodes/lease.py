"""For how long a node may answer, and from when on others know that it does not.

    holder      ├─ renewal sent ──────── until: that moment + the lease
    challenger          ├─ renewal seen ──────────────── + the lease + a tenth: it may be ended

The holder counts from when it sent a renewal that was answered, the challenger from when it saw
the last one: later. Each uses only its own clock, so no two clocks are compared; what is assumed is
that no two differ in speed by a tenth, so that none is wrong by 4.5 %. The clock counts while a
machine sleeps.

A renewal is a compare-and-set of the node's value. Who ends a lease sets the value, too, and so
the holder's next renewal is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import msgspec

PREFIX: Final = "node."
MARGIN: Final = 1.1
"""Clocks may differ in speed by less than this."""


class NodeFacts(msgspec.Struct, frozen=True):
    """The value of a node: what others know of it."""

    name: str
    number: int
    url: str
    """Where clients reach it."""
    link: str
    """Where other nodes reach it: host:port."""
    folder: str
    """The identity of its data folder, which one process at a time has locked."""
    life: str
    """Another one for each start."""
    lease_seconds: float
    beat: int = 0
    """Renewals of this life."""
    is_ended: bool = False
    released: int = 0
    """The version of the placement of which it has nothing that others own."""


class Lease:
    """What one life of this node may rely on. What was opened in it is shown only in it."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self._until = -inf

    def holds(self) -> bool:
        return self.clock() < self._until

    def extend(self, sent: float) -> None:
        """A renewal that was sent then has been answered."""
        self._until = max(self._until, sent + self.seconds)

    def drop(self) -> None:
        """It never holds again."""
        self._until = -inf
        self.extend = _too_late  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return "a lease that holds" if self.holds() else "a lease that has ended"


def _too_late(sent: float) -> None:
    """The life has ended."""


class Seen(msgspec.Struct):
    """What this node has seen of another."""

    facts: NodeFacts
    revision: int
    since: float
    """When this revision was seen first."""

    def is_over(self, now: float) -> bool:
        """Return whether the lease has run out, as far as can be seen."""
        return now - self.since > self.facts.lease_seconds * MARGIN

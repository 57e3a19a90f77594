"""What each organization may have of what all share, and what it has now.

    Shares ─┬─ Share of organization a ── limits, memory, bodies, turns
            ├─ Share of organization b ── …              │       └─ among those of all others
            └─ anonymous                                 └─ parts of the server's pools

A grant carries the share of its organization, and a database that is opened gets it, too. There is
one object for an organization for as long as the process runs; its limits are those of the grant
that was looked up last.
"""

from __future__ import annotations

from collections.abc import Mapping

from qserver.control.tiers import TIERS, Limits, Tier
from qserver.engine.yielding import Turns
from qserver.limits import STATEMENT_SECONDS
from qserver.query.memory_pool import MemoryPool


class Share:
    """The share of one organization."""

    __slots__ = ("bodies", "limits", "memory", "turns")

    def __init__(
        self,
        limits: Limits | None = None,
        memory: MemoryPool | None = None,
        bodies: MemoryPool | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.memory = memory or MemoryPool()
        """Of statements, open transactions and answers that are not read yet."""
        self.bodies = bodies or MemoryPool()
        """Of requests that are arriving."""
        self.turns = Turns()
        """Its place among those whose work takes long."""

    def __repr__(self) -> str:
        return f"a share: {self.memory!r}"


class Shares:
    def __init__(
        self,
        memory: MemoryPool | None = None,
        bodies: MemoryPool | None = None,
        *,
        tiers: Mapping[str, Tier] = TIERS,
        statement_seconds: float = STATEMENT_SECONDS,
        statement_seconds_max: float | None = None,
    ) -> None:
        """`statement_seconds_max`: the most that a request may ask for; None: no more."""
        self._memory = memory or MemoryPool()
        self._bodies = bodies or MemoryPool()
        self._tiers = tiers
        self._timeout_ms = round(statement_seconds * 1000)
        most = statement_seconds if statement_seconds_max is None else statement_seconds_max
        self._timeout_max_ms = round(most * 1000)
        self._shares: dict[str, Share] = {}
        self.anonymous = self._new(Limits())
        """Of requests that need no key."""

    def share(self, organization_id: str, tier: str) -> Share:
        """Return the share of an organization, with what it may have now."""
        found = self._shares.get(organization_id)
        if found is None:
            found = self._shares[organization_id] = self._new(self.limits(tier))
        found.limits = self.limits(tier)
        return found

    def _new(self, limits: Limits) -> Share:
        return Share(limits, self._memory.part(), self._bodies.part())

    def limits(self, tier: str) -> Limits:
        """Return what an organization of a tier may have."""
        found = self._tiers[tier]
        return Limits(
            requests_per_minute=found.requests_per_minute,
            databases=found.databases,
            stored_bytes=found.stored_bytes,
            statement_timeout_ms=self._timeout_ms,
            statement_timeout_max_ms=self._timeout_max_ms,
        )

    def note_organizations(self, count: int) -> None:
        """Note how many organizations there are: one alone need not leave room for others."""
        self._memory.has_one_user = self._bodies.has_one_user = count <= 1

    def __repr__(self) -> str:
        return f"the shares of {len(self._shares)} organizations"
